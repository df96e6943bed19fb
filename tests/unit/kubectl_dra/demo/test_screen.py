"""How the demo looks on a terminal and in a file."""

import io

import pytest

from kubectl_dra.demo.exhibit import Code, Fact, Reason, Table
from kubectl_dra.demo.screen import Screen

EXHIBITS = (
    Table(("node", "device"), [("node-a", "gpu-[bold]0[/bold]")]),
    Code("claim.yaml", "kind: Claim  \n" + "a" * 300, "yaml"),
    Fact("it fits"),
    Reason("the scheduler", "no room"),
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def show(stream: io.StringIO) -> str:
    screen = Screen(stream)
    screen.begin("title", "welcome")
    screen.scene(1, 2, "scene", "why")
    with screen.waiting("something"):
        pass
    for exhibit in EXHIBITS:
        screen.exhibit(exhibit)
    screen.end("done")
    return stream.getvalue()


def test_a_file_gets_plain_lines_as_they_are() -> None:
    text = show(io.StringIO())
    assert "\x1b" not in text
    assert all(line == line.rstrip() for line in text.splitlines())
    assert f"     {'a' * 300}\n" in text
    assert "gpu-[bold]0[/bold]" in text
    assert "✔ it fits" in text


def test_a_terminal_gets_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = show(Terminal())
    assert "\x1b[1;32m✔" in text
    assert "gpu-[bold]0[/bold]" in text


def test_no_color_is_heeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[1;32m" not in show(Terminal())
