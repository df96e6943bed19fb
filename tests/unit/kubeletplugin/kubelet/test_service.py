import asyncio
import errno
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from cdi import ContainerEdits
from dra_driver.api.resource_v1 import ResourceClaim
from dra_driver.devices.model import Device, Partition
from dra_driver.errors import ClaimError
from kubeletplugin.kubelet.service import PluginService
from kubeletplugin.metric import Metrics
from kubeletplugin.prepare.record import ClaimRecord, ClaimRef
from kubeletplugin.prepare.spec import Names
from tests.support.builder import DRIVER, FakeBackend, a_claim, a_device, a_ref, a_result
from tests.support.prepare_node import open_preparer

NAMES = Names(DRIVER)
SOUND, ODD = a_device("GPU-0"), a_device("GPU-1")


class OddBackend(FakeBackend):
    """A backend to which one device is too much."""

    def __init__(self, problem: Exception) -> None:
        super().__init__((SOUND, ODD))
        self.problem = problem

    def render_edits(self, device: Device, partition: Partition | None) -> ContainerEdits:
        if device.name == ODD.name:
            raise self.problem
        return super().render_edits(device, partition)


class FakeClaims:
    """The claims of an API server."""

    def __init__(self, *claims: ResourceClaim) -> None:
        self._claims = {claim.metadata.uid: claim for claim in claims}

    async def read_claim(self, ref: ClaimRef) -> ResourceClaim:
        return self._claims[ref.uid]


class FakeEvents:
    """Remembers what was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []

    def record_claim_failure(self, ref: ClaimRef, reason: str, message: str) -> None:
        self.told.append((ref.uid, reason, message))


class FakeStatuses:
    """Remembers what was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def prepared(self, record: ClaimRecord) -> None:
        self.told.append((record.uid, "prepared"))

    def failed(self, ref: ClaimRef, reason: str, message: str) -> None:
        self.told.append((ref.uid, f"{reason}: {message}"))

    def unprepared(self, ref: ClaimRef) -> None:
        self.told.append((ref.uid, "unprepared"))


@pytest.fixture
def executor() -> Iterator[Executor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        pytest.param(KeyError("minor"), "unforeseen KeyError, see the plugin's log", id="bug"),
        pytest.param(OSError(errno.EMFILE, ""), "too many open files", id="nothing left"),
    ],
)
async def test_what_one_claim_brings_out_does_not_fail_the_others(
    tmp_path: Path, executor: Executor, problem: Exception, told: str
) -> None:
    good, bad = a_ref("uid-1"), a_ref("uid-2", "claim-2")
    claims = FakeClaims(a_claim(a_result(SOUND.name), ref=good), a_claim(a_result(ODD.name), ref=bad))
    events, statuses, registry = FakeEvents(), FakeStatuses(), CollectorRegistry()
    service = PluginService(
        open_preparer(tmp_path, OddBackend(problem)),
        names=NAMES,
        claims=claims,
        events=events,
        statuses=statuses,
        metrics=Metrics(registry),
        executor=executor,
    )
    outcomes = await service.prepare([bad, good])
    assert isinstance(outcomes[good.uid], ClaimRecord)
    assert isinstance(outcomes[bad.uid], ClaimError)
    text = f"claim default/claim-2: {told}"
    assert str(outcomes[bad.uid]) == text
    assert events.told == [(bad.uid, "PrepareFailed", text)]
    assert registry.get_sample_value("dra_kubeletplugin_prepare_total", {"result": "error"}) == 1
    assert sorted(statuses.told) == [(good.uid, "prepared"), (bad.uid, f"PrepareFailed: {text}")]
    assert await service.unprepare([bad, good]) == {bad.uid: None, good.uid: None}
    assert sorted(statuses.told[2:]) == [(good.uid, "unprepared"), (bad.uid, "unprepared")]


async def test_the_kubelet_hears_of_a_claim_that_others_keep_before_it_gives_up(
    tmp_path: Path, executor: Executor
) -> None:
    ref, preparer, events = a_ref(), open_preparer(tmp_path, FakeBackend((SOUND,))), FakeEvents()
    service = PluginService(
        preparer,
        names=NAMES,
        claims=FakeClaims(a_claim(a_result(SOUND.name))),
        events=events,
        statuses=FakeStatuses(),
        metrics=Metrics(CollectorRegistry()),
        executor=executor,
        patience_s=0.05,
    )
    with preparer.working_on(ref.uid):
        outcome = (await service.unprepare([ref]))[ref.uid]
    text = "claim default/claim-1: not done after 0.05 s, want what it waits for to answer"
    assert (type(outcome), str(outcome)) == (ClaimError, text)
    assert events.told == [(ref.uid, "UnprepareFailed", text)]
    async with asyncio.timeout(10):
        while await service.unprepare([ref]) != {ref.uid: None}:  # as the kubelet, which comes again
            pass
