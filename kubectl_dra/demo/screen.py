"""How the demo looks: with colours, a spinner and tables on a terminal, as plain lines in a file."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO, assert_never

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table as RichTable
from rich.text import Text

from kubectl_dra.demo.exhibit import Code, Exhibit, Fact, Reason, Table

_FILE_WIDTH: Final = 110
_WIDEST: Final = 120
_MARGIN: Final = "   "
_THEME: Final = "ansi_dark"


class Screen:
    """Writes to one stream. NO_COLOR and TERM=dumb are heeded; what is no terminal gets no control characters."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._console = Console(
            file=stream,
            force_terminal=None if self._is_terminal else False,
            width=None if self._is_terminal else _FILE_WIDTH,
            highlight=False,
            markup=False,
            emoji=False,
        )
        self._console.width = min(self._console.width, _WIDEST)

    def begin(self, title: str, text: str) -> None:
        """Say what is about to be seen."""
        self._print(Panel(Text(text), title=Text(title, style="bold"), title_align="left", box=box.ROUNDED))

    def scene(self, number: int, total: int, title: str, why: str) -> None:
        """Begin a scene."""
        self._print("")
        self._print(Text.assemble((f"{number}/{total}  ", "bold cyan"), (title, "bold")))
        self._indent(Text(why, style="dim"))

    def exhibit(self, exhibit: Exhibit) -> None:
        """Show one thing."""
        match exhibit:
            case Table(columns, rows):
                table = RichTable(*columns, box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
                for row in rows:
                    table.add_row(*(Text(cell) for cell in row))
                self._indent(table)
            case Code(title, text, language):
                self._indent(Text(f"── {title}", style="dim"))
                self._code(text, language)
            case Fact(text):
                self._indent(Text.assemble(("✔ ", "bold green"), text))
            case Reason(source, text):
                self._indent(Text.assemble(("✘ ", "bold yellow"), source))
                self._indent(Text(text, style="yellow"), 2)
            case _:
                assert_never(exhibit)

    def manifest(self, name: str, text: str) -> None:
        """Show what a user applies."""
        self.exhibit(Code(f"kubectl apply --server-side -f {name}.yaml", text.rstrip(), "yaml"))

    def say(self, text: str) -> None:
        """Write text as it is."""
        self._console.print(Text(text), soft_wrap=True)

    def end(self, text: str) -> None:
        """Say how it ended."""
        self._print("")
        self._console.print(Text(text, style="bold green"), soft_wrap=True)

    def fail(self, text: str) -> None:
        """Say what went wrong."""
        self._print("")
        self._console.print(Text(text, style="bold red"), soft_wrap=True)

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Show on a terminal that something takes a moment."""
        if not self._is_terminal:
            yield
            return
        with self._console.status(Text(f"waiting for {what}")):
            yield

    def _code(self, text: str, language: str) -> None:
        if not self._is_terminal:  # lines as they are, to be copied from a log
            self._print(*(f"{_MARGIN}  {line}" for line in text.splitlines()), "")
            return
        syntax = Syntax(text, language, theme=_THEME, word_wrap=True, background_color="default")
        self._indent(Padding(syntax, (0, 0, 1, 0)), 2)

    def _indent(self, renderable: RenderableType, more: int = 0) -> None:
        self._print(Padding(renderable, (0, 0, 0, len(_MARGIN) + more)))

    def _print(self, *renderables: RenderableType) -> None:
        """Write lines; into a file without blanks at their ends."""
        if self._is_terminal:
            self._console.print(*renderables, sep="\n")
            return
        with self._console.capture() as capture:
            for each in renderables:
                self._console.print(each, soft_wrap=isinstance(each, str))
        for line in capture.get().splitlines():
            self._stream.write(f"{line.rstrip()}\n")
        self._stream.flush()
