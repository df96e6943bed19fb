"""What an API server says when it refuses: `metav1.Status`, and the error of `dra_driver.errors` that it becomes.

This is the one boundary between HTTP statuses and our errors. It is pure.
"""

from collections.abc import Mapping
from http import HTTPStatus

from dra_driver.api import codec
from dra_driver.api.meta_v1 import Status
from dra_driver.errors import (
    ApiConflictError,
    ApiError,
    ApiForbiddenError,
    ApiGoneError,
    ApiInvalidError,
    ApiNotFoundError,
    ApiUnavailableError,
    InvalidError,
)

_LONGEST_TEXT = 2000  # a proxy may answer with a page of HTML

_ERRORS: Mapping[int, type[ApiError]] = {
    HTTPStatus.BAD_REQUEST: ApiInvalidError,
    HTTPStatus.UNAUTHORIZED: ApiForbiddenError,
    HTTPStatus.FORBIDDEN: ApiForbiddenError,
    HTTPStatus.NOT_FOUND: ApiNotFoundError,
    HTTPStatus.REQUEST_TIMEOUT: ApiUnavailableError,
    HTTPStatus.CONFLICT: ApiConflictError,
    HTTPStatus.GONE: ApiGoneError,
    HTTPStatus.UNPROCESSABLE_ENTITY: ApiInvalidError,
    HTTPStatus.TOO_MANY_REQUESTS: ApiUnavailableError,
}


def parse_status(body: bytes) -> Status:
    """Return the Status in a body. A body that is something else (a proxy's page) becomes the message."""
    try:
        status = codec.decode(body, Status)
    except InvalidError:
        status = Status()
    if status.status or status.message or status.reason:
        return status
    return Status(message=body.decode("utf-8", "replace"))


def build_error(subject: str, code: int, status: Status, *, retry_after: str = "") -> ApiError:
    """Return the error for an answer with HTTP status `code`; `retry_after` is the header of that name.

    `subject` says what was asked, such as `update resourceslices node-a-x`. The text has one line, and keeps the
    server's message and all causes.
    """
    reason = status.reason or _phrase(code)
    error_type = _ERRORS.get(code) or (ApiUnavailableError if code >= HTTPStatus.INTERNAL_SERVER_ERROR else ApiError)
    error = error_type(f"{subject}: {code} {reason}{_text(status)}", status=code, reason=reason)
    if isinstance(error, ApiUnavailableError):
        error.retry_after_s = _retry_after_s(status, retry_after)
    return error


def _phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase.title().replace(" ", "")
    except ValueError:
        return "Unknown"


def _text(status: Status) -> str:
    parts = [status.message] if status.message else []
    for cause in status.details.causes if status.details else ():
        text = ": ".join(part for part in (cause.field, cause.message or cause.reason) if part)
        if cause.message not in status.message or cause.field not in status.message:
            parts.append(text)
    line = " ".join("; ".join(parts).split()).rstrip(".")
    if len(line) > _LONGEST_TEXT:
        line = line[: _LONGEST_TEXT - 1] + "…"
    return f": {line}" if line else ""


def _retry_after_s(status: Status, header: str) -> float | None:
    """Seconds only: a Retry-After that is a date needs a clock, and API servers do not send it."""
    if header.strip().isdecimal():
        return float(header)
    if status.details and status.details.retry_after_seconds > 0:
        return float(status.details.retry_after_seconds)
    return None
