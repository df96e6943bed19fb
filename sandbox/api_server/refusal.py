"""Answers that refuse a request: `metav1.Status` with the codes, reasons and texts of a real API server."""

import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from dra_driver.errors import FieldError, FieldReason
from sandbox.api_server.kind import Kind

_QUOTED_KEY: Final = re.compile(r"""\[(?:'([^']*)'|"([^"]*)")\]""")


class Refusal(Exception):  # noqa: N818 - it is an answer, not a mistake of the server
    """An answer that refuses a request."""

    def __init__(
        self, code: int, reason: str, message: str, details: Mapping[str, Any] | None = None, retry_after_s: int = 0
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.details = {name: value for name, value in (details or {}).items() if value}
        self.retry_after_s = retry_after_s

    @property
    def status(self) -> dict[str, Any]:
        """The Status that is sent."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": str(self),
            "reason": self.reason,
        }
        if self.details:
            status["details"] = self.details
        return status | {"code": self.code}


def not_found(kind: Kind, name: str) -> Refusal:
    """There is no such object."""
    details = {"name": name, "group": kind.group, "kind": kind.plural}
    return Refusal(HTTPStatus.NOT_FOUND, "NotFound", f'{kind.qualified} "{name}" not found', details)


def no_resource() -> Refusal:
    """The path leads nowhere."""
    return Refusal(HTTPStatus.NOT_FOUND, "NotFound", "the server could not find the requested resource")


def not_allowed() -> Refusal:
    """The path does not take the method."""
    message = "the server does not allow this method on the requested resource"
    return Refusal(HTTPStatus.METHOD_NOT_ALLOWED, "MethodNotAllowed", message)


def already_exists(kind: Kind, name: str) -> Refusal:
    """The name is taken."""
    details = {"name": name, "group": kind.group, "kind": kind.plural}
    return Refusal(HTTPStatus.CONFLICT, "AlreadyExists", f'{kind.qualified} "{name}" already exists', details)


def conflict(kind: Kind, name: str, problem: str) -> Refusal:
    """Somebody else was first, or a condition does not hold."""
    details = {"name": name, "group": kind.group, "kind": kind.plural}
    message = f'Operation cannot be fulfilled on {kind.qualified} "{name}": {problem}'
    return Refusal(HTTPStatus.CONFLICT, "Conflict", message, details)


def modified(kind: Kind, name: str) -> Refusal:
    """The resource version is not the current one."""
    problem = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(kind, name, problem)


def forbidden(kind: Kind, name: str, problem: str, causes: Sequence[Mapping[str, str]] = ()) -> Refusal:
    """Nobody may do that."""
    details = {"name": name, "group": kind.group, "kind": kind.plural, "causes": list(causes)}
    quoted = f' "{name}"' if name else ""
    return Refusal(HTTPStatus.FORBIDDEN, "Forbidden", f"{kind.qualified}{quoted} is forbidden: {problem}", details)


def bad_request(message: str) -> Refusal:
    """The request makes no sense."""
    return Refusal(HTTPStatus.BAD_REQUEST, "BadRequest", message)


def unsupported_media_type(wanted: Sequence[str]) -> Refusal:
    """The body is of a type that is not read here."""
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(wanted)}"
    return Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)


def expired(message: str) -> Refusal:
    """What happened since that resource version is forgotten."""
    return Refusal(HTTPStatus.GONE, "Expired", message)


def too_large_version(version: int, current: int) -> Refusal:
    """The resource version is of the future."""
    message = f"Timeout: Too large resource version: {version}, current: {current}"
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    details = {"causes": causes, "retryAfterSeconds": 1}
    return Refusal(HTTPStatus.GATEWAY_TIMEOUT, "Timeout", message, details, retry_after_s=1)


def invalid(kind: Kind, name: str, errors: Iterable[FieldError]) -> Refusal:
    """Fields of the object are wrong; each of them is a cause."""
    causes = [
        {"reason": error.reason, "message": f"{_PHRASES[error.reason]}: {error.problem}"}
        | {"field": _QUOTED_KEY.sub(lambda found: f"[{found[1] or found[2] or ''}]", error.path) or "<nil>"}
        for error in errors
    ]
    details = {"name": name, "group": kind.group, "kind": kind.kind, "causes": causes}
    texts = [f"{cause['field']}: {cause['message']}" for cause in causes]
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    group = f".{kind.group}" if kind.group else ""
    message = f'{kind.kind}{group} "{name}" is invalid: {text}'
    return Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, details)


_PHRASES: Final = {
    FieldReason.REQUIRED: "Required value",
    FieldReason.INVALID: "Invalid value",
    FieldReason.NOT_SUPPORTED: "Unsupported value",
    FieldReason.DUPLICATE: "Duplicate value",
    FieldReason.NOT_FOUND: "Not found",
    FieldReason.FORBIDDEN: "Forbidden",
    FieldReason.TOO_LONG: "Too long",
    FieldReason.TOO_MANY: "Too many",
    FieldReason.TYPE_INVALID: "Invalid value",
}


def invalid_patch(problem: str) -> Refusal:
    """What a patch makes is no object of the kind."""
    causes = [{"reason": FieldReason.INVALID, "message": f"Invalid value: {problem}", "field": "patch"}]
    message = f'"" is invalid: patch: Invalid value: {problem}'
    return Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, {"causes": causes})


def invalid_query(kind: str, field: str, problem: str, reason: FieldReason = FieldReason.NOT_SUPPORTED) -> Refusal:
    """A query parameter is wrong; `kind` is that of the options which it is part of."""
    causes = [{"reason": reason, "message": problem, "field": field}]
    details = {"group": "meta.k8s.io", "kind": kind, "causes": causes}
    message = f'{kind}.meta.k8s.io "" is invalid: {field}: {problem}'
    return Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, details)
