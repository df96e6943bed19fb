"""The cache of the dynamic loader (`/etc/ld.so.cache`): which libraries a host's programs find, and where. Pure.

The format is glibc's (`dl-cache.h`): perhaps an old part, then `glibc-ld.so.cache1.1`, a table of entries and texts.
"""

import struct
from typing import Final

_MAGIC: Final = b"glibc-ld.so.cache1.1"
_HEADER: Final = struct.Struct("=20sIIB3xI12x")
_ENTRY: Final = struct.Struct("=iIIIQ")


def parse_loader_cache(data: bytes) -> tuple[tuple[str, str], ...]:
    """Return (name, path) of every library, in the loader's order. What is no such cache holds nothing."""
    start = data.find(_MAGIC)
    if start < 0 or len(data) < start + _HEADER.size:
        return ()
    _, count, *_ = _HEADER.unpack_from(data, start)
    table = start + _HEADER.size
    count = min(count, (len(data) - table) // _ENTRY.size)
    entries = (_ENTRY.unpack_from(data, table + index * _ENTRY.size) for index in range(count))
    pairs = ((_text(data, start + key), _text(data, start + value)) for _, key, value, _, _ in entries)
    return tuple(pair for pair in pairs if all(pair))


def _text(data: bytes, offset: int) -> str:
    end = data.find(b"\0", offset)
    return data[offset:end].decode("utf-8", "replace") if offset < len(data) and end >= 0 else ""
