"""Small random allocation problems for properties of the allocator."""

from typing import Any

from hypothesis import strategies as st

from controller.allocator import Features
from dra_driver.api.core_v1 import Node
from dra_driver.api.meta_v1 import ObjectMeta
from tests.support.allocation import DRIVER, a_claim, a_device, a_holder, a_problem, a_request, a_slice, a_subrequest

_SMALL = st.integers(0, 1)
FUNCTIONS = {
    "zero": lambda candidate: candidate.device.attributes["a"].int == 0,
    "fails": lambda candidate: {0: True}[candidate.device.attributes["b"].int],
}


@st.composite
def _device(draw: st.DrawFn, index: int) -> Any:
    fields: dict[str, Any] = {}
    if draw(st.integers(0, 7)) == 0:
        fields["taints"] = [{"key": "hot", "effect": "NoExecute"}]
    if draw(st.booleans()):
        amount = str(draw(st.integers(1, 2)))
        fields["consumesCounters"] = [
            {"counterSet": draw(st.sampled_from(("x", "y"))), "counters": {"units": {"value": amount}}}
        ]
    if draw(st.booleans()):
        fields["capacity"] = {"memory": {"value": "4", "requestPolicy": {"default": "2"}}}
        fields["allowMultipleAllocations"] = draw(st.booleans())
    return a_device(f"dev-{index}", fields, a=draw(_SMALL), b=draw(_SMALL), c=index)


@st.composite
def _request(draw: st.DrawFn, index: int) -> dict[str, Any]:
    selectors = draw(st.sampled_from(((), (), (), ("zero",), ("fails",))))
    fields: dict[str, Any] = {}
    if draw(st.integers(0, 2)) == 0:
        fields["capacity"] = {"requests": {"memory": str(draw(st.integers(1, 3)))}}
    if draw(st.integers(0, 5)) == 0:
        fields["allocationMode"] = "All"
    if draw(st.integers(0, 3)) == 0:
        parts = [a_subrequest(f"s{part}", *selectors, count=draw(st.integers(1, 2)), **fields) for part in range(2)]
        return {"name": f"r{index}", "firstAvailable": parts}
    if draw(st.integers(0, 7)) == 0:
        fields["adminAccess"] = True
    return a_request(f"r{index}", *selectors, count=draw(st.integers(1, 3)), **fields)


@st.composite
def _claims(draw: st.DrawFn) -> Any:
    claims = []
    for number in range(draw(st.integers(1, 2))):
        requests = [draw(_request(index)) for index in range(draw(st.integers(1, 3)))]
        constraints = [
            {draw(st.sampled_from(("matchAttribute", "distinctAttribute"))): f"{DRIVER}/{draw(st.sampled_from('abc'))}"}
            for _ in range(draw(st.integers(0, 2)))
        ]
        claims.append(a_claim(*requests, name=f"claim-{number}", constraints=constraints))
    return claims


@st.composite
def clusters(draw: st.DrawFn) -> Any:
    """Problems that differ in their nodes alone: each node has a pool, and there may be one that all have."""
    nodes = [f"node-{index}" for index in range(draw(st.integers(1, 4)))]
    sets = [{"name": name, "counters": {"units": {"value": "3"}}} for name in ("x", "y")]
    slices, held = [], []
    for pool in (*nodes, *draw(st.sampled_from(((), ("shared",))))):
        place = {"allNodes": True} if pool == "shared" else {"nodeName": pool}
        devices = [draw(_device(index)) for index in range(draw(st.integers(0, 4)))]
        slices.append(a_slice(*devices, pool=pool, name=f"{pool}-a", of=2, **place))
        if draw(st.integers(0, 7)):
            slices.append(a_slice(pool=pool, name=f"{pool}-b", of=2, sharedCounters=sets, **place))
        held += [a_holder(device.name, pool=pool) for device in devices if draw(st.integers(0, 2)) == 0]
    claims = draw(_claims())
    node_objects = [Node(metadata=ObjectMeta(name=name)) for name in nodes]
    return [a_problem(claims, slices, allocated=held, node=node) for node in node_objects]


@st.composite
def problems(draw: st.DrawFn) -> Any:
    """A problem with selectors of `FUNCTIONS`, one of which fails on some devices."""
    devices = [draw(_device(index)) for index in range(draw(st.integers(1, 6)))]
    claims = draw(_claims())
    sets = [{"name": name, "counters": {"units": {"value": "3"}}} for name in ("x", "y")]
    slices = [a_slice(*devices, name="a", of=2), a_slice(name="b", of=2, sharedCounters=sets)]
    held = [a_holder(device.name) for device in devices if draw(st.integers(0, 5)) == 0]
    features = Features(list_type_attributes=draw(st.booleans()))
    return a_problem(claims, slices, allocated=held, features=features)
