import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_driver.api.resource_v1 import ResourceSlice
from dra_driver.kube.resource import ObjectKey
from dra_driver.kube.view import View
from tests.support.kube import a_slice


def at(version: int | str, name: str = "a", uid: str = "u1", **metadata: object) -> ResourceSlice:
    return a_slice(name, uid=uid, resource_version=str(version), **metadata)


def a_view(*values: ResourceSlice, version: int | str = 10) -> View[ResourceSlice]:
    view: View[ResourceSlice] = View()
    view.replace(values, str(version), 0.0)
    return view


def versions(view: View[ResourceSlice]) -> dict[str, str]:
    return {key.name: value.metadata.resource_version for key, value in view.objects.items()}


A = frozenset({ObjectKey("", "a")})
NONE: frozenset[ObjectKey] = frozenset()


def test_a_list_tells_what_came_went_and_changed() -> None:
    view = a_view(at(1, "same"), at(2, "changed"), at(3, "gone"))
    changed = view.replace([at(1, "same"), at(12, "changed"), at(13, "new")], "20", 0.0)
    assert {key.name for key in changed} == {"changed", "gone", "new"}


def test_an_own_write_is_visible_at_once() -> None:
    view = a_view()
    assert view.record_write(at(11), 0.0) == A
    assert versions(view) == {"a": "11"}


def test_an_older_event_does_not_overwrite_an_own_write() -> None:
    view = a_view(at(5))
    view.record_write(at(12), 0.0)
    assert view.apply(at(11), 1.0) == NONE
    assert versions(view) == {"a": "12"}


def test_the_event_of_the_own_write_and_all_later_ones_apply() -> None:
    view = a_view(at(5))
    view.record_write(at(12), 0.0)
    assert view.apply(at(12), 1.0) == A
    assert view.apply(at(13), 1.0) == A
    assert versions(view) == {"a": "13"}


def test_an_older_deletion_does_not_remove_what_we_created_again() -> None:
    view = a_view(at(5))
    view.record_write(at(12, uid="u2"), 0.0)
    assert view.delete(at(11, uid="u1"), 1.0) == NONE
    assert versions(view) == {"a": "12"}


def test_a_write_that_the_watch_has_passed_does_not_come_back_as_a_ghost() -> None:
    view = a_view()
    view.apply(at(11), 0.0)
    view.delete(at(12), 0.0)
    assert view.record_write(at(11), 0.0) == NONE
    assert versions(view) == {}


def test_an_answer_that_comes_late_does_not_undo_a_newer_own_write() -> None:
    view = a_view()
    view.record_write(at(13), 0.0)
    assert view.record_write(at(12), 0.0) == NONE
    assert versions(view) == {"a": "13"}


def test_a_list_from_before_an_own_write_leaves_it() -> None:
    view = a_view(at(5))
    view.record_write(at(15), 0.0)
    assert view.replace([at(5)], "14", 1.0) == NONE
    assert versions(view) == {"a": "15"}


def test_a_list_from_after_an_own_write_wins() -> None:
    view = a_view(at(5))
    view.record_write(at(15), 0.0)
    assert view.replace([], "16", 1.0) == A
    assert versions(view) == {}


def test_a_server_that_was_restored_and_counts_from_before_wins_in_the_end() -> None:
    view = a_view(at(100), version=100)
    view.record_write(at(101), 0.0)
    view.replace([at(50)], "60", 1.0)
    assert versions(view) == {"a": "101"}
    assert view.apply(at(61), 61.0) == A
    view.replace([at(61)], "62", 62.0)
    assert versions(view) == {"a": "61"}


def test_what_we_deleted_does_not_come_back_by_an_older_event_or_list() -> None:
    view = a_view(at(5))
    assert view.record_delete(at(5), 0.0) == A
    assert view.apply(at(11), 1.0) == NONE
    assert view.replace([at(11)], "11", 1.0) == NONE
    assert view.delete(at(12), 1.0) == NONE
    assert versions(view) == {}


def test_the_same_name_with_another_uid_comes_after_a_deletion() -> None:
    view = a_view(at(5))
    view.record_delete(at(5), 0.0)
    assert view.apply(at(13, uid="u2"), 1.0) == A


def test_what_finalizers_hold_is_shown_after_our_deletion() -> None:
    view = a_view(at(5))
    view.record_delete(at(5), 0.0)
    assert view.apply(at(11, deletion_timestamp="2026-01-01T00:00:00Z"), 1.0) == A


def test_deleting_another_uid_than_the_one_that_is_there_changes_nothing() -> None:
    view = a_view(at(5, uid="u2"))
    assert view.record_delete(at(4, uid="u1"), 0.0) == NONE
    assert versions(view) == {"a": "5"}


@pytest.mark.parametrize("version", ["", "abc", "12x", "\u0663"])
def test_versions_that_are_no_numbers_are_not_compared_and_the_watch_is_right(version: str) -> None:
    view = a_view(at(5))
    view.record_write(at(version), 0.0)
    assert view.apply(at(6), 1.0) == A
    assert versions(view) == {"a": "6"}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.booleans()), max_size=20), st.data())
def test_own_writes_and_events_in_any_interleaving_end_in_what_the_server_has(
    writes: list[tuple[str, bool, bool]], data: st.DataObject
) -> None:
    """A write is a name, whether it deletes, and whether it is ours; ours are recorded before or after their event."""
    view = a_view(version=0)
    server: dict[str, ResourceSlice] = {}
    late: list[ResourceSlice] = []
    events: list[tuple[bool, ResourceSlice]] = []
    for version, (name, deletes, ours) in enumerate(writes, 1):
        value = at(version, name, uid=server[name].metadata.uid if name in server else f"u{version}")
        if deletes and name not in server:
            continue
        events.append((deletes, value))
        if deletes:
            del server[name]
            continue
        server[name] = value
        if ours:
            late.append(value)
    while events or late:
        if late and (not events or data.draw(st.booleans())):
            view.record_write(late.pop(0), 0.0)
        else:
            deletes, value = events.pop(0)
            (view.delete if deletes else view.apply)(value, 0.0)
    assert versions(view) == {name: value.metadata.resource_version for name, value in server.items()}
