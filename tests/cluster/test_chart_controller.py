"""The controller's part of the chart as the real helm renders it. Needs helm, but no cluster."""

from typing import Any

import pytest

from controller.allocator import Policy
from tests.cluster.conftest import ENABLED, Helm, Render
from tests.support.manifest import CHART, Manifest, find_values, refuse_unknown_fields

CONTROLLER = "controller.enabled=true"
NAME = "dra-controller"
CLASSES = {f"{like}.controller.dra-driver.io" for like in ("accelerator", "gpu", "npu", "partition")}


def pod_of(manifests: dict[tuple[str, str], Manifest]) -> dict[str, Any]:
    pod: dict[str, Any] = manifests["Deployment", NAME]["spec"]["template"]["spec"]
    return pod


def container_of(manifests: dict[tuple[str, str], Manifest]) -> dict[str, Any]:
    [container] = pod_of(manifests)["containers"]
    return dict(container)


def test_nothing_of_it_is_there_by_default(render: Render) -> None:
    manifests = render()
    assert not [name for _, name in manifests if "controller" in name]
    assert not [label for manifest in manifests.values() for label in find_values(manifest, "dra-driver.io/allocator")]


def test_lint_finds_nothing(helm: Helm) -> None:
    done = helm("lint", "--strict", CHART, "--set", f"{ENABLED},{CONTROLLER}")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("version", ["1.34.0", "1.35.6", "1.36.6", "1.37.2"])
def test_it_renders_for_each_supported_kubernetes_what_that_serves(render: Render, version: str) -> None:
    for manifest in render(CONTROLLER, version=version).values():
        refuse_unknown_fields(manifest)
        assert manifest["apiVersion"].rpartition("/")[2] == "v1"


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(("controller.replicas=1",), id="one replica"),
        pytest.param(("controller.policy=topology", "controller.featureGates.DRAListTypeAttributes=true"), id="flags"),
        pytest.param(("controller.nodeSelector.role=control", "controller.tolerations[0].operator=Exists"), id="where"),
        pytest.param(("controller.podAnnotations.a=b", "controller.podLabels.c=d"), id="annotations"),
        pytest.param(("controller.extraEnv[0].name=A", "controller.extraEnv[0].value=b"), id="environment"),
        pytest.param(("controller.classes=null",), id="no class"),
        pytest.param(("image.digest=sha256:" + "0" * 64, "imagePullSecrets[0].name=registry"), id="image"),
        pytest.param(("controller.resources=null", "controller.priorityClassName="), id="nothing"),
    ],
)
def test_kubernetes_knows_every_field_whatever_the_values(render: Render, values: tuple[str, ...]) -> None:
    for manifest in render(CONTROLLER, *values).values():
        refuse_unknown_fields(manifest)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        pytest.param(
            ("deviceClasses.gpu.allocator=controller",),
            "deviceClasses.gpu.allocator is 'controller', but no controller is installed",
            id="a class that nobody allocates",
        ),
        pytest.param(
            (
                CONTROLLER,
                "deviceClasses.gpu.allocator=controller",
                "deviceClasses.gpu.extendedResourceName=example.com/gpu",
            ),
            "deviceClasses.gpu: allocator is 'controller', but extendedResourceName is given",
            id="an extended resource of the controller",
        ),
        pytest.param(
            (CONTROLLER, "controller.classes[0].name=gpu.dra-driver.io", "controller.classes[0].like=gpu"),
            "controller.classes: 'gpu.dra-driver.io' is there already",
            id="a name of the chart's",
        ),
        pytest.param(
            (CONTROLLER, *(f"controller.classes[{at}].{each}" for at in (0, 1) for each in ("name=a", "like=gpu"))),
            "controller.classes: 'a' is there already",
            id="one name for two classes",
        ),
    ],
)
def test_values_that_cannot_work_are_refused_with_a_sentence(
    template: Helm, values: tuple[str, ...], message: str
) -> None:
    done = template(ENABLED, *values)
    assert done.returncode != 0
    assert message in done.stderr


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ("controller.replica=1", "replica"),
        ("controller.replicas=0", "/controller/replicas"),
        ("controller.policy=random", "/controller/policy"),
        ("controller.featureGates.DRAListTypeAttributes=maybe", "/controller/featureGates/DRAListTypeAttributes"),
        ("controller.featureGates.DRAListTypesAttributes=true", "DRAListTypesAttributes"),
        ("controller.classes[0].name=A", "/controller/classes/0/name"),
        ("controller.classes[0].like=tpu", "/controller/classes/0/like"),
        ("controller.classes[0].policy=pack", "/controller/classes/0/policy"),
        ("deviceClasses.gpu.allocator=nobody", "/deviceClasses/gpu/allocator"),
    ],
)
def test_the_schema_refuses_malformed_values_and_names_them(template: Helm, value: str, place: str) -> None:
    done = template(ENABLED, value)
    assert done.returncode != 0
    assert "values don't meet the specifications of the schema" in done.stderr
    assert place in done.stderr


def test_its_classes_are_labelled_and_select_what_those_of_kube_scheduler_select(render: Render) -> None:
    manifests = render(CONTROLLER)
    own = {name: found for (kind, name), found in manifests.items() if kind == "DeviceClass" and name in CLASSES}
    assert own.keys() == CLASSES
    for name, found in own.items():
        assert found["metadata"]["labels"]["dra-driver.io/allocator"] == "controller"
        like = manifests["DeviceClass", name.replace(".controller", "")]
        assert found["spec"] == like["spec"]
        assert "dra-driver.io/allocator" not in like["metadata"]["labels"]


def test_a_class_of_ones_own_may_have_a_policy(render: Render) -> None:
    values = (f"controller.classes[0].{field}" for field in ("name=packed.example.com", "like=gpu", "policy=binpack"))
    manifests = render(CONTROLLER, *values)
    own = manifests["DeviceClass", "packed.example.com"]
    assert own["metadata"]["annotations"] == {"dra-driver.io/policy": "binpack"}
    assert not [name for _, name in manifests if name in CLASSES]


def test_a_class_of_the_chart_can_be_given_to_it(render: Render) -> None:
    manifests = render(CONTROLLER, "deviceClasses.npu.allocator=controller")
    labelled = [
        name
        for (kind, name), found in manifests.items()
        if kind == "DeviceClass" and "dra-driver.io/allocator" in found["metadata"]["labels"]
    ]
    assert set(labelled) == {*CLASSES, "npu.dra-driver.io"}


def test_policies_are_those_that_the_controller_knows(template: Helm) -> None:
    known = [policy.value for policy in Policy]
    for policy in known:
        assert template(ENABLED, CONTROLLER, f"controller.policy={policy}").returncode == 0
    said = template(ENABLED, CONTROLLER, "controller.policy=x").stderr
    assert all(policy in said for policy in known)


def test_the_role_allows_what_it_needs_and_nothing_else(render: Render) -> None:
    manifests = render(CONTROLLER)
    allowed = {
        (group, resource): set(rule["verbs"])
        for rule in manifests["ClusterRole", NAME]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    read = {"get", "list", "watch"}
    assert allowed == {
        ("", "nodes"): read,
        ("", "pods"): read | {"patch"},
        ("", "events"): {"create", "patch"},
        ("resource.k8s.io", "resourceslices"): read,
        ("resource.k8s.io", "deviceclasses"): read,
        ("resource.k8s.io", "devicetaintrules"): read,
        ("resource.k8s.io", "resourceclaims"): read | {"patch"},
        ("resource.k8s.io", "resourceclaims/status"): {"patch"},
        ("resource.k8s.io", "resourceclaims/binding"): {"patch"},
    }
    leases = manifests["Role", NAME]["rules"]
    assert [(rule["resources"], rule.get("resourceNames"), rule["verbs"]) for rule in leases] == [
        (["leases"], None, ["create"]),
        (["leases"], [NAME], ["get", "update"]),
    ]


def test_roles_and_policies_are_about_the_account_that_it_runs_as(render: Render) -> None:
    manifests = render(CONTROLLER)
    account = pod_of(manifests)["serviceAccountName"]
    assert ("ServiceAccount", account) in manifests
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "dra-driver"}
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        assert manifests[kind, NAME]["subjects"] == [subject]
    for name in ("pods", "claims"):
        [condition] = manifests["ValidatingAdmissionPolicy", f"{NAME}-{name}"]["spec"]["matchConditions"]
        assert condition["expression"] == f'request.userInfo.username == "system:serviceaccount:dra-driver:{account}"'


def test_every_policy_fails_closed_and_denies(render: Render) -> None:
    manifests = render(CONTROLLER)
    for name in (f"{NAME}-pods", f"{NAME}-claims", f"{NAME}-taint"):
        assert manifests["ValidatingAdmissionPolicy", name]["spec"]["failurePolicy"] == "Fail"
        bound = manifests["ValidatingAdmissionPolicyBinding", name]["spec"]
        assert bound == {"policyName": name, "validationActions": ["Deny"]}


def test_it_may_nothing_on_its_node(render: Render) -> None:
    manifests = render(CONTROLLER)
    pod, security = pod_of(manifests), container_of(manifests)["securityContext"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["runAsUser"] > 0
    assert security == {
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC", "volumes"} & pod.keys()


def test_it_is_told_who_it_is_and_what_to_do(render: Render) -> None:
    gates = ("controller.featureGates.DRAListTypeAttributes=true", "controller.featureGates.DRADeviceTaints=false")
    container = container_of(render(CONTROLLER, "controller.policy=binpack", *gates))
    assert container["command"] == [NAME]
    assert {
        "--identity=$(POD_NAME)",
        "--lease-namespace=$(POD_NAMESPACE)",
        f"--lease-name={NAME}",
        "--policy=binpack",
        "--feature-gates=DRADeviceTaints=false,DRAListTypeAttributes=true",
    } <= set(container["args"])
    assert {each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"] for each in container["env"]} == {
        "POD_NAME": "metadata.name",
        "POD_NAMESPACE": "metadata.namespace",
    }


def test_one_of_several_replicas_may_be_drained_at_a_time(render: Render) -> None:
    manifests = render(CONTROLLER, "controller.replicas=3")
    budget = manifests["PodDisruptionBudget", NAME]["spec"]
    labels = manifests["Deployment", NAME]["spec"]["template"]["metadata"]["labels"]
    assert budget["maxUnavailable"] == 1
    assert budget["selector"]["matchLabels"].items() <= labels.items()
    assert ("PodDisruptionBudget", NAME) not in render(CONTROLLER, "controller.replicas=1")


def test_the_two_processes_are_scraped_apart(render: Render) -> None:
    manifests = render(CONTROLLER, "podMonitor.enabled=true", "podMonitor.labels.release=prometheus", "httpPort=9400")
    for kind, name in (("Deployment", NAME), ("DaemonSet", "dra-kubeletplugin")):
        monitor = manifests["PodMonitor", name]
        labels = manifests[kind, name]["spec"]["template"]["metadata"]["labels"]
        others = manifests["DaemonSet" if kind == "Deployment" else "Deployment", _other(name)]
        selected = monitor["spec"]["selector"]["matchLabels"].items()
        assert selected <= labels.items()
        assert not selected <= others["spec"]["template"]["metadata"]["labels"].items()
        assert monitor["metadata"]["labels"]["release"] == "prometheus"
    container = container_of(manifests)
    assert "--http-address=:9400" in container["args"]
    assert container["ports"] == [{"name": "http", "containerPort": 9400}]
    assert {container[f"{probe}Probe"]["httpGet"]["port"] for probe in ("startup", "liveness", "readiness")} == {"http"}


def _other(name: str) -> str:
    return "dra-kubeletplugin" if name == NAME else NAME


def test_the_notes_say_how_to_use_it() -> None:
    text = (CHART / "templates" / "NOTES.txt").read_text("utf-8")
    assert "kubectl label node NODE dra-driver.io/allocator=controller" in text
    assert "schedulingGates: [{name: dra-driver.io/allocation}]" in text
