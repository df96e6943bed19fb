import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

import cdi
from dra_driver.api.config_v1alpha1 import Strategy
from dra_driver.api.resource_v1 import AllocatedDeviceStatus, ResourceClaim
from dra_driver.devices.model import Health
from dra_driver.errors import ApiError, ApiForbiddenError, ApiNotFoundError, ApiUnavailableError
from kubeletplugin.claim_status.writer import ClaimStatusWriter
from kubeletplugin.discovery import Discovery
from kubeletplugin.prepare.record import ClaimRecord, ClaimRef, ClaimState, PreparedDevice
from kubeletplugin.prepare.spec import Names
from tests.support.builder import DRIVER, NODE, FakeBackend, a_claim, a_device, a_ref, a_result
from tests.support.wait import until

DEVICE = a_device("GPU-0")
NAMES = Names(DRIVER)
OTHER = AllocatedDeviceStatus(driver="net.example.com", pool=NODE, device="nic-0", data={"mtu": 9000})


class FakeClaims:
    """Claims as an API server keeps them, which may be away or refuse."""

    def __init__(self, claim: ResourceClaim) -> None:
        self.claim: ResourceClaim | None = claim
        self.problem: ApiError | None = None
        self.asked = 0
        self.applied: list[tuple[AllocatedDeviceStatus, ...]] = []

    @property
    def devices(self) -> tuple[AllocatedDeviceStatus, ...]:
        return self.claim.status.devices if self.claim is not None else ()

    async def read_claim(self, ref: ClaimRef) -> ResourceClaim:
        self.asked += 1
        if self.problem is not None:
            raise self.problem
        if self.claim is None:
            raise ApiNotFoundError("get resourceclaims: not found", status=404)
        return self.claim

    async def apply_devices(self, ref: ClaimRef, devices: tuple[AllocatedDeviceStatus, ...]) -> None:
        assert self.claim is not None
        self.applied.append(devices)
        others = tuple(each for each in self.devices if each.driver != DRIVER)
        status = msgspec.structs.replace(self.claim.status, devices=(*others, *devices))
        self.claim = msgspec.structs.replace(self.claim, status=status)


class Node:
    """A plugin's writer, with what is around it."""

    def __init__(self, folder: Path) -> None:
        self.ref = a_ref()
        self.claims = FakeClaims(a_claim(a_result(DEVICE.name), ref=self.ref))
        self.backend = FakeBackend((DEVICE,))
        self.specs = cdi.SpecStore(folder)
        self.discovery = Discovery([self.backend])
        self.counted: list[str] = []
        self.daemon_problems: dict[str, str] = {}
        self.slept = 0
        self.writer = self.start()
        device = PreparedDevice(request="main", pool=NODE, device=DEVICE.name)
        self.record = ClaimRecord(
            namespace=self.ref.namespace,
            name=self.ref.name,
            uid=self.ref.uid,
            state=ClaimState.COMPLETED,
            devices=(device,),
        )

    def start(self) -> ClaimStatusWriter:
        async def sleep(_: float) -> None:
            self.slept += 1
            await asyncio.sleep(0)

        return ClaimStatusWriter(
            self.claims,
            names=NAMES,
            pool=NODE,
            specs=self.specs,
            catalog=self.discovery.read,
            daemon_problems=lambda: self.daemon_problems,
            written=self.counted.append,
            clock=lambda: datetime(2026, 1, 1, tzinfo=UTC),
            sleep=sleep,
        )

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[ClaimStatusWriter]:
        task = asyncio.create_task(self.writer.run())
        try:
            yield self.writer
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def told(self) -> tuple[str, str] | None:
        ours = [each for each in self.claims.devices if each.driver == DRIVER]
        return (ours[0].conditions[0].status, ours[0].conditions[0].reason) if ours else None


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


async def test_a_prepared_claim_says_what_it_got(node: Node) -> None:
    edits = node.backend.render_edits(DEVICE, None)
    device = cdi.Device(name=NAMES.device(node.ref.uid, node.record.devices[0]), container_edits=edits)
    spec = cdi.default_version(cdi.Spec(cdi_version=cdi.VERSIONS[0], kind=NAMES.kind, devices=(device,)))
    node.specs.write_spec(NAMES.spec(node.ref.uid), spec)
    async with node.running() as writer:
        writer.prepared(node.record)
        await until(node.told)
    ((entry,),) = node.claims.applied
    assert (entry.driver, entry.pool, entry.device) == (DRIVER, NODE, DEVICE.name)
    assert entry.conditions[0].last_transition_time == "2026-01-01T00:00:00Z"
    assert entry.data is not None
    assert entry.data["deviceNodes"] == [each.path for each in edits.device_nodes]
    assert node.counted == ["success"]


async def test_entries_of_others_stay(node: Node) -> None:
    claim = node.claims.claim
    assert claim is not None
    status = msgspec.structs.replace(claim.status, devices=(OTHER,))
    node.claims.claim = msgspec.structs.replace(claim, status=status)
    async with node.running() as writer:
        writer.prepared(node.record)
        await until(node.told)
        writer.unprepared(node.ref)
        await until(lambda: node.told() is None)
    assert node.claims.devices == (OTHER,)


async def test_what_is_told_already_is_not_written_again(node: Node) -> None:
    async with node.running() as writer:
        writer.prepared(node.record)
        await until(node.told)
    node.writer = node.start()
    async with node.running() as writer:
        writer.prepared(node.record)
        await until(lambda: node.claims.asked == 2)
        writer.prepared(node.record)
        writer.unprepared(a_ref("uid-9"))
        await until(lambda: node.claims.asked == 3)
    assert len(node.claims.applied) == 1


async def test_health_changes_the_condition(node: Node) -> None:
    async with node.running() as writer:
        await writer.refresh([node.record])
        await until(lambda: node.told() == ("True", "Prepared"))
        node.backend.devices = (a_device("GPU-0", health=Health(reason="xid-79", message="fell off the bus")),)
        await writer.refresh([node.record])
        await until(lambda: node.told() == ("False", "DeviceUnhealthy"))
        node.backend.devices = ()
        await writer.refresh([node.record])
        await until(lambda: node.told() == ("False", "DeviceGone"))
        node.backend.devices = (DEVICE,)
        await writer.refresh([node.record])
        await until(lambda: node.told() == ("True", "Prepared"))


async def test_a_daemon_that_is_down_changes_the_condition_of_its_clients_alone(node: Node) -> None:
    device = msgspec.structs.replace(node.record.devices[0], strategy=Strategy.MPS)
    client = msgspec.structs.replace(node.record, devices=(device,))
    node.daemon_problems = {DEVICE.name: "its Pod is gone"}
    async with node.running() as writer:
        await writer.refresh([node.record])
        await until(lambda: node.told() == ("True", "Prepared"))
        await writer.refresh([client])
        await until(lambda: node.told() == ("False", "MpsDaemonDown"))
        assert node.claims.devices[-1].conditions[0].message == "its Pod is gone"
        node.daemon_problems = {}
        await writer.refresh([client])
        await until(lambda: node.told() == ("True", "Prepared"))


async def test_claims_that_are_prepared_already_are_followed(node: Node) -> None:
    async with node.running() as writer:
        following = asyncio.create_task(writer.follow(lambda: [node.record], 5.0))
        await until(lambda: node.told() == ("True", "Prepared"))
        node.backend.devices = ()
        await until(lambda: node.told() == ("False", "DeviceGone"))
        following.cancel()


async def test_a_failure_is_told_and_then_the_success(node: Node) -> None:
    async with node.running() as writer:
        writer.failed(node.ref, "PrepareFailed", "device busy")
        await until(lambda: node.told() == ("False", "PrepareFailed"))
        writer.prepared(node.record)
        await until(lambda: node.told() == ("True", "Prepared"))


async def test_an_api_server_that_is_away_gets_the_last_state_when_it_is_back(node: Node) -> None:
    node.claims.problem = ApiUnavailableError("get resourceclaims: no answer")
    async with node.running() as writer:
        writer.failed(node.ref, "PrepareFailed", "device busy")
        await until(lambda: node.slept >= 3)
        writer.prepared(node.record)
        node.claims.problem = None
        await until(lambda: node.told() == ("True", "Prepared"))
    assert len(node.claims.applied) == 1
    assert "error" in node.counted


async def test_a_refusal_is_not_repeated(node: Node) -> None:
    node.claims.problem = ApiForbiddenError("patch resourceclaims: forbidden", status=403)
    async with node.running() as writer:
        await writer.refresh([node.record])
        await until(lambda: node.counted == ["error"])
        await writer.refresh([node.record])
        writer.prepared(node.record)
        writer.unprepared(a_ref("uid-9"))
        await until(lambda: len(node.counted) == 2)
    assert node.claims.asked == 2


@pytest.mark.parametrize("case", ["gone", "another", "deallocated"])
async def test_a_claim_that_is_not_the_one_any_more_is_left_alone(node: Node, case: str) -> None:
    claim = node.claims.claim
    assert claim is not None
    node.claims.claim = {
        "gone": None,
        "another": a_claim(a_result(DEVICE.name), ref=a_ref("uid-2")),
        "deallocated": msgspec.structs.replace(claim, status=type(claim.status)()),
    }[case]
    async with node.running() as writer:
        writer.prepared(node.record)
        await until(lambda: node.claims.asked)
    assert node.claims.applied == []
    assert node.counted == []
