from dataclasses import replace

from dra_driver.devices.model import Health, Inventory
from kubeletplugin.health.change import HealthChange, diff_health
from tests.support.builder import a_device

ILL = Health(reason="xid-79", message="fell off the bus")
WELL = a_device("GPU-0")


def inventory(*healths: Health | None) -> Inventory:
    return Inventory(
        devices=tuple(replace(a_device(f"GPU-{index}"), health=each) for index, each in enumerate(healths))
    )


def test_a_device_that_falls_ill_and_recovers_is_told_once_each() -> None:
    assert list(diff_health(inventory(None), inventory(ILL))) == [HealthChange(WELL.name, ILL)]
    assert list(diff_health(inventory(ILL), inventory(ILL))) == []
    assert list(diff_health(inventory(ILL), inventory(None))) == [HealthChange(WELL.name, None)]


def test_a_new_device_is_told_only_if_it_is_ill() -> None:
    assert list(diff_health(Inventory(), inventory(None))) == []
    assert list(diff_health(Inventory(), inventory(ILL))) == [HealthChange(WELL.name, ILL)]


def test_a_device_that_is_gone_is_not_well() -> None:
    assert list(diff_health(inventory(ILL), Inventory())) == []


def test_another_reason_is_told() -> None:
    worse = Health(reason="xid-48", message="double bit error")
    assert list(diff_health(inventory(ILL), inventory(worse))) == [HealthChange(WELL.name, worse)]


def test_what_a_process_before_told_is_changed_by_a_well_device() -> None:
    assert list(diff_health(Inventory(), inventory(None, None), {WELL.name: ILL})) == [HealthChange(WELL.name, None)]
    assert list(diff_health(inventory(None), inventory(None), {WELL.name: ILL})) == []
