import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cdi import ContainerEdits, Device, InvalidSpecError, Problem, Spec, decode_spec, encode_spec
from tests.support.cdi_spec import a_full_spec, a_spec, patient, specs

DATA = Path(__file__).parent / "testdata"


def a_document(**fields: object) -> dict[str, object]:
    device = {"name": "gpu-0", "containerEdits": {"env": ["A=b"]}}
    return {"cdiVersion": "1.1.0", "kind": "vendor.com/gpu", "devices": [device], **fields}


def decode_problems(document: object) -> tuple[Problem, ...]:
    with pytest.raises(InvalidSpecError) as caught:
        decode_spec(json.dumps(document).encode())
    return caught.value.problems


def test_the_full_spec_has_these_bytes() -> None:
    assert encode_spec(a_full_spec()) == (DATA / "full.json").read_bytes()


def test_absent_fields_are_left_out() -> None:
    assert encode_spec(a_spec(edits=ContainerEdits())) == (
        b'{"cdiVersion":"1.1.0","kind":"vendor.com/gpu",'
        b'"devices":[{"name":"gpu-0","containerEdits":{"env":["GPU=0"]}}]}\n'
    )


def test_json_and_yaml_of_one_spec_are_equal() -> None:
    assert decode_spec((DATA / "full.json").read_bytes()) == a_full_spec()
    assert decode_spec((DATA / "full.yaml").read_bytes()) == a_full_spec()


@patient
@given(specs)
def test_decoding_inverts_encoding(spec: Spec) -> None:
    assert decode_spec(encode_spec(spec)) == spec


@patient
@given(specs)
def test_the_same_content_as_yaml_is_the_same_spec(spec: Spec) -> None:
    text = yaml.safe_dump(json.loads(encode_spec(spec)), allow_unicode=False)
    assert decode_spec(text.encode()) == spec


@patient
@given(specs)
def test_equal_specs_have_equal_bytes(spec: Spec) -> None:
    copy = decode_spec(encode_spec(spec))
    turned = Spec(
        cdi_version=copy.cdi_version,
        kind=copy.kind,
        annotations=dict(reversed(copy.annotations.items())),
        devices=tuple(copy.devices),
        container_edits=ContainerEdits(
            **{name: getattr(copy.container_edits, name) for name in ContainerEdits.__struct_fields__}
        ),
    )
    assert turned == spec
    assert encode_spec(turned) == encode_spec(spec)


def test_null_is_the_same_as_absent() -> None:
    document = a_document(annotations=None, containerEdits={"mounts": None, "intelRdt": None})
    assert decode_spec(json.dumps(document).encode()) == decode_spec(json.dumps(a_document()).encode())


def test_numbers_and_truth_values_are_names_as_they_are_written() -> None:
    devices = "".join(f"- {{name: {name}, containerEdits: {{env: [A=b]}}}}\n" for name in ("0", "007", "1.0", "yes"))
    spec = decode_spec(f"cdiVersion: 0.5.0\nkind: vendor.com/gpu\ndevices:\n{devices}".encode())
    assert [device.name for device in spec.devices] == ["0", "007", "1.0", "yes"]


def test_a_misspelt_field_gets_a_suggestion() -> None:
    edits = {"deviceNode": [], "Env": [], "zzz": 1}
    assert decode_problems(a_document(devices=[{"name": "x", "containerEdits": edits}])) == (
        Problem("devices[0].containerEdits.deviceNode", "unknown field; did you mean 'deviceNodes'?"),
        Problem("devices[0].containerEdits.Env", "unknown field; did you mean 'env'?"),
        Problem(
            "devices[0].containerEdits.zzz",
            "unknown field, want one of env, deviceNodes, netDevices, hooks, mounts, intelRdt, additionalGids",
        ),
    )


EDITS = [
    pytest.param({"env": "A=b"}, "env", "'A=b', want a list", id="list"),
    pytest.param({"env": [None]}, "env[0]", "null, want a string", id="null in a list"),
    pytest.param({"env": [["A=b"]]}, "env[0]", "a list, want a string", id="string"),
    pytest.param({"mounts": [1]}, "mounts[0]", "1, want an object", id="object"),
    pytest.param({"mounts": [{"hostPath": "/a"}]}, "mounts[0].containerPath", "missing, want a value", id="required"),
    pytest.param(
        {"intelRdt": {"enableMonitoring": "true"}}, "intelRdt.enableMonitoring", "'true', want true", id="bool"
    ),
    pytest.param({"additionalGids": ["1"]}, "additionalGids[0]", "'1', want an integer", id="integer as text"),
    pytest.param({"additionalGids": [1.5]}, "additionalGids[0]", "1.5, want an integer", id="no integer"),
    pytest.param({"additionalGids": [True]}, "additionalGids[0]", "true, want an integer", id="truth value"),
    pytest.param(
        {"additionalGids": [-1]}, "additionalGids[0]", "-1 is out of range, want 0 to 4294967295", id="negative"
    ),
    pytest.param(
        {"deviceNodes": [{"path": "/a", "major": 2**63}]},
        "deviceNodes[0].major",
        "9223372036854775808 is out of range",
        id="64 bits",
    ),
    pytest.param({"env": ["A=\ud800"]}, "env[0]", "'A=\\ud800' has half a surrogate pair, want text", id="surrogate"),
]


@pytest.mark.parametrize(("edits", "path", "text"), EDITS)
def test_a_field_of_the_wrong_type_is_refused(edits: dict[str, object], path: str, text: str) -> None:
    (problem,) = decode_problems(a_document(containerEdits=edits))
    assert problem.path == f"containerEdits.{path}"
    assert text in problem.problem


def test_all_problems_of_the_types_are_reported_at_once() -> None:
    document = {"cdiVersion": [], "devices": [{}, {"name": {}, "containerEdits": 5}], "annotations": {"a": {}}}
    assert [problem.path for problem in decode_problems(document)] == [
        "kind",
        "cdiVersion",
        "annotations.a",
        "devices[0].name",
        "devices[0].containerEdits",
        "devices[1].name",
        "devices[1].containerEdits",
    ]


def test_then_the_rules_of_a_spec_are_checked() -> None:
    assert [problem.path for problem in decode_problems(a_document(kind="x", devices=[]))] == ["kind", "devices"]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param(b"", "a.json: empty, want a CDI spec", id="empty"),
        pytest.param(b"# nothing\n", "a.json: empty, want a CDI spec", id="a comment"),
        pytest.param(b"[]", "a.json: a list, want an object", id="a list"),
        pytest.param(b"text", "a.json: 'text', want an object", id="text"),
    ],
)
def test_what_is_no_spec_at_all_is_refused_with_its_file(data: bytes, text: str) -> None:
    with pytest.raises(InvalidSpecError) as caught:
        decode_spec(data, "a.json")
    assert str(caught.value) == text


@given(st.binary(max_size=60))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    with pytest.raises(InvalidSpecError):
        decode_spec(data)


@patient
@given(st.data())
def test_a_file_cut_off_anywhere_is_refused(data: st.DataObject) -> None:
    whole = encode_spec(a_full_spec()).rstrip()
    with pytest.raises(InvalidSpecError):
        decode_spec(whole[: data.draw(st.integers(0, len(whole) - 1))])


def test_text_that_cannot_be_utf_8_is_not_encoded() -> None:
    with pytest.raises(InvalidSpecError, match="cannot be UTF-8"):
        encode_spec(a_spec(kind="\udc80"))


@pytest.mark.parametrize("character", ["\x7f", "\x81", "\x85", "\u2028", "\ufeff", "\uffff"])
def test_a_character_that_yaml_does_not_take_for_itself_is_escaped(character: str) -> None:
    spec = a_spec(edits=ContainerEdits(env=(f"A=a{character}b",)))
    encoded = encode_spec(spec)
    assert f"a\\u{ord(character):04x}b".encode() in encoded
    assert decode_spec(encoded) == spec
    [env] = yaml.safe_load(encoded)["containerEdits"]["env"]
    assert env == f"A=a{character}b"


def test_every_struct_refuses_unknown_fields() -> None:
    assert Spec.__struct_config__.forbid_unknown_fields
    assert Device.__struct_config__.forbid_unknown_fields
