"""Which GPUs of a node are joined by NVLink. Pure: what the ports report goes in, each GPU's domain comes out."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dra_driver.devices.attribute import NVLINK
from dra_driver.devices.model import Link


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """A GPU's active links: the PCI addresses of the GPUs at their other ends, and whether one leads to a switch.

    `fabric` is the domain beyond the node, if the GPU is in one.
    """

    identity: str
    pci_bus_id: str | None
    peers: frozenset[str] = frozenset()
    switched: bool = False
    fabric: str | None = None


def build_links(gpus: Sequence[Ports]) -> Mapping[str, Link]:
    """Return the link of each GPU that is joined to another one, by identity.

    GPUs are joined if a link says so at either end, if both hang on switches, or over GPUs in between. The name of a
    domain is that of the fabric that all are in, else the smallest identity, whatever the order of the GPUs.
    """
    links: dict[str, Link] = {}
    for members in _find_domains(gpus):
        if len(members) > 1 or members[0].fabric is not None:
            link = _build_link(members)
            links.update({member.identity: link for member in members})
    return links


def _find_domains(gpus: Sequence[Ports]) -> Iterable[tuple[Ports, ...]]:
    left = list(gpus)
    while left:
        domain = [left.pop(0)]
        for member in domain:
            joined = [gpu for gpu in left if _are_joined(member, gpu)]
            domain += joined
            left = [gpu for gpu in left if gpu not in joined]
        yield tuple(domain)


def _are_joined(one: Ports, other: Ports) -> bool:
    if one.switched and other.switched:
        return one.fabric == other.fabric
    return one.pci_bus_id in other.peers or other.pci_bus_id in one.peers


def _build_link(members: Sequence[Ports]) -> Link:
    fabrics = {member.fabric for member in members}
    fabric = fabrics.pop() if len(fabrics) == 1 else None
    full_mesh = all(_are_joined(one, other) for one, other in itertools.combinations(members, 2))
    return Link(domain=fabric or min(member.identity for member in members), type=NVLINK, full_mesh=full_mesh)
