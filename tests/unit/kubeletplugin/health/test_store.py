from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dra_driver.devices.model import DeviceName, Health
from kubeletplugin.health.store import read_memories, write_memories
from kubeletplugin.health.verdict import Memory

MEMORIES = {DeviceName("gpu-1"): Memory(health=Health(reason="xid-79", message="fell off the bus"), is_ill=True)}


def test_those_who_write_at_once_do_not_get_in_each_others_way(tmp_path: Path) -> None:
    path = tmp_path / "health.json"
    with ThreadPoolExecutor(4) as writers:
        for written in [writers.submit(write_memories, path, MEMORIES, "boot-1") for _ in range(80)]:
            written.result()
    assert read_memories(path) == (MEMORIES, "boot-1")
    assert list(tmp_path.iterdir()) == [path]
