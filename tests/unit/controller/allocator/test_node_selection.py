"""Which nodes a slice or device is for."""

from typing import Any

import msgspec
import pytest

from controller.allocator import AllocationError
from controller.allocator.node_selection import matches_node, matches_selector
from dra_driver.api.codec import decode
from dra_driver.api.core_v1 import Node, NodeSelector
from dra_driver.api.meta_v1 import ObjectMeta

NODE = Node(metadata=ObjectMeta(name="node-a", labels={"zone": "a", "size": "7"}))


def a_selector(*terms: dict[str, Any]) -> NodeSelector:
    return decode(msgspec.json.encode({"nodeSelectorTerms": list(terms)}), NodeSelector)


def label(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("terms", "matches"),
    [
        pytest.param([label("zone", "In", "a", "b")], True, id="in"),
        pytest.param([label("rack", "In", "a")], False, id="in, label absent"),
        pytest.param([label("rack", "NotIn", "a")], True, id="not in, label absent"),
        pytest.param([label("zone", "Exists")], True, id="exists"),
        pytest.param([label("zone", "DoesNotExist")], False, id="does not exist"),
        pytest.param([label("size", "Gt", "6")], True, id="greater"),
        pytest.param([label("size", "Lt", "7")], False, id="less, equal"),
        pytest.param([label("zone", "Gt", "6")], False, id="greater, label no number"),
        pytest.param([label("zone", "In", "b"), label("size", "Exists")], True, id="one of two terms"),
        pytest.param([{}], False, id="empty term"),
        pytest.param(
            [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]}], True, id="field"
        ),
        pytest.param(
            [{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["node-a"]}]}],
            False,
            id="no field",
        ),
    ],
)
def test_a_node_matches_by_labels_and_name(terms: list[dict[str, Any]], matches: bool) -> None:
    assert matches_selector(NODE, a_selector(*terms), "slice x") is matches


@pytest.mark.parametrize(
    "term",
    [
        pytest.param(label("zone", "Near", "a"), id="unknown operator"),
        pytest.param(label("zone", "In"), id="no values"),
        pytest.param(label("size", "Gt", "x"), id="bound no number"),
        pytest.param({"matchFields": [{"key": "metadata.name", "operator": "Exists"}]}, id="field operator"),
    ],
)
def test_a_malformed_selector_is_an_error_that_names_its_owner(term: dict[str, Any]) -> None:
    with pytest.raises(AllocationError, match="slice x: "):
        matches_selector(NODE, a_selector(term), "slice x")


def test_a_name_goes_before_all_nodes_and_a_selector() -> None:
    assert not matches_node(NODE, "node-b", None, "slice x", all_nodes=True)
    assert matches_node(NODE, None, a_selector(label("zone", "In", "b")), "slice x", all_nodes=True)
    assert not matches_node(NODE, None, None, "slice x", all_nodes=None)
