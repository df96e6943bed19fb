"""Container Device Interface (CDI): how a container runtime is told to put devices into a container.

A *spec* is a file that defines devices of one *kind* (`vendor/class`). A container asks for `vendor/class=device`, and
the runtime applies the *container edits* that the spec has for it: device nodes, mounts, environment, hooks.

Write a spec, and remove it when its devices are no longer needed:

    spec = default_version(Spec(
        cdi_version=VERSIONS[0],
        kind="example.com/gpu",
        devices=(Device(name="gpu-0", container_edits=ContainerEdits(device_nodes=(DeviceNode(path="/dev/gpu0"),))),),
    ))
    store = SpecStore(Path("/var/run/cdi"))
    store.write_spec(build_spec_name(spec.kind, "some-unique-id"), spec)
    store.remove_spec(build_spec_name(spec.kind, "some-unique-id"))

Ask what a runtime would do:

    Resolver().resolve(["example.com/gpu=gpu-0"]).edits

The types, names, versions, validation, codec and inventory are pure; `SpecStore` and `Resolver` block on the disk.
All errors are a `CdiError`. The format is version 1.1.0 of the CDI specification, of the CNCF project
container-device-interface; older versions are read and written too.
"""

from cdi.codec import decode_spec, encode_spec
from cdi.errors import CdiError, InvalidNameError, InvalidSpecError, Problem, StoreError, UnresolvableError
from cdi.file import replace_file, sync_directory
from cdi.filesystem import FileSystem, OsFileSystem
from cdi.inventory import Definition, Duplicate, Fault, Inventory, Resolution, SpecFile, build_inventory
from cdi.name import (
    Kind,
    QualifiedName,
    build_qualified_name,
    build_spec_name,
    parse_kind,
    parse_qualified_name,
    validate_class,
    validate_device_name,
    validate_kind,
    validate_qualified_name,
    validate_vendor,
)
from cdi.resolver import DEFAULT_DIRECTORIES, Resolver
from cdi.spec import (
    NO_EDITS,
    ContainerEdits,
    Device,
    DeviceNode,
    Hook,
    IntelRdt,
    LinuxNetDevice,
    Mount,
    Spec,
    merge_edits,
)
from cdi.store import SpecStore
from cdi.validation import HOOK_NAMES, validate_spec
from cdi.version import VERSIONS, VersionNeed, default_version, explain_version

__all__ = [
    "DEFAULT_DIRECTORIES",
    "HOOK_NAMES",
    "NO_EDITS",
    "VERSIONS",
    "CdiError",
    "ContainerEdits",
    "Definition",
    "Device",
    "DeviceNode",
    "Duplicate",
    "Fault",
    "FileSystem",
    "Hook",
    "IntelRdt",
    "InvalidNameError",
    "InvalidSpecError",
    "Inventory",
    "Kind",
    "LinuxNetDevice",
    "Mount",
    "OsFileSystem",
    "Problem",
    "QualifiedName",
    "Resolution",
    "Resolver",
    "Spec",
    "SpecFile",
    "SpecStore",
    "StoreError",
    "UnresolvableError",
    "VersionNeed",
    "build_inventory",
    "build_qualified_name",
    "build_spec_name",
    "decode_spec",
    "default_version",
    "encode_spec",
    "explain_version",
    "merge_edits",
    "parse_kind",
    "parse_qualified_name",
    "replace_file",
    "sync_directory",
    "validate_class",
    "validate_device_name",
    "validate_kind",
    "validate_qualified_name",
    "validate_spec",
    "validate_vendor",
]
