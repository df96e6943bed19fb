import pytest

from dra_driver.devices.model import Health, Inventory
from kubeletplugin.health.report import DEVICE_LIMIT, GONE, MESSAGE_LIMIT, DeviceReport, HealthStatus, build_reports
from tests.support.builder import a_device


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        pytest.param("x" * (MESSAGE_LIMIT - 5), "x" * (MESSAGE_LIMIT - 5), id="at the limit"),
        pytest.param("x" * (MESSAGE_LIMIT - 4), "x" * (MESSAGE_LIMIT - 8) + "...", id="one too many"),
        pytest.param("é" * MESSAGE_LIMIT, "é" * 508 + "...", id="never within a character"),
        pytest.param("\udc80", "?", id="no character at all"),
    ],
)
def test_a_message_is_cut_to_what_the_kubelet_takes(message: str, kept: str) -> None:
    (report,) = build_reports(Inventory(devices=(a_device(health=Health(reason="bad", message=message)),)))
    assert report.message == f"bad: {kept}"
    assert len(report.message.encode()) <= MESSAGE_LIMIT


def test_what_was_reported_before_and_went_is_unknown_until_it_comes_back() -> None:
    device, other = a_device(identity="one"), a_device(identity="two")
    both = build_reports(Inventory(devices=(device, other)))
    without = build_reports(Inventory(devices=(other,)), both)
    assert without == (
        DeviceReport(other.name, HealthStatus.HEALTHY),
        DeviceReport(device.name, HealthStatus.UNKNOWN, GONE),
    )
    assert build_reports(Inventory(devices=(other,)), without) == without
    assert build_reports(Inventory(devices=(device, other)), without) == both


def test_those_that_went_make_room_for_those_that_are_there() -> None:
    gone = tuple(
        DeviceReport(a_device(identity=str(number)).name, HealthStatus.HEALTHY) for number in range(DEVICE_LIMIT)
    )
    device = a_device(identity="new")
    reports = build_reports(Inventory(devices=(device,)), gone)
    assert len(reports) == DEVICE_LIMIT
    assert reports[0] == DeviceReport(device.name, HealthStatus.HEALTHY)
