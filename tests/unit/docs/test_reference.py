from pathlib import Path

from docs.generate import PAGE, render_reference


def test_the_reference_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_reference(), "run `make docs`"


def test_links_between_documents_lead_somewhere() -> None:
    root = Path(__file__).parents[3]
    pages = [*root.glob("*.md"), *root.glob("docs/*.md"), *root.glob("deploy/**/*.md")]
    broken = [
        f"{page.relative_to(root)}: {link}"
        for page in pages
        for link in _links(page)
        if not (page.parent / link).exists()
    ]
    assert broken == []


def _links(page: Path) -> list[str]:
    targets = [part.split(")")[0] for part in page.read_text(encoding="utf-8").split("](")[1:]]
    return [target.split("#")[0] for target in targets if not target.startswith(("http", "#"))]
