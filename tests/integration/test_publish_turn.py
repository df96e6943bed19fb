"""Two publishers of one node, as while a new version takes over from an old one."""

from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from dra_driver.devices.model import Device
from tests.support.api_server import TestApiServer
from tests.support.builder import a_device
from tests.support.publishing import QUICK, a_node, a_publisher, device_names, devices, generations, writes
from tests.support.wait import until

TIMING = replace(QUICK, turn_s=0.01, patience=2)


class Turns:
    """Turns of processes in one: each has a number, and those that write are noted."""

    def __init__(self) -> None:
        self.writing: set[int] = set()

    def of(self, number: int) -> "Turn":
        return Turn(self, number)


class Turn:
    def __init__(self, turns: Turns, number: int) -> None:
        self._turns = turns
        self._number = number

    def take_turn(self) -> bool:
        self._turns.writing.add(self._number)
        return max(self._turns.writing) == self._number

    def give_turn_back(self) -> None:
        self._turns.writing.discard(self._number)


def models(server: TestApiServer) -> list[str]:
    return [device["attributes"]["model"]["string"] for device in devices(server)]


def seen_by(version: str) -> Device:
    """The node's one device, which two versions of the driver describe in different words."""
    return a_device(model=version)


async def test_two_versions_that_want_different_slices_do_not_fight(server: TestApiServer, tmp_path: Path) -> None:
    server.put("nodes", a_node())
    turns = Turns()
    async with AsyncExitStack() as stack:
        old = await stack.enter_async_context(a_publisher(server, tmp_path, TIMING, turns.of(0)))
        old.show(seen_by("old"))
        await old.ready()
        async with a_publisher(server, tmp_path, TIMING, turns.of(1)) as new:
            new.show(seen_by("new"))
            await new.ready()
            await until(lambda: models(server) == ["new"])
            before = len(writes(server))
            old.show(seen_by("old"), a_device("GPU-2", model="old"))
            new.show(seen_by("newer"))
            await until(lambda: models(server) == ["newer"])
            assert len(writes(server)) == before + 1
        turns.of(1).give_turn_back()  # as by its end
        await until(lambda: models(server) == ["old", "old"])
    assert len(writes(server)) <= 6


async def test_equal_slices_of_two_processes_are_written_once(server: TestApiServer, tmp_path: Path) -> None:
    server.put("nodes", a_node())
    turns = Turns()
    async with AsyncExitStack() as stack:
        for number in range(2):
            running = await stack.enter_async_context(a_publisher(server, tmp_path, TIMING, turns.of(number)))
            running.show(a_device())
            await running.ready()
        assert (len(writes(server)), generations(server)) == (1, [1])


async def test_an_older_process_goes_on_while_a_younger_one_cannot_write(server: TestApiServer, tmp_path: Path) -> None:
    server.put("nodes", a_node())
    turns = Turns()
    async with AsyncExitStack() as stack:
        old = await stack.enter_async_context(a_publisher(server, tmp_path, TIMING, turns.of(0)))
        old.show(a_device())
        await old.ready()
        away = await stack.enter_async_context(TestApiServer())
        await away.stop()
        (other := tmp_path / "other").mkdir()
        new = await stack.enter_async_context(a_publisher(away, other, TIMING, turns.of(1)))
        new.show(a_device("GPU-3"))
        await until(lambda: turns.writing == {0, 1})
        old.show(a_device(), a_device("GPU-2"))
        await until(lambda: len(device_names(server)) == 2)
