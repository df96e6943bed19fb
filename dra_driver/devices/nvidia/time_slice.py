"""What NVIDIA's driver lets set by its program `nvidia-smi` alone: the length of turns, and the compute mode beside it.

NVML has no call for the length of turns. The program is the one below the driver's root, with the library beside it, so
that both have one version.
"""

import os
import subprocess
from pathlib import Path
from typing import Final

from dra_driver.api.config_v1alpha1 import Interval
from dra_driver.errors import DeviceError, explain_os_error

TIMEOUT_S: Final = 15.0
"""How long the program may take: the kubelet waits 45 s for a whole prepare."""

_LENGTHS: Final = {Interval.DEFAULT: 0, Interval.SHORT: 1, Interval.MEDIUM: 2, Interval.LONG: 3}
_LONGEST_REASON: Final = 200


class NvidiaSmi:
    """Runs `nvidia-smi` for one device at a time. Every method raises DeviceError with what the program says.

    `library` is the driver's `libnvidia-ml.so.1`, if it is not where the loader looks.
    """

    def __init__(self, program: Path, *, library: Path | None = None, timeout_s: float = TIMEOUT_S) -> None:
        self._program = program
        self._library = library
        self._timeout_s = timeout_s

    def apply_time_slice(self, uuid: str, interval: Interval) -> None:
        """Set the length of the device's turns."""
        self._run(uuid, "compute-policy", "-i", uuid, f"--set-timeslice={_LENGTHS[interval]}")

    def apply_exclusive_process(self, uuid: str) -> None:
        """Let one process have contexts on the device."""
        self._run(uuid, "-i", uuid, "-c", "EXCLUSIVE_PROCESS")

    def undo_exclusive_process(self, uuid: str) -> None:
        """Let all processes have contexts on the device."""
        self._run(uuid, "-i", uuid, "-c", "DEFAULT")

    def _run(self, uuid: str, *arguments: str) -> None:
        environment = {"PATH": os.defpath, "LC_ALL": "C"}
        if self._library is not None:
            environment["LD_PRELOAD"] = str(self._library)
        command = (str(self._program), *arguments)
        try:
            done = subprocess.run(  # noqa: S603 - no shell, and a UUID that the driver told
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=self._timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise DeviceError(f"device {uuid}: {self._program} is silent for {self._timeout_s:g} s") from error
        except OSError as error:
            raise DeviceError(f"device {uuid}: {self._program}: {explain_os_error(error)}") from error
        if done.returncode != 0:
            said = " ".join(done.stdout.decode("utf-8", "replace").split())[:_LONGEST_REASON]
            raise DeviceError(f"device {uuid}: {' '.join(command)}: status {done.returncode}, {said or 'says nothing'}")
