import pytest

from dra_driver.api.config_v1alpha1 import Strategy
from dra_driver.devices.model import Device, Inventory, ShareEnforcement
from dra_driver.devices.sharing import SharingPolicy, apply_policy, explain_unsupported, parse_sharing_policy
from dra_driver.errors import SettingError
from tests.support.builder import a_device


def with_policy(device: Device, policy: SharingPolicy) -> Device:
    return apply_policy(Inventory(devices=(device,)), policy).devices[0]


@pytest.mark.parametrize(
    ("strategy", "enforcement"),
    [
        (Strategy.SHIM, ShareEnforcement.SHIM),
        (Strategy.MPS, ShareEnforcement.HARDWARE),
        (Strategy.TIME_SLICING, ShareEnforcement.NONE),
        (Strategy.NONE, ShareEnforcement.NONE),
    ],
    ids=str,
)
def test_a_device_says_how_it_is_shared_and_who_limits_its_shares(
    strategy: Strategy, enforcement: ShareEnforcement
) -> None:
    device = with_policy(a_device(), SharingPolicy(default=strategy))
    assert (device.sharing_strategy, device.share_enforcement) == (strategy, enforcement)


def test_a_device_has_its_own_strategy_by_name_uuid_or_serial() -> None:
    device = a_device(uuid="GPU-0", serial="17")
    for key in (device.name, "GPU-0", "17"):
        policy = parse_sharing_policy(Strategy.SHIM, [f"{key}=MPS"])
        assert with_policy(device, policy).sharing_strategy is Strategy.MPS
        assert with_policy(a_device("GPU-9"), policy).sharing_strategy is Strategy.SHIM


def test_a_device_that_does_not_know_the_nodes_strategy_stays_with_the_shim() -> None:
    device = with_policy(a_device(vendor="huawei"), SharingPolicy(default=Strategy.MPS))
    assert (device.sharing_strategy, device.share_enforcement) == (Strategy.SHIM, ShareEnforcement.SHIM)


@pytest.mark.parametrize(("capability", "known"), [("9.0", True), ("7.0", True), ("6.1", False), (None, True)])
def test_mps_needs_clients_with_address_spaces_of_their_own(capability: str | None, known: bool) -> None:
    assert (explain_unsupported(Strategy.MPS, a_device(compute_capability=capability)) is None) is known


def test_every_mistake_in_the_overrides_is_named() -> None:
    with pytest.raises(SettingError) as caught:
        parse_sharing_policy(Strategy.SHIM, ["MPS", "gpu-1=Mps", "gpu-2=MPS", "gpu-2=Shim"])
    assert str(caught.value) == (
        "--sharing-strategy-of: 'MPS': want <device name, UUID or serial>=<strategy>; "
        "--sharing-strategy-of: 'gpu-1=Mps': unknown strategy 'Mps', want 'Shim' or 'TimeSlicing' or 'MPS' or 'None'; "
        "did you mean 'MPS'?; "
        "--sharing-strategy-of: 'gpu-2=Shim': 'gpu-2' is MPS already, want one strategy a device"
    )
