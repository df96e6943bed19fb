import pytest

from tests.crash.durability import Action, Cut, Disk, Entry, Survivors

CREATE, MKDIR, WRITE, REMOVE, RENAME, SYNC = Action

REPLACED = (
    Entry(MKDIR, "d"),
    Entry(SYNC, "."),
    Entry(CREATE, "d/file"),
    Entry(WRITE, "d/file", "old"),
    Entry(SYNC, "d/file"),
    Entry(SYNC, "d"),
    Entry(CREATE, "d/new"),
    Entry(WRITE, "d/new", "new!"),
    Entry(SYNC, "d/new"),
    Entry(RENAME, "d/new", "d/file"),
    Entry(SYNC, "d"),
)
"""A file that is replaced as it should be."""


def without(*numbers: int) -> list[Entry]:
    return [entry for number, entry in enumerate(REPLACED) if number not in numbers]


@pytest.mark.parametrize("how", Cut)
def test_a_file_that_is_replaced_with_every_sync_is_the_old_or_the_new_at_every_moment(how: Cut) -> None:
    moments = [Disk(REPLACED[:number]).cut(how).get("d/file") for number in range(6, len(REPLACED) + 1)]
    assert set(moments) <= {b"old", b"new!"}
    assert (moments[0], moments[-1]) == (b"old", b"new!")


@pytest.mark.parametrize(
    ("missing", "how", "left"),
    [
        ((8,), Cut.NAMES, {"d": None, "d/file": b""}),
        ((8,), Cut.NOTHING, {"d": None, "d/file": b""}),
        ((10,), Cut.NOTHING, {"d": None, "d/file": b"old"}),
        ((10,), Cut.NAMES, {"d": None, "d/file": b"new!"}),
        ((1,), Cut.NOTHING, {}),
        ((1,), Cut.NAMES, {"d": None, "d/file": b"new!"}),
    ],
    ids=[
        "the new content, a name without it",
        "the new content, its directory synced",
        "the name, lost",
        "the name, kept",
        "the directory's own name, lost with all in it",
        "the directory's own name, kept",
    ],
)
def test_what_is_not_synced_is_at_the_mercy_of_the_file_system(
    missing: tuple[int, ...], how: Cut, left: Survivors
) -> None:
    assert Disk(without(*missing)).cut(how) == left


def test_what_was_removed_comes_back_until_its_directory_is_synced() -> None:
    removed = [*REPLACED, Entry(REMOVE, "d/file")]
    assert Disk(removed).cut(Cut.NOTHING) == {"d": None, "d/file": b"new!"}
    assert Disk(removed).cut(Cut.NAMES) == {"d": None}
    assert Disk([*removed, Entry(SYNC, "d")]).cut(Cut.NOTHING) == {"d": None}


def test_by_chance_a_rename_is_whole_or_not_at_all_and_the_same_with_the_same_seed() -> None:
    found = [Disk(without(10)).cut(Cut.SOME, seed=str(seed)) for seed in range(64)]
    assert {frozenset(each.items()) for each in found} == {
        frozenset({("d", None), ("d/file", b"old")}),
        frozenset({("d", None), ("d/file", b"old"), ("d/new", b"new!")}),
        frozenset({("d", None), ("d/file", b"new!")}),
    }
    assert Disk(without(10)).cut(Cut.SOME, seed="1") == Disk(without(10)).cut(Cut.SOME, seed="1")


def test_content_by_chance_is_the_old_none_a_half_or_all() -> None:
    written = [*REPLACED, Entry(WRITE, "d/file", "longer")]
    found = {Disk(written).cut(Cut.SOME, seed=str(seed))["d/file"] for seed in range(64)}
    assert found == {b"new!", b"", b"lon", b"longer"}
