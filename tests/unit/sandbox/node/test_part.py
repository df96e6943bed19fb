"""Parts of a node end as they are told, and no error and no cancellation gets lost."""

import asyncio

import pytest

from sandbox.node.error import NodeError
from sandbox.node.part import Part
from tests.support.wait import until


async def fail() -> None:
    raise NodeError("disk full")


async def test_what_fails_before_it_is_started_says_so_once() -> None:
    part = Part()
    with pytest.raises(NodeError, match="disk full"):
        await part.start(fail(), asyncio.Event())
    await part.cancel()


async def test_what_fails_later_says_so_at_the_end() -> None:
    part = Part()
    await part.start(fail(), None)
    with pytest.raises(NodeError, match="disk full"):
        await part.end()
    await part.end()


async def test_what_is_asked_to_end_ends_in_order() -> None:
    ended = []
    stop = asyncio.Event()

    async def work() -> None:
        await stop.wait()
        ended.append("in order")

    part = Part()
    await part.start(work(), None, stop)
    await part.end()
    assert ended == ["in order"]


async def test_a_cancellation_while_it_is_cancelled_is_not_taken_for_its_own() -> None:
    cancelled, may_end = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
            await may_end.wait()

    part = Part()
    await part.start(work(), None)
    await asyncio.sleep(0)
    ending = asyncio.create_task(part.cancel())
    await cancelled.wait()
    ending.cancel()
    await until(ending.done)
    may_end.set()
    assert ending.cancelled()
