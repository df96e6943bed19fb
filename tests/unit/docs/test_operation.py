import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]

TELLING = {"warn", "inform", "record", "_warn", "_record", "_warn_of_claim"}
"""What sends an Event, with the reason among its arguments."""

NAMED = {"REASON", "SEVERAL", "DOWN", "RESTARTED"}
"""Constants that are reasons."""

REASON = re.compile(r"(?:[A-Z][a-z]+){2,}")


def test_the_page_lists_the_events_that_are_sent() -> None:
    sent = {reason for tree in _trees() for reason in _find_reasons(tree)}
    # `service.py` makes these two of the operation's name, and `ailment.py` yields the last with its text.
    sent |= {"PrepareFailed", "UnprepareFailed", "DeviceGone"}
    assert _listed() == sent


def _trees() -> Iterator[ast.Module]:
    for folder in ("kubeletplugin", "controller"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield ast.parse(path.read_text(encoding="utf-8"))


def _find_reasons(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=name), args=args) if name in TELLING:
                yield from _texts(args)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if name in NAMED:
                yield from _texts([value])


def _texts(nodes: list[ast.expr]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and REASON.fullmatch(node.value):
            yield node.value


def _listed() -> set[str]:
    page = (ROOT / "docs/operation.md").read_text(encoding="utf-8")
    section = page.split("\n## Events\n")[1].split("\n## ")[0]
    rows = [line.split("|")[2] for line in section.splitlines() if line.startswith("| ")][1:]
    return {reason for row in rows for reason in re.findall(r"`(\w+)`", row)}
