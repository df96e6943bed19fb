import pytest

from dra_driver.api.core_v1 import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dra_driver.api.node_selector_validation import validate_node_selector


def label(key: str, operator: str, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key=key, operator=operator, values=values),))


def field(key: str, operator: str, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_fields=(NodeSelectorRequirement(key=key, operator=operator, values=values),))


def texts(*terms: NodeSelectorTerm) -> list[str]:
    return [str(error) for error in validate_node_selector(NodeSelector(node_selector_terms=terms), "s")]


@pytest.mark.parametrize(
    "term",
    [
        label("zone", "In", "a", "b"),
        label("example.com/zone", "NotIn", ""),
        label("zone", "Exists"),
        label("zone", "DoesNotExist"),
        label("cores", "Gt", "5"),
        field("metadata.name", "In", "node-a"),
        field("metadata.name", "NotIn", "node-a"),
        NodeSelectorTerm(),
    ],
)
def test_a_good_term_has_no_problems(term: NodeSelectorTerm) -> None:
    assert texts(term) == []


LABEL = "s.nodeSelectorTerms[0].matchExpressions[0]"
WANT = "want letters, digits, '-', '_' and '.', with a letter or digit at both ends"
FIELD = "s.nodeSelectorTerms[0].matchFields[0]"


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (label("zone", "In"), f"{LABEL}.values: is empty, want values for operator 'In'"),
        (label("zone", "Exists", "a"), f"{LABEL}.values: has values, want none for operator 'Exists'"),
        (label("zone", "Lt", "1", "2"), f"{LABEL}.values: has 2 values, want one for operator 'Lt'"),
        (
            label("zone", "Is"),
            f"{LABEL}.operator: unknown operator 'Is', want 'In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt' or 'Lt'",
        ),
        (label("", "Exists"), f"{LABEL}.key: is missing, want a qualified name of at most 63 bytes"),
        (
            label("zone", "In", "a b"),
            f"{LABEL}.values[0]: 'a b' is not a label value, {WANT}",
        ),
        (field("metadata.name", "Exists"), f"{FIELD}.operator: unknown operator 'Exists', want 'In' or 'NotIn'"),
        (field("metadata.name", "In", "a", "b"), f"{FIELD}.values: has 2 values, want one"),
        (field("spec.x", "In", "a"), f"{FIELD}.key: unknown field 'spec.x', want 'metadata.name'"),
        (field("metadata.name", "In", ""), f"{FIELD}.values[0]: is missing, want a DNS subdomain of at most 253 bytes"),
    ],
)
def test_a_bad_term_is_refused(term: NodeSelectorTerm, expected: str) -> None:
    assert texts(term) == [expected]


def test_no_term_at_all_is_refused() -> None:
    assert texts() == ["s.nodeSelectorTerms: is empty, want at least one term"]
