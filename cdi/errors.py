"""Every error that this library raises on purpose.

    CdiError
    ├── InvalidNameError      a kind, a qualified name or the name of a spec file is malformed
    ├── InvalidSpecError      a spec is malformed or breaks a rule; carries every problem
    ├── StoreError            a spec file or its directory cannot be read or written
    └── UnresolvableError     qualified names that no usable spec defines; carries every name

Texts are one lower-case line without a full stop: `subject: problem, want expectation`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong in a spec: `path` as in `devices[0].containerEdits.env[1]`, empty for the whole spec."""

    path: str
    problem: str

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}" if self.path else self.problem


class CdiError(Exception):
    """Base of all errors that are raised on purpose."""


class InvalidNameError(CdiError):
    """A name is malformed. `problems` holds every reason."""

    def __init__(self, subject: str, problems: Sequence[str]) -> None:
        super().__init__(f"{subject}: " + "; ".join(problems))
        self.subject = subject
        self.problems = tuple(problems)


class InvalidSpecError(CdiError):
    """A spec is malformed or breaks a rule. `problems` holds every problem, never only the first."""

    def __init__(self, subject: str, problems: Sequence[Problem]) -> None:
        super().__init__(f"{subject}: " + "; ".join(map(str, problems)))
        self.subject = subject
        self.problems = tuple(problems)


class StoreError(CdiError):
    """A spec file or its directory cannot be read or written. `errno` is the system's number for the reason."""

    def __init__(self, message: str, *, errno: int = 0) -> None:
        super().__init__(message)
        self.errno = errno


class UnresolvableError(CdiError):
    """No usable spec defines some qualified names. `reasons` maps each of them to why, in the order asked for."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"device {name!r}: {reason}" for name, reason in reasons.items()))
        self.reasons = dict(reasons)
