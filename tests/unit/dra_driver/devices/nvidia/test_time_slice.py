"""`nvidia-smi` is a script here, which writes down how it was called."""

import json
import sys
from pathlib import Path

import pytest

from dra_driver.api.config_v1alpha1 import Interval
from dra_driver.devices.nvidia.time_slice import NvidiaSmi
from dra_driver.errors import DeviceError

UUID = "GPU-1637d3bc-dc81-5164-48de-5007ee7e9f15"


def a_program(folder: Path, body: str = "") -> Path:
    program = folder / "nvidia-smi"
    program.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        f"print(json.dumps([sys.argv[1:], os.environ.get('LD_PRELOAD')]), file=open({str(folder / 'calls')!r}, 'a'))\n"
        f"{body}\n"
    )
    program.chmod(0o755)
    return program


def calls(folder: Path) -> list[list[str]]:
    return [json.loads(line)[0] for line in (folder / "calls").read_text().splitlines()]


def test_turns_and_the_compute_mode_are_set_for_one_device(tmp_path: Path) -> None:
    smi = NvidiaSmi(a_program(tmp_path))
    for interval in Interval:
        smi.apply_time_slice(UUID, interval)
    smi.apply_exclusive_process(UUID)
    smi.undo_exclusive_process(UUID)
    assert calls(tmp_path) == [
        *(["compute-policy", "-i", UUID, f"--set-timeslice={number}"] for number in range(4)),
        ["-i", UUID, "-c", "EXCLUSIVE_PROCESS"],
        ["-i", UUID, "-c", "DEFAULT"],
    ]


def test_the_library_beside_the_program_is_used(tmp_path: Path) -> None:
    library = tmp_path / "libnvidia-ml.so.1"
    body = f"assert os.environ['LD_PRELOAD'] == {str(library)!r}"
    NvidiaSmi(a_program(tmp_path, body), library=library).undo_exclusive_process(UUID)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        pytest.param("print('Not\\nSupported'); sys.exit(3)", "status 3, Not Supported", id="refuses"),
        pytest.param("sys.exit(1)", "status 1, says nothing", id="silent"),
    ],
)
def test_what_the_program_says_is_the_error(tmp_path: Path, body: str, problem: str) -> None:
    with pytest.raises(DeviceError, match=problem):
        NvidiaSmi(a_program(tmp_path, body)).apply_time_slice(UUID, Interval.SHORT)


def test_a_program_that_hangs_is_ended(tmp_path: Path) -> None:
    smi = NvidiaSmi(a_program(tmp_path, "sys.stdin = open(os.pipe()[0]); sys.stdin.read()"), timeout_s=0.1)
    with pytest.raises(DeviceError, match=f"device {UUID}: .*nvidia-smi is silent for 0.1 s"):
        smi.apply_time_slice(UUID, Interval.SHORT)


def test_a_program_that_is_not_there_is_an_error_of_the_device(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=f"{UUID}: .*nvidia-smi: "):
        NvidiaSmi(tmp_path / "nvidia-smi").apply_time_slice(UUID, Interval.SHORT)
