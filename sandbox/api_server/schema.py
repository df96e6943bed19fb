"""Which fields the kinds have: from the models of the `kubernetes` client, which come from Kubernetes' own OpenAPI.

A real API server reads objects into Go types: a field that they do not have is dropped (and complained about, if the
client wants that), and a value of another type is refused.
"""

import types
import typing
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Annotated, Any, Final, get_args, get_origin

from kubernetes.aio.client import models
from pydantic import BaseModel

from dra_driver.api.quantity import Quantity
from sandbox.api_server.kind import Kind, Object

_QUANTITIES: Final = frozenset(
    (
        *("limits", "capacity", "allocatable", "overhead", "consumedCapacity", "allocatedResources", "validValues"),
        *("capacityMultiplier", "deviceMultiplier", "perPod", "perContainer", "sizeLimit"),
    )
)
"""Fields that hold quantities, wherever a model has them as strings, or as maps or lists of strings."""
_QUANTITY_VALUES: Final = frozenset(
    (
        *(("V1Counter", "value"), ("V1DeviceCapacity", "value"), ("V1CapacityRequestPolicy", "default")),
        *(("V1CapacityRequestPolicyRange", name) for name in ("min", "max", "step")),
        *(("V1CapacityRequirements", "requests"), ("V1ResourceRequirements", "requests")),
    )
)
_OPAQUE: Final = (("V1OpaqueDeviceConfiguration", "parameters"), ("V1AllocatedDeviceStatus", "data"))
_MODELS: Final = {"Event": "CoreV1Event", "ResourceClaim": "ResourceV1ResourceClaim"}


class Schema:
    """The shape of a value: an object with fields, a list, a map, a scalar, or anything."""

    __slots__ = ("fields", "items", "kind", "values")

    def __init__(
        self,
        kind: str,
        fields: "dict[str, type[BaseModel] | Schema] | None" = None,
        items: "Schema | None" = None,
        values: "Schema | None" = None,
    ) -> None:
        self.kind = kind
        self.fields = fields or {}
        self.items = items
        self.values = values


class WrongTypeError(Exception):
    """A value is of another type than its field; the text is Go's."""


def prune(kind: Kind, value: Object) -> tuple[Object, tuple[str, ...]]:
    """Give the object without fields that its kind does not have and without nulls, and the paths of the former.

    Raises WrongTypeError. Metadata is left as it is, since it is read elsewhere.
    """
    unknown: list[str] = []
    schema = _of_kind(kind)
    pruned = {}
    for name, part in value.items():
        if name in ("kind", "apiVersion", "metadata"):
            pruned[name] = part
        elif name not in schema.fields:
            unknown.append(name)
        elif part is not None:
            field = _field(schema, name)
            pruned[name] = part if _is_clean(field, part) else _prune(field, part, name, unknown)
    unknown += [f"metadata.{name}" for name in _unknown_metadata(value.get("metadata"))]
    return pruned, tuple(unknown)


def _is_clean(schema: Schema, value: Any) -> bool:
    """Tell quickly whether there is nothing to leave out, to complain about or to write otherwise, as is usual."""
    kind = schema.kind
    if kind == "object":
        fields = schema.fields
        return type(value) is dict and all(
            name in fields and _is_clean(_field(schema, name), part) for name, part in value.items()
        )
    if kind == "list":
        items = schema.items
        return type(value) is list and items is not None and all(_is_clean(items, item) for item in value)
    if kind == "map":
        values = schema.values
        return type(value) is dict and values is not None and all(_is_clean(values, item) for item in value.values())
    if kind == "quantity":
        return type(value) is str and _is_canonical(value)
    return value is not None and (kind == "any" or _fits(kind, value))


@lru_cache(4096)
def _is_canonical(text: str) -> bool:
    try:
        return str(Quantity.parse(text)) == text
    except ValueError:
        return False


def _prune(schema: Schema, value: Any, path: str, unknown: list[str]) -> Any:
    if schema.kind == "any":
        return value
    if schema.kind in ("object", "map"):
        if not isinstance(value, dict):
            raise _wrong(path, value, "object")
        if schema.values is not None:
            return {name: _prune(schema.values, item, f"{path}.{name}", unknown) for name, item in value.items()}
        return _prune_object(schema, value, path, unknown)
    if schema.items is not None:
        if not isinstance(value, list):
            raise _wrong(path, value, "array")
        return [_prune(schema.items, item, f"{path}[{at}]", unknown) for at, item in enumerate(value)]
    if schema.kind == "quantity":
        return _quantity(value, path)
    if not _fits(schema.kind, value):
        raise _wrong(path, value, schema.kind)
    return value


def _prune_object(schema: Schema, value: dict[str, Any], path: str, unknown: list[str]) -> dict[str, Any]:
    pruned = {}
    for name, part in value.items():
        if name not in schema.fields:
            unknown.append(f"{path}.{name}")
        elif part is not None:
            pruned[name] = _prune(_field(schema, name), part, f"{path}.{name}", unknown)
    return pruned


def _quantity(value: Any, path: str) -> str:
    """Write a quantity as the API does."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _wrong(path, value, "quantity")
    try:
        return str(Quantity.parse(str(value)))
    except ValueError:
        pattern = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
        raise WrongTypeError(f"{path}: quantities must match the regular expression '{pattern}'") from None


def _fits(kind: str, value: Any) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
    return True


def _wrong(path: str, value: Any, wanted: str) -> WrongTypeError:
    found = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}.get(
        type(value)
    )
    return WrongTypeError(f"json: cannot unmarshal {found} into Go struct field {path} of type {wanted}")


def _field(schema: Schema, name: str) -> Schema:
    found = schema.fields[name]
    if isinstance(found, Schema):
        return found
    schema.fields[name] = known = _of_model(found)
    return known


@cache
def _of_kind(kind: Kind) -> Schema:
    name = _MODELS.get(kind.kind, f"{kind.version.capitalize()}{kind.kind}")
    return _of_model(getattr(models, name))


@cache
def _of_model(model: type[BaseModel]) -> Schema:
    fields: dict[str, type[BaseModel] | Schema] = {}
    for name, field in model.model_fields.items():
        alias = field.serialization_alias or name
        schema = _of_annotation(field.annotation)
        if (model.__name__, alias) in _OPAQUE:
            schema = Schema("any")
        elif isinstance(schema, Schema) and _holds_quantities(model.__name__, alias):
            schema = _with_quantities(schema)
        fields[alias] = schema
    return Schema("object", fields)


def _holds_quantities(model: str, field: str) -> bool:
    return field in _QUANTITIES or (model, field) in _QUANTITY_VALUES


def _with_quantities(schema: Schema) -> Schema:
    """Give the schema with quantities for strings."""
    if schema.kind == "string":
        return Schema("quantity")
    items = _with_quantities(schema.items) if schema.items else None
    values = _with_quantities(schema.values) if schema.values else None
    return Schema(schema.kind, schema.fields, items, values) if items or values else schema


def _of_annotation(annotation: Any) -> "type[BaseModel] | Schema":
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _of_annotation(arguments[0])
    if origin in (typing.Union, types.UnionType):
        real = [each for each in arguments if each is not type(None)]
        return _of_annotation(real[0]) if len(real) == 1 else Schema("any")
    if origin in (list, dict):
        inner = _of_annotation(arguments[-1])
        schema = inner if isinstance(inner, Schema) else _Lazy(inner)
        return Schema("list", items=schema) if origin is list else Schema("map", values=schema)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return Schema({str: "string", bool: "boolean", int: "integer", float: "number"}.get(annotation, "any"))


class _Lazy(Schema):
    """The schema of a model that is looked at when it is needed: models refer to each other."""

    __slots__ = ("_model",)

    def __init__(self, model: type[BaseModel]) -> None:
        super().__init__("object")
        self._model = model
        del self.fields

    def __getattr__(self, name: str) -> Any:
        if name == "fields":
            self.fields = _of_model(self._model).fields
            return self.fields
        raise AttributeError(name)


def _unknown_metadata(metadata: Any) -> Iterator[str]:
    if isinstance(metadata, dict):
        known = _of_model(models.V1ObjectMeta).fields
        yield from (name for name in metadata if name not in known)
