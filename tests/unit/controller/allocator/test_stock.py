"""A stock that watched allocations come and go is as one that is taken now."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.allocator.allocation import known_pools
from controller.allocator.state import AllocatedState
from controller.allocator.stock import Stock, places_of
from tests.support.allocation import a_claim, a_device, a_holder, a_problem, a_request, a_slice

UNITS = [{"counterSet": "gpu", "counters": {"units": {"value": "2"}}}]
FIELDS: tuple[dict[str, Any], ...] = (
    {},
    {"consumesCounters": UNITS},
    {"consumesCounters": UNITS, "allowMultipleAllocations": True},
    {"allowMultipleAllocations": True},
)
SETS = [{"name": "gpu", "counters": {"units": {"value": "3"}}}]
DEVICES = [a_device(f"dev-{index}", fields) for index, fields in enumerate(FIELDS)]
# Devices of another node take of the same counters.
SLICES = [
    a_slice(*DEVICES, name="here", of=3),
    a_slice(a_device("elsewhere", FIELDS[1]), name="there", of=3, nodeName="node-b"),
    a_slice(name="sets", of=3, sharedCounters=SETS),
]
POOLS = known_pools(a_problem(a_claim(a_request()), SLICES))
NAMES = [*(device.name for device in DEVICES), "elsewhere", "unknown"]
HOLDERS = [a_holder(name, **fields) for name in NAMES for fields in ({}, {"shareID": "share"}, {"adminAccess": True})]


def seen(stock: Stock) -> Any:
    return (stock.held, stock.free, dict(stock.counters_left(POOLS[0])), stock.overcommitted)


@settings(deadline=None)
@given(
    steps=st.lists(st.integers(0, len(HOLDERS) - 1), max_size=12), is_strict=st.booleans(), looks_first=st.booleans()
)
def test_a_stock_that_watches_is_as_one_taken_now(steps: list[int], *, is_strict: bool, looks_first: bool) -> None:
    state = AllocatedState()
    stock = Stock(POOLS, state, is_strict)
    state.watch(*POOLS[0].id, stock)
    if looks_first:
        seen(stock)
    held: set[int] = set()
    for step in steps:
        if step in held:
            state.discard(HOLDERS[step])
        else:
            state.add(HOLDERS[step])
        held ^= {step}
        assert seen(stock) == seen(Stock(POOLS, state, is_strict))


def test_who_no_longer_watches_sees_nothing() -> None:
    state = AllocatedState()
    stock = Stock(POOLS, state)
    state.watch(*POOLS[0].id, stock)
    state.unwatch(*POOLS[0].id, stock)
    state.add(a_holder("dev-0"))
    assert stock.held == [False] * len(DEVICES)


def test_devices_are_known_by_their_bits() -> None:
    stock = Stock(POOLS, AllocatedState())
    assert list(places_of(stock.everything)) == [0, 1, 2, 3]
    assert list(places_of(stock.special)) == [1, 2, 3]
    assert list(places_of(0)) == []
