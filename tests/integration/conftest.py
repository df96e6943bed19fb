from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.api_server import TestApiServer
from tests.support.control import ControlPlane
from tests.support.nvml.library import COMPILER, build_library
from tests.support.plugin import PluginNode


@pytest.fixture
async def server() -> AsyncIterator[TestApiServer]:
    async with TestApiServer() as server:
        yield server


@pytest.fixture
def short_path() -> Iterator[Path]:
    """Give a folder whose path leaves room for sockets in it: Linux allows them 107 bytes."""
    with TemporaryDirectory(prefix="dra-") as folder:
        yield Path(folder)


@pytest.fixture
async def node(short_path: Path, server: TestApiServer) -> AsyncIterator[PluginNode]:
    node = PluginNode(short_path, server)
    yield node
    for plugin in node.started:
        await plugin.kill()


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a shared library with the functions of NVIDIA's, behind which there is a fake."""
    if COMPILER is None:
        pytest.skip("no C compiler here, want cc, gcc or clang")
    path = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so"
    build_library(path)
    return path


@pytest.fixture
def control(tmp_path: Path, server: TestApiServer) -> ControlPlane:
    return ControlPlane(server, tmp_path)
