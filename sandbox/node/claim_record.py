"""What a kubelet remembers of claims: which Pods use them, and what the drivers made of them.

It outlives the kubelet in `dra_manager_state`, as the real one's does, so that nothing stays prepared for ever.
"""

from pathlib import Path
from typing import Final

import msgspec

from dra_driver.api import codec
from dra_driver.api.meta_v1 import Wire
from dra_driver.errors import InvalidError
from dra_driver.file import write_file
from sandbox.node.driver import ClaimName, PreparedDevice
from sandbox.node.error import NodeError

FILE: Final = "dra_manager_state"


class ClaimRecord(Wire, frozen=True, kw_only=True):
    """A claim in use. `devices` are by driver, and each driver that was, or may have been, called is among them."""

    uid: str
    namespace: str
    name: str
    pods: tuple[str, ...] = ()
    devices: dict[str, tuple[PreparedDevice, ...]] = msgspec.field(default_factory=dict)

    @property
    def claim(self) -> ClaimName:
        """The claim's name."""
        return ClaimName(self.namespace, self.name, self.uid)

    def with_pod(self, uid: str) -> "ClaimRecord":
        """Add a Pod that uses it."""
        return msgspec.structs.replace(self, pods=tuple(dict.fromkeys((*self.pods, uid))))

    def without_pod(self, uid: str) -> "ClaimRecord":
        """Remove a Pod that used it."""
        return msgspec.structs.replace(self, pods=tuple(pod for pod in self.pods if pod != uid))

    def with_devices(self, driver: str, devices: tuple[PreparedDevice, ...]) -> "ClaimRecord":
        """Replace what a driver prepared."""
        return msgspec.structs.replace(self, devices={**self.devices, driver: devices})


class _State(Wire, frozen=True, kw_only=True):
    version: str = "sandbox/v1"
    claims: tuple[ClaimRecord, ...] = ()


def read_records(directory: Path) -> tuple[ClaimRecord, ...]:
    """Read what a kubelet remembers; nothing if it never ran. Raises NodeError if it cannot be read."""
    path = directory / FILE
    try:
        return codec.decode(path.read_bytes(), _State).claims
    except FileNotFoundError:
        return ()
    except (OSError, InvalidError) as error:
        raise NodeError(f"{path}: {error}, want what a kubelet wrote") from error


def write_records(directory: Path, records: tuple[ClaimRecord, ...]) -> None:
    """Write it, whole or not at all. Raises StateError."""
    write_file(directory / FILE, codec.encode(_State(claims=records)) + b"\n")
