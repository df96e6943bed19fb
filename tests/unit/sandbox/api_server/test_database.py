import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from dra_driver.errors import SettingError, StateError
from sandbox.api_server.database import Database
from sandbox.api_server.gate import resolve_gates
from sandbox.api_server.kind import CONFIG_MAPS, NODES
from sandbox.api_server.store import Key, Store

_WRITER = """
import itertools, json, sys
from pathlib import Path
from sandbox.api_server.database import Database
from sandbox.api_server.kind import CONFIG_MAPS
from sandbox.api_server.store import Key, Store

store = Store((CONFIG_MAPS,), journal=Database(Path(sys.argv[1])))
for number in itertools.count():
    key = Key("ns", f"a{number % 7}")
    if number % 11 == 10 and store.get(CONFIG_MAPS, key):
        stored = store.delete(CONFIG_MAPS, key)
    else:
        stored = store.write(CONFIG_MAPS, key, {"metadata": {"name": key.name}, "data": {"n": str(number)}})
    found = {each.key.name: each.value["data"] for each in store.all(CONFIG_MAPS)}
    print(json.dumps([stored.revision, found]), flush=True)
"""


def reopen(path: Path) -> Store:
    database = Database(path)
    store = Store((CONFIG_MAPS, NODES), journal=database)
    database.restore(store)
    database.close()
    return store


@pytest.mark.parametrize("lines", [1, 150])
async def test_what_was_acknowledged_is_there_after_a_kill(tmp_path: Path, lines: int) -> None:
    path = tmp_path / "state.sqlite"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _WRITER, str(path)), stdout=subprocess.PIPE, cwd=Path(__file__).parents[4]
    )
    assert process.stdout is not None
    told = [json.loads(await process.stdout.readline()) for _ in range(lines)]
    process.kill()
    told += [json.loads(line) for line in (await process.stdout.read()).splitlines(keepends=True) if line[-1:] == b"\n"]
    await process.wait()
    store = reopen(path)
    found = {stored.key.name: stored.value["data"] for stored in store.all(CONFIG_MAPS)}
    # One write more may have been kept than was told.
    assert store.revision - told[-1][0] in (0, 1)
    if store.revision == told[-1][0]:
        assert found == told[-1][1]
    assert {stored.revision for stored in store.all(CONFIG_MAPS)} <= set(range(store.revision + 1))


def test_a_version_is_never_given_twice_even_after_a_deletion(tmp_path: Path) -> None:
    database = Database(tmp_path / "state")
    store = Store((CONFIG_MAPS,), journal=database)
    store.write(CONFIG_MAPS, Key("ns", "a"), {"metadata": {"name": "a"}})
    last = store.delete(CONFIG_MAPS, Key("ns", "a")).revision
    database.close()
    store = reopen(tmp_path / "state")
    assert (store.revision, store.all(CONFIG_MAPS)) == (last, [])


def test_a_file_is_used_by_one_process_only(tmp_path: Path) -> None:
    database = Database(tmp_path / "state")
    with pytest.raises(StateError, match="no other process"):
        Database(tmp_path / "state")
    database.close()
    Database(tmp_path / "state").close()


@pytest.mark.parametrize("content", [b"text that is no database at all" * 100, b"SQLite format 3\0"])
def test_another_file_is_not_touched(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state"
    path.write_bytes(content)
    with pytest.raises(StateError, match="want a file of a sandbox"):
        Database(path)
    assert path.read_bytes() == content


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="none"):
        Database(tmp_path / "none" / "state")


def test_an_unknown_gate_is_refused_with_a_suggestion() -> None:
    with pytest.raises(SettingError, match="did you mean 'DRADeviceTaints'"):
        resolve_gates({"DRADeviceTaint": True})
    assert resolve_gates({"DRAListTypeAttributes": True})["DRAListTypeAttributes"]
