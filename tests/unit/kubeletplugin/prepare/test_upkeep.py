from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dra_driver.api.resource_v1 import ResourceClaim
from dra_driver.errors import ApiNotFoundError, ApiUnavailableError, DeviceBusyError
from kubeletplugin.discovery import Discovery
from kubeletplugin.prepare.artifact import Artifacts
from kubeletplugin.prepare.checkpoint import Checkpoint
from kubeletplugin.prepare.lock import claim_key
from kubeletplugin.prepare.preparer import Owned, Preparer
from kubeletplugin.prepare.record import ClaimRef
from kubeletplugin.prepare.spec import Names
from kubeletplugin.prepare.upkeep import GONE_FOR_S, LOOK_INTERVAL_S, Upkeep
from tests.support.builder import DRIVER, NODE, FakeBackend, a_claim, a_device, a_ref, a_result, a_share

WHOLE = a_device("GPU-0")


@dataclass
class Cluster:
    """What the API server has; `away` is one that does not answer."""

    claims: dict[str, ResourceClaim] = field(default_factory=dict)
    away: bool = False
    asked: int = 0

    async def read_claim(self, ref: ClaimRef) -> ResourceClaim:
        self.asked += 1
        if self.away:
            raise ApiUnavailableError("no answer")
        if ref.name not in self.claims:
            raise ApiNotFoundError(f"{ref}: not found", status=404)
        return self.claims[ref.name]


class Node:
    """A plugin on a node, with a clock of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.cluster = Cluster()
        self.told: list[tuple[str, str]] = []
        self.told_of_claims: list[tuple[str, str, str]] = []
        self.backend = FakeBackend((WHOLE,))
        self.remembered: set[str] = set()
        self.now = 1000.0
        self.start()

    def start(self) -> None:
        self.checkpoint = Checkpoint(self.directory / "claims")
        corrupt = self.checkpoint.read_all()
        artifacts = Artifacts(names=Names(DRIVER), cdi_dir=self.directory / "cdi", shim_dir=self.directory / "shim")
        artifacts.ensure_directories(self.checkpoint.locks)
        self.preparer = Preparer(
            Owned(driver=DRIVER, pool=NODE, slots=16),
            checkpoint=self.checkpoint,
            artifacts=artifacts,
            catalog=Discovery([self.backend]).read,
        )
        self.upkeep = Upkeep(
            self.preparer,
            self.checkpoint,
            claims=self.cluster,
            warn=lambda reason, message: self.told.append((reason, message)),
            warn_of_claim=lambda ref, reason, message: self.told_of_claims.append((ref.uid, reason, message)),
            remembers=self.remembered.__contains__,
            clock=lambda: self.now,
        )
        self.upkeep.tell_corrupt(corrupt)

    def prepare(self, claim: ResourceClaim, ref: ClaimRef) -> None:
        self.cluster.claims[ref.name] = claim
        self.preparer.prepare(ref, claim)

    async def look(self, *, times: int = 1) -> None:
        for _ in range(times):
            await self.upkeep.work()
            self.now += LOOK_INTERVAL_S

    def is_prepared(self, ref: ClaimRef) -> bool:
        return self.checkpoint.find(ref.uid) is not None


LOOKS = int(GONE_FOR_S / LOOK_INTERVAL_S) + 1


@pytest.fixture
def node(tmp_path: Path) -> Node:
    node = Node(tmp_path)
    node.prepare(a_claim(a_share(WHOLE.name, "share-1")), a_ref())
    return node


async def test_a_claim_whose_files_cannot_be_put_back_says_so_once(node: Node) -> None:
    for path in (node.directory / "cdi").iterdir():
        path.unlink()
    node.backend.devices = ()
    await node.look(times=2)
    ((uid, reason, message),) = node.told_of_claims
    assert (uid, reason) == ("uid-1", "PrepareFailed")
    assert f"device {NODE}/{WHOLE.name}: not on this node any more" in message


async def test_a_claim_that_is_gone_for_long_is_unprepared(node: Node) -> None:
    node.cluster.claims.clear()
    await node.look(times=LOOKS - 1)
    assert node.is_prepared(a_ref())
    await node.look()
    assert not node.is_prepared(a_ref())
    assert not list((node.directory / "cdi").iterdir())


async def test_a_name_that_another_claim_has_now_is_a_claim_that_is_gone(node: Node) -> None:
    other = a_ref("uid-2", a_ref().name)
    node.cluster.claims[other.name] = a_claim(a_result(WHOLE.name), ref=other)
    await node.look(times=LOOKS)
    assert not node.is_prepared(a_ref())


async def test_a_claim_that_comes_back_begins_anew(node: Node) -> None:
    claims = dict(node.cluster.claims)
    for _ in range(3):
        node.cluster.claims.clear()
        await node.look(times=LOOKS - 1)
        node.cluster.claims.update(claims)
        await node.look()
    assert node.is_prepared(a_ref())


async def test_an_api_server_that_is_away_takes_nothing(node: Node) -> None:
    node.cluster.away = True
    await node.look(times=2 * LOOKS)
    assert node.is_prepared(a_ref())


async def test_what_the_kubelet_remembers_or_works_on_stays(node: Node) -> None:
    node.cluster.claims.clear()
    node.remembered.add("uid-1")
    await node.look(times=LOOKS)
    node.remembered.clear()
    with node.checkpoint.locks.hold(claim_key("uid-1")):
        await node.look()
        assert node.is_prepared(a_ref())
    await node.look()
    assert not node.is_prepared(a_ref())


async def test_claims_are_asked_for_at_intervals(node: Node) -> None:
    for _ in range(100):
        await node.upkeep.work()
    assert node.cluster.asked == 1


def damage(node: Node) -> None:
    path = node.directory / "claims" / "uid-1.json"
    path.write_bytes(path.read_bytes()[:-10])
    node.start()


async def test_a_damaged_record_is_rebuilt_from_the_claim(node: Node) -> None:
    before = node.checkpoint.find("uid-1")
    damage(node)
    assert [reason for reason, _ in node.told] == ["CheckpointCorrupt"]
    node.cluster.away = True
    await node.upkeep.work()
    assert node.checkpoint.find("uid-1") is None
    other = a_ref("uid-2", "claim-2")
    with pytest.raises(DeviceBusyError, match="uid-1"):
        node.preparer.prepare(other, a_claim(a_share(WHOLE.name, "share-2"), ref=other))
    node.cluster.away = False
    await node.upkeep.work()
    assert node.checkpoint.find("uid-1") == before
    node.preparer.prepare(other, a_claim(a_share(WHOLE.name, "share-2"), ref=other))


async def test_a_damaged_record_of_a_claim_that_was_unprepared_is_not_rebuilt(node: Node) -> None:
    damage(node)
    node.preparer.unprepare(a_ref())
    await node.upkeep.work()
    assert not node.is_prepared(a_ref())
    assert not list((node.directory / "cdi").iterdir())


async def test_a_claim_that_is_gone_is_unprepared_though_its_record_was_damaged(node: Node) -> None:
    node.cluster.claims.clear()
    damage(node)
    await node.look(times=LOOKS)
    assert not list((node.directory / "cdi").iterdir())


def lose(node: Node) -> None:
    """Remove the record of the claim, as no plugin does, and start anew."""
    (node.directory / "claims" / "uid-1.json").unlink()
    node.start()


def is_free(node: Node) -> bool:
    """Whether nothing is left of the claim, and another one gets its device."""
    other = a_ref("uid-9", "claim-9")
    try:
        node.preparer.prepare(other, a_claim(a_result(WHOLE.name), ref=other))
    except DeviceBusyError:
        return False
    return not list((node.directory / "cdi").glob("*uid-1*"))


async def test_a_record_that_is_gone_is_rebuilt_from_its_spec_and_the_claim(node: Node) -> None:
    before = node.checkpoint.find("uid-1")
    lose(node)
    await node.look(times=2)
    assert node.checkpoint.find("uid-1") == before
    node.preparer.unprepare(a_ref())
    assert is_free(node)


async def test_a_claim_that_is_gone_is_unprepared_though_its_record_is_gone_too(node: Node) -> None:
    node.cluster.claims.clear()
    lose(node)
    await node.look(times=LOOKS)
    assert not is_free(node)
    await node.look(times=2)
    assert is_free(node)


async def test_a_lost_claim_whose_name_another_one_has_now_is_gone(node: Node) -> None:
    other = a_ref("uid-2", a_ref().name)
    node.cluster.claims[other.name] = a_claim(a_result(WHOLE.name), ref=other)
    lose(node)
    await node.look(times=LOOKS + 2)
    assert is_free(node)


async def test_an_api_server_that_is_away_frees_nothing_of_a_lost_claim(node: Node) -> None:
    node.cluster.away = True
    lose(node)
    await node.look(times=2 * LOOKS)
    assert not is_free(node)


async def test_a_lost_claim_that_comes_back_is_rebuilt(node: Node) -> None:
    claims = dict(node.cluster.claims)
    node.cluster.claims.clear()
    lose(node)
    await node.look(times=2)
    node.cluster.claims.update(claims)
    await node.look(times=2)
    assert node.is_prepared(a_ref())


async def test_a_spec_that_does_not_tell_its_claim_holds_its_devices(node: Node) -> None:
    node.cluster.claims.clear()
    (spec,) = (node.directory / "cdi").iterdir()
    spec.write_bytes(spec.read_bytes().replace(b'"default/claim-1"', b'""'))
    lose(node)
    await node.look(times=2 * LOOKS)
    assert not is_free(node)


async def test_a_damaged_name_in_a_record_does_not_take_the_claim_from_its_pod(node: Node) -> None:
    """The spec is one of an older driver, so that only the record tells the name, and that is a wrong one."""
    (spec,) = (node.directory / "cdi").iterdir()
    spec.write_bytes(spec.read_bytes().replace(b'"default/claim-1"', b'""'))
    path = node.directory / "claims" / "uid-1.json"
    path.write_bytes(path.read_bytes().replace(b"claim-1", b"claim-7"))
    node.start()
    await node.look(times=2 * LOOKS)
    assert not is_free(node)


async def test_a_lost_claim_that_is_gone_is_asked_for_at_intervals(node: Node) -> None:
    node.cluster.claims.clear()
    lose(node)
    for _ in range(100):
        await node.upkeep.work()
    assert node.cluster.asked <= 2
