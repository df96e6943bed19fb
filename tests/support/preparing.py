"""A process that prepares claims on a node's folders and nothing else: several of them may work on the same ones.

Commands come on its standard input, a line each: `prepare UID DEVICE…`, `unprepare UID`, `restore`. Answers go out as
`done` or `refused TEXT`. With the argument `slow` it says `applying` before it makes a partition, and waits for a line.
"""

import sys
from pathlib import Path

from dra_driver.devices.model import Device, Partition
from dra_driver.devices.simulated import SimulatedBackend, parse_profile
from dra_driver.devices.simulated.node import CharacterDevices
from dra_driver.errors import ClaimError
from dra_driver.log import LogFormat, LogLevel, configure_logging
from tests.support.builder import NODE, a_claim, a_ref, a_result
from tests.support.prepare_node import open_preparer

PROFILE = parse_profile(
    """
devices:
  - vendor: nvidia
    type: gpu
    model: A100
    count: 2
    memory: 80Gi
    shareEnforcement: shim
    partitioning:
      slices: 2
      profiles:
        - {profile: small, size: 1, starts: [0, 1], memory: 40Gi}
        - {profile: wide, size: 2, starts: [0], memory: 80Gi}
"""
)


class SlowBackend(SimulatedBackend):
    """A backend that takes its time over a partition."""

    def apply_partition(self, device: Device, partition: Partition) -> None:
        """Wait until the test says so."""
        _say("applying")
        sys.stdin.readline()
        super().apply_partition(device, partition)


def open_backend(directory: Path, kind: type[SimulatedBackend] = SimulatedBackend) -> SimulatedBackend:
    """Return the node's hardware."""
    nodes = CharacterDevices(directory / "dev", read_majors=lambda: frozenset(range(256)))
    return kind(PROFILE, NODE, dev_dir=directory, state_dir=directory / "simulated", nodes=nodes)


def main(directory: Path, *, slow: bool) -> None:
    """Serve commands until the input ends."""
    configure_logging(format_=LogFormat.JSON, level=LogLevel.ERROR)
    preparer = open_preparer(directory, open_backend(directory, SlowBackend if slow else SimulatedBackend))
    _say("ready")
    while line := sys.stdin.readline():
        operation, *arguments = line.split()
        try:
            if operation == "prepare":
                uid, *devices = arguments
                ref = a_ref(uid, f"claim-{uid}")
                preparer.prepare(ref, a_claim(*map(a_result, devices), ref=ref))
            elif operation == "unprepare":
                preparer.unprepare(a_ref(arguments[0]))
            else:
                preparer.restore()
                preparer.sweep()
        except ClaimError as error:
            _say(f"refused {error}")
        else:
            _say("done")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), slow="slow" in sys.argv[2:])
