"""The order of a node's plugin processes, and what dead ones leave.

To the kernel, a lock file that is opened twice is locked by two.
"""

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from dra_driver.errors import SettingError
from kubeletplugin.kubelet.instance import Instance, hold_instance
from kubeletplugin.kubelet.probe import GET_INFO, check_socket
from kubeletplugin.kubelet.registration import Registration
from kubeletplugin.kubelet.socket import remove_dead_sockets, serve_socket
from kubeletplugin.kubelet.socket_name import SOCKET_PATH_LIMIT

UIDS = [f"{number:032x}" for number in range(4)]


class Node:
    """Instances by number, which come and go."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stacks: dict[int, ExitStack] = {}

    def start(self, number: int) -> Instance:
        stack = ExitStack()
        instance = stack.enter_context(hold_instance(self._folder, UIDS[number], self._folder / "dra.sock"))
        self._stacks[number] = stack
        return instance

    def end(self, *numbers: int) -> None:
        for number in numbers or tuple(self._stacks):
            self._stacks.pop(number).close()


@pytest.fixture
def pods(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_the_youngest_that_wants_to_write_may(pods: Node) -> None:
    old, new, newest = (pods.start(number) for number in range(3))
    assert old.take_turn()
    assert new.take_turn()
    assert not old.take_turn()
    assert newest.take_turn()
    assert (old.take_turn(), new.take_turn(), newest.take_turn()) == (False, False, True)
    newest.give_turn_back()
    assert (old.take_turn(), new.take_turn()) == (False, True)
    pods.end()


def test_one_that_has_not_tried_to_write_keeps_nobody_from_it(pods: Node) -> None:
    old = pods.start(0)
    pods.start(1)
    assert old.take_turn()
    pods.end()


def test_the_older_one_goes_on_once_the_younger_one_has_ended(pods: Node) -> None:
    old, new = pods.start(0), pods.start(1)
    assert new.take_turn()
    assert not old.take_turn()
    pods.end(1)
    assert old.take_turn()
    pods.end()


def test_one_that_starts_again_is_the_youngest_whatever_has_ended_before(pods: Node) -> None:
    pods.start(0)
    middle = pods.start(1)
    pods.end(0)
    again = pods.start(0)
    assert middle.take_turn()
    assert again.take_turn()
    assert not middle.take_turn()
    pods.end()


def test_a_pod_has_one_plugin_at_a_time(pods: Node) -> None:
    pods.start(0)
    with pytest.raises(SettingError, match="in use by another plugin, process unknown"):
        pods.start(0)
    pods.start(1)
    pods.end(1)
    pods.start(1)
    pods.end(0)


async def test_one_opens_its_sockets_at_a_time(pods: Node) -> None:
    one, other = pods.start(0), pods.start(1)
    async with one.starting():
        with pytest.raises(SettingError, match="another plugin has been starting for"):
            async with other.starting(timeout_s=0.05):
                pass
    async with other.starting():
        pass
    pods.end()


def test_only_sockets_that_nobody_listens_on_are_removed(short_path: Path) -> None:
    def path(name: str) -> Path:
        return short_path / name

    with ExitStack() as open_ones:
        for name in ("alive", "busy"):
            listener = open_ones.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(str(path(name)))
            listener.listen(0)
        for _ in range(2):  # a queue that is full
            caller = open_ones.enter_context(socket.socket(socket.AF_UNIX))
            caller.settimeout(0)
            caller.connect_ex(str(path("busy")))
        for name in ("dead", "not ours"):
            with socket.socket(socket.AF_UNIX) as killed:
                killed.bind(str(path(name)))
        path("file").write_text("")
        path("folder").mkdir()
        path("link").symlink_to("dead")
        removed = remove_dead_sockets(short_path, lambda name: name != "not ours")
        assert [each.name for each in removed] == ["dead"]
        assert {each.name for each in short_path.iterdir()} == {"alive", "busy", "file", "folder", "link", "not ours"}


async def test_a_socket_may_have_the_longest_path_that_linux_takes(short_path: Path) -> None:
    path = short_path / ("x" * (SOCKET_PATH_LIMIT - len(str(short_path)) - 1))
    server = await serve_socket(path, Registration(driver="a.example.com", endpoint="/x").handlers())
    assert await check_socket(path, GET_INFO) is None
    await server.stop(None)
