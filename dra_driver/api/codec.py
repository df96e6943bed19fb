"""Objects to JSON bytes and back.

Encoding is deterministic: map keys are sorted and fields have their order, so that equal objects give equal bytes
(quantities in equal formats). Decoding ignores unknown fields, unless the type forbids them.
"""

from typing import Any, Final, TypeVar

import msgspec

from dra_driver.api.quantity import Quantity
from dra_driver.errors import FieldError, InvalidError

T = TypeVar("T")

_PASSED_THROUGH: Final = ("parameters", "data")


def encode(obj: Any) -> bytes:
    """Write `obj` as JSON."""
    return _ENCODER.encode(obj)


def decode(data: bytes | str | msgspec.Raw, type: type[T]) -> T:  # noqa: A002 - the name of msgspec's own parameter
    """Read a `type` from JSON. Raises InvalidError with the field's path; JSON that is nested too deeply is invalid."""
    try:
        return msgspec.json.decode(data, type=type, dec_hook=_decode_hook)
    except msgspec.ValidationError as error:
        if "got `null`" in str(error):
            return _decode_without_nulls(data, type)
        raise InvalidError(_subject(type), [_field_error(str(error))]) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidError(_subject(type), [FieldError("", f"not JSON ({error}), want a JSON object")]) from error
    except RecursionError as error:
        raise InvalidError(_subject(type), [FieldError("", "nested too deeply, want a flatter object")]) from error


def _decode_without_nulls(data: bytes | str | msgspec.Raw, type: type[T]) -> T:  # noqa: A002 - as above
    """Read JSON in which null stands for nothing: a server written in Go sends it for a list without items."""
    value = _without_nulls(msgspec.json.decode(data))
    try:
        return msgspec.convert(value, type, dec_hook=_decode_hook)
    except msgspec.ValidationError as error:
        raise InvalidError(_subject(type), [_field_error(str(error))]) from error


def _without_nulls(value: Any, name: str = "") -> Any:
    """Leave nulls out, but not of what is passed through as it is."""
    if isinstance(value, dict) and name not in _PASSED_THROUGH:
        return {key: _without_nulls(item, key) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _subject(type_: Any) -> str:
    return str(getattr(type_, "__name__", type_))


def _field_error(text: str) -> FieldError:
    """Split msgspec's `Expected ... - at `$.a[0]`` into path and problem."""
    problem, separator, at = text.rpartition(" - at `")
    if not separator:
        problem, at = text, ""
    return FieldError(at.rstrip("`").removeprefix("$").removeprefix("."), problem[:1].lower() + problem[1:])


def _encode_hook(value: Any) -> Any:
    if isinstance(value, Quantity):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} has no JSON form")


def _decode_hook(type_: type[Any], value: Any) -> Any:
    if type_ is not Quantity:
        raise NotImplementedError(f"{type_.__name__} has no JSON form")
    if isinstance(value, str):
        return Quantity.parse(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return Quantity.parse(str(value))
    raise ValueError(f"{value!r}: not a quantity, want a string")


_ENCODER = msgspec.json.Encoder(enc_hook=_encode_hook, order="deterministic")
