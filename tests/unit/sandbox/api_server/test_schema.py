from typing import Any

import pytest

from sandbox.api_server.body import read_object, read_value
from sandbox.api_server.kind import CONFIG_MAPS, KINDS, PODS, RESOURCE_CLAIMS
from sandbox.api_server.refusal import Refusal
from sandbox.api_server.schema import prune

POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def test_what_is_good_comes_back_as_it_is() -> None:
    assert prune(PODS, POD) == (POD, ())


def test_every_kind_is_known() -> None:
    for kind in KINDS:
        assert prune(kind, {"metadata": {"name": "x"}, "nothing": 1})[1] == ("nothing",)


def test_fields_that_a_kind_does_not_have_are_left_out_and_named() -> None:
    value = {"metadata": {"name": "p", "x": 1}, "spec": {"containers": [{"name": "c", "y": 1}], "z": None}}
    pruned, unknown = prune(PODS, value)
    assert pruned["spec"] == {"containers": [{"name": "c"}]}
    assert set(unknown) == {"metadata.x", "spec.containers[0].y", "spec.z"}


def test_quantities_are_written_as_the_api_writes_them() -> None:
    resources = {"limits": {"memory": "1024Mi", "cpu": 1}, "requests": {"cpu": "0.5"}}
    value = {"metadata": {}, "spec": {"containers": [{"name": "c", "resources": resources}]}}
    written = prune(PODS, value)[0]["spec"]["containers"][0]["resources"]
    assert written == {"limits": {"memory": "1Gi", "cpu": "1"}, "requests": {"cpu": "500m"}}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"spec": 1}, "cannot unmarshal number into Go struct field spec of type object"),
        ({"spec": {"containers": {}}}, "cannot unmarshal object into Go struct field spec.containers of type array"),
        ({"spec": {"hostNetwork": "yes"}}, "cannot unmarshal string"),
        ({"spec": {"nodeSelector": {"a": 1}}}, "spec.nodeSelector.a of type string"),
        ({"spec": {"overhead": {"cpu": "much"}}}, "quantities must match"),
        ({"kind": "Node"}, "cannot be handled as a Pod"),
        ({"apiVersion": "v2"}, "does not match the expected API version"),
        ({"metadata": 1}, "cannot be handled as a Pod"),
        ([], "cannot be handled as a Pod"),
    ],
)
def test_values_of_other_types_are_refused(value: Any, text: str) -> None:
    with pytest.raises(Refusal, match=text):
        read_object(PODS, value)


def test_unknown_fields_are_warned_of_or_refused_as_the_client_likes() -> None:
    value = {"metadata": {"name": "a"}, "x": 1}
    assert read_object(CONFIG_MAPS, value)[1] == ('unknown field "x"',)
    assert read_object(CONFIG_MAPS, value, "Ignore")[1] == ()
    with pytest.raises(Refusal, match='strict decoding error: unknown field "x"'):
        read_object(CONFIG_MAPS, value, "Strict")


def test_parameters_are_passed_through() -> None:
    config = [{"opaque": {"driver": "d", "parameters": {"a": None, "b": {"c": [1]}}}}]
    value = {"metadata": {}, "spec": {"devices": {"config": config}}}
    assert prune(RESOURCE_CLAIMS, value) == (value, ())


@pytest.mark.parametrize(
    "text",
    [b"a: &x [1]\nb: *x", b"? [a]\n: b", b"a: [", b"\xff", b"a: " + b"[" * 500 + b"]" * 500, b"x" * 600_000],
    ids=["alias", "key", "open", "bytes", "deep", "long"],
)
def test_yaml_that_would_do_harm_is_refused(text: bytes) -> None:
    with pytest.raises(Refusal):
        read_value(text, "application/yaml")


def test_yaml_times_stay_text() -> None:
    assert read_value(b"a: 2026-01-01\n", "application/yaml") == {"a": "2026-01-01"}
