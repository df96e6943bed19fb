"""The types of a CDI spec, version 1.1.0: what a container runtime does when a container asks for a device.

Source: the CDI specification (cncf-tags/container-device-interface, SPEC.md) and its Go types. Classes carry the Go
names, fields are the JSON names in snake case, and an empty value means that the field is absent.
"""

from typing import Annotated, Final

from msgspec import Meta, Struct, field

Uint32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class CdiStruct(
    Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """Base of all spec types: immutable, compared by value, keywords only."""


class DeviceNode(CdiStruct, frozen=True, kw_only=True):
    """A device node that the container sees at `path`.

    The runtime takes what is left empty (`type`, `major`, `minor`) from the node at `host_path`, or at `path` if that
    is empty too. `file_mode` is the number, not its octal text. `permissions` are cgroup permissions out of `rwm`;
    empty means all three, `none` means none.
    """

    path: str
    host_path: str = ""
    type: str = ""
    major: Int64 = 0
    minor: Int64 = 0
    file_mode: Uint32 | None = None
    permissions: str = ""
    uid: Uint32 | None = None
    gid: Uint32 | None = None


class LinuxNetDevice(CdiStruct, frozen=True, kw_only=True):
    """A network interface that is moved from the host into the container, there under `name`."""

    host_interface_name: str
    name: str


class Hook(CdiStruct, frozen=True, kw_only=True):
    """A program that the runtime runs on the host at the stage `hook_name`; `timeout` is in seconds."""

    hook_name: str
    path: str
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    timeout: Int64 | None = None


class Mount(CdiStruct, frozen=True, kw_only=True):
    """A mount; `options` and `type` are those of the OCI runtime specification."""

    host_path: str
    container_path: str
    options: tuple[str, ...] = ()
    type: str = ""


class IntelRdt(CdiStruct, frozen=True, kw_only=True):
    """Cache and memory bandwidth control (resctrl) for the container."""

    clos_id: str = field(default="", name="closID")
    l3_cache_schema: str = ""
    mem_bw_schema: str = ""
    schemata: tuple[str, ...] = ()
    enable_monitoring: bool = False


class ContainerEdits(CdiStruct, frozen=True, kw_only=True):
    """What is added to a container; `env` entries are `NAME=value`."""

    env: tuple[str, ...] = ()
    device_nodes: tuple[DeviceNode, ...] = ()
    net_devices: tuple[LinuxNetDevice, ...] = ()
    hooks: tuple[Hook, ...] = ()
    mounts: tuple[Mount, ...] = ()
    intel_rdt: IntelRdt | None = None
    additional_gids: tuple[Uint32, ...] = ()


NO_EDITS: Final = ContainerEdits()


class Device(CdiStruct, frozen=True, kw_only=True):
    """A device that a container can ask for as `<kind>=<name>`. Its edits may not be empty."""

    name: str
    annotations: dict[str, str] = field(default_factory=dict)
    container_edits: ContainerEdits


class Spec(CdiStruct, frozen=True, kw_only=True):
    """One spec file: the devices of one kind (`vendor/class`).

    The edits of the spec itself are applied once to each container that asks for at least one of its devices.
    """

    cdi_version: str
    kind: str
    annotations: dict[str, str] = field(default_factory=dict)
    devices: tuple[Device, ...]
    container_edits: ContainerEdits = NO_EDITS


def merge_edits(*edits: ContainerEdits) -> ContainerEdits:
    """Join edits in order, as a runtime does: lists are appended, the last `intel_rdt` wins."""
    return ContainerEdits(
        env=tuple(entry for edit in edits for entry in edit.env),
        device_nodes=tuple(node for edit in edits for node in edit.device_nodes),
        net_devices=tuple(device for edit in edits for device in edit.net_devices),
        hooks=tuple(hook for edit in edits for hook in edit.hooks),
        mounts=tuple(mount for edit in edits for mount in edit.mounts),
        intel_rdt=next((edit.intel_rdt for edit in reversed(edits) if edit.intel_rdt is not None), None),
        additional_gids=tuple(gid for edit in edits for gid in edit.additional_gids),
    )
