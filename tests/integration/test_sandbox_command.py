"""The sandbox as a user runs it: a process that prints a kubeconfig, keeps its objects in a file, and ends clean."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from dra_driver.api.core_v1 import Node
from dra_driver.api.meta_v1 import ObjectMeta
from dra_driver.kube.client import ApiClient
from dra_driver.kube.credential import Credential
from dra_driver.kube.resource import NODES

ROOT = Path(__file__).parents[2]


@pytest.fixture
def temporary() -> Iterator[Path]:
    with TemporaryDirectory(prefix="dra-") as folder:
        yield Path(folder)


@asynccontextmanager
async def a_sandbox(temporary: Path, *flags: str) -> AsyncIterator[Path]:
    """Run the command, give the kubeconfig that it prints, and end it with SIGTERM."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "kubectl_dra", "sandbox", *flags),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(temporary), "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(40):
            line = (await process.stdout.readline()).decode()
        assert line.startswith("export KUBECONFIG="), line
        yield Path(line.removeprefix("export KUBECONFIG=").strip())
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(20):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def left(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_a_sandbox_keeps_its_objects_in_the_file_and_nothing_else(temporary: Path) -> None:
    flags = ("--nodes", "2", "--profile", "l40sx4", "--data", str(temporary / "data.db"))
    async with a_sandbox(temporary, *flags) as kubeconfig, ApiClient(await Credential.load(kubeconfig)) as client:
        nodes = await client.list(NODES)
        assert [node.metadata.name for node in nodes.items] == ["node-a", "node-b"]
        await client.create(NODES, Node(metadata=ObjectMeta(name="kept")))
    async with a_sandbox(temporary, *flags) as kubeconfig, ApiClient(await Credential.load(kubeconfig)) as client:
        assert (await client.get(NODES, "kept")).metadata.name == "kept"
    assert [name for name in left(temporary) if not name.startswith("data.db")] == []
