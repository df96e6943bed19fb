"""Why an allocation cannot even be tried.

    DraError
    └── AllocationError    the claims, classes or slices are such that nothing can be decided

A problem that is well posed and has no solution is no error but a refusal.
"""

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


class AllocationError(DraError):
    """Nothing can be decided. `node_only`: other nodes may still fit, this one does not."""

    def __init__(self, message: str, error_class: ErrorClass = ErrorClass.OTHER, *, node_only: bool = False) -> None:
        super().__init__(message)
        self.error_class = error_class
        self.node_only = node_only
