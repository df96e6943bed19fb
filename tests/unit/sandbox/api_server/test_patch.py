from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.api_server.patch import apply_operations, merge, merge_applied, merge_strategic
from sandbox.api_server.refusal import Refusal

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


def container(name: str, **parts: Any) -> dict[str, Any]:
    return {"name": name, **parts}


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        ({"a": 1, "b": {"c": 2}}, {"b": {"d": 3}}, {"a": 1, "b": {"c": 2, "d": 3}}),
        ({"a": 1}, {"a": None}, {}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": "text"}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
        ({"a": 1}, "text", "text"),
    ],
)
def test_a_merge_patch_merges_objects_and_replaces_the_rest(target: Any, patch: Any, expected: Any) -> None:
    assert merge(target, patch) == expected


@given(JSON, JSON)
def test_no_patch_changes_what_it_is_given(target: Any, patch: Any) -> None:
    before = repr((target, patch))
    for apply in (merge, merge_strategic, lambda one, other: merge_applied(one, other, {})):
        try:
            apply(target, patch)
        except Refusal:
            continue
        assert repr((target, patch)) == before


@given(JSON)
def test_what_replaces_everything_is_what_is_there_then(value: Any) -> None:
    assert apply_operations({"a": 1}, [{"op": "replace", "path": "", "value": value}]) == value


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "add", "path": "/a/1", "value": 9}, {"a": [1, 9, 2], "b/c": {"~": 1}}),
        ({"op": "add", "path": "/a/-", "value": 9}, {"a": [1, 2, 9], "b/c": {"~": 1}}),
        ({"op": "remove", "path": "/a/0"}, {"a": [2], "b/c": {"~": 1}}),
        ({"op": "replace", "path": "/b~1c/~0", "value": 2}, {"a": [1, 2], "b/c": {"~": 2}}),
        ({"op": "move", "from": "/a/0", "path": "/x"}, {"a": [2], "b/c": {"~": 1}, "x": 1}),
        ({"op": "copy", "from": "/b~1c", "path": "/a/0"}, {"a": [{"~": 1}, 1, 2], "b/c": {"~": 1}}),
        ({"op": "test", "path": "/a", "value": [1, 2]}, {"a": [1, 2], "b/c": {"~": 1}}),
    ],
    ids=lambda value: value.get("op", "") if isinstance(value, dict) else "",
)
def test_a_json_patch_does_each_operation(operation: Any, expected: Any) -> None:
    assert apply_operations({"a": [1, 2], "b/c": {"~": 1}}, [operation]) == expected


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "/a/9", "value": 1},
        {"op": "add", "path": "/none/x", "value": 1},
        {"op": "add", "path": "a", "value": 1},
        {"op": "add", "path": "/x"},
        {"op": "remove", "path": "/none"},
        {"op": "remove", "path": ""},
        {"op": "replace", "path": "/a/x", "value": 1},
        {"op": "move", "from": "/none", "path": "/x"},
        {"op": "test", "path": "/a", "value": [1]},
        {"op": "other", "path": "/a"},
        {"path": 1},
    ],
)
def test_a_json_patch_that_cannot_be_done_is_refused(operation: Any) -> None:
    with pytest.raises(Refusal) as caught:
        apply_operations({"a": [1, 2]}, [operation])
    assert caught.value.code == 422


def test_too_many_operations_are_refused() -> None:
    with pytest.raises(Refusal) as caught:
        apply_operations({}, [{"op": "test", "path": "", "value": {}}] * 10_001)
    assert caught.value.code == 413


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        (
            {"containers": [container("a", image="1"), container("b")]},
            {"containers": [container("a", image="2")]},
            {"containers": [container("a", image="2"), container("b")]},
        ),
        (
            {"containers": [container("a"), container("b")]},
            {"containers": [{"name": "a", "$patch": "delete"}]},
            {"containers": [container("b")]},
        ),
        (
            {"containers": [container("a")]},
            {"containers": [{"$patch": "replace"}, container("c")]},
            {"containers": [container("c")]},
        ),
        ({"finalizers": ["a"]}, {"finalizers": ["b", "a"]}, {"finalizers": ["a", "b"]}),
        ({"finalizers": ["a", "b"]}, {"$deleteFromPrimitiveList/finalizers": ["a"]}, {"finalizers": ["b"]}),
        (
            {"containers": [container("a"), container("b")]},
            {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]},
            {"containers": [container("b"), container("a")]},
        ),
        ({"volumes": {"x": 1, "y": 2}}, {"volumes": {"$retainKeys": ["x"], "x": 3}}, {"volumes": {"x": 3}}),
        ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]}, {"tolerations": [{"key": "b"}]}),
    ],
    ids=["merge", "delete", "replace", "set", "delete from set", "order", "retain keys", "atomic"],
)
def test_a_strategic_merge_patch_knows_which_lists_are_maps(target: Any, patch: Any, expected: Any) -> None:
    assert merge_strategic(target, patch) == expected


def test_what_a_manager_applies_no_more_goes_away_and_the_rest_stays() -> None:
    live = {"data": {"mine": "1", "theirs": "2"}, "finalizers": ["mine", "theirs"]}
    before = {"data": {"mine": "1"}, "finalizers": ["mine"]}
    assert merge_applied(live, {"data": {}}, before) == {"data": {"theirs": "2"}, "finalizers": ["theirs"]}


def test_devices_of_a_claim_are_applied_by_their_driver_and_those_of_a_slice_as_a_whole() -> None:
    ours, theirs = {"driver": "a", "pool": "p", "device": "d"}, {"driver": "b", "pool": "p", "device": "d"}
    live = {"devices": [{**ours, "data": {}}, theirs]}
    assert merge_applied(live, {"devices": [{**ours, "data": {"x": 1}}]}, {})["devices"] == [
        {**ours, "data": {"x": 1}},
        theirs,
    ]
    assert merge_applied({"devices": [{"name": "a"}]}, {"devices": [{"name": "b"}]}, {})["devices"] == [{"name": "b"}]


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "copy", "from": "/x", "path": "/x/-"}] * 40,
        [{"op": "copy", "from": "", "path": "/x/0"}] * 40,
        [{"op": "copy", "from": "/text", "path": "/more"}] * 5000,
    ],
    ids=["a list into itself", "the whole into a part", "a text again and again"],
)
def test_a_patch_that_copies_its_copies_is_too_large(operations: list[Any]) -> None:
    with pytest.raises(Refusal) as caught:
        apply_operations({"x": [{"y": 1}], "text": "z" * 1000}, operations)
    assert caught.value.code == 413


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "add", "path": "/a" * (depth + 1), "value": {}} for depth in range(300)],
        [{"op": "copy", "from": "/a", "path": "/a/a"}] * 300,
    ],
    ids=["step by step", "by copies"],
)
def test_a_patch_that_nests_too_deeply_is_refused(operations: list[Any]) -> None:
    with pytest.raises(Refusal) as caught:
        apply_operations({"a": {}}, operations)
    assert caught.value.code == 400


def test_a_copy_does_not_share_what_it_is_made_of() -> None:
    operations: list[dict[str, Any]] = [
        {"op": "add", "path": "/a", "value": {"n": []}},
        {"op": "copy", "from": "/a", "path": "/b"},
        {"op": "add", "path": "/b/n/-", "value": 1},
    ]
    assert apply_operations({}, operations * 2) == {"a": {"n": []}, "b": {"n": [1]}}
    assert operations[0]["value"] == {"n": []}


@pytest.mark.timeout(20)
def test_long_lists_are_merged_in_a_time_that_grows_with_them() -> None:
    many = 40_000
    items = [{"name": f"v{index}"} for index in range(many)]
    texts = [f"a.b/c{index}" for index in range(many)]
    patch = {
        "spec": {"volumes": items, "$setElementOrder/volumes": items[::-1]},
        "metadata": {"finalizers": texts, "$deleteFromPrimitiveList/finalizers": texts[1:]},
    }
    merged = merge_strategic({"spec": {"volumes": items[::2]}, "metadata": {"finalizers": texts[::2]}}, patch)
    assert merged["spec"]["volumes"] == items[::-1]
    assert merged["metadata"]["finalizers"] == texts[:1]
    applied = merge_applied({"finalizers": texts}, {"finalizers": texts[1:]}, {"finalizers": texts})
    assert applied == {"finalizers": texts[1:]}
    removals = [{"op": "remove", "path": "/x/0"}] * 10_000
    assert apply_operations({"x": [*range(100_000)]}, removals) == {"x": [*range(10_000, 100_000)]}
