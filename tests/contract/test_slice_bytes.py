"""The same hardware is published as the same bytes, by every backend: a restart then writes nothing."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from dra_driver.api import codec
from dra_driver.devices.model import Inventory
from kubeletplugin.publish.layout import PoolOwner, build_pool
from kubeletplugin.publish.offer import SharePolicy
from tests.support.backend import BENCHES, Bench
from tests.support.builder import DRIVER, NODE
from tests.support.nvml.machine import MACHINES, Machine
from tests.support.nvml.node import NvidiaNode


def publish(inventory: Inventory) -> bytes:
    owner = PoolOwner(driver=DRIVER, node_name=NODE, node_uid="uid-of-node-a")
    return b"\n".join(codec.encode(item) for item in build_pool(inventory, owner=owner, shares=SharePolicy()).slices)


@pytest.mark.parametrize("build", BENCHES.values(), ids=BENCHES)
def test_a_restart_publishes_the_same_bytes(build: Callable[[Path], Bench], tmp_path: Path) -> None:
    bench = build(tmp_path)
    first = publish(bench.open().read_inventory())
    assert [publish(bench.open().read_inventory()) for _ in range(2)] == [first] * 2


def without_index(inventory: Inventory) -> Inventory:
    """Leave out what is the library's own number of a GPU, and changes with the order in which it finds them."""
    return replace(inventory, devices=tuple(replace(device, index=None) for device in inventory.devices))


@pytest.mark.parametrize("build", MACHINES.values(), ids=MACHINES)
def test_gpus_that_are_found_in_another_order_are_published_as_the_same_bytes(
    build: Callable[[], Machine], tmp_path: Path
) -> None:
    node = NvidiaNode(tmp_path, build())
    gpus = node.machine.gpus
    published = set()
    for order in (gpus[:], gpus[::-1], gpus[1::2] + gpus[::2]):
        node.machine.gpus = order
        published.add(publish(without_index(node.open().read_inventory())))
    assert len(published) == 1


def hash_everything() -> str:
    """Give a digest of what all backends publish."""
    digest = hashlib.sha256()
    for name, build in BENCHES.items():
        with TemporaryDirectory() as folder:
            digest.update(name.encode() + publish(build(Path(folder)).open().read_inventory()))
    return digest.hexdigest()


def test_no_byte_depends_on_the_order_of_a_set() -> None:
    command = (sys.executable, "-c", f"from {__name__} import hash_everything; print(hash_everything())")
    runs = [
        subprocess.Popen(command, env={**os.environ, "PYTHONHASHSEED": seed}, stdout=subprocess.PIPE, text=True)
        for seed in ("1", "2")
    ]
    digests = {run.communicate()[0].splitlines()[-1] for run in runs}
    assert [run.returncode for run in runs] == [0, 0]
    assert len(digests) == 1
