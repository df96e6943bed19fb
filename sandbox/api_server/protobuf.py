"""Protocol Buffers as kubectl sends them for what it makes itself: `kubectl create namespace`, `drain` and the like.

Everything else comes as JSON. The messages are those of k8s.io/api, in the envelope that begins with `k8s` and a zero.
"""

import base64
from collections.abc import Iterator, Mapping
from typing import Any, Final

from sandbox.api_server.refusal import Refusal, bad_request

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"

_MAGIC: Final = b"k8s\x00"

_Field = tuple[str, str]
"""The name in JSON, and what it holds: a scalar or a message, a `[]` before it for a list, `{}` for a map."""

_MESSAGES: Final[Mapping[str, Mapping[int, _Field]]] = {
    "Unknown": {1: ("typeMeta", "TypeMeta"), 2: ("raw", "raw")},
    "TypeMeta": {1: ("apiVersion", "string"), 2: ("kind", "string")},
    "ObjectMeta": {
        1: ("name", "string"),
        2: ("generateName", "string"),
        3: ("namespace", "string"),
        5: ("uid", "string"),
        6: ("resourceVersion", "string"),
        11: ("labels", "{}string"),
        12: ("annotations", "{}string"),
        14: ("finalizers", "[]string"),
    },
    "Namespace": {1: ("metadata", "ObjectMeta")},
    "ServiceAccount": {1: ("metadata", "ObjectMeta"), 4: ("automountServiceAccountToken", "bool")},
    "ConfigMap": {
        1: ("metadata", "ObjectMeta"),
        2: ("data", "{}string"),
        3: ("binaryData", "{}bytes"),
        4: ("immutable", "bool"),
    },
    "Eviction": {1: ("metadata", "ObjectMeta"), 2: ("deleteOptions", "DeleteOptions")},
    "DeleteOptions": {
        1: ("gracePeriodSeconds", "int"),
        2: ("preconditions", "Preconditions"),
        3: ("orphanDependents", "bool"),
        4: ("propagationPolicy", "string"),
        5: ("dryRun", "[]string"),
    },
    "Preconditions": {1: ("uid", "string"), 2: ("resourceVersion", "string")},
}
_TOP: Final = ("Namespace", "ServiceAccount", "ConfigMap", "Eviction", "DeleteOptions")


def read_protobuf(body: bytes) -> dict[str, Any]:
    """Give a message as the JSON that would say the same. Raises Refusal."""
    if not body.startswith(_MAGIC):
        raise bad_request("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    try:
        envelope = _read(body[len(_MAGIC) :], "Unknown")
        head = envelope.get("typeMeta", {})
        kind = head.get("kind", "")
        if kind not in _TOP:
            message = f"a {kind or 'message'} is not read as protobuf here, want application/json"
            raise Refusal(415, "UnsupportedMediaType", message)
        read: dict[str, Any] = head | _read(envelope.get("raw", b""), kind)
    except (IndexError, UnicodeDecodeError, ValueError) as error:
        raise bad_request(f"unable to decode protobuf: {error}") from None
    return read


def _read(data: bytes, message: str) -> dict[str, Any]:
    fields = _MESSAGES[message]
    read: dict[str, Any] = {}
    for number, value in _split(data):
        if number not in fields:
            continue
        name, what = fields[number]
        if what.startswith("[]"):
            read.setdefault(name, []).append(_value(value, what[2:]))
        elif what.startswith("{}"):
            entry = dict(_split(_raw(value)))
            read.setdefault(name, {})[_value(entry.get(1, b""), "string")] = _value(entry.get(2, b""), what[2:])
        else:
            read[name] = _value(value, what)
    return {name: value for name, value in read.items() if value not in ("", {})}


def _value(value: int | bytes, what: str) -> Any:
    match what:
        case "string":
            return _raw(value).decode("utf-8")
        case "bytes":
            return base64.b64encode(_raw(value)).decode()
        case "raw":
            return _raw(value)
        case "int" | "bool":
            if not isinstance(value, int):
                raise ValueError("bytes where a number is wanted")  # noqa: TRY004 - as below
            return bool(value) if what == "bool" else value - 2**64 if value >= 2**63 else value
    return _read(_raw(value), what)


def _raw(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where bytes are wanted")  # noqa: TRY004 - the data is wrong, not a caller
    return value


def _split(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        match tag & 7:
            case 0:
                value, at = _varint(data, at)
                yield tag >> 3, value
                continue
            case 1:
                size = 8
            case 2:
                size, at = _varint(data, at)
            case 5:
                size = 4
            case unknown:
                raise ValueError(f"wire type {unknown} is not known")
        if at + size > len(data):
            raise ValueError("unexpected end")
        yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:  # noqa: PLR2004 - the last one has no continuation bit
            return value & (2**64 - 1), at
        shift += 7
        if shift > 63:  # noqa: PLR2004 - 64 bits
            raise ValueError("a number is too long")
