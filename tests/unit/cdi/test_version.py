import pytest
from hypothesis import given

from cdi import (
    VERSIONS,
    ContainerEdits,
    DeviceNode,
    IntelRdt,
    LinuxNetDevice,
    Mount,
    Spec,
    VersionNeed,
    default_version,
    explain_version,
)
from cdi.version import parse_version, validate_version
from tests.support.cdi_spec import a_device, a_full_spec, a_spec, patient, specs

MOUNT = Mount(host_path="/a", container_path="/b")
EDITS = [
    pytest.param(
        ContainerEdits(mounts=(MOUNT, Mount(host_path="/a", container_path="/b", type="none"))),
        "mounts[1].type",
        "0.4.0",
        id="mount type",
    ),
    pytest.param(
        ContainerEdits(device_nodes=(DeviceNode(path="/a", host_path="/b"),)),
        "deviceNodes[0].hostPath",
        "0.5.0",
        id="host path",
    ),
    pytest.param(ContainerEdits(intel_rdt=IntelRdt()), "intelRdt", "0.7.0", id="resctrl"),
    pytest.param(ContainerEdits(additional_gids=(1,)), "additionalGids", "0.7.0", id="groups"),
    pytest.param(
        ContainerEdits(net_devices=(LinuxNetDevice(host_interface_name="a", name="b"),)),
        "netDevices",
        "1.1.0",
        id="network",
    ),
    pytest.param(ContainerEdits(intel_rdt=IntelRdt(schemata=("x",))), "intelRdt.schemata", "1.1.0", id="schemata"),
    pytest.param(
        ContainerEdits(intel_rdt=IntelRdt(enable_monitoring=True)),
        "intelRdt.enableMonitoring",
        "1.1.0",
        id="monitoring",
    ),
]
SPECS = [
    pytest.param(a_spec(a_device("0")), "devices[0].name", "0.5.0", id="name starts with a digit"),
    pytest.param(a_spec(kind="vendor.com/gpu.x"), "kind", "0.6.0", id="class with a dot"),
    pytest.param(a_spec(annotations={"a": "b"}), "annotations", "0.6.0", id="annotations of the spec"),
    pytest.param(
        a_spec(a_device("x", annotations={"a": "b"})), "devices[0].annotations", "0.6.0", id="annotations of a device"
    ),
]


def test_a_plain_spec_needs_the_earliest_version() -> None:
    assert explain_version(a_spec()) == ()
    assert default_version(a_spec()).cdi_version == "0.3.0"


@pytest.mark.parametrize(("edits", "path", "version"), EDITS)
def test_edits_need_a_version_in_a_device_and_in_the_spec(edits: ContainerEdits, path: str, version: str) -> None:
    in_device = a_spec(a_device(), a_device("gpu-1", edits))
    assert explain_version(in_device)[-1] == VersionNeed(f"devices[1].containerEdits.{path}", version)
    assert default_version(in_device).cdi_version == version
    in_spec = a_spec(edits=edits)
    assert explain_version(in_spec)[-1] == VersionNeed(f"containerEdits.{path}", version)
    assert default_version(in_spec).cdi_version == version


@pytest.mark.parametrize(("spec", "path", "version"), SPECS)
def test_a_field_needs_a_version(spec: Spec, path: str, version: str) -> None:
    assert explain_version(spec) == (VersionNeed(path, version),)


def test_a_dot_in_the_vendor_needs_nothing() -> None:
    assert explain_version(a_spec(kind="a.b.c/gpu")) == ()


def test_only_what_the_declared_version_lacks_is_reported() -> None:
    spec = a_spec(a_device("0"), annotations={"a": "b"}, version="v0.5.0")
    assert validate_version(spec) == (VersionNeed("annotations", "0.6.0"),)


def test_the_full_spec_needs_the_newest_version() -> None:
    assert default_version(a_full_spec()).cdi_version == VERSIONS[-1] == "1.1.0"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("1.1.0", "1.1.0"),
        ("v0.3.0", "0.3.0"),
        ("vv0.3.0", None),
        ("0.3", None),
        ("1.2.0", None),
        ("", None),
        ("v", None),
    ],
)
def test_only_released_versions_are_known(text: str, version: str | None) -> None:
    assert parse_version(text) == version


@patient
@given(specs)
def test_the_default_version_is_enough_and_no_lower_one_is(spec: Spec) -> None:
    assert validate_version(spec) == ()
    for lower in VERSIONS[2 : VERSIONS.index(spec.cdi_version)]:
        assert validate_version(
            a_spec(
                *spec.devices, kind=spec.kind, version=lower, edits=spec.container_edits, annotations=spec.annotations
            )
        )
