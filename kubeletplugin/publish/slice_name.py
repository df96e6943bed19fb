"""Names of ResourceSlices: computed, never generated, so that a slice is created once however often it is tried."""

import hashlib

from dra_driver.api.name import SUBDOMAIN_MAX


def build_slice_name(index: int, *, driver: str, node_name: str) -> str:
    """Return the name of the slice at a position of its pool, a DNS subdomain of at most 253 bytes.

    Consumers go through slices in the order of their names, so the position comes first.
    The hash keeps the names of two nodes apart where the readable part had to be cut.

    >>> build_slice_name(10, driver="accel.dra-driver.io", node_name="node-a")
    '0000a-accel.dra-driver.io-node-a-616502a1'
    """
    digest = hashlib.sha256(f"{driver}\0{node_name}".encode()).hexdigest()[:8]
    readable = f"{index:05x}-{driver.lower()}-{node_name}"[: SUBDOMAIN_MAX - len(digest) - 1].rstrip(".-")
    return f"{readable}-{digest}"
