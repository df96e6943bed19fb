import pytest

from dra_driver.api.quantity import Quantity
from dra_driver.api.resource_v1 import DeviceAttribute, DeviceCapacity
from dra_driver.cel import DeviceInput, Read, compile_selector


@pytest.mark.parametrize(
    ("expression", "reads"),
    [
        ("true", set()),
        ('device.driver == "d"', {Read("driver")}),
        ('device.attributes["d"].a == 1', {Read("attributes", "d", "a")}),
        ('device.attributes["d"]["a"] == 1', {Read("attributes", "d", "a")}),
        ('device.attributes[?"d"].?a.hasValue()', {Read("attributes", "d", "a")}),
        ('has(device.capacity["d"].c)', {Read("capacity", "d", "c")}),
        ('device.attributes["d"].all(k, true)', {Read("attributes", "d")}),
        ('device.attributes[device.driver].a == "x"', {Read("attributes"), Read("driver")}),
        ("device.attributes.size() == 1", {Read("attributes")}),
        ('cel.bind(a, device.attributes["d"], a.x == 1)', {Read("attributes", "d")}),
        ("[1].all(device, device == 1)", set()),
        (
            "dyn(device) == 1",
            {Read("driver"), Read("allowMultipleAllocations"), Read("attributes"), Read("capacity")},
        ),
    ],
)
def test_a_selector_names_what_it_reads(expression: str, reads: set[Read]) -> None:
    assert compile_selector(expression).reads == reads


def test_keys_tell_apart_what_an_expression_can_tell_apart() -> None:
    selector = compile_selector('device.attributes["d"].a == 1 || device.capacity["d"].c.isInteger()')

    def key(**attributes: DeviceAttribute) -> object:
        return selector.key(DeviceInput("d", attributes, {"c": DeviceCapacity(value=Quantity.parse("1"))}))

    keys = [
        key(),
        key(a=DeviceAttribute(int=1)),
        key(a=DeviceAttribute(bool=True)),
        key(a=DeviceAttribute(ints=(1,))),
        key(a=DeviceAttribute(version="1.0.0")),
        key(a=DeviceAttribute()),
    ]
    assert len(set(keys)) == len(keys)
    assert key(a=DeviceAttribute(int=1), other=DeviceAttribute(int=2)) == keys[1]
