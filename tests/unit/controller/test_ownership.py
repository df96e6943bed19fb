import pytest

from controller.ownership import Owner, has_taint, is_gated, is_given, is_own_class, owner_of, strip_taint
from dra_driver.api.core_v1 import Node, Pod
from dra_driver.api.resource_v1 import Device, DeviceClass, ResourceClaim, ResourceSlice
from tests.support.control import TAINT, a_claim, a_class, a_device, a_node, a_pod, a_slice
from tests.support.control_object import read


@pytest.fixture
def classes() -> dict[str, DeviceClass]:
    return {"gpu": read(a_class(), DeviceClass), "nic": read(a_class("nic", labels={}), DeviceClass)}


@pytest.mark.parametrize(
    ("names", "owner"),
    [
        (["gpu"], Owner.CONTROLLER),
        (["gpu", "gpu"], Owner.CONTROLLER),
        (["nic"], Owner.SCHEDULER),
        ([], Owner.SCHEDULER),
        (["gpu", "nic"], Owner.MIXED),
        (["gpu", "gone"], Owner.UNKNOWN),
        (["gone"], Owner.UNKNOWN),
        (["gone", "gpu", "nic"], Owner.MIXED),
    ],
    ids=str,
)
def test_a_claim_belongs_to_the_allocator_of_its_classes(
    classes: dict[str, DeviceClass], names: list[str], owner: Owner
) -> None:
    assert owner_of(read(a_claim(classes=names), ResourceClaim), classes) is owner


def test_subrequests_count_as_requests_do(classes: dict[str, DeviceClass]) -> None:
    claim = a_claim(classes=[])
    alternatives = [{"name": name, "deviceClassName": name, "count": 1} for name in ("nic", "gpu")]
    claim["spec"]["devices"]["requests"] = [{"name": "any", "firstAvailable": alternatives}]
    assert owner_of(read(claim, ResourceClaim), classes) is Owner.MIXED


def test_only_the_label_with_this_value_gives_a_node_or_class_to_the_controller() -> None:
    label = "dra-driver.io/allocator"
    assert is_given(read(a_node(), Node))
    assert not is_given(read(a_node(labels={label: "scheduler"}), Node))
    assert not is_own_class(read(a_class(labels={label: ""}), DeviceClass))


@pytest.mark.parametrize(
    ("change", "is_ours"),
    [({}, True), ({"effect": "NoExecute"}, False), ({"value": ""}, False), ({"key": "example.com/allocator"}, False)],
    ids=str,
)
def test_exactly_one_taint_is_ours(change: dict[str, str], *, is_ours: bool) -> None:
    assert has_taint(read(a_device("gpu-0", taints=[TAINT | change]), Device)) is is_ours


def test_our_taint_is_stripped_and_others_stay() -> None:
    other = {"key": "dra-driver.io/unhealthy", "value": "x", "effect": "NoSchedule"}
    slice_ = read(a_slice("node-a", a_device("gpu-0", taints=[other, TAINT])), ResourceSlice)
    [device] = strip_taint(slice_).spec.devices
    assert [taint.key for taint in device.taints] == ["dra-driver.io/unhealthy"]


def test_a_pod_is_gated_by_our_gate_alone() -> None:
    assert is_gated(read(a_pod(gates=["example.com/other", "dra-driver.io/allocation"]), Pod))
    assert not is_gated(read(a_pod(gates=["example.com/other"]), Pod))
