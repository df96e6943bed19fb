"""Which GPUs of a node are joined by NVLink. Pure: what the ports report goes in, each card's domain comes out."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dra_driver.devices.attribute import NVLINK
from dra_driver.devices.model import Link


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """A card's active links: the PCI addresses of the GPUs at their other ends, and whether one leads to a switch.

    `fabric` is the domain beyond the node, if the card is in one.
    """

    identity: str
    pci_bus_id: str | None
    peers: frozenset[str] = frozenset()
    switched: bool = False
    fabric: str | None = None


def build_links(cards: Sequence[Ports]) -> Mapping[str, Link]:
    """Return the link of each card that is joined to another one, by identity.

    Cards are joined if a link says so at either end, if both hang on switches, or over cards in between. The name of a
    domain is that of the fabric that all are in, else the smallest identity, whatever the order of the cards.
    """
    links: dict[str, Link] = {}
    for members in _find_domains(cards):
        if len(members) > 1 or members[0].fabric is not None:
            link = _build_link(members)
            links.update({member.identity: link for member in members})
    return links


def _find_domains(cards: Sequence[Ports]) -> Iterable[tuple[Ports, ...]]:
    left = list(cards)
    while left:
        domain = [left.pop(0)]
        for member in domain:
            joined = [card for card in left if _are_joined(member, card)]
            domain += joined
            left = [card for card in left if card not in joined]
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
