from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_driver.errors import ApiUnavailableError
from dra_driver.kube.watch import split_lines


async def chunked(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def lines_of(*chunks: bytes) -> list[bytes]:
    return [line async for line in split_lines(chunked(*chunks))]


@given(st.lists(st.binary().filter(lambda line: line and b"\n" not in line)), st.data())
async def test_lines_come_out_however_the_bytes_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    rest = b"".join(line + b"\n" for line in lines)
    chunks = []
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        chunks.append(rest[:size])
        rest = rest[size:]
    assert await lines_of(*chunks) == lines


async def test_empty_lines_are_left_out() -> None:
    assert await lines_of(b"\n\na\n", b"\n", b"", b"b\n") == [b"a", b"b"]


async def test_a_line_without_an_end_is_an_error_after_all_the_others() -> None:
    lines = split_lines(chunked(b"a\nb"))
    assert await anext(lines) == b"a"
    with pytest.raises(ApiUnavailableError, match="middle of an event"):
        await anext(lines)
