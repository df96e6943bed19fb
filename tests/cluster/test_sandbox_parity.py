"""The sandbox's API server answers as the real one: the same requests are put to both, and the answers compared."""

import asyncio
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from sandbox.api_server import ApiServer
from tests.cluster import network
from tests.cluster.cluster import build_programs
from tests.cluster.control_plane import ControlPlane
from tests.cluster.folder import ClusterFolder
from tests.cluster.host import Host
from tests.cluster.parity_script import SCRIPTS, script
from tests.cluster.process import Processes
from tests.support.api_exchange import Answer, Conversation, Step, differences

RealServer = Callable[[list[Step], dict[str, str]], list[Answer]]


@contextmanager
def real_api_server(feature_gates: dict[str, bool]) -> Iterator[RealServer]:
    """Run etcd and the API server alone: nothing else changes objects, as nothing does in the sandbox."""
    programs = build_programs()
    folder = ClusterFolder.create()
    processes = Processes(folder.path / "logs", folder.cgroup)
    try:
        namespace = network.create_control_namespace(processes)
        control = ControlPlane(Host(folder.path, folder.cgroup, programs, processes), namespace, feature_gates)
        control.start(())
        control.wait_until_ready()

        def run(steps: list[Step], memory: dict[str, str]) -> list[Answer]:
            ca = control.pki.crt("ca").read_text()
            conversation = Conversation(network.SERVICE_ADDRESS, 443, "admin-token", ca, memory)
            return namespace.call(lambda: conversation.run(steps))

        yield run
    finally:
        folder.remove()
        processes.reap()


@pytest.fixture(scope="module")
def real() -> Iterator[RealServer]:
    with real_api_server({}) as server:
        yield server


async def ask_sandbox(steps: list[Step], memory: dict[str, str], gates: dict[str, bool]) -> list[Answer]:
    async with ApiServer(feature_gates=gates) as server:
        conversation = Conversation("127.0.0.1", server.port, server.token, server.ca, memory)
        return await asyncio.to_thread(conversation.run, steps)


def describe(steps: list[Step], ours: list[Answer], theirs: list[Answer]) -> list[str]:
    found = []
    for index, (step, one, other) in enumerate(zip(steps, ours, theirs, strict=True)):
        name = f"step {index}: {step.method} {step.path} {str(step.body)[:150]}"
        lines = [
            *differences("code", one.code, other.code),
            *differences("reason", one.reason, other.reason),
            *differing_causes(one, other),
            *differences("body", one.body, other.body),
        ]
        if lines:
            told = "" if one.code < 400 and other.code < 400 else f"\n  {_message(one)}\n  {_message(other)}"
            found.append("\n  ".join([name, *lines]) + told)
    return found


def differing_causes(ours: Answer, theirs: Answer) -> Iterator[str]:
    """Tell causes that only one of them gives. Ours may name the field more closely."""
    for field, reason in ours.causes:
        if not any(_is_of(field, other) and reason == why for other, why in theirs.causes):
            yield f"only in the sandbox: {field} {reason}"
    for field, reason in theirs.causes:
        if not any(_is_of(other, field) and reason == why for other, why in ours.causes):
            yield f"only in the real one: {field} {reason}"


def _is_of(field: str, whole: str) -> bool:
    # There is no such field: the default stands beside the range.
    whole = whole.replace(".validRange.default", ".default")
    return field == whole or field.startswith((f"{whole}.", f"{whole}["))


def _message(answer: Answer) -> str:
    return str(answer.raw.get("message") if isinstance(answer.raw, dict) else answer.raw)[:1000]


async def compare(real: RealServer, name: str, gates: dict[str, bool]) -> list[str]:
    namespace = f"parity-{secrets.token_hex(3)}"
    steps = script(name, namespace)
    theirs = await asyncio.to_thread(real, steps, {"ns": namespace})
    ours = await ask_sandbox(steps, {"ns": namespace}, gates)
    return describe(steps, ours, theirs)


@pytest.mark.parametrize("name", SCRIPTS)
async def test_both_answer_alike(real: RealServer, name: str) -> None:
    found = await compare(real, name, {})
    assert not found, "\n".join([f"{len(found)} differences", *found])


async def test_both_drop_fields_of_gates_that_are_off_alike() -> None:
    gates = {
        "DRADeviceTaints": False,
        "DRADeviceTaintRules": False,
        "DRAPartitionableDevices": False,
        "DRAConsumableCapacity": False,
        "DRADeviceBindingConditions": False,
    }
    with real_api_server(gates) as real:
        found = [line for name in ("claims", "claim-status", "slices") for line in await compare(real, name, gates)]
    assert not found, "\n".join([f"{len(found)} differences", *found])


def test_there_is_much_to_compare() -> None:
    assert sum(map(len, SCRIPTS.values())) >= 400
