"""Prepare and unprepare are stopped at every single effect on the disk, by death or by a disk that refuses.

Whatever happens next (the kubelet asks again, it unprepares, another claim wants the devices) ends as if nothing had
happened.
"""

import contextlib
import errno
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dra_driver.devices.simulated import SimulatedBackend
from dra_driver.errors import ClaimError, DeviceBusyError
from kubeletplugin.prepare.preparer import Preparer
from tests.support.builder import a_claim, a_ref, a_result, a_share
from tests.support.effect import Killed, Stop, killed_at, refused_at, watched
from tests.support.prepare_node import open_preparer
from tests.support.preparing import open_backend


class Node:
    """A node's disk; `start` is a plugin process that comes up on it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.folders = [directory / name for name in ("claims", "cdi", "shim", "simulated/partitions")]
        for folder in self.folders:
            folder.mkdir(parents=True)
        shared, split = self.backend().read_inventory().devices
        small, wide = (split.partition_name(partition) for partition in split.partitions[:2])
        self.first, self.second = a_ref("uid-1", "first"), a_ref("uid-2", "second")
        self.claim = a_claim(a_share(shared.name, "share-1"), a_result(small), ref=self.first)
        self.overlapping = a_claim(a_result(wide), ref=self.second)

    def backend(self) -> SimulatedBackend:
        return open_backend(self.directory)

    def start(self) -> Preparer:
        preparer = open_preparer(self.directory, self.backend())
        assert not list(self.directory.rglob("*.corrupt*"))
        assert preparer.restore() == ()
        preparer.sweep()
        return preparer

    def files(self) -> dict[str, bytes]:
        """Return all that belongs to claims, with paths as on any other node."""
        paths = (path for folder in self.folders for path in sorted(folder.rglob("*")) if path.name != ".lock")
        own = str(self.directory).encode()
        return {
            str(path.relative_to(self.directory)): path.read_bytes().replace(own, b"") if path.is_file() else b""
            for path in paths
        }


def prepare(preparer: Preparer, node: Node) -> None:
    preparer.prepare(node.first, node.claim)


def unprepare(preparer: Preparer, node: Node) -> None:
    preparer.unprepare(node.first)


def ask_again(preparer: Preparer, node: Node, prepared: dict[str, bytes]) -> None:
    prepare(preparer, node)
    assert node.files() == prepared
    prepare(node.start(), node)
    assert node.files() == prepared
    unprepare(preparer, node)


def only_unprepare(preparer: Preparer, node: Node, _: dict[str, bytes]) -> None:
    unprepare(preparer, node)


def prepare_another(preparer: Preparer, node: Node, _: dict[str, bytes]) -> None:
    with contextlib.suppress(DeviceBusyError):
        preparer.prepare(node.second, node.overlapping)
    unprepare(preparer, node)
    preparer.prepare(node.second, node.overlapping)
    preparer.unprepare(node.second)


def nodes_stopped_at_each_effect(
    tmp_path: Path, act: Callable[[Preparer, Node], None], stop_at: Callable[[int], Stop]
) -> Iterator[tuple[Preparer, Node]]:
    """Yield nodes on which `act` was stopped at its first effect, at its second, and so on, until it was not."""
    for number in itertools.count():
        node = Node(tmp_path / str(number))
        preparer = node.start()
        if act is unprepare:
            prepare(preparer, node)
        with watched(node.directory, stop_at(number)) as effects, contextlib.suppress(Killed, ClaimError):
            act(preparer, node)
        yield (node.start() if stop_at is killed_at else preparer), node
        if len(effects.seen) <= number:
            assert number > 10, effects.seen
            return


def on_a_full_disk_at(number: int) -> Stop:
    return refused_at(number, errno.ENOSPC)


@pytest.mark.parametrize("follow", [ask_again, only_unprepare, prepare_another])
@pytest.mark.parametrize("act", [prepare, unprepare])
@pytest.mark.parametrize("stop_at", [killed_at, on_a_full_disk_at])
def test_whatever_follows_ends_as_if_nothing_had_happened(
    tmp_path: Path,
    act: Callable[[Preparer, Node], None],
    stop_at: Callable[[int], Stop],
    follow: Callable[[Preparer, Node, dict[str, bytes]], None],
) -> None:
    clean = Node(tmp_path / "clean")
    prepare(clean.start(), clean)
    for preparer, node in nodes_stopped_at_each_effect(tmp_path, act, stop_at):
        follow(preparer, node, clean.files())
        assert node.files() == {}
        restarted = node.start()
        assert node.files() == {}
        restarted.prepare(node.second, node.overlapping)
