from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from dra_driver.api.config_v1alpha1 import Interval, Policy, Strategy
from dra_driver.api.resource_v1 import DeviceAllocationConfiguration, DeviceRequestAllocationResult
from dra_driver.devices.model import Device
from dra_driver.devices.sharing import SharingPolicy, apply_policy
from dra_driver.errors import ClaimError, DeviceBusyError
from kubeletplugin.catalog import Catalog, build_catalog
from kubeletplugin.prepare.plan import plan_claim
from kubeletplugin.prepare.record import ClaimRecord, ClaimState, MpsLimits, PreparedDevice
from kubeletplugin.prepare.room import validate_room
from kubeletplugin.prepare.strategy import Present, read_present
from tests.support.builder import (
    DRIVER,
    GIB,
    NODE,
    FakeBackend,
    a_claim,
    a_config,
    a_device,
    a_partitionable_device,
    a_ref,
    a_result,
    a_share,
    device_config,
)

DEVICE, OTHER, SPLIT = a_device("GPU-0"), a_device("GPU-1"), a_partitionable_device("GPU-P")
NPU = a_device("NPU-0", vendor="huawei")
NOTHING: Mapping[str, Present] = {}


def a_catalog(strategy: Strategy = Strategy.SHIM, *devices: Device) -> Catalog:
    backend = FakeBackend(devices or (DEVICE, OTHER, SPLIT, NPU))
    return build_catalog([(backend, apply_policy(backend.read_inventory(), SharingPolicy(default=strategy)))])


def a_demand(strategy: str, source: str = "FromClaim", **fields: Any) -> DeviceAllocationConfiguration:
    return a_config(device_config(strategy=strategy, **fields), source=source)


def plan(
    *results: DeviceRequestAllocationResult,
    policy: Strategy = Strategy.SHIM,
    config: Sequence[DeviceAllocationConfiguration] = (),
    present: Mapping[str, Present] = NOTHING,
    unenforced: bool = False,
) -> tuple[PreparedDevice, ...]:
    return plan_claim(
        a_ref(),
        a_claim(*results, config=config),
        driver=DRIVER,
        pool=NODE,
        catalog=a_catalog(policy),
        present=present,
        unenforced=unenforced,
    )


def test_a_share_has_the_strategy_of_its_device() -> None:
    found = {policy: plan(a_share(DEVICE.name, "s", memory="8Gi", cores=30), policy=policy)[0] for policy in Strategy}
    assert {policy: device.strategy for policy, device in found.items()} == {policy: policy for policy in Strategy}
    assert found[Strategy.SHIM].shim_policy is Policy.FORCE
    assert found[Strategy.TIME_SLICING].interval is Interval.DEFAULT
    assert found[Strategy.MPS].mps == MpsLimits(memory=8 * GIB, thread_percentage=30)
    assert [device.shim_policy for policy, device in found.items() if policy is not Strategy.SHIM] == [None] * 3


@pytest.mark.parametrize("policy", Strategy)
def test_whoever_has_a_device_alone_shares_it_with_nobody(policy: Strategy) -> None:
    [whole] = plan(a_share(DEVICE.name, "s", memory="80Gi"), policy=policy)
    assert (whole.strategy, whole.shim_policy, whole.interval, whole.mps) == (None, None, None, None)


def test_a_whole_device_runs_under_mps_if_its_claim_says_so() -> None:
    config = a_demand("MPS", mps={"defaultActiveThreadPercentage": 50})
    [whole] = plan(a_result(DEVICE.name), config=[config])
    assert (whole.strategy, whole.mps) == (Strategy.MPS, MpsLimits(thread_percentage=50))


@pytest.mark.parametrize(
    ("memory", "cores", "mps", "expected"),
    [
        pytest.param("8Gi", 1, {}, MpsLimits(memory=8 * GIB), id="no compute limit"),
        pytest.param("80Gi", 30, {}, MpsLimits(thread_percentage=30), id="all memory"),
        pytest.param("8Gi", 30, {"threads": 50}, MpsLimits(memory=8 * GIB, thread_percentage=30), id="never wider"),
        pytest.param("8Gi", 1, {"threads": 50}, MpsLimits(memory=8 * GIB, thread_percentage=50), id="where none is"),
        pytest.param("8Gi", 1, {"memory": "4Gi"}, MpsLimits(memory=4 * GIB), id="tighter memory"),
        pytest.param("8Gi", 1, {"memory": "9Gi"}, MpsLimits(memory=8 * GIB), id="no more memory"),
    ],
)
def test_limits_of_mps_are_the_lesser_of_share_and_config(
    memory: str, cores: int, mps: dict[str, Any], expected: MpsLimits
) -> None:
    names = {"threads": "defaultActiveThreadPercentage", "memory": "defaultPinnedDeviceMemoryLimit"}
    config = a_config(device_config(mps={names[key]: value for key, value in mps.items()}))
    [share] = plan(a_share(DEVICE.name, "s", memory=memory, cores=cores), policy=Strategy.MPS, config=[config])
    assert share.mps == expected


def test_what_tunes_another_strategy_has_no_effect() -> None:
    config = a_config(device_config(policy="Burst", mps={"defaultActiveThreadPercentage": 5}))
    [share] = plan(a_share(DEVICE.name, "s"), policy=Strategy.TIME_SLICING, config=[config])
    assert (share.strategy, share.shim_policy, share.mps) == (Strategy.TIME_SLICING, None, None)


def test_a_share_follows_what_its_device_is_shared_by_now() -> None:
    present: dict[str, Present] = {DEVICE.name: Present(strategy=Strategy.TIME_SLICING, interval=Interval.LONG)}
    [share] = plan(a_share(DEVICE.name, "s"), present=present)
    assert (share.strategy, share.interval) == (Strategy.TIME_SLICING, Interval.LONG)


@pytest.mark.parametrize("loose", ["TimeSlicing", "None"])
def test_a_claim_cannot_shake_off_the_limits_of_its_share(loose: str) -> None:
    share = a_share(DEVICE.name, "s")
    with pytest.raises(ClaimError, match=f"demands strategy '{loose}', which limits nobody, want a DeviceClass"):
        plan(share, config=[a_demand(loose)])
    assert plan(share, config=[a_demand(loose, "FromClass")])[0].strategy == loose
    assert plan(share, config=[a_demand(loose)], unenforced=True)[0].strategy == loose
    assert plan(share, config=[a_demand(loose)], policy=Strategy.NONE)[0].strategy == loose


@pytest.mark.parametrize(
    ("device", "strategy", "problem"),
    [
        pytest.param(NPU.name, "MPS", "vendor 'huawei' knows no MPS", id="another vendor"),
        pytest.param(SPLIT.partition_name(SPLIT.partitions[0]), "MPS", "is a partition, which has no MPS", id="MIG"),
    ],
)
def test_a_strategy_that_a_device_does_not_know_is_refused(device: str, strategy: str, problem: str) -> None:
    with pytest.raises(ClaimError, match=problem):
        plan(a_result(device), config=[a_demand(strategy)])


def test_a_config_for_a_request_holds_for_its_subrequests() -> None:
    config = a_config(device_config(strategy="MPS"), requests=["main"])
    assert plan(a_result(DEVICE.name, "main/small"), config=[config])[0].strategy is Strategy.MPS
    assert plan(a_result(DEVICE.name, "mainly"), config=[config])[0].strategy is None


def test_a_claim_has_one_device_under_mps() -> None:
    with pytest.raises(ClaimError, match="MPS daemon of its own, want one such device a claim"):
        plan(a_share(DEVICE.name, "a"), a_share(OTHER.name, "b"), policy=Strategy.MPS)


def test_admin_access_does_not_touch_how_a_device_is_shared() -> None:
    [looker] = plan(a_result(DEVICE.name, admin_access=True), config=[a_demand("MPS")])
    assert looker.strategy is None


def a_holder(uid: str, *devices: PreparedDevice) -> ClaimRecord:
    return ClaimRecord(namespace="default", name=uid, uid=uid, state=ClaimState.COMPLETED, devices=devices)


@pytest.mark.parametrize(
    ("policy", "config", "problem"),
    [
        pytest.param(
            Strategy.SHIM,
            device_config(strategy="MPS"),
            r"held by claim default/uid-2 \(UID uid-2, .*\): is shared by Shim, want no other strategy \(MPS\)",
            id="strategy",
        ),
        pytest.param(
            Strategy.TIME_SLICING,
            device_config(timeSlicing={"interval": "Short"}),
            r"held by claim default/uid-2 .*: has turns of length Default, want no other \(Short\)",
            id="interval",
        ),
    ],
)
def test_nobody_changes_a_strategy_under_another_share(policy: Strategy, config: dict[str, Any], problem: str) -> None:
    holder = a_holder("uid-2", *plan(a_share(DEVICE.name, "s"), policy=policy))
    catalog = a_catalog(policy)
    present = read_present([holder], besides="uid-1")
    planned = plan(a_share(DEVICE.name, "t"), policy=policy, config=[a_config(config)], present=present)
    with pytest.raises(DeviceBusyError, match=problem):
        validate_room(a_ref(), planned, [holder], catalog=catalog, slots=16)
    follower = plan(a_share(DEVICE.name, "t"), policy=policy, present=present)
    validate_room(a_ref(), follower, [holder], catalog=catalog, slots=16)


def test_two_shares_of_one_claim_have_one_strategy() -> None:
    configs = [
        a_config(device_config(strategy="MPS"), requests=["one"]),
        a_config(device_config(strategy="Shim"), requests=["two"]),
    ]
    planned = plan(a_share(DEVICE.name, "a", request="one"), a_share(DEVICE.name, "b", request="two"), config=configs)
    with pytest.raises(DeviceBusyError, match="is shared by MPS, want no other strategy"):
        validate_room(a_ref(), planned, [], catalog=a_catalog(), slots=16)


def test_records_from_before_strategies_tell_theirs_by_the_shim() -> None:
    old = PreparedDevice(request="main", pool=NODE, device=DEVICE.name, share_id="s", shim_policy=Policy.FORCE)
    assert read_present([a_holder("uid-2", old)], besides="") == {DEVICE.name: Present(strategy=Strategy.SHIM)}
    assert read_present([a_holder("uid-2", old)], besides="uid-2") == {}
