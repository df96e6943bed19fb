"""Versions of the CDI specification, and which of them a spec needs.

A runtime refuses a spec that uses a field which its declared version does not have yet, and a declared version that
the runtime does not know. So a spec is best written with the lowest version that its content allows.

Source: the table of released versions in the CDI specification, and the checks of the reference library. Versions
0.8.0 and 1.0.0 changed the Go API only.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from msgspec import structs

from cdi.spec import ContainerEdits, Spec

EARLIEST_VERSION: Final = "0.3.0"
"""What the plainest spec needs: no runtime accepts less."""


@dataclass(frozen=True, slots=True)
class VersionNeed:
    """Something that older versions do not have: `path` as in `devices[0].containerEdits.mounts[1].type`."""

    path: str
    version: str


@dataclass(frozen=True, slots=True)
class _Row:
    version: str
    find_uses: Callable[[Spec], Iterator[str]]


def _edits(spec: Spec) -> Iterator[tuple[str, ContainerEdits]]:
    yield "containerEdits", spec.container_edits
    for index, device in enumerate(spec.devices):
        yield f"devices[{index}].containerEdits", device.container_edits


def _find_nothing(_spec: Spec) -> Iterator[str]:
    return iter(())


def _find_0_4_0(spec: Spec) -> Iterator[str]:
    for path, edits in _edits(spec):
        for index, mount in enumerate(edits.mounts):
            if mount.type:
                yield f"{path}.mounts[{index}].type"


def _find_0_5_0(spec: Spec) -> Iterator[str]:
    for index, device in enumerate(spec.devices):
        if device.name[:1] in set("0123456789"):
            yield f"devices[{index}].name"
    for path, edits in _edits(spec):
        for index, node in enumerate(edits.device_nodes):
            if node.host_path:
                yield f"{path}.deviceNodes[{index}].hostPath"


def _find_0_6_0(spec: Spec) -> Iterator[str]:
    if "." in spec.kind.partition("/")[2]:
        yield "kind"
    if spec.annotations:
        yield "annotations"
    for index, device in enumerate(spec.devices):
        if device.annotations:
            yield f"devices[{index}].annotations"


def _find_0_7_0(spec: Spec) -> Iterator[str]:
    for path, edits in _edits(spec):
        if edits.intel_rdt is not None:
            yield f"{path}.intelRdt"
        if edits.additional_gids:
            yield f"{path}.additionalGids"


def _find_1_1_0(spec: Spec) -> Iterator[str]:
    for path, edits in _edits(spec):
        if edits.net_devices:
            yield f"{path}.netDevices"
        if edits.intel_rdt is not None and edits.intel_rdt.schemata:
            yield f"{path}.intelRdt.schemata"
        if edits.intel_rdt is not None and edits.intel_rdt.enable_monitoring:
            yield f"{path}.intelRdt.enableMonitoring"


_TABLE: Final = (
    _Row("0.1.0", _find_nothing),
    _Row("0.2.0", _find_nothing),
    _Row("0.3.0", _find_nothing),
    _Row("0.4.0", _find_0_4_0),
    _Row("0.5.0", _find_0_5_0),
    _Row("0.6.0", _find_0_6_0),
    _Row("0.7.0", _find_0_7_0),
    _Row("0.8.0", _find_nothing),
    _Row("1.0.0", _find_nothing),
    _Row("1.1.0", _find_1_1_0),
)

VERSIONS: Final = tuple(row.version for row in _TABLE)
"""Every released version, oldest first."""


def parse_version(text: str) -> str | None:
    """Return the known version that `text` declares, with or without a leading `v`; None if it is not a known one."""
    version = text.removeprefix("v")
    return version if version in VERSIONS else None


def explain_version(spec: Spec) -> tuple[VersionNeed, ...]:
    """Return all that needs more than the earliest version, the most demanding last."""
    return tuple(VersionNeed(path, row.version) for row in _TABLE for path in row.find_uses(spec))


def default_version(spec: Spec) -> Spec:
    """Return the spec with the lowest version that its content allows, whatever it declares."""
    needs = explain_version(spec)
    return structs.replace(spec, cdi_version=needs[-1].version if needs else EARLIEST_VERSION)


def validate_version(spec: Spec) -> tuple[VersionNeed, ...]:
    """Return all in the spec that its declared version, which must be a known one, does not have yet."""
    declared = VERSIONS.index(spec.cdi_version.removeprefix("v"))
    return tuple(need for need in explain_version(spec) if VERSIONS.index(need.version) > declared)
