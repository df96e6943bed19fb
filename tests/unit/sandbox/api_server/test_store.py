from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.api_server.kind import CONFIG_MAPS, NODES
from sandbox.api_server.refusal import Refusal
from sandbox.api_server.store import Change, Key, Store

KINDS = (NODES, CONFIG_MAPS)


def a_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns"}, "data": data}


def key(name: str) -> Key:
    return Key("ns", name)


def test_a_write_has_the_next_version_and_everybody_is_told() -> None:
    store, told = Store(KINDS), list[Change]()
    store.listen(CONFIG_MAPS, told.append)
    first = store.write(CONFIG_MAPS, key("a"), a_map("a"))
    second = store.write(CONFIG_MAPS, key("a"), a_map("a", x="1"))
    gone = store.delete(CONFIG_MAPS, key("a"))
    assert [change.revision for change in told] == [first.revision, second.revision, gone.revision] == [2, 3, 4]
    assert [(change.previous, change.deleted) for change in told] == [(None, False), (first, False), (second, True)]
    assert gone.value["metadata"]["resourceVersion"] == "4"
    store.forget(CONFIG_MAPS, told.append)
    store.write(CONFIG_MAPS, key("b"), a_map("b"))
    assert len(told) == 3


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=30))
def test_the_past_can_be_listed(steps: list[tuple[str, bool]]) -> None:
    store = Store(KINDS)
    then = {store.revision: store.all(CONFIG_MAPS)}
    for name, deletes in steps:
        if not deletes:
            store.write(CONFIG_MAPS, key(name), a_map(name))
        elif store.get(CONFIG_MAPS, key(name)):
            store.delete(CONFIG_MAPS, key(name))
        then[store.revision] = store.all(CONFIG_MAPS)
    for revision, found in then.items():
        assert store.all_at(CONFIG_MAPS, revision) == found
        assert [stored.key for stored in found] == sorted(stored.key for stored in found)


def test_what_is_forgotten_cannot_be_asked_for_and_neither_can_the_future() -> None:
    store = Store(KINDS, history=4)
    for index in range(10):
        store.write(CONFIG_MAPS, key(f"a{index}"), a_map(f"a{index}"))
    assert [change.revision for change in store.since(CONFIG_MAPS, 9)] == [10, 11]
    for revision, code in ((2, 410), (12, 504)):
        with pytest.raises(Refusal) as caught:
            store.since(CONFIG_MAPS, revision)
        assert caught.value.code == code
    assert store.since(NODES, 2) == []


def test_a_write_that_cannot_be_kept_did_not_happen() -> None:
    class Full:
        def write(self, *_: object) -> None:
            raise OSError("full")

    store = Store(KINDS, journal=Full())
    with pytest.raises(OSError, match="full"):
        store.write(CONFIG_MAPS, key("a"), a_map("a"))
    assert (store.all(CONFIG_MAPS), store.revision) == ([], 1)
