"""That counters admit what a GPU can hold, and nothing else."""

import itertools
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_driver.api.resource_slice_validation import validate_resource_slice
from dra_driver.devices.model import Device, DeviceType, Inventory, Partition, ShareEnforcement
from dra_driver.devices.nvidia.placement import (
    MAX_COUNTERS,
    GpuProfile,
    Placements,
    build_placements,
    build_profile_name,
    parse_profile_name,
)
from kubeletplugin.publish.layout import PoolOwner, build_pool
from kubeletplugin.publish.offer import SharePolicy
from tests.support.nvml.mig_profile import MIG_PROFILES, MigProfile

GPUS = tuple(MIG_PROFILES)


def a_profile(profile: MigProfile) -> GpuProfile:
    copy, decoders, encoders, jpeg, ofa = profile.engines
    return GpuProfile(
        name=profile.name,
        id=profile.id,
        compute_slices=profile.compute_slices,
        instances=profile.instances,
        memory=profile.memory << 20,
        multiprocessors=profile.multiprocessors,
        copy_engines=copy,
        decoders=decoders,
        encoders=encoders,
        jpeg_engines=jpeg,
        ofa_engines=ofa,
        placements=tuple((start, profile.size) for start in profile.starts),
    )


PLACEMENTS = {gpu: build_placements(map(a_profile, profiles)) for gpu, profiles in MIG_PROFILES.items()}


def fits(chosen: Sequence[Partition], placements: Placements) -> bool:
    """What kube-scheduler does with counters."""
    taken: Counter[str] = Counter()
    for partition in chosen:
        taken.update(partition.counters)
    return all(amount <= placements.counters[name] for name, amount in taken.items())


def can_exist(chosen: Sequence[Partition], gpu: str) -> bool:
    """NVIDIA's rules: memory slices are disjoint, compute slices suffice, one instance with media extensions."""
    profiles = {profile.name: profile for profile in MIG_PROFILES[gpu]}
    covered = [index for each in chosen for index in range(each.start, each.start + each.size)]
    compute = sum(profiles[each.profile].compute_slices for each in chosen)
    most = max(profile.compute_slices for profile in profiles.values())
    extensions = sum("+me" in each.profile for each in chosen)
    return len(covered) == len(set(covered)) and compute <= most and extensions <= 1


@st.composite
def choices(draw: st.DrawFn) -> tuple[str, list[Partition]]:
    gpu = draw(st.sampled_from(GPUS))
    return gpu, draw(st.lists(st.sampled_from(PLACEMENTS[gpu].partitions), max_size=8))


@given(choices())
def test_counters_admit_partitions_exactly_if_they_can_exist_together(choice: tuple[str, list[Partition]]) -> None:
    gpu, chosen = choice
    assert fits(chosen, PLACEMENTS[gpu]) == can_exist(chosen, gpu)


@pytest.mark.parametrize("gpu", GPUS)
def test_counters_admit_every_full_gpu_and_no_more(gpu: str) -> None:
    """Goes through all sets that can exist, growing them in order, and looks at each of their next members."""
    placements, seen = PLACEMENTS[gpu], 0
    sets: list[tuple[Partition, ...]] = [()]
    while sets:
        chosen = sets.pop()
        later = placements.partitions.index(chosen[-1]) + 1 if chosen else 0
        for partition in placements.partitions[later:]:
            grown = (*chosen, partition)
            assert fits(grown, placements) == can_exist(grown, gpu), [each.profile for each in grown]
            seen += 1
            if fits(grown, placements):
                sets.append(grown)
    assert seen > 100


@pytest.mark.parametrize("gpu", GPUS)
def test_the_whole_gpu_excludes_each_partition(gpu: str) -> None:
    placements = PLACEMENTS[gpu]
    for partition in placements.partitions:
        assert any(amount > 0 for amount in partition.counters.values())
        assert partition.counters.keys() <= placements.counters.keys()


@pytest.mark.parametrize("gpu", GPUS)
def test_each_partition_has_a_place_of_its_own_in_physical_order(gpu: str) -> None:
    partitions = PLACEMENTS[gpu].partitions
    assert len({(each.profile, each.start) for each in partitions}) == len(partitions)
    assert [each.start for each in partitions] == sorted(each.start for each in partitions)
    assert len(partitions) == sum(len(profile.starts) for profile in MIG_PROFILES[gpu])


def test_the_counters_of_an_h100() -> None:
    placements = PLACEMENTS["H100-80"]
    assert placements.counters == {f"memory-slice-{index}": 1 for index in range(8)} | {
        "compute-slices": 7,
        "copy-engines": 8,
        "decoders": 7,
        "jpeg-engines": 7,
        "ofa-engines": 1,
        "media-extensions": 1,
    }
    extended = placements.find("1g.10gb+me", 6)
    assert extended is not None
    assert extended.memory == 9984 << 20
    assert extended.compute_units == 16
    assert extended.counters == {
        "memory-slice-6": 1,
        "compute-slices": 1,
        "copy-engines": 1,
        "decoders": 1,
        "jpeg-engines": 1,
        "ofa-engines": 1,
        "media-extensions": 1,
    }
    assert placements.find("1g.10gb", 7) is None


def test_both_profiles_with_media_extensions_of_an_a30_exclude_each_other() -> None:
    placements = PLACEMENTS["A30"]
    extended = [each for each in placements.partitions if "+me" in each.profile]
    assert not any(fits(pair, placements) for pair in itertools.combinations(extended, 2))


def a_plain_profile(name: str, *, instances: int, slices: int = 4, copy_engines: int = 1) -> GpuProfile:
    return GpuProfile(
        name=name,
        id=1,
        compute_slices=1,
        instances=instances,
        memory=1 << 30,
        multiprocessors=10,
        copy_engines=copy_engines,
        placements=tuple((start, 1) for start in range(slices)),
    )


def test_a_profile_that_is_scarcer_than_its_places_has_a_counter() -> None:
    placements = build_placements(
        [a_plain_profile("1g.24gb", instances=4), a_plain_profile("1g.24gb+gfx", instances=2)]
    )
    assert placements.counters["instances-1g-24gb-gfx"] == 2
    graphics = [each for each in placements.partitions if each.profile == "1g.24gb+gfx"]
    assert fits(graphics[:2], placements)
    assert not fits(graphics[:3], placements)


def test_a_gpu_without_profiles_has_nothing_to_give() -> None:
    assert build_placements([]) == Placements(partitions=(), counters={})
    assert build_placements([a_plain_profile("1g.5gb", instances=0)]).partitions == ()


def test_engines_give_way_where_counters_are_short() -> None:
    placements = build_placements([a_plain_profile("1g.5gb", instances=31, slices=31)])
    assert len(placements.counters) == MAX_COUNTERS
    assert "copy-engines" not in placements.counters
    assert all("copy-engines" not in each.counters for each in placements.partitions)


@pytest.mark.parametrize("gpu", GPUS)
def test_names_can_be_told_from_sizes(gpu: str) -> None:
    total = {"A100-40": 40960, "A100-80": 81920, "A30": 24576, "H100-80": 81559, "H200-141": 143771, "B200-180": 183359}
    for profile in MIG_PROFILES[gpu]:
        plain, plus, _ = profile.name.partition("+me")
        name = build_profile_name(
            compute_slices=profile.compute_slices,
            memory=profile.memory << 20,
            total_memory=total[gpu] << 20,
            suffix="+me" if plus else "",
        )
        if gpu != "B200-180":  # its sizes are not captured, but from a mock
            assert name == profile.name, plain


def test_a_gpu_that_does_not_tell_its_memory_has_names_for_its_profiles_all_the_same() -> None:
    assert build_profile_name(compute_slices=1, memory=9856 << 20, total_memory=0, suffix="+me") == "1g.10gb+me"


def test_the_word_mig_is_no_part_of_a_name() -> None:
    assert parse_profile_name("MIG 1g.10gb+me") == "1g.10gb+me"
    assert parse_profile_name("1g.10gb") == "1g.10gb"


def test_a_full_node_keeps_the_limits_of_slices() -> None:
    gpus = tuple(
        Device(
            vendor="nvidia",
            type=DeviceType.GPU,
            identity=f"GPU-{index}",
            model="H100",
            memory=81559 << 20,
            share_enforcement=ShareEnforcement.SHIM,
            partitions=PLACEMENTS["H100-80"].partitions,
            counters=PLACEMENTS["H100-80"].counters,
        )
        for index in range(16)
    )
    owner = PoolOwner(driver="accel.dra-driver.io", node_name="node-a", node_uid="uid")
    pool = build_pool(Inventory(devices=gpus), owner=owner, shares=SharePolicy())
    assert pool.left_out == ()
    assert pool.device_count == 16 * 26
    assert [list(validate_resource_slice(item)) for item in pool.slices] == [[] for _ in pool.slices]
    assert [len(item.spec.shared_counters) for item in pool.slices if item.spec.shared_counters] == [8, 8]
    assert [len(item.spec.devices) for item in pool.slices if item.spec.devices] == [64] * 6 + [32]
