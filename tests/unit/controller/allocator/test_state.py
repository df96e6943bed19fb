"""What is given away, as claims come and go."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.allocator.state import AllocatedState, build_allocated_state
from dra_driver.api.resource_v1 import ResourceClaim
from tests.support.allocation import a_holder


@st.composite
def _holders(draw: st.DrawFn) -> list[ResourceClaim]:
    holders = []
    for index in range(draw(st.integers(1, 6))):
        fields: dict[str, Any] = {}
        if draw(st.booleans()):
            names = draw(st.sets(st.sampled_from(("memory", "cores"))))
            fields = {
                "shareID": f"share-{index}",
                "consumedCapacity": {name: str(draw(st.integers(0, 2))) for name in names},
            }
        if draw(st.integers(0, 5)) == 0:
            fields["adminAccess"] = True
        holder = a_holder(draw(st.sampled_from("ab")), **fields)
        meta = msgspec.structs.replace(holder.metadata, name=f"holder-{index}")
        holders.append(msgspec.structs.replace(holder, metadata=meta))
    return holders


@settings(deadline=None)
@given(_holders(), st.data())
def test_equal_allocations_are_equal_states_however_they_came_about(
    holders: list[ResourceClaim], data: st.DataObject
) -> None:
    state = AllocatedState()
    for holder in holders:
        state.add(holder)
    gone = data.draw(st.lists(st.sampled_from(range(len(holders))), unique=True))
    for index in gone:
        state.discard(holders[index])
    kept = [holder for index, holder in enumerate(holders) if index not in gone]
    assert state == build_allocated_state(kept)
