"""Why an allocation cannot even be tried.

    DraError
    └── AllocationError    the claims, classes or slices are such that nothing can be decided

A problem that is well posed and has no solution is no error but a refusal.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from dra_driver.errors import DraError


class ErrorClass(StrEnum):
    """What kind of error it is; the same question has an error of the same class upstream."""

    COMPILE = "compile"
    """A selector or derived attribute is no valid expression."""
    RUNTIME = "runtime"
    """A selector or derived attribute could not be evaluated on a device that was reached."""
    LIMIT = "limit"
    """More devices are asked for than a claim may hold."""
    INCOMPLETE = "incomplete"
    """All devices are asked for while a pool is being updated."""
    INVALID = "invalid"
    """A pool contradicts itself, and without it the claims do not fit."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: with what, what was found there, and what would be right, as far as that is known."""

    subject: str
    found: str
    wanted: str = ""


class AllocationError(DraError):
    """Nothing can be decided. `node_only`: other nodes may still fit, this one does not.

    `path` is the request that it is about, as `claim/request` or `claim/request/subrequest`, or the claim; it is empty
    where that is not known or where it is about none. `faults` is all that is wrong.
    """

    def __init__(
        self,
        message: str,
        error_class: ErrorClass = ErrorClass.OTHER,
        *,
        node_only: bool = False,
        faults: Sequence[Fault] = (),
    ) -> None:
        super().__init__(message)
        self.error_class = error_class
        self.node_only = node_only
        self.path = ""
        self.faults = tuple(faults) or (_parse_fault(message),)

    def locate(self, path: str) -> None:
        """Say which request it is about, unless that is known."""
        self.path = self.path or path


def _parse_fault(message: str) -> Fault:
    """Take apart `subject: problem, want expectation`."""
    subject, colon, problem = message.partition(": ")
    if not colon:
        subject, problem = "", message
    for separator, word in ((", ", "want "), ("; ", "did you mean ")):
        found, is_there, wanted = problem.partition(f"{separator}{word}")
        if is_there:
            return Fault(subject, found, f"{word}{wanted}")
    return Fault(subject, problem)
