"""What an API server in Go reads where a field is missing: the zero value of its type, which validation then refuses.

The driver's types want such fields; here they are filled in before an object is read into them. What passes through as
it is (parameters and data) must be a JSON object: another value is marked, so that it is refused with the rest.
"""

import types
import typing
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, get_args, get_origin

import msgspec

from dra_driver.api.quantity import Quantity
from dra_driver.errors import FieldError, FieldReason
from sandbox.api_server.kind import Object

_MARK: Final = "\0"
_MISSING: Final = {_MARK: "missing"}
_WRONG: Final = {_MARK: "wrong"}
_PASSED_THROUGH: Final = (("OpaqueDeviceConfiguration", "parameters"), ("AllocatedDeviceStatus", "data"))


def complete(value: Any, type_: Any) -> Any:
    """Give the value with zero values for what is missing of a type of the driver."""
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        return _complete_object(value, type_) if isinstance(value, dict) else value
    origin, arguments = get_origin(type_), get_args(type_)
    if origin is tuple and isinstance(value, list):
        return [complete(item, arguments[0]) for item in value]
    if origin is dict and isinstance(value, dict):
        return {name: complete(item, arguments[1]) for name, item in value.items()}
    if origin in (typing.Union, types.UnionType):
        inner = [each for each in arguments if each is not type(None)]
        return complete(value, inner[0]) if value is not None and len(inner) == 1 else value
    return value


def validate_completed(value: Any, path: str = "") -> Iterator[FieldError]:
    """Yield an error for each value that was marked."""
    if isinstance(value, dict):
        if _MARK in value:
            if value[_MARK] == "missing":
                yield FieldError(path, "is missing, want a JSON object", FieldReason.REQUIRED)
            else:
                yield FieldError(path, "must be a valid JSON object")
            return
        for name, part in value.items():
            if isinstance(part, dict | list):
                yield from validate_completed(part, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict):
                yield from validate_completed(item, f"{path}[{index}]")


def _complete_object(value: Object, struct: type[msgspec.Struct]) -> Object:
    completed = dict(value)
    for name, type_, is_required in _fields(struct):
        if (struct.__name__, name) in _PASSED_THROUGH:
            if completed.get(name) is None:
                completed |= {name: _MISSING} if is_required else {}
            elif not isinstance(completed[name], dict):
                completed[name] = _WRONG
        elif completed.get(name) is not None:
            completed[name] = complete(completed[name], type_)
        elif is_required:
            completed[name] = _zero(type_)
    return completed


@cache
def _fields(struct: type[msgspec.Struct]) -> tuple[tuple[str, Any, bool], ...]:
    hints = typing.get_type_hints(struct)
    return tuple((field.encode_name, hints[field.name], field.required) for field in msgspec.structs.fields(struct))


def _zero(type_: Any) -> Any:
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        return _complete_object({}, type_)
    if type_ is Quantity:
        return "0"
    origin = get_origin(type_)
    if origin is tuple:
        return []
    return {str: "", int: 0, bool: False, dict: {}}.get(origin or type_)
