from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_driver.devices.nvidia.loader_cache import parse_loader_cache
from tests.support.driver_tree import render_loader_cache

ENTRIES = {"libcuda.so.1": "/opt/driver/libcuda.so.1", "libc.so.6": "/lib64/libc.so.6"}


@pytest.mark.parametrize("old_part", [b"", b"ld.so-1.7.0\0" + bytes(28)], ids=["new format", "with an old part"])
def test_names_and_paths_are_read_in_the_loaders_order(old_part: bytes) -> None:
    assert parse_loader_cache(render_loader_cache(ENTRIES, old_part=old_part)) == tuple(ENTRIES.items())


@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_an_error(data: bytes) -> None:
    parse_loader_cache(data)
    parse_loader_cache(b"glibc-ld.so.cache1.1" + data)


@given(st.integers(min_value=0, max_value=300))
def test_a_cache_that_is_cut_short_gives_what_is_whole(length: int) -> None:
    assert set(parse_loader_cache(render_loader_cache(ENTRIES)[:length])) <= set(ENTRIES.items())


def test_the_cache_of_this_machine_has_the_c_library() -> None:
    cache = Path("/etc/ld.so.cache")
    if not cache.exists():
        pytest.skip("no loader's cache here")
    assert "libc.so.6" in dict(parse_loader_cache(cache.read_bytes()))
