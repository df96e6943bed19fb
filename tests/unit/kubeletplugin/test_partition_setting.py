import pytest

from dra_driver.devices.partitioning import PartitionMode
from dra_driver.errors import SettingError
from kubeletplugin.setting import BackendName, Settings, SimulatedSettings, validate_settings


def settings(*overrides: str) -> Settings:
    simulated = SimulatedSettings(profile="a100x8")
    return Settings(node_name="node-a", backends=(BackendName.SIMULATED,), simulated=simulated, partitions_of=overrides)


def test_partitions_are_made_on_demand_unless_somebody_says_otherwise() -> None:
    validate_settings(settings())
    assert settings().partition_policy.default is PartitionMode.DYNAMIC


def test_devices_that_differ_are_named_one_by_one() -> None:
    chosen = settings("GPU-1=none", "GPU-2=static")
    validate_settings(chosen)
    assert chosen.partition_policy.devices == {"GPU-1": PartitionMode.NONE, "GPU-2": PartitionMode.STATIC}


def test_what_is_wrong_with_them_is_said_before_anything_starts() -> None:
    with pytest.raises(SettingError, match=r"--partitions-of: 'GPU-1=dynamc'.*did you mean 'dynamic'"):
        validate_settings(settings("GPU-1=dynamc"))
