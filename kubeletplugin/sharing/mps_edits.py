"""Where the parties of a device's MPS meet, and what a client's container gets of it. Pure."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import cdi
from kubeletplugin.prepare.record import MpsLimits

CONTAINER_PIPES: Final = "/run/dra-driver/mps"
"""Where daemon and clients find the daemon's pipes: the same path for both, as MPS wants it."""

_MEBIBYTE: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MpsFolders:
    """Folders on the host: the pipes, and the memory that server and clients share, one of each a device."""

    pipes: Path
    memory: Path

    def pipes_of(self, device: str) -> Path:
        """The folder of a device's pipes."""
        return self.pipes / device

    def memory_of(self, device: str) -> Path:
        """The folder that stands for `/dev/shm`."""
        return self.memory / device


def build_mps_edits(device: str, limits: MpsLimits, folders: MpsFolders) -> cdi.ContainerEdits:
    """Build what makes a container a client of the device's daemon, with its limits.

    A client sees one device, the daemon's, so the memory limit is that of device 0.
    """
    env = [f"CUDA_MPS_PIPE_DIRECTORY={CONTAINER_PIPES}"]
    if limits.memory is not None:
        env.append(f"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0={limits.memory // _MEBIBYTE}M")
    if limits.thread_percentage is not None:
        env.append(f"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE={limits.thread_percentage}")
    options = ("rw", "nosuid", "nodev", "noexec", "rbind", "rprivate")
    places = ((folders.pipes_of(device), CONTAINER_PIPES), (folders.memory_of(device), "/dev/shm"))  # noqa: S108
    mounts = (cdi.Mount(host_path=str(host), container_path=inside, options=options) for host, inside in places)
    return cdi.ContainerEdits(env=tuple(env), mounts=tuple(mounts))
