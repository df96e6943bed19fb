from typing import Any

import pytest

from controller.double import find_double, find_earlier
from dra_driver.api.resource_v1 import ResourceClaim
from dra_driver.kube.resource import ObjectKey
from tests.support.control import Manifest, a_claim, a_device, a_node, a_slice
from tests.support.control_object import a_state, read


def holder(name: str, device: str, **result: Any) -> Manifest:
    """Build a claim that holds a device."""
    results = [{"request": "r0", "driver": "accel.dra-driver.io", "pool": "node-a", "device": device} | result]
    return a_claim(name) | {"status": {"allocation": {"devices": {"results": results}}}}


def share(name: str, memory: str) -> Manifest:
    return holder(name, "shared", shareID=name, consumedCapacity={"memory": memory})


SHARED = a_device("shared", allowMultipleAllocations=True, capacity={"memory": {"value": "80Gi"}})


def doubles(*holders: Manifest) -> list[str]:
    """Give the devices of the first claim of which there is not enough for all."""
    consumed = {"counterSet": "gpu", "counters": {"slices": {"value": "4"}}}
    whole = {"counterSet": "gpu", "counters": {"slices": {"value": "8"}}}
    devices = [SHARED, a_device("gpu-0"), a_device("gpu-1")]
    devices += [a_device("whole", consumesCounters=[whole])]
    devices += [a_device(f"part-{number}", consumesCounters=[consumed]) for number in range(2)]
    counters = a_slice("node-a", resourceSliceCount=2)
    counters["metadata"]["name"] = "counters"
    counters["spec"]["sharedCounters"] = [{"name": "gpu", "counters": {"slices": {"value": "8"}}}]
    del counters["spec"]["devices"]
    state = a_state(a_node(), counters, a_slice("node-a", *devices, resourceSliceCount=2), *holders)
    found = find_double(read(holders[0], ResourceClaim), state.own.state, state.own.pools("node-a"))
    return sorted(device for _, _, device in found)


@pytest.mark.parametrize(
    ("holders", "devices"),
    [
        ([holder("a", "gpu-0"), holder("b", "gpu-1")], []),
        ([holder("a", "gpu-0"), holder("b", "gpu-0")], ["gpu-0"]),
        ([holder("a", "gpu-0"), holder("b", "gpu-0", adminAccess=True)], []),
        ([holder("a", "gpu-0", adminAccess=True), holder("b", "gpu-0")], []),
        ([share("a", "40Gi"), share("b", "40Gi")], []),
        ([share("a", "40Gi"), share("b", "41Gi")], ["shared"]),
        ([share("a", "40Gi"), holder("b", "shared")], ["shared"]),
        ([holder("a", "part-0"), holder("b", "part-1")], []),
        ([holder("a", "part-0"), holder("b", "whole")], ["part-0", "whole"]),
        ([holder("a", "gpu-0"), holder("b", "gpu-1"), holder("c", "gpu-1")], []),
    ],
    ids=[
        "two devices",
        "one device",
        "a monitor beside",
        "a monitor itself",
        "shares that fit",
        "shares that do not fit",
        "a share and the whole",
        "partitions that fit",
        "a partition and the whole",
        "the double of others",
    ],
)
def test_a_device_is_given_twice_where_there_is_not_enough(holders: list[Manifest], devices: list[str]) -> None:
    assert doubles(*holders) == devices


def test_of_two_allocations_the_earlier_one_stays() -> None:
    claims = [read(holder(name, "gpu-0"), ResourceClaim) for name in ("a", "b")]
    device = frozenset({("accel.dra-driver.io", "node-a", "gpu-0")})
    since = {ObjectKey("default", "a"): 7, ObjectKey("default", "b"): 8}
    assert find_earlier(claims[0], device, claims, since) is None
    assert find_earlier(claims[1], device, claims, since) is claims[0]
