"""The CDI library of containerd, which is the reference, reads the specs that ours writes, and refuses what ours does.

A spec that is refused is passed over with all of its devices, so each spec here has the device `plain` besides what is
tried: it is found if, and only if, the whole spec was accepted.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec import structs

from cdi import (
    VERSIONS,
    ContainerEdits,
    Device,
    DeviceNode,
    Hook,
    IntelRdt,
    InvalidSpecError,
    LinuxNetDevice,
    Mount,
    Spec,
    SpecStore,
    build_spec_name,
    decode_spec,
    default_version,
    encode_spec,
)
from tests.cluster.cluster import Cluster
from tests.cluster.network import CommandError
from tests.cluster.node import Node
from tests.support import cdi_spec
from tests.support.cdi_spec import a_full_spec, a_spec, specs

PLAIN = Device(name="plain", container_edits=ContainerEdits(env=("PLAIN=1",)))


@pytest.fixture(scope="module")
def node(cluster: Cluster) -> Node:
    return cluster.nodes["node-a"]


def refused(node: Node, contents: Sequence[bytes]) -> set[int]:
    """Say which of the specs, of kind `vendor<number>.test/class`, containerd does not accept."""
    with written(node, contents):
        try:
            node.run_with_cdi_devices([f"vendor{number}.test/class=plain" for number in range(len(contents))], "true")
        except CommandError as error:
            found = re.findall(r"vendor(\d+)\.test/class=plain", str(error.stderr))
            if not found:
                raise
            return {int(number) for number in found}
    return set()


@contextmanager
def written(node: Node, contents: Sequence[bytes]) -> Iterator[None]:
    paths = [node.cdi_dir / f"vendor{number}.json" for number in range(len(contents))]
    try:
        for path, content in zip(paths, contents, strict=True):
            path.write_bytes(content)
        yield
    finally:
        for path in paths:
            path.unlink(missing_ok=True)


def numbered(all_specs: Sequence[Spec]) -> list[bytes]:
    """Encode specs under kinds of their own, with the edits of all devices moved to one that is not asked for.

    `plain` comes first, since the reference looks for what is new in 0.4.0 and 0.5.0 in the last device only.
    """
    encoded = []
    for number, spec in enumerate(all_specs):
        own = [device for device in spec.devices if device.name != PLAIN.name]
        if spec.container_edits != ContainerEdits():
            own.append(Device(name="edits-of-all", container_edits=spec.container_edits))
        changed = structs.replace(
            spec, kind=f"vendor{number}.test/class", devices=(PLAIN, *own), container_edits=ContainerEdits()
        )
        encoded.append(encode_spec(changed))
    return encoded


FIELDS = {
    "0.3.0": ContainerEdits(
        device_nodes=(
            DeviceNode(path="/dev/x", type="c", major=240, minor=1, file_mode=0o660, permissions="rw", uid=1, gid=2),
        ),
        mounts=(Mount(host_path="/a", container_path="/b", options=("ro", "bind")),),
        hooks=(Hook(hook_name="createContainer", path="/bin/true", args=("true",), env=("A=b",), timeout=5),),
    ),
    "0.4.0": ContainerEdits(mounts=(Mount(host_path="/a", container_path="/b", type="bind"),)),
    "0.5.0": ContainerEdits(device_nodes=(DeviceNode(path="/dev/x", host_path="/dev/null"),)),
    "0.7.0": ContainerEdits(
        additional_gids=(44,), intel_rdt=IntelRdt(clos_id="gold", l3_cache_schema="L3:0=f", mem_bw_schema="MB:0=70")
    ),
    "1.1.0": ContainerEdits(
        net_devices=(LinuxNetDevice(host_interface_name="eth1", name="net0"),),
        intel_rdt=IntelRdt(schemata=("L3:0=f",), enable_monitoring=True),
    ),
}


def test_specs_of_every_shape_are_accepted(node: Node) -> None:
    shapes = {version: default_version(a_spec(cdi_spec.a_device("x", edits))) for version, edits in FIELDS.items()}
    assert {version: spec.cdi_version for version, spec in shapes.items()} == {version: version for version in FIELDS}
    shapes["0.6.0"] = default_version(a_spec(cdi_spec.a_device("0"), annotations={"example.com/a": "b"}))
    assert shapes["0.6.0"].cdi_version == "0.6.0"
    assert refused(node, numbered([a_full_spec(), *shapes.values()])) == set()


def test_a_version_is_accepted_by_both_or_by_none(node: Node) -> None:
    texts = (*VERSIONS, *(f"v{version}" for version in VERSIONS), "", "0.9.0", "1.2.0", "2.0.0", "1.0", "latest")
    encoded = numbered([a_spec(version=text) for text in texts])
    refused_here = {number for number, content in enumerate(encoded) if not is_valid(content)}
    assert refused(node, encoded) == refused_here


def test_a_field_is_refused_by_both_if_the_declared_version_does_not_have_it(node: Node) -> None:
    cases = [
        a_spec(cdi_spec.a_device("0"), version="0.4.0"),
        a_spec(annotations={"a": "b"}, version="0.5.0"),
        a_spec(cdi_spec.a_device("x", annotations={"a": "b"}), version="0.5.0"),
    ]
    for version, older in (("0.4.0", "0.3.0"), ("0.5.0", "0.4.0"), ("0.7.0", "0.6.0"), ("1.1.0", "1.0.0")):
        for field, value in structs.asdict(FIELDS[version]).items():
            if value:
                edits = structs.replace(ContainerEdits(), **{field: value})
                cases.append(a_spec(cdi_spec.a_device("x", edits), version=older))
    encoded = numbered(cases)
    assert not any(map(is_valid, encoded))
    assert refused(node, encoded) == set(range(len(encoded)))


def a_document(**changes: Any) -> dict[str, Any]:
    plain = {"name": "plain", "containerEdits": {"env": ["A=b"]}}
    return {"cdiVersion": "1.1.0", "kind": "vendor0.test/class", "devices": [plain], **changes}


def an_edit(**edits: Any) -> dict[str, Any]:
    document = a_document()
    document["devices"].append({"name": "x", "containerEdits": edits})
    return document


def a_device(**device: Any) -> dict[str, Any]:
    document = a_document()
    document["devices"].append(device)
    return document


EDIT = {"env": ["A=b"]}
INVALID = {
    "no kind": {k: v for k, v in a_document().items() if k != "kind"},
    "unknown field": a_document(kindness="a"),
    "unknown field of an edit": an_edit(environment=["A=b"]),
    "no version": {k: v for k, v in a_document().items() if k != "cdiVersion"},
    "two devices of one name": a_device(name="plain", containerEdits=EDIT),
    "name with a slash": a_device(name="a/b", containerEdits=EDIT),
    "name that ends in a dot": a_device(name="a.", containerEdits=EDIT),
    "empty name": a_device(name="", containerEdits=EDIT),
    "no edits": a_device(name="x"),
    "empty edits": an_edit(),
    "variable without =": an_edit(env=["A"]),
    "variable without name": an_edit(env=["=b"]),
    "node without path": an_edit(deviceNodes=[{"type": "c"}]),
    "node type": an_edit(deviceNodes=[{"path": "/dev/x", "type": "d"}]),
    "permissions": an_edit(deviceNodes=[{"path": "/dev/x", "permissions": "rx"}]),
    "node number as text": an_edit(deviceNodes=[{"path": "/dev/x", "major": "1"}]),
    "mount without source": an_edit(mounts=[{"containerPath": "/x"}]),
    "mount without target": an_edit(mounts=[{"hostPath": "/x"}]),
    "unknown hook": an_edit(hooks=[{"hookName": "later", "path": "/x"}]),
    "hook without path": an_edit(hooks=[{"hookName": "prestart"}]),
    "interface without name": an_edit(netDevices=[{"hostInterfaceName": "eth1"}]),
    "interface given twice": an_edit(netDevices=[{"hostInterfaceName": "a", "name": n} for n in "bc"]),
    "class of service": an_edit(intelRdt={"closID": "a/b"}),
}


def test_what_is_invalid_is_refused_by_both(node: Node) -> None:
    contents = [
        json.dumps({**document, **({"kind": f"vendor{number}.test/class"} if "kind" in document else {})}).encode()
        for number, document in enumerate(INVALID.values())
    ]
    names = list(INVALID)
    assert [name for name, content in zip(names, contents, strict=True) if is_valid(content)] == []
    there = refused(node, contents)
    assert [name for number, name in enumerate(names) if number not in there] == []


PECULIAR = {
    "delete": '"\x7f"',
    "control character": '"\x81"',
    "next line": '"a\x85b"',
    "line separator": '"a\u2028b"',
    "byte order mark": '"a\ufeffb"',
    "no character": '"\uffff"',
    "escaped pair": '"\\ud83d\\ude00"',
    "escaped half": '"\\ud83d"',
    "escaped control character": '"\\u0081"',
    "tab": '"a\tb"',
    "beyond 16 bits": '"\U0001f600"',
}


def test_text_is_accepted_by_both_or_by_none(node: Node) -> None:
    template = json.dumps(a_document(annotations={"a": "TEXT"}))
    contents = [
        template.replace("vendor0", f"vendor{number}").replace('"TEXT"', text).encode()
        for number, text in enumerate(PECULIAR.values())
    ]
    refused_here = {name for name, content in zip(PECULIAR, contents, strict=True) if not is_valid(content)}
    names = list(PECULIAR)
    assert {names[number] for number in refused(node, contents)} == refused_here


def is_valid(content: bytes) -> bool:
    try:
        decode_spec(content)
    except InvalidSpecError:
        return False
    return True


@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.large_base_example],
)
@given(st.lists(specs, min_size=5, max_size=5))
def test_whatever_we_find_valid_is_accepted(node: Node, many: list[Spec]) -> None:
    encoded = numbered(many)
    assert [encoded[number] for number in refused(node, encoded)] == []


def test_the_edits_reach_the_container(node: Node, tmp_path: Path) -> None:
    (tmp_path / "given").write_text("content\n")
    edits = ContainerEdits(
        env=("GIVEN=a=b c",),
        device_nodes=(
            DeviceNode(
                path="/dev/given", host_path="/dev/zero", type="c", major=1, minor=5, file_mode=0o600, permissions="r"
            ),
        ),
        mounts=(
            Mount(
                host_path=str(tmp_path / "given"),
                container_path="/etc/given/file",
                options=("ro", "nosuid", "nodev", "noexec", "bind"),
                type="bind",
            ),
        ),
        hooks=(
            Hook(
                hook_name="createRuntime",
                path="/bin/sh",
                args=("sh", "-c", f"echo $FROM >{tmp_path}/hook"),
                env=("FROM=hook",),
                timeout=5,
            ),
        ),
        additional_gids=(44, 109),
    )
    spec = default_version(
        Spec(
            cdi_version="0.3.0", kind="vendor.test/full.device", devices=(Device(name="0-a:b", container_edits=edits),)
        )
    )
    assert spec.cdi_version == "0.7.0"
    store, name = SpecStore(node.cdi_dir), build_spec_name(spec.kind, "1")
    store.write_spec(name, spec)
    script = "echo $GIVEN; stat -c '%t:%T %a' /dev/given; cat /etc/given/file; id -G; echo no >/etc/given/file || true"
    try:
        printed = node.run_with_cdi_device("vendor.test/full.device=0-a:b", "sh", "-c", script)
    finally:
        store.remove_spec(name)
    variable, numbers, content, groups = printed.splitlines()
    assert (variable, numbers, content) == ("a=b c", "1:5 600", "content")
    assert {"44", "109"} <= set(groups.split())
    assert (tmp_path / "given").read_text() == "content\n"
    assert (tmp_path / "hook").read_text() == "hook\n"
