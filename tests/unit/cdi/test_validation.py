import pytest
from hypothesis import given

from cdi import (
    HOOK_NAMES,
    ContainerEdits,
    DeviceNode,
    Hook,
    IntelRdt,
    InvalidSpecError,
    LinuxNetDevice,
    Mount,
    Problem,
    Spec,
    validate_spec,
)
from cdi.validation import require_valid
from tests.support.cdi_spec import a_device, a_full_spec, a_spec, patient, specs


def a_hook(name: str = "prestart", path: str = "/h", env: tuple[str, ...] = (), timeout: int | None = None) -> Hook:
    return Hook(hook_name=name, path=path, env=env, timeout=timeout)


def interfaces(*pairs: tuple[str, str]) -> ContainerEdits:
    return ContainerEdits(net_devices=tuple(LinuxNetDevice(host_interface_name=a, name=b) for a, b in pairs))


@patient
@given(specs)
def test_a_valid_spec_has_no_problems(spec: Spec) -> None:
    assert validate_spec(spec) == ()


def test_the_full_spec_is_valid() -> None:
    assert validate_spec(a_full_spec()) == ()


VALID_EDITS = [
    pytest.param(ContainerEdits(env=("A=", "B=c=d")), id="empty value and value with equals sign"),
    *(pytest.param(ContainerEdits(device_nodes=(DeviceNode(path="/a", type=t),)), id=f"node {t!r}") for t in "bcup"),
    *(
        pytest.param(ContainerEdits(device_nodes=(DeviceNode(path="/a", permissions=p),)), id=f"permissions {p}")
        for p in ("r", "rwm", "mm", "none")
    ),
    *(pytest.param(ContainerEdits(hooks=(a_hook(name),)), id=name) for name in HOOK_NAMES),
    *(
        pytest.param(ContainerEdits(intel_rdt=IntelRdt(clos_id=c)), id=f"class of {len(c)}")
        for c in ("", "/", "gold", "x" * 4095)
    ),
    pytest.param(interfaces(("a", "b"), ("b", "a")), id="interfaces swap names"),
    pytest.param(ContainerEdits(additional_gids=(0,)), id="group 0"),
]


@pytest.mark.parametrize("edits", VALID_EDITS)
def test_edits_may_be(edits: ContainerEdits) -> None:
    assert validate_spec(a_spec(a_device("x", edits), edits=edits)) == ()


INVALID_EDITS = [
    pytest.param(ContainerEdits(env=("A=b", "A")), "env[1]", "'A' is not an environment variable", id="env no value"),
    pytest.param(ContainerEdits(env=("=b",)), "env[0]", "want NAME=value", id="env no name"),
    pytest.param(
        ContainerEdits(device_nodes=(DeviceNode(path=""),)), "deviceNodes[0].path", "empty", id="node no path"
    ),
    pytest.param(
        ContainerEdits(device_nodes=(DeviceNode(path="/a", type="char"),)),
        "deviceNodes[0].type",
        "unknown type 'char', want one of b, c, u, p",
        id="node type",
    ),
    *(
        pytest.param(
            ContainerEdits(device_nodes=(DeviceNode(path="/a", permissions=permissions),)),
            "deviceNodes[0].permissions",
            f"{permissions!r}, want letters out of 'rwm', or 'none'",
            id=f"permissions {permissions!r}",
        )
        for permissions in ("rx", "rxw", "None", " r", "nonerw")
    ),
    pytest.param(interfaces(("", "a")), "netDevices[0].hostInterfaceName", "empty", id="host interface"),
    pytest.param(interfaces(("a", "")), "netDevices[0].name", "empty", id="interface"),
    pytest.param(
        interfaces(("a", "b"), ("a", "c")),
        "netDevices[1].hostInterfaceName",
        "'a' stands in {path}.netDevices[0] already",
        id="host interface twice",
    ),
    pytest.param(
        interfaces(("a", "b"), ("c", "b")),
        "netDevices[1].name",
        "'b' stands in {path}.netDevices[0] already",
        id="interface twice",
    ),
    pytest.param(
        ContainerEdits(hooks=(a_hook("preStart"),)), "hooks[0].hookName", "unknown hook 'preStart'", id="hook name"
    ),
    pytest.param(ContainerEdits(hooks=(a_hook(path=""),)), "hooks[0].path", "'' is not an absolute", id="hook no path"),
    pytest.param(ContainerEdits(hooks=(a_hook(path="h"),)), "hooks[0].path", "'h' is not an absolute", id="hook path"),
    pytest.param(ContainerEdits(hooks=(a_hook(env=("A",)),)), "hooks[0].env[0]", "want NAME=value", id="hook env"),
    pytest.param(ContainerEdits(hooks=(a_hook(timeout=0),)), "hooks[0].timeout", "want seconds above 0", id="timeout"),
    pytest.param(
        ContainerEdits(mounts=(Mount(host_path="", container_path="/a"),)), "mounts[0].hostPath", "empty", id="source"
    ),
    pytest.param(
        ContainerEdits(mounts=(Mount(host_path="/a", container_path=""),)),
        "mounts[0].containerPath",
        "empty",
        id="target",
    ),
    *(
        pytest.param(ContainerEdits(intel_rdt=IntelRdt(clos_id=c)), "intelRdt.closID", "cannot be a file name", id=i)
        for c, i in ((".", "dot"), ("..", "dots"), ("a/b", "slash"), ("a\n", "line feed"), ("ö" * 2048, "too long"))
    ),
]


@pytest.mark.parametrize(("edits", "field", "text"), INVALID_EDITS)
def test_edits_may_not_be(edits: ContainerEdits, field: str, text: str) -> None:
    in_device, in_spec = validate_spec(a_spec(a_device("x", edits), edits=edits))
    assert in_device.path == f"devices[0].containerEdits.{field}"
    assert text.format(path="devices[0].containerEdits") in in_device.problem
    assert in_spec.path == f"containerEdits.{field}"
    assert text.format(path="containerEdits") in in_spec.problem


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param(a_spec(kind="gpu"), Problem("kind", "no '/', want vendor/class"), id="kind"),
        pytest.param(a_spec(kind="0/gpu"), Problem("kind", "vendor '0' starts with '0', want a letter"), id="vendor"),
        pytest.param(
            a_spec(a_device("x_")),
            Problem("devices[0].name", "device name 'x_' ends with '_', want a letter or digit"),
            id="device name",
        ),
        pytest.param(
            a_spec(a_device("a"), a_device("b"), a_device("a")),
            Problem("devices[2].name", "'a' is the name of devices[0] already, want unique names"),
            id="names repeat",
        ),
        pytest.param(
            a_spec(a_device("a", ContainerEdits())),
            Problem("devices[0].containerEdits", "empty, want at least one edit"),
            id="no edits",
        ),
        pytest.param(
            Spec(cdi_version="0.3.0", kind="a/b", devices=()),
            Problem("devices", "empty, want at least one device"),
            id="no devices",
        ),
        pytest.param(
            a_spec(version="0.2.0"),
            Problem("cdiVersion", "version 0.2.0 is no longer accepted, want at least 0.3.0"),
            id="version too old",
        ),
        pytest.param(
            a_spec(a_device("0"), version="v0.4.0"),
            Problem("devices[0].name", "version 0.4.0 does not have this, want cdiVersion 0.5.0 or later"),
            id="version too low",
        ),
    ],
)
def test_a_spec_may_not_be(spec: Spec, problem: Problem) -> None:
    assert validate_spec(spec) == (problem,)


def test_an_unknown_version_is_refused_with_the_known_ones() -> None:
    (problem,) = validate_spec(a_spec(version="2.0.0"))
    assert problem.path == "cdiVersion"
    assert "unknown version '2.0.0', want one of 0.1.0, 0.2.0, 0.3.0," in problem.problem


def test_annotations_are_checked_in_the_spec_and_in_devices() -> None:
    problems = validate_spec(a_spec(a_device("x", annotations={"-": ""}), annotations={"_": ""}))
    assert [problem.path for problem in problems] == ["annotations", "devices[0].annotations"]


def test_an_empty_resctrl_is_an_edit() -> None:
    assert validate_spec(a_spec(a_device("x", ContainerEdits(intel_rdt=IntelRdt())))) == ()


def test_every_problem_is_reported_in_one_error() -> None:
    spec = a_spec(a_device("", ContainerEdits(env=("A", "B"))), kind="", version="")
    with pytest.raises(InvalidSpecError) as caught:
        require_valid(spec, "spec 'x'")
    assert [problem.path for problem in caught.value.problems] == [
        "cdiVersion",
        "kind",
        "devices[0].name",
        "devices[0].containerEdits.env[0]",
        "devices[0].containerEdits.env[1]",
    ]
    assert str(caught.value).startswith("spec 'x': cdiVersion: unknown version ''")
    assert "\n" not in str(caught.value)
