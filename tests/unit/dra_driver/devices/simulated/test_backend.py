import json
import os
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from dra_driver.devices.model import Device, Inventory
from dra_driver.devices.partitioning import PartitionMode, parse_partition_policy
from dra_driver.devices.simulated import SimulatedBackend, read_profile
from dra_driver.errors import DeviceError


def a_backend(directory: Path, profile: str = "h100x8", node: str = "node-a") -> SimulatedBackend:
    return SimulatedBackend(
        read_profile(profile),
        node,
        dev_dir=directory / "dev",
        state_dir=directory / "state",
        overrides_path=directory / "overrides.yaml",
    )


def unhealthy(inventory: Inventory) -> list[int | None]:
    return [device.index for device in inventory.devices if device.health]


def find_partition(device: Device, profile: str, start: int) -> int:
    return [(p.profile, p.start) for p in device.partitions].index((profile, start))


def variables(entries: Iterable[str]) -> dict[str, str]:
    return dict(entry.split("=", 1) for entry in entries)


def test_overrides_take_hold_while_it_runs_and_let_go_again(tmp_path: Path) -> None:
    backend = a_backend(tmp_path)
    (tmp_path / "overrides.yaml").write_text("unhealthy: {3: {reason: xid-79}}")
    assert unhealthy(backend.read_inventory()) == [3]
    (tmp_path / "overrides.yaml").unlink()
    assert unhealthy(backend.read_inventory()) == []


def test_malformed_overrides_leave_the_last_good_ones_in_force(tmp_path: Path) -> None:
    backend = a_backend(tmp_path)
    (tmp_path / "overrides.yaml").write_text("unhealthy: {3: {reason: xid-79}}")
    backend.read_inventory()
    (tmp_path / "overrides.yaml").write_text("unhealthy: {3: {reson: xid-79}}")
    inventory = backend.read_inventory()
    assert unhealthy(inventory) == [3]
    (left,) = inventory.left_out
    assert left.subject == "overrides"
    assert left.problem == "unhealthy.3.reson: unknown field; did you mean 'reason'? (line 1)"


def test_a_last_good_text_that_comes_back_is_no_problem(tmp_path: Path) -> None:
    backend = a_backend(tmp_path)
    for text in ("removed: [0]", "removed: 0", "removed: [0]"):
        (tmp_path / "overrides.yaml").write_text(text)
        inventory = backend.read_inventory()
    assert inventory.left_out == ()
    assert len(inventory.devices) == 7


@pytest.mark.parametrize("content", [b"\xff", b"removed: ["], ids=["no text", "malformed"])
def test_overrides_that_are_malformed_from_the_start_hide_no_device(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "overrides.yaml").write_bytes(content)
    inventory = a_backend(tmp_path).read_inventory()
    assert len(inventory.devices) == 8
    assert len(inventory.left_out) == 1


def test_overrides_in_a_fifo_keep_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "overrides.yaml")
    inventory = a_backend(tmp_path).read_inventory()
    assert [left.problem for left in inventory.left_out] == ["cannot be read, not a file"]
    assert len(inventory.devices) == 8


def test_overrides_that_cannot_be_read_hide_no_device(tmp_path: Path) -> None:
    (tmp_path / "overrides.yaml").mkdir()
    inventory = a_backend(tmp_path).read_inventory()
    assert len(inventory.devices) == 8
    assert "cannot be read, is a directory" in inventory.left_out[0].problem


def test_each_device_has_its_own_variable_and_file(tmp_path: Path) -> None:
    backend = a_backend(tmp_path, "mixed")
    for device in backend.read_inventory().devices:
        edits = backend.render_edits(device, None)
        name = f"SIMULATED_DEVICE_{device.name.upper().replace('-', '_')}"
        assert variables(edits.env)[name] == device.uuid
        (mount,) = edits.mounts
        assert "ro" in mount.options
        assert json.loads(Path(mount.host_path).read_bytes())["uuid"] == device.uuid


@pytest.mark.parametrize(
    ("profile", "variable"), [("l40sx4", "NVIDIA_VISIBLE_DEVICES"), ("ascend910b3x8", "ASCEND_VISIBLE_DEVICES")]
)
def test_the_vendors_own_runtime_is_told_to_stay_out(tmp_path: Path, profile: str, variable: str) -> None:
    backend = a_backend(tmp_path, profile)
    edits = backend.render_edits(backend.read_inventory().devices[0], None)
    assert variables(edits.env)[variable] == "void"


def test_device_nodes_are_made_again_when_they_are_gone(tmp_path: Path) -> None:
    backend = a_backend(tmp_path)
    device = backend.read_inventory().devices[0]
    nodes = backend.render_edits(device, None).device_nodes
    for node in nodes:
        Path(node.host_path).unlink()
    assert backend.render_edits(device, None).device_nodes == nodes
    assert all(Path(node.host_path).is_char_device() for node in nodes)


def test_two_nodes_on_one_machine_do_not_meet(tmp_path: Path) -> None:
    paths = []
    for name in ("node-a", "node-b"):
        backend = a_backend(tmp_path, node=name)
        edits = backend.render_edits(backend.read_inventory().devices[0], None)
        paths.append({node.host_path for node in edits.device_nodes} | {mount.host_path for mount in edits.mounts})
    assert paths[0].isdisjoint(paths[1])


def test_minors_on_a_node_are_unique(tmp_path: Path) -> None:
    backend = a_backend(tmp_path, "mixed")
    nodes = {n for device in backend.read_inventory().devices for n in backend.render_edits(device, None).device_nodes}
    assert len({node.minor for node in nodes}) == len(nodes)


def test_partitions_outlive_the_process_and_still_exclude_others(tmp_path: Path) -> None:
    device = a_backend(tmp_path, "a100x8").read_inventory().devices[0]
    small, large = (device.partitions[find_partition(device, *at)] for at in (("1g.10gb", 0), ("4g.40gb", 0)))
    a_backend(tmp_path, "a100x8").apply_partition(device, small)
    with pytest.raises(DeviceError, match=f"overlaps {device.partition_name(small)}"):
        a_backend(tmp_path, "a100x8").apply_partition(device, large)


def test_a_second_set_of_media_extensions_is_refused(tmp_path: Path) -> None:
    backend = a_backend(tmp_path, "a100x8")
    device = backend.read_inventory().devices[0]
    one, other = (device.partitions[find_partition(device, "1g.10gb+me", start)] for start in (0, 5))
    backend.apply_partition(device, one)
    with pytest.raises(DeviceError, match=r"not enough .*media-extensions"):
        backend.apply_partition(device, other)


def test_a_partition_file_with_rubbish_in_it_still_counts(tmp_path: Path) -> None:
    backend = a_backend(tmp_path, "a100x8")
    device = backend.read_inventory().devices[0]
    backend.apply_partition(device, device.partitions[0])
    name = device.partition_name(device.partitions[0])
    (tmp_path / "state" / "partitions" / f"{name}.json").write_bytes(b"\x00rubbish")
    assert backend.read_inventory().devices[0].partitions[0].uuid
    assert backend.render_edits(device, device.partitions[0]).env


def test_an_administrators_partition_is_never_removed(tmp_path: Path) -> None:
    (tmp_path / "overrides.yaml").write_text("partitions: {0: [{profile: 3g.40gb, start: 4}]}")
    backend = a_backend(tmp_path, "a100x8")
    before = backend.read_inventory()
    (partition,) = before.devices[0].partitions
    backend.apply_partition(before.devices[0], partition)
    backend.undo_partition(before.devices[0], partition)
    assert backend.read_inventory() == before
    assert backend.render_edits(before.devices[0], partition).env


def test_a_partition_that_the_device_cannot_have_is_refused(tmp_path: Path) -> None:
    whole = a_backend(tmp_path, "a100x8").read_inventory().devices[0]
    other = a_backend(tmp_path, "h100x8")
    with pytest.raises(DeviceError, match="not on this node"):
        other.apply_partition(whole, whole.partitions[0])


def test_a_state_directory_that_cannot_be_read_is_a_device_error(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with pytest.raises(DeviceError, match=r"partitions: not a directory"):
        a_backend(tmp_path, "a100x8").read_inventory()


def test_edits_that_cannot_be_written_are_a_device_error(tmp_path: Path) -> None:
    backend = a_backend(tmp_path)
    device = backend.read_inventory().devices[0]
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "info").write_text("a file")
    with pytest.raises(DeviceError, match=f"{device.name}: "):
        backend.render_edits(device, None)


def test_two_processes_wait_for_each_other(tmp_path: Path) -> None:
    device = a_backend(tmp_path, "a100x8").read_inventory().devices[0]
    rivals = [p for p in device.partitions if p.start == 0]
    refused: list[DeviceError] = []

    def apply(number: int) -> None:
        try:
            a_backend(tmp_path, "a100x8").apply_partition(device, rivals[number])
        except DeviceError as error:
            refused.append(error)

    threads = [threading.Thread(target=apply, args=(number,)) for number in range(len(rivals))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == len(rivals) - 1


def modes(directory: Path, mode: str, *, of: str | None = None) -> SimulatedBackend:
    policy = parse_partition_policy(PartitionMode(mode), [of] if of else [])
    return SimulatedBackend(
        read_profile("a100x8"),
        "node-a",
        dev_dir=directory / "dev",
        state_dir=directory / "state",
        overrides_path=directory / "overrides.yaml",
        partitions=policy,
    )


def offered(device: Device) -> list[tuple[str, int]]:
    return [(p.profile, p.start) for p in device.partitions if p.offered]


@pytest.mark.parametrize("mode", ["none", "static"])
def test_without_dynamic_partitions_devices_are_whole(tmp_path: Path, mode: str) -> None:
    devices = modes(tmp_path, mode).read_inventory().devices
    assert [device.partitions for device in devices] == [()] * 8
    assert all(device.offered_whole for device in devices)


def test_one_device_may_have_a_mode_of_its_own(tmp_path: Path) -> None:
    name = modes(tmp_path, "none").read_inventory().devices[3].name
    devices = modes(tmp_path, "none", of=f"{name}=dynamic").read_inventory().devices
    assert [len(device.partitions) for device in devices] == [0, 0, 0, 25, 0, 0, 0, 0]


@pytest.mark.parametrize(("mode", "partitions"), [("none", []), ("static", [("3g.40gb", 4)])])
def test_an_administrators_partition_is_offered_unless_none_is_wanted(
    tmp_path: Path, mode: str, partitions: list[tuple[str, int]]
) -> None:
    (tmp_path / "overrides.yaml").write_text("partitions: {0: [{profile: 3g.40gb, start: 4}]}")
    device = modes(tmp_path, mode).read_inventory().devices[0]
    assert offered(device) == partitions
    assert not device.offered_whole


@pytest.mark.parametrize("change", ["none", "static", "dynamic"])
def test_a_partition_that_is_made_stays_through_any_change_until_it_is_removed(tmp_path: Path, change: str) -> None:
    before = modes(tmp_path, "dynamic")
    device = before.read_inventory().devices[0]
    partition = device.partitions[0]
    before.apply_partition(device, partition)
    (tmp_path / "overrides.yaml").write_text("partitions: {0: [{profile: 3g.40gb, start: 4}]}")
    after = modes(tmp_path, change)
    found = after.read_inventory().devices[0]
    assert [(p.profile, p.permanent, p.offered) for p in found.partitions] == [
        (partition.profile, False, False),
        ("3g.40gb", True, change != "none"),
    ]
    after.undo_partition(found, found.partitions[0])
    assert len(after.read_inventory().devices[0].partitions) == 1
