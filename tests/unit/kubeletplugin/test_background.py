"""What goes on beside the calls of the kubelet outlives what passes, and ends the process in order on a bug."""

import asyncio
import errno
import os
import subprocess
import sys
from collections import Counter

import pytest

from dra_driver.errors import ApiForbiddenError, StateError
from dra_driver.kube.backoff import Backoff
from kubeletplugin.background import NO_THREAD, Background, BugError, Patience, Task, explain_passing
from tests.support.kube import running
from tests.support.wait import until

AT_ONCE = Backoff(initial_s=0.001, max_s=0.002)


def an_os_error(number: int, path: str | None = None) -> OSError:
    return OSError(number, os.strerror(number), path)


class Node:
    """Background tasks, with a clock of their own and a task that fails as long as it has errors."""

    def __init__(self, *errors: Exception, well_s: float = 60.0) -> None:
        self.errors = list(errors)
        self.failures = Counter[Task]()
        self.now = 1000.0
        self.begun = 0
        self.stop = asyncio.Event()
        patience = Patience(retry=AT_ONCE, well_s=well_s, lasting_s=30.0)
        self.background = Background(lambda task: self.failures.update([task]), patience, lambda: self.now)

    async def work(self) -> None:
        self.begun += 1
        if self.errors:
            raise self.errors.pop(0)
        await asyncio.Event().wait()

    async def run(self) -> None:
        await self.background.run(Task.UPKEEP, self.work, self.stop)


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        pytest.param(an_os_error(errno.EMFILE), "too many open files", id="no descriptors"),
        pytest.param(an_os_error(errno.ENFILE), "too many open files in system", id="none in the system"),
        pytest.param(an_os_error(errno.ENOMEM), "cannot allocate memory", id="no memory"),
        pytest.param(MemoryError(), "cannot allocate memory", id="no memory for Python"),
        pytest.param(an_os_error(errno.ENOSPC, "/x/y"), "/x/y: no space left on device", id="full disk"),
        pytest.param(an_os_error(errno.EROFS, "/x/y"), "/x/y: read-only file system", id="read-only disk"),
        pytest.param(RuntimeError(NO_THREAD), "no thread left", id="no threads"),
        pytest.param(ApiForbiddenError("get claims: forbidden"), "get claims: forbidden", id="API error"),
        pytest.param(StateError("/x: not writable"), "/x: not writable", id="state"),
        pytest.param(
            ExceptionGroup("tasks", [an_os_error(errno.EMFILE), an_os_error(errno.EMFILE), MemoryError()]),
            "too many open files; cannot allocate memory",
            id="of several tasks",
        ),
        pytest.param(ValueError("x"), None, id="bug"),
        pytest.param(RuntimeError("x"), None, id="bug in a library"),
        pytest.param(ExceptionGroup("tasks", [an_os_error(errno.EMFILE), KeyError("x")]), None, id="one of them a bug"),
    ],
)
def test_what_the_machine_or_the_api_server_refuses_passes_and_a_bug_does_not(
    error: Exception, problem: str | None
) -> None:
    assert explain_passing(error) == problem


def test_python_says_that_no_thread_is_left_as_is_assumed_here() -> None:
    source = "import _thread, resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28)); "
    source += "_thread.stack_size(1 << 30); _thread.start_new_thread(print, ())"
    done = subprocess.run((sys.executable, "-c", source), capture_output=True, text=True, check=False)
    assert f"RuntimeError: {NO_THREAD}" in done.stderr


async def test_a_task_begins_anew_after_what_passes_and_is_counted() -> None:
    node = Node(an_os_error(errno.EMFILE), StateError("/x: not writable"))
    async with running(node.run()):
        await until(lambda: node.begun == 3)
    assert node.failures == {Task.UPKEEP: 2}
    assert not node.stop.is_set()
    node.background.raise_bug()


async def test_trouble_that_lasts_is_told_until_it_is_over() -> None:
    node = Node(*[an_os_error(errno.EROFS, "/x")] * 3, well_s=0.05)
    async with running(node.run()):
        await until(lambda: node.begun == 4)
        assert await node.background.check() is None
        node.now += 30.0
        assert await node.background.check() == "upkeep: /x: read-only file system"
        async with asyncio.timeout(10):
            while await node.background.check() is not None:  # noqa: ASYNC110 - what is asked is asynchronous
                await asyncio.sleep(0.005)


async def test_a_bug_stops_the_process_and_says_which_task_met_it() -> None:
    node = Node(an_os_error(errno.EMFILE), ValueError("x"))
    await node.run()
    assert node.stop.is_set()
    with pytest.raises(BugError, match="background task upkeep: unforeseen ValueError") as caught:
        node.background.raise_bug()
    assert isinstance(caught.value.__cause__, ValueError)
