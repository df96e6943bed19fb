import json

import pytest

from dra_driver.api.codec import decode, encode
from dra_driver.api.core_v1 import Node, NodeStatus
from dra_driver.api.meta_v1 import ObjectMeta, Status
from dra_driver.api.quantity import Quantity
from dra_driver.api.resource_v1 import (
    Counter,
    Device,
    DeviceAttribute,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    OpaqueDeviceConfiguration,
    ResourceClaim,
    ResourceClaimList,
    ResourceSlice,
)
from dra_driver.errors import InvalidError


def test_kind_and_version_are_always_written() -> None:
    assert json.loads(encode(ResourceClaim())) == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {},
        "spec": {"devices": {}},
        "status": {},
    }


def test_items_of_a_list_need_no_kind() -> None:
    text = '{"kind":"ResourceClaimList","items":[{"metadata":{"name":"a"}}]}'
    assert decode(text, ResourceClaimList).items == (ResourceClaim(metadata=ObjectMeta(name="a")),)


def test_equal_objects_give_equal_bytes_whatever_the_order_of_their_maps() -> None:
    left = Device(name="gpu", attributes={"b": DeviceAttribute(int=1), "a": DeviceAttribute(string="x")})
    right = Device(name="gpu", attributes={"a": DeviceAttribute(string="x"), "b": DeviceAttribute(int=1)})
    assert left == right
    assert encode(left) == encode(right)


def test_decoded_zero_values_are_the_defaults_and_write_nothing() -> None:
    text = '{"name":"gpu","attributes":{},"taints":[],"nodeName":null,"bindingConditions":[]}'
    assert encode(decode(text, Device)) == encode(Device(name="gpu")) == b'{"name":"gpu"}'


def test_zero_and_false_of_pointers_are_written() -> None:
    device = Device(
        name="gpu", all_nodes=False, attributes={"a": DeviceAttribute(int=0), "b": DeviceAttribute(bool=False)}
    )
    assert encode(device) == b'{"name":"gpu","attributes":{"a":{"int":0},"b":{"bool":false}},"allNodes":false}'


def test_an_empty_selector_is_not_an_absent_one() -> None:
    text = '{"deviceSelector":{},"taint":{"key":"k","effect":"None"}}'
    spec = decode(text, DeviceTaintRuleSpec)
    assert spec.device_selector == DeviceTaintSelector()
    assert decode(encode(spec), DeviceTaintRuleSpec) == spec


def test_unknown_fields_are_ignored() -> None:
    assert decode('{"name":"gpu","fromTheFuture":{"a":[1]}}', Device) == Device(name="gpu")


@pytest.mark.parametrize("value", ['"64Gi"', "68719476736", '"65536Mi"'], ids=["text", "number", "other text"])
def test_a_quantity_is_text_or_a_whole_number(value: str) -> None:
    assert decode(f'{{"value":{value}}}', Counter).value == Quantity.parse("64Gi")


def test_quantities_in_maps_are_written_canonically() -> None:
    node = Node(status=NodeStatus(allocatable={"memory": Quantity.parse("1024Mi"), "cpu": Quantity.parse("7500m")}))
    assert json.loads(encode(node))["status"] == {"allocatable": {"cpu": "7500m", "memory": "1Gi"}}


SLICE = '{"spec":{"driver":"d","pool":{"name":"p","generation":1,"resourceSliceCount":1},"devices":[%s]}}'


@pytest.mark.parametrize(
    ("text", "path", "problem"),
    [
        ("{", "", "not JSON"),
        ("", "", "not JSON"),
        ("[]", "", "expected `object`"),
        ('{"spec":{"driver":1}}', "spec.driver", "expected `str`, got `int`"),
        ('{"kind":"Pod"}', "kind", "'Pod'"),
        (SLICE % '{"name":"a","taints":[{"key":"k"}]}', "spec.devices[0].taints[0]", "missing required field `effect`"),
        (SLICE % '{"name":"a","capacity":{"m":{"value":"6 Gi"}}}', "spec.devices[0].capacity[...].value", "'6 Gi'"),
        (
            SLICE % '{"name":"a","capacity":{"m":{"value":true}}}',
            "spec.devices[0].capacity[...].value",
            "not a quantity",
        ),
        (
            SLICE % '{"name":"a","capacity":{"m":{"value":1.5}}}',
            "spec.devices[0].capacity[...].value",
            "not a quantity",
        ),
    ],
    ids=["cut off", "empty", "list", "type", "kind", "missing", "quantity", "bool as quantity", "float as quantity"],
)
def test_a_decode_error_names_the_field(text: str, path: str, problem: str) -> None:
    with pytest.raises(InvalidError, match=r"^ResourceSlice: ") as caught:
        decode(text, ResourceSlice)
    (error,) = caught.value.errors
    assert error.path == path
    assert problem in error.problem


def test_bytes_that_are_not_utf8_are_refused() -> None:
    with pytest.raises(InvalidError, match="not JSON"):
        decode(b'{"name":"\xff"}', Device)


def test_json_that_is_nested_too_deeply_is_refused() -> None:
    text = '{"driver":"d","parameters":{"a":' + "[" * 50_000 + "]" * 50_000 + "}}"
    with pytest.raises(InvalidError, match="nested too deeply"):
        decode(text, OpaqueDeviceConfiguration)


def test_what_has_no_json_form_is_not_written() -> None:
    with pytest.raises(NotImplementedError, match="object has no JSON form"):
        encode(object())


def test_a_refusal_of_the_server_is_read_with_its_causes() -> None:
    text = """{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Invalid","code":422,
        "details":{"name":"s","kind":"ResourceSlice","causes":[{"reason":"FieldValueTooMany","field":"spec.devices"}]}}"""
    status = decode(text, Status)
    assert status.details is not None
    assert (status.code, status.details.causes[0].field) == (422, "spec.devices")


def test_null_stands_for_nothing_as_a_server_in_go_writes_lists_without_items() -> None:
    text = """{"kind": "ResourceClaim", "metadata": {"name": "c", "labels": null},
        "spec": {"devices": {"requests": null, "config": [
            {"opaque": {"driver": "d", "parameters": {"keeps": null}}}]}},
        "status": {"devices": [{"driver": "d", "pool": "p", "device": "x", "conditions": null}]}}"""
    claim = decode(text, ResourceClaim)
    assert claim.spec.devices.requests == ()
    assert claim.status.devices[0].conditions == ()
    assert claim.spec.devices.config[0].opaque is not None
    assert claim.spec.devices.config[0].opaque.parameters == {"keeps": None}
    with pytest.raises(InvalidError, match="missing required field `driver`"):
        decode('{"status": {"devices": [{"driver": null, "pool": "p", "device": "x"}]}}', ResourceClaim)
