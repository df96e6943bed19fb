"""Keys are handled once each, again if they were added meanwhile, and later if that failed."""

import asyncio

import pytest

from dra_driver.errors import ApiUnavailableError
from sandbox.manager.work import Work
from tests.support.kube import running
from tests.support.wait import until


async def test_a_key_that_is_added_many_times_is_handled_once() -> None:
    handled: list[str] = []

    async def handle(key: str) -> None:
        handled.append(key)

    work = Work("test", handle)
    for key in ("a", "b", "a", "a", "c"):
        work.add(key)
    async with running(work.run()):
        await until(lambda: "c" in handled)
    assert handled == ["a", "b", "c"]


async def test_a_key_that_is_added_while_it_is_handled_is_handled_again_after() -> None:
    begun, finish = asyncio.Event(), asyncio.Event()
    steps: list[str] = []

    async def handle(key: str) -> None:
        steps.append(f"begin {key}")
        begun.set()
        await finish.wait()
        steps.append(f"end {key}")

    work = Work("test", handle)
    work.add("a")
    async with running(work.run()):
        await begun.wait()
        work.add("a")
        finish.set()
        await until(lambda: steps == ["begin a", "end a", "begin a", "end a"])


async def test_a_key_that_the_api_server_refuses_is_tried_again() -> None:
    attempts: list[str] = []

    async def handle(key: str) -> None:
        attempts.append(key)
        if len(attempts) < 3:
            raise ApiUnavailableError("get pods: 503")

    work = Work("test", handle)
    work.add("a")
    async with running(work.run()):
        await until(lambda: len(attempts) == 3)


async def test_any_other_error_ends_the_work() -> None:
    async def handle(_: str) -> None:
        raise ValueError

    work = Work("test", handle)
    work.add("a")
    with pytest.raises(ExceptionGroup) as caught:
        async with asyncio.timeout(5):
            await work.run()
    assert [type(each) for each in caught.value.exceptions] == [ValueError]
