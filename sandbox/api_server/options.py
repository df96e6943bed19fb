"""The query parameters of lists and watches, and the tokens by which a list goes on. Pure."""

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from sandbox.api_server.metadata import parse_version
from sandbox.api_server.refusal import Refusal, bad_request
from sandbox.api_server.store import Key

_FALSE = ("0", "false", "False", "FALSE", "f", "F")


@dataclass(frozen=True, slots=True)
class ListOptions:
    """What a list or watch wants. `revision` is None if any newest state will do."""

    is_watch: bool
    limit: int
    start: Key | None
    """Where a list goes on: behind this key."""
    revision: int | None
    is_exact: bool
    initial_events: bool | None
    bookmarks: bool
    timeout_s: float | None
    labels: str
    fields: str


class _Token(msgspec.Struct):
    v: str
    rv: int
    start: str


def parse_options(query: Mapping[str, str]) -> ListOptions:
    """Read the query of a list or watch. Raises Refusal."""
    is_watch = parse_bool(query, "watch") or False
    token, version, match = (query.get(name, "") for name in ("continue", "resourceVersion", "resourceVersionMatch"))
    initial_events = parse_bool(query, "sendInitialEvents")
    _check(is_watch=is_watch, token=token, version=version, match=match, initial_events=initial_events)
    revision: int | None = parse_version(version) or None
    start = None
    if token and not is_watch:
        if version not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        revision, start = read_token(token)
    return ListOptions(
        is_watch=is_watch,
        limit=max(0, parse_int(query, "limit")),
        start=start,
        revision=revision,
        is_exact=match == "Exact" or start is not None,
        initial_events=initial_events,
        bookmarks=parse_bool(query, "allowWatchBookmarks") or False,
        timeout_s=float(parse_int(query, "timeoutSeconds")) or None,
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
    )


def parse_bool(query: Mapping[str, str], name: str) -> bool | None:
    """Read a boolean as Go does; None if it is not there. Raises Refusal."""
    text = query.get(name)
    if text is None:
        return None
    return text not in _FALSE  # as the API server reads it


def write_token(revision: int, last: Key) -> str:
    """Write where a list goes on."""
    start = f"{last.namespace}/{last.name}" if last.namespace else last.name
    content = msgspec.json.encode(_Token("meta.k8s.io/v1", revision, f"{start}\0"))
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def read_token(token: str) -> tuple[int, Key]:
    """Read where a list goes on. Raises Refusal."""
    try:
        content = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        read = msgspec.json.decode(content, type=_Token)
    except (binascii.Error, msgspec.MsgspecError, UnicodeError, ValueError):
        raise bad_request("continue key is not valid") from None
    if read.v != "meta.k8s.io/v1" or read.rv <= 0 or not read.start:
        raise bad_request("continue key is not valid")
    namespace, _, name = read.start.rstrip("\0").rpartition("/")
    return read.rv, Key(namespace, name)


def parse_int(query: Mapping[str, str], name: str) -> int:
    """Read an integer of 64 bits; 0 if it is not there. Raises Refusal."""
    text = query.get(name) or "0"
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 19):  # noqa: PLR2004 - 64 bits
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


_FORBIDDEN: Final = "FieldValueForbidden"
_NOT_SUPPORTED: Final = "FieldValueNotSupported"


def _check(*, is_watch: bool, token: str, version: str, match: str, initial_events: bool | None) -> None:
    """Refuse combinations that the API forbids."""
    problems = [
        *_check_match(is_watch=is_watch, token=token, version=version, match=match, asks=initial_events is not None),
        *_check_initial_events(is_watch=is_watch, match=match, asks=initial_events is not None),
    ]
    if problems:
        causes: list[Any] = [
            {"reason": reason, "message": problem, "field": field} for field, reason, problem in problems
        ]
        message = f'ListOptions.meta.k8s.io "" is invalid: {problems[0][0]}: {problems[0][2]}'
        raise Refusal(422, "Invalid", message, {"group": "meta.k8s.io", "kind": "ListOptions", "causes": causes})


def _check_match(*, is_watch: bool, token: str, version: str, match: str, asks: bool) -> Iterator[tuple[str, str, str]]:
    field = "resourceVersionMatch"
    if match and is_watch and not asks:
        yield field, _FORBIDDEN, f"{field} is forbidden for watch unless sendInitialEvents is provided"
    elif match and token:
        yield field, _FORBIDDEN, f"{field} is forbidden when continue is provided"
    elif match and not version and not is_watch:
        yield field, _FORBIDDEN, f"{field} is forbidden unless resourceVersion is provided"
    if match == "Exact" and is_watch:
        yield field, _NOT_SUPPORTED, 'Unsupported value: "Exact": supported values: "NotOlderThan"'
    elif match not in ("", "Exact", "NotOlderThan"):
        yield field, _NOT_SUPPORTED, f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
    elif match == "Exact" and version == "0":
        yield field, _FORBIDDEN, f'{field} "exact" is forbidden for resourceVersion "0"'


def _check_initial_events(*, is_watch: bool, match: str, asks: bool) -> Iterator[tuple[str, str, str]]:
    if asks and not is_watch:
        yield "sendInitialEvents", _FORBIDDEN, "sendInitialEvents is forbidden for list"
    elif asks and match != "NotOlderThan":
        problem = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        yield "resourceVersionMatch", _FORBIDDEN, problem
