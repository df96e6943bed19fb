"""What makes a spec invalid, beyond the types of its fields.

The rules are those by which the reference library refuses a spec, and where the CDI specification says MUST and the
library does not look (absolute hook paths, positive timeouts, annotation keys), those too.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from cdi.annotation import validate_annotations
from cdi.errors import InvalidSpecError, Problem
from cdi.name import validate_device_name, validate_kind
from cdi.spec import NO_EDITS, ContainerEdits, DeviceNode, Hook, IntelRdt, LinuxNetDevice, Mount, Spec
from cdi.version import EARLIEST_VERSION, VERSIONS, parse_version, validate_version

HOOK_NAMES: Final = ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop")
NODE_TYPES: Final = ("b", "c", "u", "p")
NO_PERMISSIONS: Final = "none"
_CLOS_ID_MAX_BYTES: Final = 4095


def validate_spec(spec: Spec) -> tuple[Problem, ...]:
    """Return every problem of the spec, in the order of its fields; none if a runtime accepts it."""
    return tuple(_spec_problems(spec))


def require_valid(spec: Spec, subject: str) -> None:
    """Raise InvalidSpecError with every problem of the spec, if it has any. `subject` starts the text."""
    if problems := validate_spec(spec):
        raise InvalidSpecError(subject, problems)


def _spec_problems(spec: Spec) -> Iterator[Problem]:
    yield from _version_problems(spec)
    yield from (Problem("kind", problem) for problem in validate_kind(spec.kind))
    yield from _annotation_problems("annotations", spec.annotations)
    if not spec.devices:
        yield Problem("devices", "empty, want at least one device")
    first_use: dict[str, int] = {}
    for index, device in enumerate(spec.devices):
        path = f"devices[{index}]"
        yield from (Problem(f"{path}.name", problem) for problem in validate_device_name(device.name))
        if (first := first_use.setdefault(device.name, index)) != index:
            yield Problem(f"{path}.name", f"{device.name!r} is the name of devices[{first}] already, want unique names")
        yield from _annotation_problems(f"{path}.annotations", device.annotations)
        if device.container_edits == NO_EDITS:
            yield Problem(f"{path}.containerEdits", "empty, want at least one edit")
        yield from _edit_problems(f"{path}.containerEdits", device.container_edits)
    yield from _edit_problems("containerEdits", spec.container_edits)


def _version_problems(spec: Spec) -> Iterator[Problem]:
    version = parse_version(spec.cdi_version)
    if version is None:
        yield Problem("cdiVersion", f"unknown version {spec.cdi_version!r}, want one of {', '.join(VERSIONS)}")
        return
    if VERSIONS.index(version) < VERSIONS.index(EARLIEST_VERSION):
        yield Problem("cdiVersion", f"version {version} is no longer accepted, want at least {EARLIEST_VERSION}")
    for need in validate_version(spec):
        yield Problem(need.path, f"version {version} does not have this, want cdiVersion {need.version} or later")


def _annotation_problems(path: str, annotations: Mapping[str, str]) -> Iterator[Problem]:
    return (Problem(path, problem) for problem in validate_annotations(annotations))


def _edit_problems(path: str, edits: ContainerEdits) -> Iterator[Problem]:
    yield from _env_problems(f"{path}.env", edits.env)
    for index, node in enumerate(edits.device_nodes):
        yield from _node_problems(f"{path}.deviceNodes[{index}]", node)
    yield from _net_device_problems(f"{path}.netDevices", edits.net_devices)
    for index, hook in enumerate(edits.hooks):
        yield from _hook_problems(f"{path}.hooks[{index}]", hook)
    for index, mount in enumerate(edits.mounts):
        yield from _mount_problems(f"{path}.mounts[{index}]", mount)
    if edits.intel_rdt is not None:
        yield from _intel_rdt_problems(f"{path}.intelRdt", edits.intel_rdt)


def _env_problems(path: str, env: tuple[str, ...]) -> Iterator[Problem]:
    for index, entry in enumerate(env):
        if entry.find("=") <= 0:
            yield Problem(f"{path}[{index}]", f"{entry!r} is not an environment variable, want NAME=value")


def _node_problems(path: str, node: DeviceNode) -> Iterator[Problem]:
    if not node.path:
        yield Problem(f"{path}.path", "empty, want the path in the container")
    if node.type not in ("", *NODE_TYPES):
        yield Problem(f"{path}.type", f"unknown type {node.type!r}, want one of {', '.join(NODE_TYPES)}")
    if node.permissions != NO_PERMISSIONS and node.permissions.strip("rwm"):
        yield Problem(f"{path}.permissions", f"{node.permissions!r}, want letters out of 'rwm', or {NO_PERMISSIONS!r}")


def _net_device_problems(path: str, devices: tuple[LinuxNetDevice, ...]) -> Iterator[Problem]:
    first_host: dict[str, int] = {}
    first_name: dict[str, int] = {}
    for index, device in enumerate(devices):
        at = f"{path}[{index}]"
        for field, text, first_use in (
            ("hostInterfaceName", device.host_interface_name, first_host),
            ("name", device.name, first_name),
        ):
            if not text:
                yield Problem(f"{at}.{field}", "empty, want the name of an interface")
            elif (first := first_use.setdefault(text, index)) != index:
                yield Problem(f"{at}.{field}", f"{text!r} stands in {path}[{first}] already, want unique interfaces")


def _hook_problems(path: str, hook: Hook) -> Iterator[Problem]:
    if hook.hook_name not in HOOK_NAMES:
        yield Problem(f"{path}.hookName", f"unknown hook {hook.hook_name!r}, want one of {', '.join(HOOK_NAMES)}")
    if not hook.path.startswith("/"):
        yield Problem(f"{path}.path", f"{hook.path!r} is not an absolute path, want one")
    yield from _env_problems(f"{path}.env", hook.env)
    if hook.timeout is not None and hook.timeout <= 0:
        yield Problem(f"{path}.timeout", f"{hook.timeout}, want seconds above 0")


def _mount_problems(path: str, mount: Mount) -> Iterator[Problem]:
    if not mount.host_path:
        yield Problem(f"{path}.hostPath", "empty, want the source of the mount")
    if not mount.container_path:
        yield Problem(f"{path}.containerPath", "empty, want the path in the container")


def _intel_rdt_problems(path: str, rdt: IntelRdt) -> Iterator[Problem]:
    clos = rdt.clos_id
    if clos == "/":  # the root class of service
        return
    if (
        clos in (".", "..")
        or "/" in clos
        or "\n" in clos
        or len(clos.encode(errors="surrogatepass")) > _CLOS_ID_MAX_BYTES
    ):
        yield Problem(f"{path}.closID", f"{clos!r} cannot be a file name, want one, or '/' for the root class")
