from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from cdi import ContainerEdits
from dra_driver.api.resource_v1 import ResourceClaim
from dra_driver.devices.model import Device, Partition
from dra_driver.errors import ClaimError
from kubeletplugin.discovery import Discovery
from kubeletplugin.kubelet.service import PluginService
from kubeletplugin.metric import Metrics
from kubeletplugin.prepare.artifact import Artifacts
from kubeletplugin.prepare.checkpoint import Checkpoint
from kubeletplugin.prepare.preparer import Owned, Preparer
from kubeletplugin.prepare.record import ClaimRecord, ClaimRef
from kubeletplugin.prepare.spec import Names
from tests.support.builder import DRIVER, NODE, FakeBackend, a_claim, a_device, a_ref, a_result

NAMES = Names(DRIVER)
SOUND, ODD = a_device("GPU-0"), a_device("GPU-1")


class OddBackend(FakeBackend):
    """A backend with a bug that one device brings out."""

    def render_edits(self, device: Device, partition: Partition | None) -> ContainerEdits:
        if device.name == ODD.name:
            raise KeyError("minor")
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


async def test_a_bug_that_one_claim_brings_out_does_not_fail_the_others(tmp_path: Path, executor: Executor) -> None:
    good, bad = a_ref("uid-1"), a_ref("uid-2", "claim-2")
    claims = FakeClaims(a_claim(a_result(SOUND.name), ref=good), a_claim(a_result(ODD.name), ref=bad))
    events, statuses, registry = FakeEvents(), FakeStatuses(), CollectorRegistry()
    service = PluginService(
        a_preparer(tmp_path),
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
    text = "claim default/claim-2: unforeseen KeyError, see the plugin's log"
    assert str(outcomes[bad.uid]) == text
    assert events.told == [(bad.uid, "PrepareFailed", text)]
    assert registry.get_sample_value("dra_kubeletplugin_prepare_total", {"result": "error"}) == 1
    assert sorted(statuses.told) == [(good.uid, "prepared"), (bad.uid, f"PrepareFailed: {text}")]
    assert await service.unprepare([bad, good]) == {bad.uid: None, good.uid: None}
    assert sorted(statuses.told[2:]) == [(good.uid, "unprepared"), (bad.uid, "unprepared")]


async def test_the_kubelet_hears_of_a_claim_that_others_keep_before_it_gives_up(
    tmp_path: Path, executor: Executor
) -> None:
    ref, preparer, events = a_ref(), a_preparer(tmp_path), FakeEvents()
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
    assert await service.unprepare([ref]) == {ref.uid: None}


def a_preparer(folder: Path) -> Preparer:
    checkpoint = Checkpoint(folder / "claims")
    checkpoint.read_all()
    artifacts = Artifacts(names=NAMES, cdi_dir=folder / "cdi", shim_dir=folder / "shim")
    artifacts.ensure_directories()
    return Preparer(
        Owned(driver=DRIVER, pool=NODE, slots=16),
        checkpoint=checkpoint,
        artifacts=artifacts,
        catalog=Discovery([OddBackend((SOUND, ODD))]).current,
    )
