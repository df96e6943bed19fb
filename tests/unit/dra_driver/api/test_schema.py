"""Field names and types of all wire structs, against the models that Kubernetes makes from its OpenAPI document."""

import datetime as dt
import json
import types
import typing
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from kubernetes import client
from msgspec import inspect

from dra_driver.api import coordination_v1, core_v1, meta_v1, resource_v1
from dra_driver.api.codec import decode, encode
from dra_driver.api.quantity import Quantity

KINDS = [
    (resource_v1.ResourceSliceList, client.V1ResourceSliceList),
    (resource_v1.ResourceClaimList, client.V1ResourceClaimList),
    (resource_v1.ResourceClaimTemplateList, client.V1ResourceClaimTemplateList),
    (resource_v1.DeviceClassList, client.V1DeviceClassList),
    (resource_v1.DeviceTaintRuleList, client.V1DeviceTaintRuleList),
    (core_v1.NodeList, client.V1NodeList),
    (core_v1.PodList, client.V1PodList),
    (core_v1.EventList, client.CoreV1EventList),
    (coordination_v1.LeaseList, client.V1LeaseList),
    (meta_v1.Status, client.V1Status),
]
IDS = [struct.__name__ for struct, _ in KINDS]

LEFT_OUT = {
    "ObjectMeta": {"managedFields", "selfLink"},
    "ListMeta": {"selfLink"},
    "NodeSpec": {"configSource", "externalID", "podCIDR", "podCIDRs", "podPreemptionPolicy", "providerID"},
    "NodeStatus": {
        *("addresses", "capacity", "config", "daemonEndpoints", "features", "images", "nodeInfo", "phase"),
        *("runtimeHandlers", "volumesAttached", "volumesInUse"),
    },
}
# Of a pod only what is in the structs is used, and none is written.
PARTIAL = {"Affinity", "Container", "NodeAffinity", "PodCondition", "PodSpec", "PodStatus", "ResourceRequirements"}

# Only read: the models want fields that are left out.
WRITTEN = [(struct, model) for struct, model in KINDS if struct not in (core_v1.NodeList, core_v1.PodList)]

TIME = "2026-01-31T12:00:00Z"


def json_names(model: Any) -> dict[str, Any]:
    return {field.serialization_alias or field.alias or name: field for name, field in model.model_fields.items()}


def bare(annotation: Any) -> Any:
    """Strip Optional and Annotated."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return bare(typing.get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        (inner,) = [part for part in typing.get_args(annotation) if part is not type(None)]
        return bare(inner)
    return annotation


def not_none(info: inspect.Type) -> inspect.Type:
    if isinstance(info, inspect.UnionType):
        (info,) = [part for part in info.types if not isinstance(part, inspect.NoneType)]
    return info


def differences(struct: type[msgspec.Struct], model: Any, path: str) -> Iterator[str]:
    """Name every field that one side has, or types, otherwise than the other."""
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    ours = {field.encode_name: field for field in info.fields}
    theirs = json_names(model)
    name = struct.__name__
    yield from (f"{path}.{field}: not in Kubernetes" for field in ours.keys() - theirs.keys())
    missing = theirs.keys() - ours.keys()
    if name in PARTIAL:
        missing = set()
    yield from (f"{path}.{field}: missing here" for field in missing ^ LEFT_OUT.get(name, set()))
    for field in ours.keys() & theirs.keys():
        where = f"{path}.{field}"
        always = ours[field].required or ours[field].default_factory not in (msgspec.NODEFAULT, dict)
        if theirs[field].is_required() and not always and name not in PARTIAL:
            yield f"{where}: must always be written"
        if ours[field].required and not theirs[field].is_required():
            yield f"{where}: need not be there"
        yield from type_differences(not_none(ours[field].type), bare(theirs[field].annotation), where)


def type_differences(ours: inspect.Type, theirs: Any, path: str) -> Iterator[str]:
    origin, arguments = typing.get_origin(theirs), typing.get_args(theirs)
    match ours:
        case inspect.StructType(cls=cls):
            yield from differences(cls, theirs, path) if hasattr(theirs, "model_fields") else [f"{path}: not an object"]
        case inspect.VarTupleType(item_type=item) if origin is list:
            yield from type_differences(not_none(item), bare(arguments[0]), f"{path}[]")
        case inspect.DictType(value_type=value) if origin is dict:
            yield from type_differences(not_none(value), bare(arguments[1]), f"{path}[]")
        case _:
            expected: dict[type, tuple[type, ...]] = {
                inspect.StrType: (str, dt.datetime),
                inspect.LiteralType: (str,),
                inspect.CustomType: (str,),
                inspect.IntType: (int,),
                inspect.BoolType: (bool,),
                inspect.AnyType: (Any,),
            }
            if theirs not in expected.get(type(ours), ()):
                yield f"{path}: {theirs} in Kubernetes, {type(ours).__name__} here"


def struct_names(info: inspect.Type) -> set[str]:
    match not_none(info):
        case inspect.StructType(cls=cls, fields=fields):
            return {cls.__name__}.union(*(struct_names(field.type) for field in fields))
        case inspect.VarTupleType(item_type=inner) | inspect.DictType(value_type=inner):
            return struct_names(inner)
        case _:
            return set()


def full_value(ours: inspect.Type, theirs: Any) -> Any:
    """Make JSON that sets every field of a struct, as Kubernetes would write it; the model tells what is a time."""
    ours, theirs = not_none(ours), bare(theirs)
    match ours:
        case inspect.StructType(fields=fields):
            names = json_names(theirs)
            return {field.encode_name: full_value(field.type, names[field.encode_name].annotation) for field in fields}
        case inspect.VarTupleType(item_type=item):
            return [full_value(item, typing.get_args(theirs)[0])]
        case inspect.DictType(value_type=value):
            return {key: full_value(value, typing.get_args(theirs)[1]) for key in ("b", "a")}
        case inspect.LiteralType(values=values):
            return values[0]
        case _:
            return {str: "7", int: 7, bool: True, dt.datetime: TIME, Any: {"x": [1, None]}}[theirs]


def full_json(struct: type[msgspec.Struct], model: Any) -> str:
    return json.dumps(full_value(inspect.type_info(struct), model))


@pytest.mark.parametrize(("struct", "model"), KINDS, ids=IDS)
def test_fields_have_the_names_and_types_of_kubernetes(struct: type[msgspec.Struct], model: Any) -> None:
    assert sorted(differences(struct, model, struct.__name__)) == []


@pytest.mark.parametrize(("struct", "model"), KINDS, ids=IDS)
def test_what_kubernetes_writes_comes_back_whole(struct: type[msgspec.Struct], model: Any) -> None:
    written = full_json(struct, model)
    assert json.loads(encode(decode(written, struct))) == json.loads(written)


@pytest.mark.parametrize(("struct", "model"), WRITTEN, ids=[struct.__name__ for struct, _ in WRITTEN])
def test_what_we_write_survives_the_kubernetes_models(struct: type[msgspec.Struct], model: Any) -> None:
    ours = decode(full_json(struct, model), struct)
    theirs = model.from_dict(json.loads(encode(ours)))
    back = json.dumps(client.ApiClient().sanitize_for_serialization(theirs)).replace("+00:00", "Z")
    assert decode(back, struct) == ours


def test_every_wire_struct_is_compared() -> None:
    reached = {name for struct, _ in KINDS for name in struct_names(inspect.type_info(struct))}
    bases = (meta_v1.Wire, core_v1.PodHead)  # compared as parts of what is made of them
    defined = {
        name
        for module in (meta_v1, core_v1, resource_v1)
        for name, item in vars(module).items()
        if isinstance(item, type) and issubclass(item, meta_v1.Wire) and item not in bases
    }
    assert defined - reached == set()


def test_the_comparison_finds_a_misspelt_missing_and_mistyped_field() -> None:
    class CounterSet(meta_v1.Wire, frozen=True, kw_only=True):
        nam: str
        counters: dict[str, int]

    assert sorted(differences(CounterSet, client.V1CounterSet, "x")) == [
        "x.counters[]: <class 'kubernetes.client.models.v1_counter.V1Counter'> in Kubernetes, IntType here",
        "x.nam: not in Kubernetes",
        "x.name: missing here",
    ]


def test_a_quantity_field_is_a_quantity() -> None:
    counter = decode(b'{"value":"65536Mi"}', resource_v1.Counter)
    assert counter == resource_v1.Counter(value=Quantity.parse("64Gi"))
    assert encode(counter) == b'{"value":"64Gi"}'
