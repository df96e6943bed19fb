import itertools

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dra_driver.api.meta_v1 import ObjectMeta
from dra_driver.api.resource_v1 import ResourcePool, ResourceSlice, ResourceSliceSpec
from dra_driver.devices.model import Device, Health, Inventory
from kubeletplugin.publish.diff import LAST_GENERATION, SyncPlan, Written, plan_sync, restore_sent
from kubeletplugin.publish.layout import Pool, PoolOwner, build_pool
from kubeletplugin.publish.offer import SharePolicy
from tests.support.builder import DRIVER, NODE, a_device, a_partitionable_device

OWNER = PoolOwner(driver=DRIVER, node_name=NODE, node_uid="uid-of-node-a")
SICK = Health(reason="XidError", message="Xid 79")


class Model:
    """What an API server would hold after the writes of a plan. It refuses what a server would refuse."""

    def __init__(self, *stored: ResourceSlice) -> None:
        self._versions = itertools.count(1)
        self.slices = {item.metadata.name: item for item in stored}

    def apply(self, plan: SyncPlan) -> None:
        for item in plan.deletes:
            assert self.slices.pop(item.metadata.name).metadata == item.metadata
        for item in plan.updates:
            old = self.slices[item.metadata.name]
            assert (old.metadata.uid, old.metadata.resource_version) == (
                item.metadata.uid,
                item.metadata.resource_version,
            )
            assert (old.spec.pool.name, old.spec.driver) == (item.spec.pool.name, item.spec.driver)
            self._store(item, old.metadata.uid)
        for item in plan.creates:
            assert item.metadata.name not in self.slices
            assert not item.metadata.resource_version
            self._store(item, f"uid-{item.metadata.name}")

    def _store(self, item: ResourceSlice, uid: str) -> None:
        metadata = replace(item.metadata, uid=uid, resource_version=str(next(self._versions)))
        self.slices[item.metadata.name] = replace(item, metadata=metadata)

    @property
    def all(self) -> tuple[ResourceSlice, ...]:
        return tuple(self.slices.values())


def lay_out(*devices: Device) -> Pool:
    return build_pool(Inventory(devices=devices), owner=OWNER, shares=SharePolicy())


def wholes(count: int, *, sick: tuple[int, ...] = ()) -> list[Device]:
    return [a_device(f"GPU-{number}", health=SICK if number in sick else None) for number in range(count)]


def published(pool: Pool) -> Model:
    model = Model()
    model.apply(plan_sync(pool, ()))
    return model


def foreign(name: str = "theirs", **spec: object) -> ResourceSlice:
    values = {
        "driver": DRIVER,
        "node_name": NODE,
        "pool": ResourcePool(name=NODE, generation=1, resource_slice_count=1),
    }
    metadata = ObjectMeta(name=name, uid=f"uid-{name}", resource_version="9")
    return ResourceSlice(metadata=metadata, spec=ResourceSliceSpec(**(values | spec)))  # type: ignore[arg-type]


def test_the_first_publication_creates_generation_1() -> None:
    plan = plan_sync(lay_out(*wholes(65)), ())
    assert (len(plan.creates), plan.updates, plan.deletes, plan.generation) == (2, (), (), 1)
    assert {item.spec.pool.generation for item in plan.creates} == {1}


def test_what_is_stored_already_is_not_written() -> None:
    pool = lay_out(*wholes(65))
    assert plan_sync(pool, published(pool).all).is_empty


def test_one_changed_slice_is_one_update_at_the_same_generation() -> None:
    model = published(lay_out(*wholes(65)))
    plan = plan_sync(lay_out(*wholes(65, sick=(3,))), model.all)
    assert (len(plan.updates), plan.creates, plan.deletes, plan.generation) == (1, (), (), 1)


def test_two_changed_slices_raise_the_generation_of_all() -> None:
    model = published(lay_out(*wholes(129)))
    plan = plan_sync(lay_out(*wholes(129, sick=(3, 70))), model.all)
    assert (len(plan.updates), plan.generation) == (3, 2)
    assert {item.spec.pool.generation for item in plan.updates} == {2}


def test_a_slice_more_raises_the_generation_of_all() -> None:
    model = published(lay_out(*wholes(64)))
    plan = plan_sync(lay_out(*wholes(65)), model.all)
    assert (len(plan.updates), len(plan.creates), plan.generation) == (1, 1, 2)


def test_a_slice_less_is_deleted_and_the_rest_rewritten() -> None:
    model = published(lay_out(*wholes(65)))
    plan = plan_sync(lay_out(*wholes(64)), model.all)
    assert (len(plan.deletes), len(plan.updates), plan.generation) == (1, 1, 2)
    assert [item.spec.pool.resource_slice_count for item in plan.updates] == [1]


def test_a_slice_that_somebody_deleted_is_created_in_a_new_generation() -> None:
    pool = lay_out(*wholes(129))
    stored = published(pool).all
    plan = plan_sync(pool, stored[1:])
    assert (len(plan.creates), len(plan.updates), plan.generation) == (1, 2, 2)


def test_a_slice_that_somebody_changed_is_changed_back() -> None:
    pool = lay_out(*wholes(65))
    first, *rest = published(pool).all
    plan = plan_sync(pool, (replace(first, spec=replace(first.spec, devices=())), *rest))
    assert [item.spec for item in plan.updates] == [first.spec]


def test_a_slice_of_ours_that_the_pool_does_not_have_is_deleted_and_nothing_else_written() -> None:
    pool = lay_out(*wholes(3))
    old = foreign("old-name", pool=ResourcePool(name=NODE, generation=1, resource_slice_count=1))
    plan = plan_sync(pool, (*published(pool).all, old))
    assert (plan.deletes, plan.updates, plan.creates) == ((old,), (), ())


def test_a_pool_of_a_former_name_is_deleted() -> None:
    old = foreign(pool=ResourcePool(name="former", generation=7, resource_slice_count=1))
    plan = plan_sync(lay_out(*wholes(1)), (old,))
    assert plan.deletes == (old,)
    assert plan.generation == 1


def test_a_slice_of_our_name_in_another_pool_makes_way() -> None:
    pool = lay_out(*wholes(1))
    old = foreign(pool.slices[0].metadata.name, pool=ResourcePool(name="former", generation=1, resource_slice_count=1))
    plan = plan_sync(pool, (old,))
    assert (plan.deletes, len(plan.creates), plan.updates) == ((old,), 1, ())


def test_slices_of_others_are_never_touched() -> None:
    theirs = (
        foreign("a", driver="other.example.com"),
        foreign("b", node_name="node-b"),
        foreign("c", node_name=None, all_nodes=True),
    )
    pool = lay_out(*wholes(1))
    assert plan_sync(pool, theirs).deletes == ()
    assert plan_sync(pool, (*published(pool).all, *theirs)).is_empty


def test_the_generation_goes_on_from_the_largest_that_is_stored() -> None:
    obsolete = foreign(pool=ResourcePool(name=NODE, generation=41, resource_slice_count=1))
    assert plan_sync(lay_out(*wholes(1)), (obsolete,)).generation == 42


def test_an_update_that_was_cut_short_is_finished() -> None:
    model = published(lay_out(*wholes(129)))
    pool = lay_out(*wholes(129, sick=(3, 70)))
    plan = plan_sync(pool, model.all)
    model.apply(replace_updates(plan, plan.updates[:1]))
    model.apply(plan_sync(pool, model.all))
    generations = {item.spec.pool.generation for item in model.all}
    assert len(generations) == 1
    assert plan_sync(pool, model.all).is_empty


def replace_updates(plan: SyncPlan, updates: tuple[ResourceSlice, ...]) -> SyncPlan:
    return SyncPlan(generation=plan.generation, updates=updates)


def test_a_node_that_was_made_anew_owns_the_slices() -> None:
    model = published(lay_out(*wholes(1)))
    owner = PoolOwner(driver=DRIVER, node_name=NODE, node_uid="uid-of-the-next")
    pool = build_pool(Inventory(devices=tuple(wholes(1))), owner=owner, shares=SharePolicy())
    model.apply(plan_sync(pool, model.all))
    assert [item.metadata.owner_references[0].uid for item in model.all] == ["uid-of-the-next"]


def with_times(item: ResourceSlice, time: str) -> ResourceSlice:
    devices = tuple(
        replace(device, taints=tuple(replace(taint, time_added=time) for taint in device.taints))
        for device in item.spec.devices
    )
    return replace(item, spec=replace(item.spec, devices=devices))


def test_the_time_that_the_server_gave_a_taint_is_no_difference_and_is_kept() -> None:
    since = "2026-01-01T00:00:00Z"
    model = published(lay_out(*wholes(2, sick=(0,))))
    stored = tuple(with_times(item, since) for item in model.all)
    assert plan_sync(lay_out(*wholes(2, sick=(0,))), stored).is_empty
    [update] = plan_sync(lay_out(*wholes(2, sick=(0, 1))), stored).updates
    assert [device.taints[0].time_added for device in update.spec.devices] == [since, None]


def test_what_the_server_makes_of_a_slice_is_not_sent_again_and_again() -> None:
    pool = lay_out(*wholes(1))
    [sent] = published(pool).all
    changed = replace(sent, spec=replace(sent.spec, devices=()))
    version = sent.metadata.resource_version
    written = {sent.metadata.name: Written(sent=sent, resource_version=version)}
    assert plan_sync(pool, restore_sent((changed,), written)).is_empty
    later = replace(changed, metadata=replace(changed.metadata, resource_version="77"))
    assert len(plan_sync(pool, restore_sent((later,), written)).updates) == 1


a_whole = st.builds(
    lambda number, sick, parts: (
        a_partitionable_device(f"GPU-{number}") if parts else a_device(f"GPU-{number}", health=SICK if sick else None)
    ),
    st.integers(0, 150),
    st.booleans(),
    st.booleans(),
)
inventories = st.lists(a_whole, max_size=70)


@settings(max_examples=40, deadline=None)
@given(steps=st.lists(inventories, min_size=1, max_size=4), data=st.data())
def test_after_a_plan_nothing_is_left_to_do_whatever_happened_between(
    steps: list[list[Device]], data: st.DataObject
) -> None:
    model = Model()
    newest = 0
    for devices in steps:
        lost = data.draw(st.sets(st.sampled_from(sorted(model.slices)))) if model.slices else set()
        for name in lost:
            del model.slices[name]
        pool = lay_out(*devices)
        plan = plan_sync(pool, model.all)
        model.apply(plan)
        assert plan_sync(pool, model.all).is_empty
        assert [item.metadata.name for item in model.all if item.metadata.name not in names(pool)] == []
        assert {item.spec.pool.generation for item in model.all} == {plan.generation}
        assert {item.spec.pool.resource_slice_count for item in model.all} == {len(model.all)}
        if len(plan.updates) + len(plan.creates) > 1 and not lost:
            assert plan.generation > newest
        newest = plan.generation


def names(pool: Pool) -> set[str]:
    return {item.metadata.name for item in pool.slices}


def test_after_the_last_generation_that_somebody_wrote_the_pool_is_made_anew() -> None:
    model = published(lay_out(*wholes(65)))
    for item in model.all:
        pool = replace(item.spec.pool, generation=LAST_GENERATION)
        model.slices[item.metadata.name] = replace(item, spec=replace(item.spec, pool=pool))
    assert plan_sync(lay_out(*wholes(65)), model.all).is_empty
    wanted = lay_out(*wholes(129))
    plan = plan_sync(wanted, model.all)
    model.apply(plan)
    assert {item.spec.pool.generation for item in model.all} == {1}
    assert plan_sync(wanted, model.all).is_empty
