import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

import cdi
from dra_driver.api.resource_v1 import ResourceClaim
from dra_driver.devices.model import Device, Inventory, Partition
from dra_driver.errors import ClaimError, DeviceBusyError, DeviceError
from kubeletplugin.discovery import Discovery
from kubeletplugin.prepare.artifact import Artifacts
from kubeletplugin.prepare.checkpoint import LOCK_FILE, Checkpoint
from kubeletplugin.prepare.preparer import Owned, Preparer
from kubeletplugin.prepare.record import ClaimRef, ClaimState
from kubeletplugin.prepare.spec import Names
from tests.support.builder import (
    DRIVER,
    NODE,
    FakeBackend,
    a_claim,
    a_device,
    a_partitionable_device,
    a_ref,
    a_result,
    a_share,
)

WHOLE = a_device("GPU-0")
SPLIT = a_partitionable_device("GPU-P")
PART = SPLIT.partition_name(SPLIT.partitions[0])
WIDE = SPLIT.partition_name(SPLIT.partitions[1])


@dataclass
class Node:
    """A node's disk and devices; `start` is a plugin process that comes up on them."""

    directory: Path
    backend: FakeBackend = field(default_factory=lambda: FakeBackend((WHOLE, SPLIT)))

    @property
    def cdi_dir(self) -> Path:
        return self.directory / "cdi"

    def start(self, boot_id: str | None = None) -> Preparer:
        checkpoint = Checkpoint(self.directory / "claims")
        checkpoint.read_all()
        artifacts = Artifacts(names=Names(DRIVER), cdi_dir=self.cdi_dir, shim_dir=self.directory / "shim")
        artifacts.ensure_directories()
        return Preparer(
            Owned(driver=DRIVER, pool=NODE, slots=16),
            checkpoint=checkpoint,
            artifacts=artifacts,
            catalog=Discovery([self.backend]).read,
            boot_id=boot_id,
        )

    def files(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.directory)): path.read_bytes()
            for path in sorted(self.directory.rglob("*"))
            if path.is_file() and path.name != LOCK_FILE
        }

    def resolve(self, name: str) -> cdi.ContainerEdits:
        return cdi.Resolver([self.cdi_dir]).resolve([f"{DRIVER}/claim={name}"]).edits


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def prepare(preparer: Preparer, claim: ResourceClaim, ref: ClaimRef | None = None) -> None:
    record = preparer.prepare(ref or a_ref(), claim)
    assert record.state is ClaimState.COMPLETED


def test_a_prepared_claim_resolves_to_its_device(node: Node) -> None:
    prepare(node.start(), a_claim(a_result(WHOLE.name)))
    edits = node.resolve(f"uid-1-{WHOLE.name}")
    assert [each.path for each in edits.device_nodes] == [f"/dev/fake/{WHOLE.name}"]


def test_asking_again_changes_nothing(node: Node) -> None:
    preparer = node.start()
    claim = a_claim(a_share(WHOLE.name, "share-1"), a_result(PART))
    first = preparer.prepare(a_ref(), claim)
    before = node.files()
    assert preparer.prepare(a_ref(), claim) == first
    assert node.start().prepare(a_ref(), claim) == first
    assert node.files() == before


def test_unprepare_undoes_everything(node: Node) -> None:
    preparer = node.start()
    before = node.files()
    prepare(preparer, a_claim(a_share(WHOLE.name, "share-1"), a_result(PART)))
    assert node.files() != before
    assert node.backend.partitions == {PART}
    for _ in range(2):
        preparer.unprepare(a_ref())
        assert node.files() == before
        assert not list((node.directory / "shim").iterdir())
        assert node.backend.partitions == set()


def test_unprepare_of_an_unknown_claim_is_success(node: Node) -> None:
    node.start().unprepare(a_ref("uid-9"))


def test_unprepare_needs_neither_the_name_nor_the_device(node: Node) -> None:
    prepare(node.start(), a_claim(a_result(WHOLE.name), a_result(PART)))
    node.backend.devices = ()
    node.start().unprepare(a_ref("uid-1", name=""))
    assert [name for name in node.files() if "uid-1" in name] == []


def test_a_share_finds_its_limits(node: Node) -> None:
    prepare(node.start(), a_claim(a_share(WHOLE.name, "share-1", memory="8Gi", cores=30)))
    (mount,) = node.resolve(f"uid-1-{WHOLE.name}-share-1").mounts
    assert Path(mount.host_path).read_text() == (
        f"shim 1\nclaim uid-1\ndevice {WHOLE.identity} memory={8 << 30} cores=30 policy=force\n"
    )


def test_a_claim_for_other_drivers_only_leaves_no_spec(node: Node) -> None:
    prepare(node.start(), a_claim(a_result("nic-0", driver="net.example.com")))
    assert list(node.cdi_dir.iterdir()) == []


def test_a_held_device_is_refused_until_it_is_free(node: Node) -> None:
    preparer = node.start()
    prepare(preparer, a_claim(a_result(WHOLE.name)))
    second = a_ref("uid-2", "claim-2")
    claim = a_claim(a_result(WHOLE.name), ref=second)
    with pytest.raises(DeviceBusyError, match="held by claim default/claim-1"):
        preparer.prepare(second, claim)
    assert not any("uid-2" in name for name in node.files())
    preparer.unprepare(a_ref())
    prepare(preparer, claim, second)


def test_a_partition_goes_with_the_last_claim_that_has_it(node: Node) -> None:
    preparer = node.start()
    monitor = a_ref("uid-2", "monitor")
    prepare(preparer, a_claim(a_result(PART)))
    prepare(preparer, a_claim(a_result(PART, admin_access=True), ref=monitor), monitor)
    preparer.unprepare(a_ref())
    assert node.backend.partitions == {PART}
    preparer.unprepare(monitor)
    assert node.backend.partitions == set()


def test_a_device_that_fails_leaves_nothing_behind(node: Node) -> None:
    preparer = node.start()
    before = node.files()
    node.backend.broken = "device node missing"
    with pytest.raises(ClaimError, match="claim default/claim-1: device node missing"):
        preparer.prepare(a_ref(), a_claim(a_result(PART)))
    assert node.files() == before
    assert node.backend.partitions == set()
    node.backend.broken = ""
    prepare(preparer, a_claim(a_result(WIDE)))


@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
def test_files_that_a_reboot_took_are_put_back(node: Node, restarted: bool) -> None:
    preparer = node.start()
    claim = a_claim(a_share(WHOLE.name, "share-1"), a_result(PART))
    prepare(preparer, claim)
    before = node.files()
    for path in node.cdi_dir.iterdir():
        path.unlink()
    if restarted:
        preparer = node.start()
    assert preparer.restore() == ()
    assert node.files() == before


def test_asking_again_puts_back_files_before_it_answers(node: Node) -> None:
    preparer = node.start()
    prepare(preparer, a_claim(a_result(WHOLE.name)))
    before = node.files()
    for path in node.cdi_dir.iterdir():
        path.unlink()
    assert preparer.find_prepared(a_ref()) is not None
    assert node.files() == before


def test_a_device_that_is_gone_stops_only_its_own_claim_from_being_restored(node: Node) -> None:
    other = a_ref("uid-2", "claim-2")
    preparer = node.start()
    prepare(preparer, a_claim(a_result(WHOLE.name)))
    prepare(preparer, a_claim(a_result(PART), ref=other), other)
    for path in node.cdi_dir.iterdir():
        path.unlink()
    node.backend.devices = (SPLIT,)
    ((ref, error),) = node.start().restore()
    assert ref.uid == "uid-1"
    assert f"claim default/claim-1: device {NODE}/{WHOLE.name}: not on this node any more" in str(error)
    assert node.resolve(f"uid-2-{PART}").device_nodes


def test_of_two_claims_at_once_one_gets_the_device(node: Node) -> None:
    preparer = node.start()
    refs = [a_ref(f"uid-{number}", f"claim-{number}") for number in range(8)]
    together = threading.Barrier(len(refs))

    def attempt(ref: ClaimRef) -> bool:
        together.wait()
        try:
            preparer.prepare(ref, a_claim(a_result(WHOLE.name), ref=ref))
        except DeviceBusyError:
            return False
        return True

    with ThreadPoolExecutor(len(refs)) as pool:
        assert sum(pool.map(attempt, refs)) == 1


class SlowBackend(FakeBackend):
    """A backend that takes its time over a partition."""

    def __init__(self, devices: tuple[Device, ...]) -> None:
        super().__init__(devices)
        self.entered, self.leave = threading.Event(), threading.Event()

    def apply_partition(self, device: Device, partition: Partition) -> None:
        self.entered.set()
        assert self.leave.wait(10)
        super().apply_partition(device, partition)


def test_a_prepare_that_outlives_its_caller_leaves_nothing_after_unprepare(tmp_path: Path) -> None:
    backend = SlowBackend((SPLIT,))
    node = Node(tmp_path, backend)
    preparer = node.start()
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(preparer.prepare, a_ref(), a_claim(a_result(PART)))
        assert backend.entered.wait(10)
        undone = pool.submit(preparer.unprepare, a_ref())
        backend.leave.set()
        slow.result(10)
        undone.result(10)
    assert node.files() == {}
    assert backend.partitions == set()


def test_a_started_claim_is_finished_by_the_next_process(node: Node) -> None:
    claim = a_claim(a_result(PART))

    class Killed(BaseException):
        pass

    class DyingBackend(FakeBackend):
        def render_edits(self, device: Device, partition: Partition | None) -> cdi.ContainerEdits:
            raise Killed

    alive, node.backend = node.backend, DyingBackend((WHOLE, SPLIT), partitions=node.backend.partitions)
    with pytest.raises(Killed):
        node.start().prepare(a_ref(), claim)
    node.backend = alive
    other = a_ref("uid-2", "claim-2")
    with pytest.raises(DeviceBusyError):
        node.start().prepare(other, a_claim(a_result(PART), ref=other))
    prepare(node.start(), claim)


def test_an_error_while_undoing_does_not_hide_the_first(node: Node) -> None:
    class StuckBackend(FakeBackend):
        def undo_partition(self, device: Device, partition: Partition) -> None:
            raise DeviceError("partition in use")

    node.backend = StuckBackend((WHOLE, SPLIT), broken="device node missing")
    preparer = node.start()
    with pytest.raises(ClaimError, match="device node missing"):
        preparer.prepare(a_ref(), a_claim(a_result(PART)))
    with pytest.raises(ClaimError, match="partition in use"):
        preparer.unprepare(a_ref())


@pytest.fixture
def lost(node: Node) -> Preparer:
    """A process that comes up on a node where the record of a prepared claim was damaged."""
    prepare(node.start(), a_claim(a_share(WHOLE.name, "share-1"), a_result(PART)))
    (node.directory / "claims" / "uid-1.json").write_bytes(b"{")
    return node.start()


@pytest.mark.parametrize("device", [WHOLE.name, PART, WIDE, SPLIT.name])
def test_a_claim_whose_record_was_lost_holds_its_devices_until_it_is_unprepared(
    node: Node, lost: Preparer, device: str
) -> None:
    other = a_ref("uid-2", "claim-2")
    claim = a_claim(a_result(device), ref=other)
    with pytest.raises(DeviceBusyError, match=r"held by claim default/claim-1 \(UID uid-1, "):
        lost.prepare(other, claim)
    lost.unprepare(a_ref())
    assert node.backend.partitions == set()
    prepare(lost, claim, other)


def test_a_claim_whose_record_was_lost_can_be_prepared_again(node: Node, lost: Preparer) -> None:
    prepare(lost, a_claim(a_share(WHOLE.name, "share-1"), a_result(PART)))
    lost.unprepare(a_ref())
    assert [name for name in node.files() if "corrupt" not in name] == []
    assert node.backend.partitions == set()


def test_a_cdi_directory_that_somebody_removed_stops_nothing(node: Node) -> None:
    preparer = node.start()
    prepare(preparer, a_claim(a_result(WHOLE.name)))
    shutil.rmtree(node.cdi_dir)
    assert preparer.restore() == ()
    assert node.resolve(f"uid-1-{WHOLE.name}").device_nodes
    shutil.rmtree(node.cdi_dir)
    other = a_ref("uid-2", "claim-2")
    prepare(preparer, a_claim(a_result(PART), ref=other), other)
    assert node.resolve(f"uid-2-{PART}").device_nodes
    shutil.rmtree(node.cdi_dir)
    for ref in (a_ref(), other):
        preparer.unprepare(ref)
    assert node.files() == {}


class SeeingBackend(FakeBackend):
    """A backend that reports which partitions exist."""

    def read_inventory(self) -> Inventory:
        return Inventory(devices=tuple(map(self._seen, self.devices)))

    def _seen(self, device: Device) -> Device:
        partitions = (
            replace(each, uuid="MIG-1") if device.partition_name(each) in self.partitions else each
            for each in device.partitions
        )
        return replace(device, partitions=tuple(partitions))


def test_a_partition_whose_device_was_away_when_its_claim_went_goes_when_it_is_back(tmp_path: Path) -> None:
    node = Node(tmp_path, SeeingBackend((WHOLE, SPLIT)))
    preparer = node.start()
    prepare(preparer, a_claim(a_result(PART)))
    other = a_ref("uid-2", "claim-2")
    second = SPLIT.partition_name(SPLIT.partitions[2])
    prepare(preparer, a_claim(a_result(second), ref=other), other)
    node.backend.devices = (WHOLE,)
    preparer.unprepare(a_ref())
    node.backend.devices = (WHOLE, SPLIT)
    assert node.backend.partitions == {PART, second}
    for _ in range(2):
        preparer.sweep()
    assert node.backend.partitions == {second}


def test_a_partition_that_cannot_be_removed_does_not_stop_files_from_being_put_back(tmp_path: Path) -> None:
    class StuckBackend(SeeingBackend):
        def undo_partition(self, device: Device, partition: Partition) -> None:
            raise DeviceError("partition in use")

    node = Node(tmp_path, StuckBackend((WHOLE, SPLIT), partitions={PART}))
    preparer = node.start()
    prepare(preparer, a_claim(a_result(WHOLE.name)))
    for _ in range(3):
        for path in node.cdi_dir.iterdir():
            path.unlink()
        assert preparer.restore() == ()
        preparer.sweep()
        assert node.resolve(f"uid-1-{WHOLE.name}").device_nodes


def test_of_claims_that_leave_a_partition_at_once_the_last_takes_it_along(node: Node) -> None:
    preparer = node.start()
    refs = [a_ref(f"uid-{number}", f"monitor-{number}") for number in range(8)]
    with ThreadPoolExecutor(len(refs)) as pool:
        for _ in range(5):
            for ref in refs:
                prepare(preparer, a_claim(a_result(PART, admin_access=True), ref=ref), ref)
            together = threading.Barrier(len(refs))

            def leave(ref: ClaimRef, together: threading.Barrier = together) -> None:
                together.wait()
                preparer.unprepare(ref)

            list(pool.map(leave, refs))
            assert node.backend.partitions == set()


def test_after_a_reboot_files_are_written_and_partitions_made_anew_though_they_survived(node: Node) -> None:
    prepare(node.start("boot-1"), a_claim(a_share(WHOLE.name, "share-1"), a_result(PART)))
    before = node.files()
    for path in (*node.cdi_dir.iterdir(), *(node.directory / "shim" / "uid-1").iterdir()):
        path.write_bytes(b"{}")
    node.backend.partitions.clear()
    assert node.start("boot-1").restore() == ()
    assert node.backend.partitions == set()
    assert node.start("boot-2").restore() == ()
    assert node.backend.partitions == {PART}
    assert node.files() == {
        name: data.replace(b"boot-1", b"boot-2") if name != "claims/uid-1.json" else node.files()[name]
        for name, data in before.items()
    }
    settled = node.files()
    assert node.start("boot-2").restore() == ()
    assert node.files() == settled


def test_asking_again_after_a_reboot_sets_up_before_it_answers(node: Node) -> None:
    prepare(node.start("boot-1"), a_claim(a_result(PART)))
    node.backend.partitions.clear()
    record = node.start("boot-2").find_prepared(a_ref())
    assert record is not None
    assert record.boot_id == "boot-2"
    assert node.backend.partitions == {PART}


def test_a_record_that_does_not_tell_its_boot_is_set_up_once(node: Node) -> None:
    prepare(node.start(), a_claim(a_result(PART)))
    node.backend.partitions.clear()
    assert node.start("boot-1").restore() == ()
    assert node.backend.partitions == {PART}


def test_shim_configs_and_leftovers_without_a_claim_are_swept(node: Node) -> None:
    preparer = node.start()
    prepare(preparer, a_claim(a_share(WHOLE.name, "share-1")))
    before = node.files()
    (node.directory / "shim" / "uid-9").mkdir()
    (node.directory / "shim" / "uid-9" / "share").write_text("shim 1")
    (node.directory / "claims" / ".uid-9.json.partial").write_text("{")
    (node.cdi_dir / f".{DRIVER}-claim_uid-9.json.0123456789abcdef.tmp").write_text("{")
    busy = node.directory / "claims" / ".uid-1.json.partial"
    busy.write_text("{")
    with preparer.working_on("uid-1"):
        preparer.sweep()
    assert busy.exists()
    busy.unlink()
    assert node.files() == before
    assert not (node.directory / "shim" / "uid-9").exists()


def test_a_claim_that_was_allocated_anew_gives_up_what_was_half_prepared(node: Node) -> None:
    class DyingBackend(FakeBackend):
        def render_edits(self, device: Device, partition: Partition | None) -> cdi.ContainerEdits:
            raise KeyboardInterrupt

    alive, node.backend = node.backend, DyingBackend((WHOLE, SPLIT), partitions=node.backend.partitions)
    with pytest.raises(KeyboardInterrupt):
        node.start().prepare(a_ref(), a_claim(a_result(PART)))
    node.backend = alive
    assert node.backend.partitions == {PART}
    preparer = node.start()
    prepare(preparer, a_claim(a_result(WHOLE.name)))
    assert node.backend.partitions == set()
    other = a_ref("uid-2", "claim-2")
    prepare(preparer, a_claim(a_result(WIDE), ref=other), other)


def test_a_spec_that_turns_up_while_the_plugin_runs_holds_its_device_from_the_next_sweep_on(node: Node) -> None:
    preparer = node.start()
    prepare(preparer, a_claim(a_result(WHOLE.name)))
    preparer.unprepare(a_ref())
    prepare(node.start(), a_claim(a_result(PART)))
    (node.directory / "claims" / "uid-1.json").unlink()
    second = node.start()
    other = a_ref("uid-2", "claim-2")
    with pytest.raises(DeviceBusyError, match="uid-1"):
        second.prepare(other, a_claim(a_result(WIDE), ref=other))
    for path in node.cdi_dir.iterdir():
        path.unlink()
    prepare(second, a_claim(a_result(WIDE), ref=other), other)


def test_a_device_with_a_partition_is_given_whole_to_admin_access_alone(node: Node) -> None:
    node.backend.partitions.add(PART)
    looker = a_ref("uid-2", "claim-2")
    with pytest.raises(ClaimError, match=f"has .*{PART}"):
        node.start().prepare(a_ref(), a_claim(a_result(SPLIT.name)))
    prepare(node.start(), a_claim(a_result(SPLIT.name, admin_access=True), ref=looker), looker)
    assert node.backend.partitions == {PART}
