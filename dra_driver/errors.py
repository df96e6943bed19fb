"""Every error that the driver raises on purpose.

    DraError
    ├── InvalidError       input that a person wrote is wrong; carries every field error
    ├── SettingError       a flag, an environment variable or a path of this process is unusable
    ├── ClaimError         a claim cannot be prepared or unprepared; the others go on
    │   └── DeviceBusyError    what is already prepared leaves no room; names the holder
    ├── DeviceError        a device or a backend does not do what it should
    ├── StateError         state on disk cannot be read or written
    ├── CompileError       an expression cannot be used; drawn in `dra_driver.cel.error`, as are the next
    ├── EvaluationError    an expression cannot be decided for a device
    ├── AllocationError    an allocation cannot be tried; drawn in `controller.allocator.error`
    ├── LeadershipLostError   a write was not sent, since another replica may lead by now
    └── ApiError           the API server refused or could not be reached
        ├── ApiUnavailableError   no answer, 429 or 5xx: try again later
        ├── ApiForbiddenError     401, 403
        ├── ApiNotFoundError      404
        ├── ApiConflictError      409: somebody else changed or created it
        ├── ApiGoneError          410: the resource version is too old, list again
        └── ApiInvalidError       400, 422: the object is refused as it is

Texts are one lower-case line without a full stop: `subject: problem, want expectation`.
User text is quoted with `repr`, objects are `namespace/name`, devices `pool/device`.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class DraError(Exception):
    """Base of all errors that are raised on purpose."""


class FieldReason(StrEnum):
    """What an API server calls that which is wrong with a field."""

    REQUIRED = "FieldValueRequired"
    INVALID = "FieldValueInvalid"
    NOT_SUPPORTED = "FieldValueNotSupported"
    DUPLICATE = "FieldValueDuplicate"
    NOT_FOUND = "FieldValueNotFound"
    FORBIDDEN = "FieldValueForbidden"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"
    TYPE_INVALID = "FieldValueTypeInvalid"


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing that is wrong in an object: `path` as a user would write it (`spec.pool.name`), and `problem`."""

    path: str
    problem: str
    reason: FieldReason = field(default=FieldReason.INVALID, compare=False)

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}" if self.path else self.problem


class InvalidError(DraError):
    """Input is wrong. `errors` holds every field error, never only the first."""

    def __init__(self, subject: str, errors: Sequence[FieldError]) -> None:
        super().__init__(f"{subject}: " + "; ".join(map(str, errors)))
        self.subject = subject
        self.errors = tuple(errors)


class SettingError(DraError):
    """A flag, an environment variable or a path of this process is unusable."""


class ClaimError(DraError):
    """A claim cannot be prepared or unprepared."""


class DeviceBusyError(ClaimError):
    """What is already prepared leaves no room for a device, share or partition."""


class DeviceError(DraError):
    """A device or a backend does not do what it should."""


class StateError(DraError):
    """State on disk cannot be read or written."""


class LeadershipLostError(DraError):
    """A write was not sent, since this process does not lead, or no longer. It is no ApiError: nobody was asked."""


class ApiError(DraError):
    """The API server refused a request, or could not be reached. `status` is the HTTP status, 0 without an answer."""

    def __init__(self, message: str, *, status: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class ApiUnavailableError(ApiError):
    """No answer, 429 or 5xx. `retry_after_s` is what the server asks for, if it does."""

    retry_after_s: float | None = None


class ApiForbiddenError(ApiError):
    """401 or 403: this identity may not do that."""


class ApiNotFoundError(ApiError):
    """404: there is no such object."""


class ApiConflictError(ApiError):
    """409: the object exists already, or was changed by somebody else."""


class ApiGoneError(ApiError):
    """410: the resource version is too old; list again."""


class ApiInvalidError(ApiError):
    """400 or 422: the object is refused as it is."""


def explain_os_error(error: OSError) -> str:
    """Say in lower case why the system refused, in the system's words rather than in those of a library above it."""
    number = error.errno or 0
    return (os.strerror(number) if number > 0 else error.strerror or str(error)).lower()
