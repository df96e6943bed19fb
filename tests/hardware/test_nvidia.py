import os
import subprocess

import pytest

from dra_driver.api.device_validation import validate_device
from dra_driver.api.resource_v1 import Device as SliceDevice
from dra_driver.devices.attribute import explain_not_shareable, render_attributes, render_capacity
from dra_driver.devices.model import Device
from tests.hardware.conftest import Gpus


def test_every_gpu_that_the_vendors_program_lists_is_found(gpus: Gpus) -> None:
    program = gpus.root.find_program("nvidia-smi")
    path = gpus.root.find(program) if program else None
    if path is None:
        pytest.skip("no nvidia-smi below the driver's root")
    query = ("--query-gpu=uuid,name,memory.total,compute_cap,driver_version", "--format=csv,noheader,nounits")
    environment = {**os.environ, "LD_PRELOAD": str(gpus.root.find_library("libnvidia-ml.so.1")), "LC_ALL": "C"}
    lines = subprocess.run(
        (path, *query), check=True, capture_output=True, text=True, env=environment
    ).stdout.splitlines()
    listed = sorted(tuple(field.strip() for field in line.split(",")) for line in lines)
    found = sorted(
        (
            device.uuid,
            device.product_name,
            str(device.memory >> 20) if device.memory is not None else "[N/A]",
            device.compute_capability,
            device.driver_version,
        )
        for device in gpus.devices
    )
    assert found == listed


def test_what_is_found_is_the_same_each_time(gpus: Gpus) -> None:
    assert gpus.backend.read_inventory() == gpus.inventory
    assert gpus.open().read_inventory() == gpus.inventory


def test_what_is_published_keeps_the_rules_of_the_api(gpus: Gpus) -> None:
    for device in gpus.devices:
        for partition in (None, *device.partitions):
            published = SliceDevice(
                name=device.name if partition is None else device.partition_name(partition),
                attributes=render_attributes(device, partition),
                capacity=render_capacity(device, partition),
                allow_multiple_allocations=partition is None and explain_not_shareable(device) is None,
            )
            assert list(validate_device(published, "device", per_device_nodes=False)) == []


def test_every_gpu_tells_what_selectors_are_written_with(gpus: Gpus) -> None:
    for device in gpus.devices:
        assert {"model", "family", "uuid", "computeCapability", "driverVersion"} <= set(render_attributes(device))


def test_a_wait_for_events_ends_with_its_time(gpus: Gpus) -> None:
    gpus.backend.wait_for_change(0.3)
    assert gpus.backend.read_inventory() == gpus.inventory


def test_a_partition_comes_and_goes(gpus: Gpus, partitionable: Device) -> None:
    partition = partitionable.partitions[0]
    name = partitionable.partition_name(partition)
    try:
        gpus.backend.apply_partition(partitionable, partition)
        gpus.open().apply_partition(partitionable, partition)
        found = next(each for each in gpus.open().read_inventory().devices if each.name == partitionable.name)
        assert [found.partition_name(each) for each in found.partitions if each.uuid] == [name]
        edits = gpus.backend.render_edits(partitionable, partition)
        assert [node.path for node in edits.device_nodes if "nvidia-cap" in node.path]
    finally:
        gpus.open().undo_partition(partitionable, partition)
        if partitionable.offered_whole:
            gpus.open().apply_whole(partitionable)  # fails where MIG mode does not go off again
    assert gpus.backend.read_inventory() == gpus.inventory
