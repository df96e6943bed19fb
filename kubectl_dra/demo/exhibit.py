"""What a step of the demo has to show, apart from how it looks. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts under the names of columns."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Code:
    """A file: what it is, and its text in a language, such as `yaml` or `json`."""

    title: str
    text: str
    language: str


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that was looked at, and holds."""

    text: str


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something did not happen, in the words of who refused it."""

    source: str
    text: str


Exhibit: TypeAlias = Table | Code | Fact | Reason
