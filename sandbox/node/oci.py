"""The OCI runtime config of a container: what a container runtime hands to runc. Pure.

Edits are applied as the reference library of CDI does it (container-device-interface, pkg/cdi/container-edits.go);
fields are those of the OCI runtime specification 1.3.
"""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from cdi import ContainerEdits, DeviceNode, Hook, IntelRdt, Mount

VERSION: Final = "1.3.0"

OciConfig = dict[str, Any]

_PATH: Final = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_BASE_MOUNTS: Final = (
    {"destination": "/proc", "type": "proc", "source": "proc", "options": ["nosuid", "noexec", "nodev"]},
    {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "strictatime", "mode=755"]},
    {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "noexec", "nodev", "ro"]},
)
_NAMESPACES: Final = ("pid", "ipc", "uts", "mount", "network", "cgroup")


def build_config(
    *, hostname: str, args: Sequence[str], env: Mapping[str, str], annotations: Mapping[str, str], edits: ContainerEdits
) -> OciConfig:
    """Build the config of a container with these edits. Device nodes must have their numbers."""
    process: OciConfig = {"args": list(args), "env": _merge_env(env, edits.env), "cwd": "/", "noNewPrivileges": True}
    if edits.additional_gids:
        process["user"] = {"uid": 0, "gid": 0, "additionalGids": [gid for gid in edits.additional_gids if gid]}
    config: OciConfig = {
        "ociVersion": VERSION,
        "process": process,
        "root": {"path": "rootfs"},
        "hostname": hostname,
        "mounts": _build_mounts(edits.mounts),
        "linux": _build_linux(edits),
        "annotations": dict(annotations),
    }
    if edits.hooks:
        config["hooks"] = _build_hooks(edits.hooks)
    return config


def _merge_env(env: Mapping[str, str], added: Sequence[str]) -> list[str]:
    """Join variables; a later one takes the place of an earlier one of the same name."""
    entries = [_PATH, *(f"{name}={value}" for name, value in env.items()), *added]
    return list({entry.partition("=")[0]: entry for entry in entries}.values())


def _build_mounts(mounts: Sequence[Mount]) -> list[OciConfig]:
    """Add mounts; one at the place of an earlier one replaces it, and a folder comes before what is in it."""
    by_place = {str(mount["destination"]): dict(mount) for mount in _BASE_MOUNTS}
    for mount in mounts:
        by_place.pop(mount.container_path, None)
        by_place[mount.container_path] = {
            "destination": mount.container_path,
            "type": mount.type or "bind",
            "source": mount.host_path,
            "options": list(mount.options),
        }
    return sorted(by_place.values(), key=lambda mount: len(PurePosixPath(mount["destination"]).parts))


def _build_linux(edits: ContainerEdits) -> OciConfig:
    devices = {node.path: _build_device(node) for node in edits.device_nodes}
    rules = [{"allow": False, "access": "rwm"}, *(_build_rule(node) for node in edits.device_nodes)]
    linux: OciConfig = {
        "namespaces": [{"type": each} for each in _NAMESPACES],
        "devices": list(devices.values()),
        "resources": {"devices": [rule for rule in rules if rule]},
    }
    if edits.net_devices:
        linux["netDevices"] = {device.host_interface_name: {"name": device.name} for device in edits.net_devices}
    if edits.intel_rdt is not None:
        linux["intelRdt"] = _build_intel_rdt(edits.intel_rdt)
    return linux


def _build_device(node: DeviceNode) -> OciConfig:
    device = {
        "path": node.path,
        "type": node.type,
        "major": node.major,
        "minor": node.minor,
        "fileMode": node.file_mode,
        "uid": node.uid,
        "gid": node.gid,
    }
    return {name: value for name, value in device.items() if value is not None}


def _build_rule(node: DeviceNode) -> OciConfig:
    """Allow the use of a character or block device, unless the spec says `none`."""
    if node.type not in ("b", "c") or node.permissions == "none":
        return {}
    access = node.permissions or "rwm"
    return {"allow": True, "type": node.type, "major": node.major, "minor": node.minor, "access": access}


def _build_hooks(hooks: Sequence[Hook]) -> OciConfig:
    built: OciConfig = {}
    for hook in hooks:
        entry = {"path": hook.path, "args": list(hook.args), "env": list(hook.env), "timeout": hook.timeout}
        built.setdefault(hook.hook_name, []).append({name: value for name, value in entry.items() if value})
    return built


def _build_intel_rdt(rdt: IntelRdt) -> OciConfig:
    fields = {
        "closID": rdt.clos_id,
        "l3CacheSchema": rdt.l3_cache_schema,
        "memBwSchema": rdt.mem_bw_schema,
        "schemata": list(rdt.schemata),
        "enableMonitoring": rdt.enable_monitoring,
    }
    return {name: value for name, value in fields.items() if value}
