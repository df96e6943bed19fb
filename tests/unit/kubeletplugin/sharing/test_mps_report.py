"""Who is told what of MPS daemons."""

from dataclasses import dataclass, field

import msgspec
import pytest

from dra_driver.api.config_v1alpha1 import Strategy
from dra_driver.api.resource_v1 import ResourceClaim, ResourceClaimConsumerReference, ResourceClaimStatus
from dra_driver.errors import ApiNotFoundError, ApiUnavailableError
from kubeletplugin.prepare.record import ClaimRecord, ClaimRef, ClaimState, PreparedDevice
from kubeletplugin.sharing.mps_report import LOOK_INTERVAL_S, SEVERAL, MpsReport
from kubeletplugin.sharing.mps_state import DOWN, DaemonChange
from tests.support.builder import NODE, a_claim

LOST = DaemonChange("gpu-0", DOWN, "gone")


@dataclass
class Bench:
    """Claims with their devices and Pods, and what was told."""

    records: list[ClaimRecord] = field(default_factory=list)
    pods: dict[str, list[str]] = field(default_factory=dict)
    changes: list[DaemonChange] = field(default_factory=list)
    away: bool = False
    asked: int = 0
    now: float = 0.0
    claims_told: list[tuple[str, str]] = field(default_factory=list)
    pods_told: list[tuple[str, str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.report = MpsReport(
            claims=self,
            records=lambda: self.records,
            changes=self._take,
            warn_claim=lambda ref, reason, _: self.claims_told.append((ref.name, reason)),
            warn_pod=lambda pod, reason, message: self.pods_told.append((pod.name, reason, message)),
            clock=lambda: self.now,
        )

    def add(
        self, name: str, device: str, *pods: str, namespace: str = "default", strategy: Strategy = Strategy.MPS
    ) -> None:
        prepared = PreparedDevice(request="main", pool=NODE, device=device, strategy=strategy)
        record = ClaimRecord(
            namespace=namespace, name=name, uid=f"{name}-uid", state=ClaimState.COMPLETED, devices=(prepared,)
        )
        self.records.append(record)
        self.pods[name] = list(pods)

    async def read_claim(self, ref: ClaimRef) -> ResourceClaim:
        self.asked += 1
        if self.away:
            raise ApiUnavailableError("no answer")
        if ref.name not in self.pods:
            raise ApiNotFoundError("gone", status=404)
        users = tuple(
            ResourceClaimConsumerReference(resource="pods", name=pod, uid=f"{pod}-uid") for pod in self.pods[ref.name]
        )
        return msgspec.structs.replace(a_claim(ref=ref), status=ResourceClaimStatus(reserved_for=users))

    def _take(self) -> list[DaemonChange]:
        changes, self.changes = self.changes, []
        return changes


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_claims_of_a_device_whose_daemon_is_lost_are_told_and_their_pods(bench: Bench) -> None:
    bench.add("a", "gpu-0", "train", "watch")
    bench.add("b", "gpu-1", "other")
    bench.add("c", "gpu-0", "turns", strategy=Strategy.TIME_SLICING)
    bench.changes.append(LOST)
    await bench.report.work()
    await bench.report.work()
    assert bench.claims_told == [("a", DOWN)]
    assert [told[:2] for told in bench.pods_told if told[1] == DOWN] == [("train", DOWN), ("watch", DOWN)]


async def test_pods_are_told_once_the_api_server_is_back(bench: Bench) -> None:
    bench.add("a", "gpu-0", "train")
    bench.changes.append(LOST)
    bench.away = True
    await bench.report.work()
    assert (bench.claims_told, bench.pods_told) == ([("a", DOWN)], [])
    bench.away = False
    await bench.report.work()
    assert bench.pods_told == [("train", DOWN, "gone")]


async def test_a_claim_that_is_gone_has_no_pods_to_be_told(bench: Bench) -> None:
    bench.add("a", "gpu-0", "train")
    del bench.pods["a"]
    bench.changes.append(LOST)
    await bench.report.work()
    assert bench.pods_told == []


async def test_a_pod_with_claims_of_two_daemons_is_told_once_which_they_are(bench: Bench) -> None:
    bench.add("a", "gpu-0", "train")
    bench.add("b", "gpu-1", "train", "fine")
    bench.add("c", "gpu-1", "fine")
    await bench.report.work()
    bench.add("d", "gpu-0", "alone")
    await bench.report.work()
    [(pod, reason, message)] = bench.pods_told
    assert (pod, reason) == ("train", SEVERAL)
    assert message.startswith("claims default/a (device gpu-0) and default/b (device gpu-1): each device")


async def test_a_pod_that_comes_later_to_claims_that_are_prepared_is_found_too(bench: Bench) -> None:
    bench.add("a", "gpu-0", "first")
    bench.add("b", "gpu-1", "second")
    await bench.report.work()
    for name in ("a", "b"):
        bench.pods[name].append("third")
    await bench.report.work()
    assert bench.pods_told == []
    bench.now += LOOK_INTERVAL_S
    await bench.report.work()
    assert [told[0] for told in bench.pods_told] == ["third"]


async def test_nothing_is_asked_where_no_pod_can_have_two_daemons(bench: Bench) -> None:
    bench.add("a", "gpu-0", "one")
    bench.add("b", "gpu-0", "one")
    bench.add("c", "gpu-1", "other", namespace="elsewhere")
    await bench.report.work()
    assert (bench.asked, bench.pods_told) == (0, [])


async def test_it_is_asked_again_if_the_api_server_is_away(bench: Bench) -> None:
    bench.add("a", "gpu-0", "train")
    bench.add("b", "gpu-1", "train")
    bench.away = True
    await bench.report.work()
    bench.away = False
    await bench.report.work()
    assert [told[:2] for told in bench.pods_told] == [("train", SEVERAL)]
