"""What a container needs to use a GPU or a MIG partition, and nothing of another one.

No vendor's toolkit is needed: without one, each library is mounted by every name that programs ask for, into folders
that the loaders of all common images look through by themselves, so that no link and no loader's cache has to be made.
Where a toolkit is installed its hook does that, and the libraries stand where the host has them.
`LD_LIBRARY_PATH` is never set: it would replace what an image or a Pod has set.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cdi import ContainerEdits, DeviceNode, Hook, Mount, merge_edits
from dra_driver.devices.model import Device
from dra_driver.devices.nvidia.driver import CUDA, Driver, Library, read_driver
from dra_driver.devices.nvidia.driver_root import MACHINE, DriverRoot
from dra_driver.devices.nvidia.node import MigInstance, Node, read_capability_nodes, read_control_nodes, read_gpu_node
from dra_driver.errors import DeviceError

CONTAINER_LIBRARY_FOLDERS: Final = (f"/usr/lib/{MACHINE}-linux-gnu", "/usr/lib64")
"""Where loaders look without being told: those of Debian and its kin, those of Red Hat and its kin."""

_PROGRAM_FOLDER: Final = "/usr/bin"
_READ_ONLY: Final = ("ro", "nosuid", "nodev", "rbind", "rprivate")
_VOID: Final = "NVIDIA_VISIBLE_DEVICES=void"
"""Keeps a vendor's runtime, if it is the default one, from adding the GPUs that an image asks for."""


@dataclass(frozen=True, slots=True)
class NvidiaEdits:
    """Renders edits for the driver at `root`, from what is there at the moment of the call."""

    root: DriverRoot

    def render(self, device: Device, instance: MigInstance | None = None) -> ContainerEdits:
        """Return the edits for a whole GPU, or for a MIG partition of it that exists.

        The device must have a `minor`. Raises DeviceError if the driver, its modules or the partition are not there.
        """
        if device.minor is None:
            raise DeviceError(f"device {device.name}: minor number unknown")
        gpu = read_gpu_node(self.root, device.minor)
        capabilities = read_capability_nodes(self.root, device.minor, instance) if instance is not None else ()
        nodes = (*read_control_nodes(self.root), gpu, *capabilities)
        return build_edits(self.root, read_driver(self.root), nodes)


def build_edits(root: DriverRoot, driver: Driver, nodes: Sequence[Node]) -> ContainerEdits:
    """Build the edits from what was found."""
    if driver.hook is None:
        libraries = ContainerEdits(mounts=tuple(_plain_mounts(root, driver)))
    else:
        libraries = ContainerEdits(
            env=tuple(
                f"NVIDIA_CTK_LIBCUDA_DIR={_folder(each.path)}" for each in driver.libraries if CUDA in each.links
            ),
            hooks=_build_hooks(driver.hook, driver.libraries),
            mounts=tuple(_mount(root, library.path, library.path) for library in driver.libraries),
        )
    programs = tuple(_mount(root, program, f"{_PROGRAM_FOLDER}/{_name(program)}") for program in driver.programs)
    rest = ContainerEdits(env=(_VOID,), device_nodes=tuple(map(_device_node, nodes)), mounts=programs)
    return merge_edits(rest, libraries)


def _device_node(node: Node) -> DeviceNode:
    return DeviceNode(
        path=f"/dev/{node.name}", type="c", major=node.major, minor=node.minor, file_mode=0o666, permissions="rw"
    )


def _plain_mounts(root: DriverRoot, driver: Driver) -> Iterator[Mount]:
    for folder in CONTAINER_LIBRARY_FOLDERS:
        for library in driver.libraries:
            for name in _names(library, driver.version):
                yield _mount(root, library.path, f"{folder}/{name}")


def _names(library: Library, version: str) -> tuple[str, ...]:
    """What programs ask for a library by: its links, and its own name where those are not enough."""
    own = _name(library.path)
    enough = any(".so." in link for link in library.links) and own.endswith(f".{version}")
    return library.links if enough else (*library.links, own)


def _mount(root: DriverRoot, path: str, container_path: str) -> Mount:
    return Mount(host_path=root.host_path(path), container_path=container_path, options=_READ_ONLY)


def _build_hooks(program: str, libraries: Sequence[Library]) -> tuple[Hook, ...]:
    """The toolkit's two hooks: the links, then the loader's cache of the folders."""
    links = tuple(
        argument
        for library in libraries
        for link in library.links
        for argument in ("--link", f"{_name(library.path)}::{_folder(library.path)}/{link}")
    )
    folders = dict.fromkeys(_folder(library.path) for library in libraries)
    cache = tuple(argument for folder in folders for argument in ("--folder", folder))
    return _hook(program, "create-symlinks", links), _hook(program, "update-ldcache", cache)


def _hook(program: str, action: str, arguments: tuple[str, ...]) -> Hook:
    name = _name(program)
    prefix = (name, "hook") if name == "nvidia-ctk" else (name,)
    return Hook(hook_name="createContainer", path=program, args=(*prefix, action, *arguments))


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
