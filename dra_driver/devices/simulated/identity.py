"""Identities of simulated devices: they look like the vendor's, and follow from node name and seat alone."""

import hashlib
import uuid


def render_uuid(vendor: str, *seed: str) -> str:
    """A UUID in the vendor's form: `GPU-…` for NVIDIA, five hex words (the VDie) for Huawei, else a plain one."""
    digest = _digest("uuid", vendor, *seed)
    match vendor:
        case "nvidia":
            return f"GPU-{uuid.UUID(bytes=digest[:16])}"
        case "huawei":
            return " ".join(digest[at : at + 4].hex().upper() for at in range(0, 20, 4))
        case _:
            return str(uuid.UUID(bytes=digest[:16]))


def render_partition_uuid(vendor: str, parent: str, profile: str, start: int) -> str:
    """The UUID that a partition has whenever it is made: `MIG-…` for NVIDIA."""
    plain = uuid.UUID(bytes=_digest("partition", vendor, parent, profile, str(start))[:16])
    return f"MIG-{plain}" if vendor == "nvidia" else str(plain)


def render_serial(vendor: str, *seed: str) -> str:
    """A serial number of 13 digits, as NVIDIA prints them."""
    return f"{int.from_bytes(_digest('serial', vendor, *seed)[:8]) % 10**13:013d}"


def _digest(*parts: str) -> bytes:
    return hashlib.sha256("\0".join(parts).encode()).digest()
