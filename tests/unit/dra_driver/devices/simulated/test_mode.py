from pathlib import Path

import pytest

from dra_driver.api.config_v1alpha1 import Interval
from dra_driver.errors import DeviceError
from tests.support.backend import a_simulated_bench


def modes(directory: Path) -> dict[str, str]:
    return {
        f"{path.parent.name}/{path.stem}": path.read_text().strip()
        for name in ("time-slices", "exclusive-process")
        for path in (directory / "state" / name).glob("*.json")
    }


def test_modes_of_a_device_last_until_they_are_undone(tmp_path: Path) -> None:
    bench = a_simulated_bench(tmp_path)
    backend = bench.open()
    device = backend.read_inventory().devices[0]
    for interval in (Interval.SHORT, Interval.LONG, Interval.LONG):
        backend.apply_time_slice(device, interval)
    backend.apply_exclusive_process(device)
    assert modes(tmp_path) == {
        f"time-slices/{device.name}": "Long",
        f"exclusive-process/{device.name}": "exclusive",
    }
    restarted = bench.open()
    for _ in range(2):
        restarted.undo_time_slice(device)
        restarted.undo_exclusive_process(device)
    assert modes(tmp_path) == {}


def test_a_device_that_is_gone_has_no_mode_to_get_but_loses_what_it_had(tmp_path: Path) -> None:
    bench = a_simulated_bench(tmp_path)
    backend = bench.open()
    device = backend.read_inventory().devices[0]
    backend.apply_exclusive_process(device)
    bench.remove(device)
    with pytest.raises(DeviceError, match="not on this node"):
        backend.apply_time_slice(device, Interval.SHORT)
    backend.undo_exclusive_process(device)
    assert modes(tmp_path) == {}
