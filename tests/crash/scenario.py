"""The claims that the matrix prepares and unprepares, each with a rival that wants something of the same devices."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dra_driver.api.config_v1alpha1 import Interval, Strategy
from dra_driver.api.resource_v1 import DeviceAllocationConfiguration, DeviceRequestAllocationResult, ResourceClaim
from dra_driver.devices.model import Device, Inventory, Partition
from kubeletplugin.app import read_backends
from kubeletplugin.prepare.record import ClaimRef
from tests.crash.node import Node
from tests.support.builder import a_claim, a_config, a_ref, a_result, a_share, device_config

OPERATIONS: Final = ("prepare", "unprepare")
SCENARIOS: Final = 7
POWER_SCENARIOS: Final = 6
"""How many of them, from the first on, lose the power, too: nothing tells how Pods were at each write to the disk."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A claim and its rival. An `is_held_up` rival must be refused while the claim is prepared, or half so.

    `settings` is what the plugin is told besides what every plugin of the matrix is.
    """

    name: str
    claim: ResourceClaim
    rival: ResourceClaim
    is_held_up: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ref(self) -> ClaimRef:
        """The claim as the kubelet names it."""
        return _ref(self.claim)

    @property
    def rival_ref(self) -> ClaimRef:
        """The other one."""
        return _ref(self.rival)


def build_scenarios(node: Node) -> list[Scenario]:
    """Return all of them, for the devices of the node."""
    node.reset()
    (backend,) = read_backends(node.settings)
    first, second, split = backend.read_inventory().devices
    small, wide = (split.partition_name(partition) for partition in split.partitions[:2])
    half, other = a_share(first.name, "half", memory="40Gi", cores=30), a_share(second.name, "other", request="more")
    return [
        _scenario("a whole device", [a_result(first.name)], a_result(first.name)),
        _scenario("two shares", [half, other], a_share(first.name, "rival", memory="48Gi")),
        _scenario("a partition", [a_result(small)], a_result(wide)),
        _scenario(
            "several devices",
            [a_result(first.name), a_share(second.name, "some", request="more"), a_result(small, "split")],
            a_result(wide),
        ),
        _scenario(
            "admin access", [a_result(first.name, admin_access=True)], a_result(first.name), is_held_up=False
        ),
        _scenario(
            "turns and device metadata",
            [a_share(first.name, "turn"), a_result(second.name, "more")],
            a_share(first.name, "rival"),
            sharing=_turns(Interval.LONG),
            rival_sharing=_turns(Interval.SHORT),
            settings={"device_metadata": True},
        ),
        _scenario(
            "an MPS share",
            [a_share(first.name, "client", cores=30)],
            a_share(first.name, "rival"),
            sharing={"strategy": Strategy.MPS.value},
            rival_sharing=_turns(Interval.SHORT),
            settings={"mps_image": "image"},
        ),
    ]  # fmt: skip


def find_orphan(inventory: Inventory) -> tuple[Device, Partition]:
    """Return a partition that no scenario has and that fits beside the one of "a partition", with its device."""
    split = inventory.devices[2]
    taken = split.partitions[0]
    return split, next(each for each in split.partitions[1:] if each.profile == taken.profile)


def _scenario(
    name: str,
    results: list[DeviceRequestAllocationResult],
    rival: DeviceRequestAllocationResult,
    *,
    sharing: dict[str, Any] | None = None,
    rival_sharing: dict[str, Any] | None = None,
    **fields: Any,
) -> Scenario:
    uid = name.lower().replace(" ", "-")
    return Scenario(
        name,
        a_claim(*results, ref=a_ref(f"uid-{uid}", uid), config=_configs(sharing)),
        a_claim(rival, ref=a_ref(f"uid-{uid}-rival", f"{uid}-rival"), config=_configs(rival_sharing)),
        **fields,
    )


def _turns(interval: Interval) -> dict[str, Any]:
    return {"strategy": Strategy.TIME_SLICING.value, "timeSlicing": {"interval": interval.value}}


def _configs(sharing: dict[str, Any] | None) -> list[DeviceAllocationConfiguration]:
    """The class demands it of the first request: a claim may not choose what limits nobody."""
    return [a_config(device_config(**sharing), source="FromClass", requests=["main"])] if sharing else []


def _ref(claim: ResourceClaim) -> ClaimRef:
    metadata = claim.metadata
    return ClaimRef(metadata.namespace, metadata.name, metadata.uid)
