import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from controller import decision
from controller.allocator import reason
from docs.generate import OVERRIDES, PAGE, render_reference
from dra_driver.devices.simulated.override import Overrides, parse_overrides
from dra_driver.devices.simulated.profile import read_profile


def test_the_reference_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_reference(), "run `make docs`"


@pytest.mark.parametrize(
    ("codes", "meanings"),
    [(decision.Code, decision.MEANINGS), (reason.ReasonCode, reason.MEANINGS)],
    ids=["of a Pod", "of a claim"],
)
def test_every_code_has_a_meaning(codes: Iterable[str], meanings: Mapping[str, str]) -> None:
    assert list(meanings) == list(codes)


def test_the_example_of_overrides_is_one_that_the_backend_accepts_and_has_every_field() -> None:
    overrides = parse_overrides(OVERRIDES, "overrides", read_profile("a100x8"))
    unset = Overrides()
    same = [name for name in Overrides.__struct_fields__ if getattr(overrides, name) == getattr(unset, name)]
    assert same == []


def test_links_between_documents_lead_somewhere() -> None:
    root = Path(__file__).parents[3]
    pages = [*root.glob("*.md"), *root.glob("docs/*.md"), *root.glob("deploy/**/*.md")]
    broken = [f"{page.relative_to(root)}: {link}" for page in pages for link in _links(page) if not _leads(page, link)]
    assert broken == []


def _links(page: Path) -> list[str]:
    targets = [part.split(")")[0] for part in page.read_text(encoding="utf-8").split("](")[1:]]
    return [target for target in targets if not target.startswith("http")]


def _leads(page: Path, link: str) -> bool:
    path, _, section = link.partition("#")
    target = page.parent / path if path else page
    return target.exists() and (not section or section in _sections(target))


def _sections(page: Path) -> set[str]:
    """The names by which GitHub links to headings: lower case, without punctuation, `-` for a blank."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
