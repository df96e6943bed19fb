"""IP addresses and CIDRs, as Kubernetes reads them: no zones, no IPv4 in IPv6, no leading zeros."""

import ipaddress
import re
from typing import Final, TypeAlias

from dra_driver.cel.error import Fault
from dra_driver.cel.function import Library, Overload
from dra_driver.cel.type import BOOL, CIDR, INT, IP, STRING
from dra_driver.cel.value import Cidr, Value

NETWORK: Final = Library()
Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_BITS: Final = re.compile(r"0|[1-9][0-9]{0,2}")


def parse_ip(text: str) -> Address:
    """Read an address. Raises a fault."""
    try:
        if "%" in text or len(text) > 100:  # noqa: PLR2004 - no address is as long
            raise ValueError("zone")  # noqa: TRY301 - one error for all that is no address
        address = ipaddress.ip_address(text)
    except ValueError:
        raise Fault(f"IP address {text[:100]!r}: parse error during conversion from string") from None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise Fault(f"IP address {text!r}: IPv4-mapped IPv6 address is not allowed")
    return address


def parse_cidr(text: str) -> Cidr:
    """Read a range. Raises a fault."""
    address_text, slash, bits_text = text.rpartition("/")
    if not slash or not _BITS.fullmatch(bits_text):
        raise Fault(f"CIDR {text[:100]!r}: network address parse error during conversion from string")
    address = parse_ip(address_text)
    bits = int(bits_text)
    if bits > address.max_prefixlen:
        raise Fault(f"CIDR {text!r}: {bits} bits, want at most {address.max_prefixlen}")
    return Cidr(address, bits)


def _is_ip(text: str) -> bool:
    try:
        parse_ip(text)
    except Fault:
        return False
    return True


def _is_cidr(text: str) -> bool:
    try:
        parse_cidr(text)
    except Fault:
        return False
    return True


def _network(value: Cidr) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    return ipaddress.ip_network((value.address, value.bits), strict=False)


def contains_ip(value: Cidr, address: Value) -> bool:
    """`cidr.containsIP(address)`."""
    found = parse_ip(address) if type(address) is str else address
    return found.version == value.address.version and found in _network(value)


def contains_cidr(value: Cidr, other: Value) -> bool:
    """`cidr.containsCIDR(other)`."""
    found = parse_cidr(other) if type(other) is str else other
    if found.address.version != value.address.version:
        return False
    return value.bits <= found.bits and _network(value).overlaps(_network(found))


def _masked(value: Cidr) -> Cidr:
    return Cidr(_network(value).network_address, value.bits)


def _is_global_unicast(value: Address) -> bool:
    if isinstance(value, ipaddress.IPv4Address) and int(value) == 2**32 - 1:
        return False
    return not (value.is_unspecified or value.is_loopback or value.is_multicast or value.is_link_local)


def _is_link_local_multicast(value: Address) -> bool:
    if isinstance(value, ipaddress.IPv4Address):
        return int(value) >> 8 == 0xE00000  # noqa: PLR2004 - 224.0.0.0/24
    return int(value) >> 112 & 0xFF0F == 0xFF02  # noqa: PLR2004 - scope 2 of ff00::/8


NETWORK.add("ip", Overload("string_to_ip", (STRING,), IP, run=parse_ip))
NETWORK.add("ip", Overload("cidr_ip", (CIDR,), IP, member=True, run=lambda value: value.address))
NETWORK.add(
    "ip.isCanonical", Overload("ip_is_canonical", (STRING,), BOOL, run=lambda text: str(parse_ip(text)) == text)
)
NETWORK.add("isIP", Overload("is_ip", (STRING,), BOOL, run=_is_ip))
NETWORK.add("family", Overload("ip_family", (IP,), INT, member=True, run=lambda value: value.version))
NETWORK.add(
    "isUnspecified", Overload("ip_is_unspecified", (IP,), BOOL, member=True, run=lambda value: value.is_unspecified)
)
NETWORK.add("isLoopback", Overload("ip_is_loopback", (IP,), BOOL, member=True, run=lambda value: value.is_loopback))
NETWORK.add(
    "isLinkLocalMulticast",
    Overload("ip_is_link_local_multicast", (IP,), BOOL, member=True, run=_is_link_local_multicast),
)
NETWORK.add(
    "isLinkLocalUnicast",
    Overload("ip_is_link_local_unicast", (IP,), BOOL, member=True, run=lambda value: value.is_link_local),
)
NETWORK.add("isGlobalUnicast", Overload("ip_is_global_unicast", (IP,), BOOL, member=True, run=_is_global_unicast))
NETWORK.add("cidr", Overload("string_to_cidr", (STRING,), CIDR, run=parse_cidr))
NETWORK.add("isCIDR", Overload("is_cidr", (STRING,), BOOL, run=_is_cidr))
NETWORK.add(
    "containsIP",
    Overload("cidr_contains_ip_string", (CIDR, STRING), BOOL, member=True, run=contains_ip),
    Overload("cidr_contains_ip_ip", (CIDR, IP), BOOL, member=True, run=contains_ip),
)
NETWORK.add(
    "containsCIDR",
    Overload("cidr_contains_cidr_string", (CIDR, STRING), BOOL, member=True, run=contains_cidr),
    Overload("cidr_contains_cidr", (CIDR, CIDR), BOOL, member=True, run=contains_cidr),
)
NETWORK.add("prefixLength", Overload("cidr_prefix_length", (CIDR,), INT, member=True, run=lambda value: value.bits))
NETWORK.add("masked", Overload("cidr_masked", (CIDR,), CIDR, member=True, run=_masked))
