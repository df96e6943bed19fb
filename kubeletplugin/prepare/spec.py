"""Builds what a prepared claim puts on disk: its CDI spec and its shim config files."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

import cdi
from dra_driver.api.config_v1alpha1 import Policy
from dra_driver.devices.model import FULL_CORES, UNLIMITED_CORES
from kubeletplugin.prepare.record import ClaimRef, Consumed, PreparedDevice

SHIM_FOLDER = "/etc/dra-driver/shim.d"
"""Where the shim in a container looks for its limits, one file an allocation result."""


CLAIM_ANNOTATION = "dra-driver.io/claim"
"""What a spec tells of its claim, `<namespace>/<name>`, so that it is known if the record is lost."""


@dataclass(frozen=True, slots=True)
class Names:
    """How the claims of one driver are named in CDI."""

    driver: str

    @property
    def kind(self) -> str:
        """The CDI kind of all claims: `<driver>/claim`."""
        return f"{self.driver}/claim"

    @property
    def spec_prefix(self) -> str:
        """What the names of all specs of the driver begin with."""
        return f"{self.driver}-claim_"

    def spec(self, uid: str) -> str:
        """The name of a claim's CDI spec: that of its file without `.json`."""
        return f"{self.spec_prefix}{uid}"

    def device(self, uid: str, device: PreparedDevice) -> str:
        """The CDI device name of an allocation result: unique for each claim and share."""
        share = f"-{device.share_id}" if device.share_id is not None else ""
        return f"{uid}-{device.device}{share}"

    def qualified(self, uid: str, device: PreparedDevice) -> str:
        """The qualified name that the kubelet hands to the container runtime."""
        return f"{self.kind}={self.device(uid, device)}"


def build_spec(
    claim: ClaimRef,
    devices: Iterable[PreparedDevice],
    *,
    names: Names,
    edits: Callable[[PreparedDevice], cdi.ContainerEdits],
    shim_dir: Path,
) -> cdi.Spec:
    """Build the CDI spec of a claim: one CDI device for each allocation result.

    `edits` gives what the device itself needs. A share also gets its shim config from `shim_dir`, read-only.
    A device that admin access allocates twice is one CDI device.
    Mounts and hooks that all CDI devices have in common stand once, for the whole claim: a runtime applies them once,
    and a claim for many GPUs does not repeat the driver's files for each.
    """
    cdi_devices: dict[str, cdi.Device] = {}
    for device in devices:
        name = names.device(claim.uid, device)
        shim = _shim_edits(shim_dir / name, name) if device.shim_policy is not None else cdi.NO_EDITS
        cdi_devices.setdefault(name, cdi.Device(name=name, container_edits=cdi.merge_edits(edits(device), shim)))
    common = _common_edits([device.container_edits for device in cdi_devices.values()])
    return cdi.default_version(
        cdi.Spec(
            cdi_version=cdi.VERSIONS[0],
            kind=names.kind,
            annotations={CLAIM_ANNOTATION: str(claim)},
            devices=tuple(_without(device, common) for device in cdi_devices.values()),
            container_edits=common,
        )
    )


def read_claim(spec: cdi.Spec, uid: str) -> ClaimRef | None:
    """Return the claim that a spec was written for; None if it does not tell, as those of older drivers."""
    namespace, _, name = spec.annotations.get(CLAIM_ANNOTATION, "").partition("/")
    return ClaimRef(namespace, name, uid) if namespace and name else None


def render_shim_config(uid: str, identity: str, consumed: Consumed, policy: Policy) -> str:
    """Render the limits of one share for the shim (text lines, easy to parse in C).

    `memory` is in bytes. `cores` is a percentage, or `-` for no limit. `policy` is `force` or `burst`.
    """
    limited = UNLIMITED_CORES < consumed.cores < FULL_CORES
    cores = str(consumed.cores) if limited else "-"
    return (
        "shim 1\n"
        f"claim {uid}\n"
        f"device {identity} memory={consumed.memory} cores={cores} policy={policy.lower()}\n"
    )  # fmt: skip


def _common_edits(edits: Sequence[cdi.ContainerEdits]) -> cdi.ContainerEdits:
    """The mounts and hooks that each of several edits has; none where one of them would be left with nothing else."""
    if len(edits) < 2 or not all(each.device_nodes or each.env for each in edits):  # noqa: PLR2004 - several
        return cdi.NO_EDITS
    first, *others = edits
    return cdi.ContainerEdits(
        mounts=tuple(mount for mount in first.mounts if all(mount in other.mounts for other in others)),
        hooks=tuple(hook for hook in first.hooks if all(hook in other.hooks for other in others)),
    )


def _without(device: cdi.Device, common: cdi.ContainerEdits) -> cdi.Device:
    own = msgspec.structs.replace(
        device.container_edits,
        mounts=tuple(mount for mount in device.container_edits.mounts if mount not in common.mounts),
        hooks=tuple(hook for hook in device.container_edits.hooks if hook not in common.hooks),
    )
    return msgspec.structs.replace(device, container_edits=own)


def _shim_edits(host: Path, name: str) -> cdi.ContainerEdits:
    mount = cdi.Mount(
        host_path=str(host),
        container_path=f"{SHIM_FOLDER}/{name}",
        type="bind",
        options=("ro", "nosuid", "nodev", "noexec", "bind"),
    )
    return cdi.ContainerEdits(mounts=(mount,))
