import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dra_driver.api.resource_v1 import ResourceSlice
from dra_driver.kube.backoff import Backoff
from dra_driver.kube.client import ApiClient
from dra_driver.kube.resource import RESOURCE_SLICES, Selection
from dra_driver.kube.watch import Applied, Change, Deleted, Replaced, Watch, WatchTiming
from tests.support.api_fault import Fault
from tests.support.api_server import TestApiServer
from tests.support.kube import a_client, a_slice_dict
from tests.support.wait import until

QUICK = WatchTiming(silence_s=5.0, healthy_s=0.0, backoff=Backoff(initial_s=0.001, max_s=0.01))
SLICES = "resourceslices"


def told(change: Change[ResourceSlice]) -> tuple[str, ...]:
    """Shorten a change to its kind and names."""
    match change:
        case Replaced(objects, _):
            return ("replaced", *(one.metadata.name for one in objects))
        case Applied(one):
            return ("applied", one.metadata.name)
        case Deleted(one):
            return ("deleted", one.metadata.name)


class Story:
    """A watch of slices, and what it told so far."""

    def __init__(self, client: ApiClient, timing: WatchTiming = QUICK, selection: Selection = Selection()) -> None:  # noqa: B008 - frozen
        self.delays: list[float] = []
        self.changes = Watch(client, RESOURCE_SLICES, selection, timing=timing, sleep=self._sleep).changes()

    async def next(self) -> tuple[str, ...]:
        async with asyncio.timeout(10):
            return told(await anext(self.changes))

    async def _sleep(self, delay_s: float) -> None:
        self.delays.append(delay_s)
        await asyncio.sleep(min(delay_s, 0.001))


@asynccontextmanager
async def a_story(server: TestApiServer, folder: Path, **options: Any) -> AsyncIterator[Story]:
    """Watch the slices of the server."""
    async with a_client(server, folder) as client:
        story = Story(client, **options)
        async with aclosing(story.changes):
            yield story


def lists(server: TestApiServer) -> int:
    return sum("watch" not in one.query for one in server.requests)


def watched_versions(server: TestApiServer) -> Iterable[str]:
    return [one.query["resourceVersion"] for one in server.requests if "watch" in one.query]


async def test_it_tells_what_is_there_and_then_what_happens(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_story(server, tmp_path) as story:
        server.put(SLICES, a_slice_dict("a"))
        assert await story.next() == ("replaced", "a")
        server.put(SLICES, a_slice_dict("b"))
        server.put(SLICES, a_slice_dict("a", nodeName="node-c"))
        server.remove(SLICES, "b")
        assert [await story.next() for _ in range(3)] == [("applied", "b"), ("applied", "a"), ("deleted", "b")]
        assert lists(server) == 1


async def test_an_object_that_leaves_the_selection_is_deleted(tmp_path: Path) -> None:
    selection = Selection(field_selector="spec.nodeName=node-a")
    async with TestApiServer() as server, a_story(server, tmp_path, selection=selection) as story:
        server.put(SLICES, a_slice_dict("a"))
        server.put(SLICES, a_slice_dict("other", node="node-b"))
        assert await story.next() == ("replaced", "a")
        server.put(SLICES, a_slice_dict("a", node="node-b"))
        assert await story.next() == ("deleted", "a")


def _cut(server: TestApiServer) -> None:
    server.cut_watches()


def _end(server: TestApiServer) -> None:
    server.end_watches()


def _half_a_line(server: TestApiServer) -> None:
    server.send(b'{"type":"ADDED","object":{')
    server.end_watches()


def _error_event_500(server: TestApiServer) -> None:
    server.send_error(500, "InternalError")


def _unavailable(server: TestApiServer) -> None:
    server.inject(Fault("status", watch=True, times=3))
    server.cut_watches()


def _throttled(server: TestApiServer) -> None:
    server.inject(Fault("status", watch=True, status=429, headers={"Retry-After": "1"}))
    server.cut_watches()


def _refused(server: TestApiServer) -> None:
    server.inject(Fault("status", watch=True, status=401))
    server.cut_watches()


def _reset_again(server: TestApiServer) -> None:
    server.inject(Fault("reset", watch=True, times=4))
    server.cut_watches()


RESUMED = [_cut, _end, _half_a_line, _error_event_500, _unavailable, _throttled, _refused, _reset_again]


@pytest.mark.parametrize("fault", RESUMED, ids=lambda fault: fault.__name__)
async def test_after_a_fault_that_loses_nothing_it_resumes(
    tmp_path: Path, fault: Callable[[TestApiServer], None]
) -> None:
    async with TestApiServer() as server, a_story(server, tmp_path) as story:
        assert await story.next() == ("replaced",)
        waiting = asyncio.create_task(story.next())
        await until(lambda: server.watches)
        server.put(SLICES, a_slice_dict("told already"))
        assert await waiting == ("applied", "told already")
        waiting = asyncio.create_task(story.next())
        await until(lambda: server.watches)
        fault(server)
        server.put(SLICES, a_slice_dict("a"))
        assert await waiting == ("applied", "a")
        assert lists(server) == 1


def _compacted(server: TestApiServer) -> None:
    server.compact()
    server.cut_watches()


def _error_event_410(server: TestApiServer) -> None:
    server.send_error(410)


def _not_json(server: TestApiServer) -> None:
    server.send(b"\x00 not json\n")


def _not_a_slice(server: TestApiServer) -> None:
    server.send(b'{"type":"ADDED","object":{"metadata":{"name":5}}}\n')


def _unknown_type(server: TestApiServer) -> None:
    server.send(json.dumps({"type": "MOVED", "object": a_slice_dict()}).encode() + b"\n")


def _refused_for_good(server: TestApiServer) -> None:
    server.inject(Fault("status", watch=True, status=403))
    server.cut_watches()


def _too_many_failures(server: TestApiServer) -> None:
    server.inject(Fault("status", watch=True, status=504, times=QUICK.resumes + 1))
    server.cut_watches()


RELISTED = [
    _compacted,
    _error_event_410,
    _not_json,
    _not_a_slice,
    _unknown_type,
    _refused_for_good,
    _too_many_failures,
]


@pytest.mark.parametrize("fault", RELISTED, ids=lambda fault: fault.__name__)
async def test_after_a_fault_that_may_lose_something_it_lists_again(
    tmp_path: Path, fault: Callable[[TestApiServer], None]
) -> None:
    async with TestApiServer() as server, a_story(server, tmp_path) as story:
        assert await story.next() == ("replaced",)
        waiting = asyncio.create_task(story.next())
        await until(lambda: server.watches)
        server.put(SLICES, a_slice_dict("a"))
        assert await waiting == ("applied", "a")
        waiting = asyncio.create_task(story.next())
        await until(lambda: server.watches)
        server.remove(SLICES, "a")
        server.put(SLICES, a_slice_dict("b"))
        fault(server)
        seen = [await waiting]
        while seen[-1] != ("replaced", "b"):
            seen.append(await story.next())
        server.put(SLICES, a_slice_dict("c"))
        assert await story.next() == ("applied", "c")
        assert lists(server) == 2


async def test_it_resumes_from_the_last_bookmark(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_story(server, tmp_path) as story:
        assert await story.next() == ("replaced",)
        waiting = asyncio.create_task(story.next())
        await until(lambda: server.watches)
        for _ in range(3):
            server.put("nodes", {"metadata": {"name": f"n{server.store.revision}"}})
        server.bookmark()
        server.end_watches()
        await until(lambda: len(list(watched_versions(server))) == 2)
        assert list(watched_versions(server))[1] == str(server.store.revision)
        server.put(SLICES, a_slice_dict("a"))
        assert await waiting == ("applied", "a")


async def test_a_connection_that_is_silent_for_too_long_is_given_up(tmp_path: Path) -> None:
    timing = WatchTiming(silence_s=0.2, healthy_s=0.0, backoff=QUICK.backoff)
    async with TestApiServer() as server, a_story(server, tmp_path, timing=timing) as story:
        assert await story.next() == ("replaced",)
        waiting = asyncio.create_task(story.next())
        await until(lambda: server.watches)
        server.silence_watches()
        server.put(SLICES, a_slice_dict("a"))
        assert await waiting == ("applied", "a")


async def test_bookmarks_keep_a_quiet_watch_alive(tmp_path: Path) -> None:
    timing = WatchTiming(silence_s=0.5, healthy_s=0.0, backoff=QUICK.backoff)
    async with TestApiServer() as server, a_story(server, tmp_path, timing=timing) as story:
        server.bookmark_every_s = 0.05
        assert await story.next() == ("replaced",)
        waiting = asyncio.create_task(story.next())
        await until(lambda: server.bookmarks >= 20)
        server.put(SLICES, a_slice_dict("a"))
        assert await waiting == ("applied", "a")
        assert story.delays == []


async def test_a_server_that_is_away_from_the_start_is_waited_for(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_story(server, tmp_path) as story:
        server.put(SLICES, a_slice_dict("a"))
        await server.stop()
        waiting = asyncio.create_task(story.next())
        await until(lambda: len(story.delays) > 3)
        await server.start()
        assert await waiting == ("replaced", "a")


async def test_a_server_that_goes_away_and_comes_back_is_resumed_or_listed(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_story(server, tmp_path) as story:
        assert await story.next() == ("replaced",)
        waiting = asyncio.create_task(story.next())
        await until(lambda: server.watches)
        await server.stop()
        await until(lambda: story.delays)
        server.put(SLICES, a_slice_dict("a"))
        await server.start()
        assert await waiting in [("applied", "a"), ("replaced", "a")]


async def test_the_delay_grows_with_failures_and_starts_anew_after_success(tmp_path: Path) -> None:
    timing = WatchTiming(silence_s=5.0, healthy_s=0.0, resumes=100, backoff=Backoff(initial_s=1.0, jitter=0.0))
    async with TestApiServer() as server, a_story(server, tmp_path, timing=timing) as story:
        assert await story.next() == ("replaced",)
        server.inject(Fault("status", watch=True, times=4))
        waiting = asyncio.create_task(story.next())
        await until(lambda: server.watches)
        server.put(SLICES, a_slice_dict("a"))
        assert await waiting == ("applied", "a")
        waiting = asyncio.create_task(story.next())
        await until(lambda: server.watches)
        server.cut_watches()
        await until(lambda: len(story.delays) == 5)
        assert story.delays == [1.0, 2.0, 4.0, 8.0, 1.0]
        server.put(SLICES, a_slice_dict("b"))
        await waiting


async def test_a_watch_that_ends_at_once_every_time_is_not_a_hot_loop(tmp_path: Path) -> None:
    timing = WatchTiming(healthy_s=60.0, backoff=Backoff(initial_s=1.0, jitter=0.0))
    async with TestApiServer() as server, a_story(server, tmp_path, timing=timing) as story:
        assert await story.next() == ("replaced",)
        server.inject(Fault("status", watch=True, status=200, body=b"", times=3))
        waiting = asyncio.create_task(story.next())
        await until(lambda: server.watches)
        assert story.delays == [1.0, 2.0, 4.0]
        server.put(SLICES, a_slice_dict("a"))
        await waiting


async def test_the_server_says_how_long_to_wait(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_story(server, tmp_path) as story:
        server.inject(Fault("status", status=429, headers={"Retry-After": "17"}))
        server.inject(Fault("status", status=503, headers={"Retry-After": "9999"}))
        assert await story.next() == ("replaced",)
        assert story.delays == [17.0, 60.0]


@pytest.mark.parametrize("size", [2**16, 2**22])
async def test_an_event_of_any_length_comes_through(tmp_path: Path, size: int) -> None:
    async with TestApiServer() as server, a_story(server, tmp_path) as story:
        assert await story.next() == ("replaced",)
        waiting = asyncio.create_task(anext(story.changes))
        await until(lambda: server.watches)
        large = a_slice_dict("a")
        large["metadata"]["annotations"] = {"x": "y" * size}
        server.put(SLICES, large)
        change = await waiting
        assert isinstance(change, Applied)
        assert len(change.object.metadata.annotations["x"]) == size


async def test_the_server_is_asked_for_bookmarks_and_for_a_random_end(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_client(server, tmp_path) as client:
        watch = Watch(client, RESOURCE_SLICES, timing=WatchTiming(shortest_s=100, longest_s=200), chance=lambda: 0.25)
        async with aclosing(watch.changes()) as changes:
            await anext(changes)
            waiting = asyncio.create_task(anext(changes))
            await until(lambda: server.watches)
            query = server.requests[-1].query
            assert (query["timeoutSeconds"], query["allowWatchBookmarks"]) == ("125", "true")
            server.put(SLICES, a_slice_dict("a"))
            await waiting
