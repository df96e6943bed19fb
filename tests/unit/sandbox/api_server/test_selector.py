import pytest

from sandbox.api_server.kind import EVENTS, NODES, PODS, RESOURCE_SLICES
from sandbox.api_server.refusal import Refusal
from sandbox.api_server.selector import parse_selectors

LABELS = {"tier": "x", "n": "7", "a.b/c": ""}


@pytest.mark.parametrize(
    ("text", "selects"),
    [
        ("tier=x", True),
        ("tier==y", False),
        ("tier!=y,n", True),
        ("other!=y", True),
        ("!tier", False),
        ("!other", True),
        ("tier in (x, y)", True),
        ("tier notin (x,y)", False),
        ("other notin (x)", True),
        ("n>3", True),
        ("n < 3", False),
        ("tier>3", False),
        ("a.b/c=", True),
        ("a.b/c in (,z)", True),
    ],
)
def test_a_label_selector_selects(text: str, selects: bool) -> None:
    matches = parse_selectors(NODES, text, "")
    assert matches is not None
    assert matches({"metadata": {"labels": LABELS}}) is selects


@pytest.mark.parametrize("text", ["a in", "a in x", "a,", ",", "=x", "a b", "a=b c", "a b=c", "x/y/z", "n>x", "(a)"])
def test_a_label_selector_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(Refusal) as caught:
        parse_selectors(NODES, text, "")
    assert caught.value.code == 400


def test_no_selector_selects_everything() -> None:
    assert parse_selectors(NODES, "", "") is None


def test_a_field_selector_sees_what_is_not_there_as_empty() -> None:
    unbound = parse_selectors(PODS, "", "spec.nodeName=,status.phase!=Running,spec.hostNetwork=false")
    assert unbound is not None
    assert unbound({"metadata": {"name": "p"}, "spec": {}})
    assert not unbound({"metadata": {"name": "p"}, "spec": {"nodeName": "n"}})


def test_a_field_selector_knows_the_fields_of_its_kind() -> None:
    assert parse_selectors(RESOURCE_SLICES, "", "spec.pool.name=p") is not None
    for kind, text in ((NODES, "metadata.namespace=x"), (EVENTS, "message=x"), (PODS, "spec.nodeName")):
        with pytest.raises(Refusal):
            parse_selectors(kind, "", text)


def test_the_source_of_an_event_is_its_component() -> None:
    matches = parse_selectors(EVENTS, "", "source=kubelet")
    assert matches is not None
    assert matches({"metadata": {}, "source": {"component": "kubelet"}})
