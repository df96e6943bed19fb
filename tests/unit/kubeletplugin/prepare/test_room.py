from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_driver.devices.model import FULL_CORES
from dra_driver.errors import DeviceBusyError
from kubeletplugin.catalog import build_catalog
from kubeletplugin.prepare.record import ClaimRecord, ClaimState, Consumed, PreparedDevice
from kubeletplugin.prepare.room import validate_room
from tests.support.builder import GIB, NODE, FakeBackend, a_device, a_partition, a_partitionable_device, a_ref

WHOLE = a_device("GPU-0")
SPLIT = a_partitionable_device("GPU-P", a_partition(start=0), a_partition("2g.20gb", size=2), a_partition(start=1))
SLOTS = 3


def held(uid: str, *devices: PreparedDevice, state: ClaimState = ClaimState.COMPLETED) -> ClaimRecord:
    return ClaimRecord(namespace="default", name=f"name-of-{uid}", uid=uid, state=state, devices=devices)


def whole(device: str = WHOLE.name, *, admin_access: bool = False) -> PreparedDevice:
    return PreparedDevice(request="main", pool=NODE, device=device, admin_access=admin_access)


def share(memory_gib: int = 8, cores: int = 1, device: str = WHOLE.name) -> PreparedDevice:
    consumed = Consumed(memory=memory_gib * GIB, cores=cores, slots=1)
    return PreparedDevice(request="main", pool=NODE, device=device, share_id="s", consumed=consumed)


def part(index: int) -> PreparedDevice:
    name = SPLIT.partition_name(SPLIT.partitions[index])
    return PreparedDevice(request="main", pool=NODE, device=name, parent=SPLIT.name)


def room(planned: list[PreparedDevice], *records: ClaimRecord) -> None:
    backend = FakeBackend((WHOLE, SPLIT))
    catalog = build_catalog([(backend, backend.read_inventory())])
    validate_room(a_ref("new"), planned, records, catalog=catalog, slots=SLOTS)


@pytest.mark.parametrize(
    ("planned", "records"),
    [
        pytest.param([whole()], [], id="nothing held"),
        pytest.param([whole()], [held("new", whole())], id="held by the claim itself"),
        pytest.param([whole()], [held("a", whole(admin_access=True))], id="holder has admin access"),
        pytest.param([whole(admin_access=True)], [held("a", whole())], id="admin access"),
        pytest.param([share(40)], [held("a", share(40))], id="shares that just fit"),
        pytest.param([share(1, 70)], [held("a", share(1, 30))], id="cores that just fit"),
        pytest.param([part(0)], [held("a", part(2))], id="partitions side by side"),
        pytest.param([part(0), part(2)], [], id="two partitions in one claim"),
        pytest.param([whole()], [held("a", whole(SPLIT.name))], id="another device"),
    ],
)
def test_there_is_room(planned: list[PreparedDevice], records: list[ClaimRecord]) -> None:
    room(planned, *records)


@pytest.mark.parametrize(
    ("planned", "records", "text"),
    [
        pytest.param(
            [whole()], [held("a", whole())], "held by claim default/name-of-a (UID a, gpu-", id="whole, whole"
        ),
        pytest.param([whole()], [held("a", whole(), state=ClaimState.STARTED)], "held by", id="half prepared"),
        pytest.param([whole()], [held("a", share())], "held by", id="whole, share"),
        pytest.param([share()], [held("a", whole())], "held by", id="share, whole"),
        pytest.param(
            [share(41)], [held("a", share(40))], f"memory {41 * GIB} wanted, {40 * GIB} of {80 * GIB} left", id="memory"
        ),
        pytest.param([share(1, 71)], [held("a", share(1, 30))], "cores 71 wanted, 70 of 100 left", id="cores"),
        pytest.param(
            [share(1)],
            [held(uid, share(1)) for uid in ("a", "b", "c")],
            "slots 1 wanted, 0 of 3 left",
            id="slots",
        ),
        pytest.param([share(41), share(40)], [], "held by claim default/claim-1 (UID new", id="the claim's own shares"),
        pytest.param([part(0)], [held("a", part(0))], "held by", id="same partition"),
        pytest.param([part(0)], [held("a", part(1))], "no memory-slice-0 left", id="overlapping partition"),
        pytest.param([part(0)], [held("a", whole(SPLIT.name))], "held by", id="partition, whole parent"),
        pytest.param([part(0)], [held("a", share(device=SPLIT.name))], "held by", id="partition, shared parent"),
        pytest.param([whole(SPLIT.name)], [held("a", part(0))], "held by", id="whole parent, partition"),
        pytest.param([share(device=SPLIT.name)], [held("a", part(0))], "held by", id="shared parent, partition"),
    ],
)
def test_no_room_names_the_holder(planned: list[PreparedDevice], records: list[ClaimRecord], text: str) -> None:
    with pytest.raises(DeviceBusyError) as raised:
        room(planned, *records)
    assert text in str(raised.value)


def test_a_share_of_more_than_the_device_has_is_refused_though_nobody_holds_it() -> None:
    with pytest.raises(DeviceBusyError) as raised:
        room([share(81)])
    text = f"device {NODE}/{WHOLE.name}: memory {81 * GIB} wanted, {80 * GIB} of {80 * GIB} left"
    assert str(raised.value) == f"claim default/claim-1: {text}"


def test_all_devices_that_do_not_fit_are_named() -> None:
    with pytest.raises(DeviceBusyError) as raised:
        room([whole(), whole(SPLIT.name)], held("a", whole()), held("b", whole(SPLIT.name)))
    assert "name-of-a" in str(raised.value)
    assert "name-of-b" in str(raised.value)


@given(st.lists(st.tuples(st.integers(1, 80), st.integers(1, 100)), max_size=8))
def test_shares_never_add_up_to_more_than_the_device(amounts: list[tuple[int, int]]) -> None:
    records: list[ClaimRecord] = []
    for index, (memory, cores) in enumerate(amounts):
        try:
            room([share(memory, cores)], *records)
        except DeviceBusyError:
            continue
        records.append(held(f"uid-{index}", share(memory, cores)))
    total = Counter[str]()
    for record in records:
        assert record.devices[0].consumed is not None
        total.update(memory=record.devices[0].consumed.memory, cores=record.devices[0].consumed.cores, slots=1)
    assert total["memory"] <= 80 * GIB
    assert total["cores"] <= FULL_CORES
    assert total["slots"] <= SLOTS


def test_partitions_that_an_administrator_made_exist_side_by_side() -> None:
    made = a_device("GPU-M", partitions=(a_partition(start=0, permanent=True), a_partition(start=1, permanent=True)))
    backend = FakeBackend((made,))
    catalog = build_catalog([(backend, backend.read_inventory())])
    first, second = (
        PreparedDevice(request="main", pool=NODE, device=made.partition_name(each), parent=made.name)
        for each in made.partitions
    )
    validate_room(a_ref("new"), [first], [held("a", second)], catalog=catalog, slots=SLOTS)


def test_a_partition_that_is_not_offered_any_more_keeps_its_holder_and_the_device() -> None:
    odd = PreparedDevice(request="main", pool=NODE, device=f"{SPLIT.name}-3g-40gb-0", parent=SPLIT.name)
    with pytest.raises(
        DeviceBusyError, match=r"held by claim default/name-of-a \(UID a, .*: what it takes is not known"
    ):
        room([part(0)], held("a", odd))
