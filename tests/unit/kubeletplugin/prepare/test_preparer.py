"""Claims are prepared and unprepared, whole or not at all, and asking again changes nothing."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import cdi
from dra_driver.devices.model import Device, Partition
from dra_driver.errors import ClaimError, DeviceBusyError, DeviceError
from kubeletplugin.prepare.record import ClaimRef
from tests.support.builder import FakeBackend, a_claim, a_ref, a_result, a_share
from tests.support.prepare_node import PART, SPLIT, WHOLE, WIDE, PrepareNode, prepare


@pytest.fixture
def node(tmp_path: Path) -> PrepareNode:
    return PrepareNode(tmp_path)


class SlowBackend(FakeBackend):
    """A backend that takes its time over a partition."""

    def __init__(self, devices: tuple[Device, ...]) -> None:
        super().__init__(devices)
        self.entered, self.leave = threading.Event(), threading.Event()

    def apply_partition(self, device: Device, partition: Partition) -> None:
        self.entered.set()
        assert self.leave.wait(10)
        super().apply_partition(device, partition)


def test_a_prepared_claim_resolves_to_its_device(node: PrepareNode) -> None:
    prepare(node.start(), a_claim(a_result(WHOLE.name)))
    edits = node.resolve(f"uid-1-{WHOLE.name}")
    assert [each.path for each in edits.device_nodes] == [f"/dev/fake/{WHOLE.name}"]


def test_asking_again_changes_nothing(node: PrepareNode) -> None:
    preparer = node.start()
    claim = a_claim(a_share(WHOLE.name, "share-1"), a_result(PART))
    first = preparer.prepare(a_ref(), claim)
    before = node.files()
    assert preparer.prepare(a_ref(), claim) == first
    assert node.start().prepare(a_ref(), claim) == first
    assert node.files() == before


def test_unprepare_undoes_everything(node: PrepareNode) -> None:
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


def test_unprepare_of_an_unknown_claim_is_success(node: PrepareNode) -> None:
    node.start().unprepare(a_ref("uid-9"))


def test_unprepare_needs_neither_the_name_nor_the_device(node: PrepareNode) -> None:
    prepare(node.start(), a_claim(a_result(WHOLE.name), a_result(PART)))
    node.backend.devices = ()
    node.start().unprepare(a_ref("uid-1", name=""))
    assert [name for name in node.files() if "uid-1" in name] == []


def test_a_share_finds_its_limits(node: PrepareNode) -> None:
    prepare(node.start(), a_claim(a_share(WHOLE.name, "share-1", memory="8Gi", cores=30)))
    (mount,) = node.resolve(f"uid-1-{WHOLE.name}-share-1").mounts
    assert Path(mount.host_path).read_text() == (
        f"shim 1\nclaim uid-1\ndevice {WHOLE.identity} memory={8 << 30} cores=30 policy=force\n"
    )


def test_a_claim_for_other_drivers_only_leaves_no_spec(node: PrepareNode) -> None:
    prepare(node.start(), a_claim(a_result("nic-0", driver="net.example.com")))
    assert list(node.cdi_dir.iterdir()) == []


def test_a_held_device_is_refused_until_it_is_free(node: PrepareNode) -> None:
    preparer = node.start()
    prepare(preparer, a_claim(a_result(WHOLE.name)))
    second = a_ref("uid-2", "claim-2")
    claim = a_claim(a_result(WHOLE.name), ref=second)
    with pytest.raises(DeviceBusyError, match="held by claim default/claim-1"):
        preparer.prepare(second, claim)
    assert not any("uid-2" in name for name in node.files())
    preparer.unprepare(a_ref())
    prepare(preparer, claim, second)


def test_a_partition_goes_with_the_last_claim_that_has_it(node: PrepareNode) -> None:
    preparer = node.start()
    monitor = a_ref("uid-2", "monitor")
    prepare(preparer, a_claim(a_result(PART)))
    prepare(preparer, a_claim(a_result(PART, admin_access=True), ref=monitor), monitor)
    preparer.unprepare(a_ref())
    assert node.backend.partitions == {PART}
    preparer.unprepare(monitor)
    assert node.backend.partitions == set()


def test_a_device_that_fails_leaves_nothing_behind(node: PrepareNode) -> None:
    preparer = node.start()
    before = node.files()
    node.backend.broken = "device node missing"
    with pytest.raises(ClaimError, match="claim default/claim-1: device node missing"):
        preparer.prepare(a_ref(), a_claim(a_result(PART)))
    assert node.files() == before
    assert node.backend.partitions == set()
    node.backend.broken = ""
    prepare(preparer, a_claim(a_result(WIDE)))


def test_of_two_claims_at_once_one_gets_the_device(node: PrepareNode) -> None:
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


def test_a_prepare_that_outlives_its_caller_leaves_nothing_after_unprepare(tmp_path: Path) -> None:
    backend = SlowBackend((SPLIT,))
    node = PrepareNode(tmp_path, backend)
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


def test_a_started_claim_is_finished_by_the_next_process(node: PrepareNode) -> None:
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


def test_an_error_while_undoing_does_not_hide_the_first(node: PrepareNode) -> None:
    class StuckBackend(FakeBackend):
        def undo_partition(self, device: Device, partition: Partition) -> None:
            raise DeviceError("partition in use")

    node.backend = StuckBackend((WHOLE, SPLIT), broken="device node missing")
    preparer = node.start()
    with pytest.raises(ClaimError, match="device node missing"):
        preparer.prepare(a_ref(), a_claim(a_result(PART)))
    with pytest.raises(ClaimError, match="partition in use"):
        preparer.unprepare(a_ref())


def test_of_claims_that_leave_a_partition_at_once_the_last_takes_it_along(node: PrepareNode) -> None:
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


def test_a_claim_that_was_allocated_anew_gives_up_what_was_half_prepared(node: PrepareNode) -> None:
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


def test_a_device_with_a_partition_is_given_whole_to_admin_access_alone(node: PrepareNode) -> None:
    node.backend.partitions.add(PART)
    looker = a_ref("uid-2", "claim-2")
    with pytest.raises(ClaimError, match=f"has .*{PART}"):
        node.start().prepare(a_ref(), a_claim(a_result(SPLIT.name)))
    prepare(node.start(), a_claim(a_result(SPLIT.name, admin_access=True), ref=looker), looker)
    assert node.backend.partitions == {PART}
