import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from kubeletplugin.background import NO_THREAD
from kubeletplugin.kubelet.claim_thread import ClaimThreads
from tests.support.wait import until


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


@pytest.fixture
def released() -> Iterator[threading.Event]:
    released = threading.Event()
    yield released
    released.set()


async def give_up(task: "asyncio.Task[object]") -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_it_returns_what_the_work_returns_and_raises_what_it_raises(executor: ThreadPoolExecutor) -> None:
    threads = ClaimThreads(executor)
    assert await threads.run("uid-1", divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await threads.run("uid-1", divmod, 7, 0)
    assert await threads.run("uid-1", divmod, 7, 2) == (3, 1)


async def test_a_claim_that_hangs_does_not_take_the_threads_of_the_others(
    executor: ThreadPoolExecutor, released: threading.Event
) -> None:
    threads = ClaimThreads(executor)
    for _ in range(8):
        call = asyncio.create_task(threads.run("uid-hangs", released.wait))
        await asyncio.sleep(0)
        await give_up(call)
    async with asyncio.timeout(10):
        assert await threads.run("uid-2", divmod, 7, 2) == (3, 1)


async def test_what_was_given_up_before_it_began_never_begins(
    executor: ThreadPoolExecutor, released: threading.Event
) -> None:
    threads = ClaimThreads(executor)
    done: list[str] = []
    hangs = asyncio.create_task(threads.run("uid-1", released.wait))
    await asyncio.sleep(0)
    stale = asyncio.create_task(threads.run("uid-1", done.append, "prepared"))
    await asyncio.sleep(0)
    await give_up(stale)
    last = asyncio.create_task(threads.run("uid-1", done.append, "unprepared"))
    released.set()
    await asyncio.gather(hangs, last)
    assert done == ["unprepared"]


async def test_what_waits_for_a_thread_and_is_given_up_never_begins(
    executor: ThreadPoolExecutor, released: threading.Event
) -> None:
    threads = ClaimThreads(executor)
    done: list[str] = []
    hang = [asyncio.create_task(threads.run(f"uid-{number}", released.wait)) for number in range(2)]
    await asyncio.sleep(0)
    stale = asyncio.create_task(threads.run("uid-9", done.append, "prepared"))
    await asyncio.sleep(0)
    await give_up(stale)
    released.set()
    await asyncio.gather(*hang)
    await threads.run("uid-9", done.append, "unprepared")
    assert done == ["unprepared"]


async def test_work_that_was_given_up_keeps_its_claim_busy_until_it_ends(
    executor: ThreadPoolExecutor, released: threading.Event
) -> None:
    threads = ClaimThreads(executor)
    done: list[str] = []
    entered = threading.Event()

    def slow() -> None:
        entered.set()
        released.wait()
        done.append("prepared")

    given_up = asyncio.create_task(threads.run("uid-1", slow))
    await until(entered.is_set)
    await give_up(given_up)
    last = asyncio.create_task(threads.run("uid-1", done.append, "unprepared"))
    assert await threads.run("uid-2", divmod, 7, 2) == (3, 1)
    assert done == []
    released.set()
    await last
    assert done == ["prepared", "unprepared"]


async def test_what_found_no_thread_is_not_done_later_either() -> None:
    class Exhausted(Executor):
        """Takes work as Python's does where no thread can be started: it queues it, and raises."""

        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            queued.append(partial(fn, *args, **kwargs))
            raise RuntimeError(NO_THREAD)

    queued: list[Callable[[], object]] = []
    done: list[str] = []
    threads = ClaimThreads(Exhausted())
    for _ in range(2):  # nor does the claim stay busy
        with pytest.raises(RuntimeError, match=NO_THREAD):
            await threads.run("uid-1", done.append, "prepared")
    for work in queued:
        with contextlib.suppress(RuntimeError):
            work()
    assert done == []
