from typing import Any

import pytest

from controller.allocator import Policy
from controller.node_order import NodeUse, count_devices, measure_node, order_nodes
from dra_driver.api.resource_v1 import ResourceClaim
from tests.support.control import Manifest, a_claim, a_device, a_node, a_slice
from tests.support.control_object import a_state, read

WHOLE = 1_000_000


def holder(device: str, node: str = "node-a", **result: Any) -> Manifest:
    """Build a claim that holds a device."""
    results = [{"request": "r0", "driver": "accel.dra-driver.io", "pool": node, "device": device} | result]
    return a_claim(f"{node}-{device}") | {"status": {"allocation": {"devices": {"results": results}}}}


def linked(name: str, domain: str) -> Manifest:
    return a_device(name, attributes={"linkDomain": {"string": domain}})


def test_whole_devices_are_used_or_not() -> None:
    state = a_state(a_node(), a_slice("node-a", "gpu-0", "gpu-1", "gpu-2"), holder("gpu-1"))
    use = measure_node(state.own, "node-a")
    assert (use.used, use.left, use.share, use.singles) == (WHOLE, 2 * WHOLE, 333_333, 2)


def test_a_shared_device_is_used_as_far_as_its_capacity_is() -> None:
    device = a_device("gpu-0", allowMultipleAllocations=True, capacity={"memory": {"value": "80Gi"}})
    shares = [holder("gpu-0", shareID="s1", consumedCapacity={"memory": "20Gi"})]
    state = a_state(a_node(), a_slice("node-a", device), *shares)
    assert measure_node(state.own, "node-a").used == WHOLE // 4


def test_partitions_count_as_the_device_that_they_are_cut_from() -> None:
    consumed = {"counterSet": "gpu", "counters": {"slices": {"value": "2"}}}
    partitions = [a_device(f"part-{number}", consumesCounters=[consumed]) for number in range(4)]
    counters = a_slice("node-a", resourceSliceCount=2)
    counters["metadata"]["name"] = "counters"
    counters["spec"]["sharedCounters"] = [{"name": "gpu", "counters": {"slices": {"value": "8"}}}]
    del counters["spec"]["devices"]
    devices = a_slice("node-a", *partitions, resourceSliceCount=2)
    state = a_state(a_node(), counters, devices, holder("part-0"), holder("part-2"))
    use = measure_node(state.own, "node-a")
    assert (use.used, use.left) == (WHOLE // 2, WHOLE // 2)


def test_link_domains_are_counted_by_their_free_devices() -> None:
    devices = [linked("gpu-0", "left"), linked("gpu-1", "left"), linked("gpu-2", "right"), a_device("gpu-3")]
    state = a_state(a_node(), a_slice("node-a", *devices), holder("gpu-2"))
    use = measure_node(state.own, "node-a")
    assert (use.domains, use.singles) == ((2,), 1)


USES = {
    "a": NodeUse(used=0, left=8, domains=(8,)),
    "b": NodeUse(used=2, left=2, domains=(2,)),
    "c": NodeUse(used=2, left=6, domains=(2, 4)),
    "d": NodeUse(used=0, left=8, domains=(), singles=1),
}


@pytest.mark.parametrize(
    ("policy", "count", "order"),
    [
        (Policy.FIRST_FIT, 1, "abcd"),
        (Policy.BINPACK, 1, "bcad"),
        (Policy.SPREAD, 1, "adcb"),
        (Policy.BEST_FIT, 1, "bcad"),
        (Policy.TOPOLOGY, 1, "dbca"),
        (Policy.TOPOLOGY, 2, "bcad"),
        (Policy.TOPOLOGY, 4, "cabd"),
        (Policy.TOPOLOGY, 9, "acbd"),
    ],
)
def test_a_policy_orders_nodes(policy: Policy, count: int, order: str) -> None:
    assert "".join(order_nodes(USES, policy, count)) == order


def test_devices_are_counted_over_requests_by_their_first_alternative() -> None:
    claim = a_claim(classes=["gpu", "gpu"], count=2)
    alternatives = [{"name": "a", "deviceClassName": "gpu", "count": 3}, {"name": "b", "deviceClassName": "gpu"}]
    claim["spec"]["devices"]["requests"].append({"name": "any", "firstAvailable": alternatives})
    assert count_devices([read(claim, ResourceClaim), read(a_claim("other"), ResourceClaim)]) == 8
