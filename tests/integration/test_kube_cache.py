import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from dra_driver.api.resource_v1 import ResourceSlice
from dra_driver.kube.backoff import Backoff
from dra_driver.kube.cache import Cache
from dra_driver.kube.client import ApiClient
from dra_driver.kube.resource import RESOURCE_SLICES, ObjectKey
from dra_driver.kube.watch import Watch, WatchTiming
from tests.support.api_fault import Fault
from tests.support.api_server import TestApiServer
from tests.support.kube import a_client, a_slice, a_slice_dict, running
from tests.support.wait import until

TIMING = WatchTiming(silence_s=5.0, healthy_s=0.0, backoff=Backoff(initial_s=0.001, max_s=0.01))
SLICES = "resourceslices"


@asynccontextmanager
async def a_cache(server: TestApiServer, folder: Path) -> AsyncIterator[tuple[Cache[ResourceSlice], ApiClient]]:
    """Run a cache of all slices."""
    async with a_client(server, folder) as client:
        cache = Cache(Watch(client, RESOURCE_SLICES, timing=TIMING))
        async with running(cache.run()):
            yield cache, client


async def synced(cache: Cache[ResourceSlice]) -> None:
    async with asyncio.timeout(10):
        await cache.synced()


def names(cache: Cache[ResourceSlice]) -> list[str]:
    return [one.metadata.name for one in cache.list()]


async def test_it_follows_what_others_do(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_cache(server, tmp_path) as (cache, _):
        server.put(SLICES, a_slice_dict("b"))
        await synced(cache)
        assert names(cache) == ["b"]
        server.put(SLICES, a_slice_dict("a"))
        await until(lambda: names(cache) == ["a", "b"])
        server.remove(SLICES, "b")
        await until(lambda: names(cache) == ["a"])
        assert cache.get("a") is not None
        assert cache.get("b") is None


async def test_it_is_empty_and_not_synced_until_the_server_answers(tmp_path: Path) -> None:
    async with TestApiServer() as server:
        server.put(SLICES, a_slice_dict("a"))
        await server.stop()
        async with a_cache(server, tmp_path) as (cache, _):
            assert not cache.is_synced
            await server.start()
            await synced(cache)
            assert names(cache) == ["a"]


async def test_what_is_known_stays_while_the_server_is_away(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_cache(server, tmp_path) as (cache, _):
        server.put(SLICES, a_slice_dict("a"))
        await synced(cache)
        await server.stop()
        server.put(SLICES, a_slice_dict("b"))
        assert names(cache) == ["a"]
        await server.start()
        await until(lambda: names(cache) == ["a", "b"])


async def test_what_was_deleted_while_the_history_was_lost_goes_away(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_cache(server, tmp_path) as (cache, _):
        server.put(SLICES, a_slice_dict("a"))
        await synced(cache)
        await until(lambda: server.watches)
        server.silence_watches()
        server.remove(SLICES, "a")
        server.compact()
        server.cut_watches()
        await until(lambda: names(cache) == [])


async def test_an_own_write_shows_before_the_watch_tells(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_cache(server, tmp_path) as (cache, client):
        await synced(cache)
        await until(lambda: server.watches)
        server.silence_watches()
        created = await client.create(RESOURCE_SLICES, a_slice("a"))
        cache.record_write(created)
        assert cache.get("a") == created
        await client.delete(RESOURCE_SLICES, "a")
        cache.record_delete(created)
        assert cache.get("a") is None


async def test_the_watch_catches_up_with_own_writes_and_goes_on(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_cache(server, tmp_path) as (cache, client):
        server.put(SLICES, a_slice_dict("a"))
        await synced(cache)
        await until(lambda: server.watches)
        hold = server.inject(Fault("delay", watch=True))
        server.cut_watches()
        await until(lambda: not hold.times)
        first = cache.get("a")
        assert first is not None
        second = await client.update(RESOURCE_SLICES, msgspec.structs.replace(first, metadata=_labelled(first, "2")))
        third = await client.update(RESOURCE_SLICES, msgspec.structs.replace(second, metadata=_labelled(second, "3")))
        cache.record_write(third)
        seen: list[str] = []
        with cache.subscribe() as subscription:
            hold.released.set()
            server.put(SLICES, a_slice_dict("end"))
            while cache.get("end") is None:
                async with asyncio.timeout(10):
                    await subscription.next()
                now = cache.get("a")
                assert now is not None
                seen.append(now.metadata.labels["step"])
        assert set(seen) == {"3"}


async def test_a_subscriber_hears_of_every_object_that_changed(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_cache(server, tmp_path) as (cache, _):
        await synced(cache)
        with cache.subscribe() as subscription:
            heard: set[ObjectKey] = set()
            for name in ("a", "b", "c"):
                server.put(SLICES, a_slice_dict(name))
            async with asyncio.timeout(10):
                async for keys in subscription:
                    heard |= keys
                    if len(heard) == 3:
                        break
        assert heard == {ObjectKey("", name) for name in ("a", "b", "c")}


async def test_a_relist_without_a_difference_wakes_nobody(tmp_path: Path) -> None:
    async with TestApiServer() as server, a_cache(server, tmp_path) as (cache, _):
        server.put(SLICES, a_slice_dict("a"))
        await synced(cache)
        await until(lambda: server.watches)
        with cache.subscribe() as subscription:
            server.send_error(410)
            await until(lambda: sum("watch" not in one.query for one in server.requests) == 2 and server.watches)
            server.put(SLICES, a_slice_dict("b"))
            async with asyncio.timeout(10):
                assert await subscription.next() == {ObjectKey("", "b")}


def _labelled(value: ResourceSlice, step: str) -> msgspec.Struct:
    return msgspec.structs.replace(value.metadata, labels={"step": step})
