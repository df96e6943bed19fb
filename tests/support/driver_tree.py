"""A host with an NVIDIA driver on it, in a folder: files as the installers leave them, and the kernel's `/proc`."""

import struct
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from dra_driver.devices.nvidia.driver_root import DriverRoot

ELF_64 = b"\x7fELF\x02\x01\x01"
ELF_32 = b"\x7fELF\x01\x01\x01"

DEVICES = """Character devices:
  1 mem
195 nvidia
195 nvidia-modeset
195 nvidiactl
235 nvidia-caps
511 nvidia-uvm

Block devices:
  8 sd
"""

LIBRARIES: Mapping[str, tuple[str, ...]] = {
    "libcuda.so": ("libcuda.so", "libcuda.so.1"),
    "libnvidia-ml.so": ("libnvidia-ml.so.1",),
    "libnvidia-gpucomp.so": (),
    "libnvidia-glcore.so": (),
}


class DriverTree:
    """A host's root in `folder`, with the driver's root at `root` (a host path) below it."""

    def __init__(self, folder: Path, root: str = "/") -> None:
        self.host = folder / "host"
        self.driver = self.host / root.lstrip("/")
        self.proc = folder / "proc"
        self.root = DriverRoot(path=PurePosixPath(root), host=self.host, proc=self.proc)
        self.driver.mkdir(parents=True)
        self.proc.mkdir()
        (self.proc / "devices").write_text(DEVICES)

    def add_file(self, path: str, content: bytes = b"", *, executable: bool = False) -> None:
        """Put a file below the driver's root."""
        file = self.driver / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(0o755 if executable else 0o644)

    def add_link(self, path: str, target: str) -> None:
        """Put a link below the driver's root."""
        link = self.driver / path.lstrip("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)

    def add_libraries(self, folder: str, version: str, content: bytes = ELF_64) -> None:
        """Install a few libraries of a version, with their links."""
        for stem, links in LIBRARIES.items():
            self.add_file(f"{folder}/{stem}.{version}", content)
            for link in links:
                self.add_link(f"{folder}/{link}", f"{stem}.{version}")

    def add_module(self, version: str) -> None:
        """Let the kernel have the driver's module loaded."""
        file = self.proc / "driver/nvidia/version"
        file.parent.mkdir(parents=True, exist_ok=True)
        kind = "NVIDIA UNIX Open Kernel Module for x86_64"
        file.write_text(f"NVRM version: {kind}  {version}  Release Build\nGCC version:  gcc version 12.3.0\n")

    def add_program(self, path: str) -> None:
        """Install a program."""
        self.add_file(path, executable=True)

    def add_hook(self, path: str) -> None:
        """Install a toolkit's program, on the host rather than in the driver's root."""
        file = self.host / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o755)

    def add_capability(self, path: str, minor: int) -> None:
        """Let the kernel have a MIG capability, such as `gpu0/mig/gi1`."""
        folder = self.proc / "driver/nvidia/capabilities" / path
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "access").write_text(f"DeviceFileMinor: {minor}\nDeviceFileMode: 292\nDeviceFileModify: 1\n")


def render_loader_cache(entries: Mapping[str, str], *, old_part: bytes = b"") -> bytes:
    """Write a loader's cache as glibc does: (name, path) pairs."""
    texts = b""
    table = []
    start = 48 + 24 * len(entries)
    for name, path in entries.items():
        key = start + len(texts)
        texts += name.encode() + b"\0"
        table.append((0x0303, key, start + len(texts), 0, 0))
        texts += path.encode() + b"\0"
    header = struct.pack("=20sIIB3xI12x", b"glibc-ld.so.cache1.1", len(table), len(texts), 2, 0)
    return old_part + header + b"".join(struct.pack("=iIIIQ", *entry) for entry in table) + texts
