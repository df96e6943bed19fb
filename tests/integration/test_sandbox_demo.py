"""The demo as a user runs it: a process, what it writes, how it ends, and that it leaves nothing."""

import asyncio
import codecs
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.wait import until

ROOT = Path(__file__).parents[2]


class Demo:
    """A running demo, and what it wrote so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.text = ""
        self._reader = asyncio.create_task(self._read())

    async def ended(self, *, within_s: float = 50.0) -> int:
        async with asyncio.timeout(within_s):
            await self._reader
            return await self.process.wait()

    async def _read(self) -> None:
        assert self.process.stdout is not None
        decoder = codecs.getincrementaldecoder("utf-8")()  # chunks end anywhere, also within a character
        while chunk := await self.process.stdout.read(65536):
            self.text += decoder.decode(chunk)


@pytest.fixture
def temporary() -> Iterator[Path]:
    with TemporaryDirectory(prefix="dra-") as folder:
        yield Path(folder)


@asynccontextmanager
async def a_demo(temporary: Path, *flags: str) -> AsyncIterator[Demo]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "kubectl_dra", "demo", *flags),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(temporary), "PYTHONUNBUFFERED": "1"},
    )
    try:
        yield Demo(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def left(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_every_scene_happens_and_nothing_is_left(temporary: Path) -> None:
    async with a_demo(temporary) as demo:
        code = await demo.ended()
    assert code == 0, demo.text
    for line in (
        "1/8  The devices that the node plugins published",
        "pod pair runs on node-a with two H100 whose nvlinkDomain is equal",
        "one H100, two containers: 16Gi of 79.6Gi and 60 of 100 cores are taken",
        "it takes from its parent: compute-slices 1, copy-engines 1, memory-slice-0 1",
        "6 Ascend 910B3 for the request devices/ascend",
        "0/3 nodes are available: request gpus: ",
        '"cdiVersion"',
        "memory=8589934592 cores=30 policy=force",
        "pod too-large runs on node-a: 6 H100 of one domain",
        "All 8 scenes happened as shown",
    ):
        assert line in demo.text
    assert left(temporary) == []
    # What goes into a file has no control characters, and no blanks at the ends of lines.
    assert set(re.findall(r"[\x00-\x1f\x7f]", demo.text)) == {"\n"}
    assert not re.search(r" $", demo.text, re.MULTILINE)


@pytest.mark.parametrize(
    ("wait_for", "number"),
    [
        ("demo ─", signal.SIGINT),
        ("1/8", signal.SIGHUP),
        ("3/8", signal.SIGTERM),
    ],
    ids=["at the start", "while nodes start", "while pods start"],
)
async def test_a_signal_ends_it_at_any_moment_without_a_trace(
    temporary: Path, wait_for: str, number: signal.Signals
) -> None:
    async with a_demo(temporary) as demo:
        await until(lambda: wait_for in demo.text or demo.process.returncode is not None, within_s=40)
        demo.process.send_signal(number)
        code = await demo.ended()
    assert code == 128 + number, demo.text
    assert "Traceback" not in demo.text
    assert left(temporary) == []


async def test_it_keeps_running_when_asked_to_until_a_signal_ends_it(temporary: Path) -> None:
    async with a_demo(temporary, "--keep") as demo:
        await until(lambda: "Press Ctrl-C" in demo.text or demo.process.returncode is not None, within_s=50)
        match = re.search(r"KUBECONFIG=(\S+)", demo.text)
        assert match is not None, demo.text
        assert left(Path(match[1]).parent) != []
        demo.process.send_signal(signal.SIGINT)
        code = await demo.ended()
    assert code == 0, demo.text
    assert left(temporary) == []
