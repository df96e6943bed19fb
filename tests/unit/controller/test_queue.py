import asyncio

from controller.metric import PodState
from controller.queue import Queue
from dra_driver.kube.resource import ObjectKey
from tests.support.wait import until

A, B = ObjectKey("default", "a"), ObjectKey("default", "b")


async def test_pods_come_in_order_and_once() -> None:
    queue = Queue()
    queue.add_all([B, A, B])
    assert [await queue.next(), await queue.next()] == [B, A]
    assert queue.sizes()[PodState.QUEUED] == 0


async def test_a_pod_that_changes_while_it_is_busy_comes_once_more_afterwards() -> None:
    queue = Queue()
    queue.add(A)
    await queue.next()
    queue.add(A)
    queue.add(A)
    assert queue.sizes()[PodState.QUEUED] == 0
    queue.done(A, refused=True)
    assert await queue.next() == A
    queue.done(A)
    assert queue.sizes() == {PodState.QUEUED: 0, PodState.WRITING: 0, PodState.REFUSED: 0}


async def test_who_was_refused_waits_for_a_change() -> None:
    queue = Queue()
    queue.add(A)
    queue.done(await queue.next(), refused=True)
    assert queue.sizes()[PodState.REFUSED] == 1
    queue.retry_refused()
    assert await queue.next() == A


async def test_a_change_counts_for_the_pod_that_is_being_decided_and_not_for_those_being_written() -> None:
    queue = Queue()
    queue.add_all([A, B])
    queue.write(await queue.next())
    assert await queue.next() == B
    queue.retry_refused()
    queue.done(A)
    queue.done(B, refused=True)
    assert await queue.next() == B
    assert queue.sizes()[PodState.QUEUED] == 0


async def test_a_pod_comes_again_after_a_while_and_only_by_its_last_timer() -> None:
    queue = Queue()
    queue.add_later(A, 60.0)
    queue.add_later(A, 0.0)
    assert await asyncio.wait_for(queue.next(), 5) == A


async def test_a_pod_that_is_forgotten_does_not_come() -> None:
    queue = Queue()
    queue.add(A)
    queue.add_later(B, 0.0)
    queue.forget(A)
    queue.forget(B)
    waiting = asyncio.create_task(queue.next())
    queue.add_later(ObjectKey("default", "c"), 0.01)
    await until(waiting.done)
    assert waiting.result().name == "c"


async def test_nothing_comes_once_it_is_cleared() -> None:
    queue = Queue()
    queue.add_all([A, B])
    queue.add_later(A, 60.0)
    await queue.next()
    queue.clear()
    assert set(queue.sizes().values()) == {0}
    queue.retry_refused()
    queue.add(A)
    assert await queue.next() == A
