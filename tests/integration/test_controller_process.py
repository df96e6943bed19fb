"""The controller as a process: what it says when something is wrong, and how it ends."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.control import ControlPlane, a_claim, a_pod
from tests.support.wait import until


@asynccontextmanager
async def a_process(control: ControlPlane, *flags: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start `dra-controller`; it is killed at the end, if it has not ended."""
    kubeconfig = control.server.kubeconfig(control.folder / "kubeconfig")
    command = (sys.executable, "-m", "controller", "--kubeconfig", str(kubeconfig), "--http-address", "127.0.0.1:0")
    folder = Path(__file__).parents[2]
    process = await asyncio.create_subprocess_exec(*command, *flags, stderr=asyncio.subprocess.PIPE, cwd=folder)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_it_leads_allocates_and_ends_when_asked_to(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"])
    async with a_process(control, "--log-format", "json") as process:
        control.put(a_claim(), a_pod("pod-1", "claim-1"))
        await until(lambda: not control.is_gated(), within_s=30)
        [lease] = control.server.all("leases")
        assert lease["metadata"]["name"] == "dra-controller"
        assert lease["spec"]["holderIdentity"]
        process.send_signal(signal.SIGTERM)
        _, errors = await asyncio.wait_for(process.communicate(), 20)
    assert process.returncode == 0
    assert b'"event": "pod allocated"' in errors
    [lease] = control.server.all("leases")
    assert not lease["spec"].get("holderIdentity")


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (("--lease-name", "Bad_Name", "--retry-period", "20"), "--lease-name: "),
        (("--feature-gates", "DRAMagic=true"), "--feature-gates: unknown gate 'DRAMagic'"),
        (("--kubeconfig", "/does/not/exist"), "/does/not/exist"),
    ],
    ids=["settings", "gates", "kubeconfig"],
)
async def test_what_a_person_has_to_change_is_said_in_one_line(
    control: ControlPlane, flags: tuple[str, ...], text: str
) -> None:
    async with a_process(control, *flags) as process:
        _, errors = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 2
    [line] = errors.decode().splitlines()
    assert line.startswith("dra-controller: ")
    assert text in line
