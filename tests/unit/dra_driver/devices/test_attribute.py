from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_driver.api.device_validation import validate_device
from dra_driver.api.quantity import Quantity
from dra_driver.api.resource_v1 import Device as SliceDevice
from dra_driver.api.resource_v1 import DeviceAttribute
from dra_driver.devices.attribute import ATTRIBUTES, explain_not_shareable, render_attributes, render_capacity
from dra_driver.devices.model import Device, DeviceType, Link, Partition, ShareEnforcement

MIB = 1 << 20
NVLINK = Link(domain="GPU-0", type="NVLink", full_mesh=True)


def a_device(**fields: Any) -> Device:
    values: dict[str, Any] = {
        "vendor": "nvidia",
        "type": DeviceType.GPU,
        "identity": "GPU-1",
        "uuid": "GPU-1",
        "model": "H100",
        "memory": 81559 * MIB,
        "share_enforcement": ShareEnforcement.SHIM,
    }
    return Device(**(values | fields))


def a_partition(**fields: Any) -> Partition:
    values: dict[str, Any] = {"profile": "1g.10gb", "start": 0, "size": 1, "memory": 9856 * MIB, "counters": {"s": 1}}
    return Partition(**(values | fields))


def plain(attributes: dict[str, DeviceAttribute]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, attribute in attributes.items():
        values = (attribute.string, attribute.int, attribute.bool, attribute.version)
        (found[name],) = (value for value in values if value is not None)
    return found


def test_a_device_of_which_little_is_known_has_few_attributes() -> None:
    device = a_device(uuid=None, memory=None, share_enforcement=ShareEnforcement.NONE)
    assert plain(render_attributes(device)) == {
        "vendor": "nvidia",
        "type": "gpu",
        "partition": False,
        "model": "H100",
        "shareEnforcement": "none",
    }


def test_a_device_of_which_all_is_known_has_every_attribute_of_a_whole_device() -> None:
    device = a_device(
        family="hopper",
        product_name="NVIDIA H100 80GB HBM3",
        serial="1652823054321",
        index=3,
        minor=0,
        memory_type="HBM3",
        compute_capability="9.0",
        compute_units=132,
        driver_version="570.195.03",
        runtime_version="12.8",
        link=NVLINK,
        fabric_domain="8f5b1c9e.1",
        numa_node=0,
        pcie_root="pci0000:15",
        pci_bus_id="0000:1b:00.0",
    )
    assert plain(render_attributes(device)) == {
        "vendor": "nvidia",
        "type": "gpu",
        "partition": False,
        "model": "H100",
        "family": "hopper",
        "productName": "NVIDIA H100 80GB HBM3",
        "uuid": "GPU-1",
        "serial": "1652823054321",
        "index": 3,
        "minor": 0,
        "memoryType": "HBM3",
        "computeCapability": "9.0.0",
        "computeUnits": 132,
        "driverVersion": "570.195.3",
        "driverVersionRaw": "570.195.03",
        "runtimeVersion": "12.8.0",
        "linkDomain": "GPU-0",
        "linkType": "NVLink",
        "linkFullMesh": True,
        "nvlinkDomain": "GPU-0",
        "fabricDomain": "8f5b1c9e.1",
        "shareEnforcement": "shim",
        "resource.kubernetes.io/numaNode": 0,
        "resource.kubernetes.io/pcieRoot": "pci0000:15",
        "resource.kubernetes.io/pciBusID": "0000:1b:00.0",
    }


def test_a_partition_has_what_its_device_is_but_no_link_and_no_number() -> None:
    device = a_device(link=NVLINK, fabric_domain="f", index=3, minor=3, serial="1", numa_node=1, compute_units=108)
    partition = a_partition(uuid="MIG-1", compute_units=14)
    assert plain(render_attributes(device, partition)) == {
        "vendor": "nvidia",
        "type": "gpu",
        "partition": True,
        "model": "H100",
        "computeUnits": 14,
        "partitionProfile": "1g.10gb",
        "parentUUID": "GPU-1",
        "resource.kubernetes.io/numaNode": 1,
    }


def test_only_a_partition_that_stays_publishes_its_uuid() -> None:
    attributes = render_attributes(a_device(), a_partition(uuid="MIG-1", permanent=True))
    assert attributes["uuid"] == DeviceAttribute(string="MIG-1")


def test_a_parent_without_uuid_is_named_by_its_identity() -> None:
    attributes = render_attributes(a_device(uuid=None, identity="serial-7"), a_partition())
    assert attributes["parentUUID"] == DeviceAttribute(string="serial-7")


def test_another_link_than_nvlink_has_no_nvlink_domain() -> None:
    attributes = plain(render_attributes(a_device(link=Link(domain="d", type="HCCS"))))
    assert (attributes["linkDomain"], attributes["linkType"]) == ("d", "HCCS")
    assert not {"nvlinkDomain", "linkFullMesh"} & set(attributes)


@pytest.mark.parametrize(
    ("reported", "version", "raw"),
    [
        pytest.param("1.2.3", "1.2.3", None, id="semver as it is"),
        pytest.param("570.195.03", "570.195.3", "570.195.03", id="leading zero"),
        pytest.param("550.54", "550.54.0", "550.54", id="two numbers"),
        pytest.param("unknown", None, "unknown", id="no version at all"),
    ],
)
def test_a_driver_version_is_mended_and_its_own_text_kept(reported: str, version: str | None, raw: str | None) -> None:
    attributes = plain(render_attributes(a_device(driver_version=reported)))
    assert attributes.get("driverVersion") == version
    assert attributes.get("driverVersionRaw") == raw


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x" * 65, id="65 bytes"),
        pytest.param("é" * 33, id="33 characters of two bytes"),
        pytest.param("", id="empty"),
        pytest.param("a\nb", id="line break"),
        pytest.param("a\ud800", id="half a character"),
    ],
)
def test_a_text_that_the_api_would_refuse_is_left_out_alone(text: str) -> None:
    attributes = plain(render_attributes(a_device(serial=text, product_name="x" * 64)))
    assert "serial" not in attributes
    assert attributes["productName"] == "x" * 64


def test_a_number_that_the_api_would_refuse_is_left_out() -> None:
    assert "computeUnits" not in render_attributes(a_device(compute_units=2**63))


def test_the_table_describes_each_word_once() -> None:
    names = [attribute.name for attribute in ATTRIBUTES]
    assert len(set(names)) == len(names)
    assert all(attribute.meaning and attribute.example for attribute in ATTRIBUTES)


def test_a_shareable_device_has_three_capacities_with_policies() -> None:
    capacity = render_capacity(a_device(memory=10 * MIB + 17), slots=4)
    shown = {
        name: (
            str(entry.value),
            str(entry.request_policy.default),
            str(entry.request_policy.valid_range.min),
            str(entry.request_policy.valid_range.max),
            str(entry.request_policy.valid_range.step),
        )
        for name, entry in capacity.items()
        if entry.request_policy and entry.request_policy.valid_range
    }
    assert shown == {
        "memory": ("10Mi", "10Mi", "0", "10Mi", "1Mi"),
        "cores": ("100", "1", "0", "100", "1"),
        "slots": ("4", "1", "0", "4", "1"),
    }


def test_sixteen_may_share_a_device_unless_said_otherwise() -> None:
    assert render_capacity(a_device())["slots"].value == Quantity.of_int(16)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        pytest.param({"memory": None}, "its memory is not known", id="memory unknown"),
        pytest.param({"memory": MIB - 1}, "it has 1048575 bytes of memory, want at least 1Mi", id="hardly any memory"),
        pytest.param(
            {"share_enforcement": ShareEnforcement.NONE},
            "nothing holds its shares to their limits",
            id="no enforcement",
        ),
    ],
)
def test_a_device_that_is_not_shareable_says_why_and_has_no_policies(fields: dict[str, Any], reason: str) -> None:
    device = a_device(**fields)
    assert explain_not_shareable(device) == reason
    assert {name: entry.request_policy for name, entry in render_capacity(device).items()} == (
        {} if device.memory is None else {"memory": None}
    )


def test_an_administrator_can_have_shares_that_nothing_enforces() -> None:
    device = a_device(share_enforcement=ShareEnforcement.NONE)
    assert explain_not_shareable(device, share_unenforced=True) is None
    assert set(render_capacity(device, share_unenforced=True)) == {"memory", "cores", "slots"}


def test_a_partition_has_its_memory_and_no_policy() -> None:
    capacity = render_capacity(a_device(), a_partition(memory=9856 * MIB))
    assert {name: (str(entry.value), entry.request_policy) for name, entry in capacity.items()} == {
        "memory": ("9856Mi", None)
    }


@given(
    texts=st.lists(st.text(max_size=80), min_size=6, max_size=6),
    memory=st.none() | st.integers(0, 2**50),
    slots=st.integers(1, 1000),
)
def test_whatever_a_vendor_reports_the_api_takes_what_is_published(
    texts: list[str], memory: int | None, slots: int
) -> None:
    family, product, serial, memory_type, driver, runtime = texts
    device = a_device(
        family=family,
        product_name=product,
        serial=serial,
        memory_type=memory_type,
        driver_version=driver,
        runtime_version=runtime,
        memory=memory,
    )
    published = SliceDevice(
        name=device.name,
        attributes=render_attributes(device),
        capacity=render_capacity(device, slots=slots),
        allow_multiple_allocations=explain_not_shareable(device) is None or None,
    )
    assert list(validate_device(published, "device", per_device_nodes=False)) == []
