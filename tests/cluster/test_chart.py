"""The chart as the real helm renders it. Needs helm, but no cluster."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from dra_driver.devices.simulated import parse_profile, profile_names
from tests.cluster.conftest import ENABLED, Helm, Render
from tests.support.manifest import (
    CHART,
    CLASS_CONDITIONS,
    Manifest,
    class_expression,
    find_values,
    parse_manifests,
    refuse_unknown_fields,
)

CLASSES = ("accelerator.dra-driver.io", "gpu.dra-driver.io", "npu.dra-driver.io", "partition.dra-driver.io")
PROFILE = """\
description: a GPU of our own
devices:
  - {vendor: nvidia, type: gpu, model: "L4", memory: 23034Mi}
"""


def pod_of(manifests: dict[tuple[str, str], Manifest]) -> dict[str, Any]:
    pod: dict[str, Any] = manifests["DaemonSet", "dra-kubeletplugin"]["spec"]["template"]["spec"]
    return pod


def container_of(manifests: dict[tuple[str, str], Manifest]) -> dict[str, Any]:
    [container] = pod_of(manifests)["containers"]
    return dict(container)


def test_lint_finds_nothing(helm: Helm) -> None:
    done = helm("lint", "--strict", CHART, "--set", ENABLED)
    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout


@pytest.mark.parametrize("version", ["1.34.0", "1.35.6", "1.36.6", "1.37.2", "1.34.1-eks-1a2b3c", "1.36.2+k3s1"])
def test_it_renders_for_each_supported_kubernetes_what_that_serves(render: Render, version: str) -> None:
    manifests = render(version=version)
    assert {name for kind, name in manifests if kind == "DeviceClass"} == set(CLASSES)
    for manifest in manifests.values():
        refuse_unknown_fields(manifest)
        assert manifest["apiVersion"].rpartition("/")[2] == "v1"


def test_an_older_kubernetes_is_refused(template: Helm) -> None:
    done = template(ENABLED, version="1.33.9")
    assert done.returncode != 0
    assert "chart requires kubeVersion" in done.stderr


@pytest.mark.parametrize(
    "values",
    [pytest.param((f"simulated.profile={name}",), id=f"profile {name}") for name in profile_names()]
    + [
        pytest.param(("driverName=gpus.example.com",), id="driver name"),
        pytest.param(("kubeletDir=/var/lib/k0s/kubelet", "cdiDir=/etc/cdi"), id="paths"),
        pytest.param(("image.digest=sha256:" + "0" * 64, "imagePullSecrets[0].name=registry"), id="image"),
        pytest.param(("kubeletPlugin.maxSurge=10%",), id="percentage"),
        pytest.param(("kubeletPlugin.nodeSelector.accelerator=yes",), id="node selector"),
        pytest.param(("kubeletPlugin.tolerations=null",), id="no tolerations"),
        pytest.param(("kubeletPlugin.seLinuxOptions.type=spc_t",), id="SELinux"),
        pytest.param(("kubeletPlugin.extraEnv[0].name=A", "kubeletPlugin.extraEnv[0].value=b"), id="environment"),
        pytest.param(("kubeletPlugin.podAnnotations.a=b", "kubeletPlugin.podLabels.c=d"), id="annotations"),
        pytest.param(("deviceClasses.gpu.extendedResourceName=example.com/gpu",), id="extended resource"),
        pytest.param(("simulated.overrides=removed: [0]", "shareUnenforced=true", "slots=10000"), id="sharing"),
    ],
)
def test_kubernetes_knows_every_field_whatever_the_values(render: Render, values: tuple[str, ...]) -> None:
    for manifest in render(*values).values():
        refuse_unknown_fields(manifest)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        pytest.param(("simulated.enabled=false",), "No backend is enabled", id="no backend"),
        pytest.param((ENABLED, "simulated.profile=custom"), "simulated.customProfile is empty", id="no custom profile"),
        pytest.param((ENABLED, "simulated.customProfile=x"), "Set simulated.profile=custom", id="unused profile"),
        pytest.param(
            (ENABLED, f"kubeletDir=/{'a' * 70}"), "driverName may have at most 9 characters", id="long socket path"
        ),
        pytest.param(
            (ENABLED, *(f"deviceClasses.{name}.extendedResourceName=example.com/x" for name in ("gpu", "npu"))),
            "'gpu' and 'npu' have the same extendedResourceName 'example.com/x'",
            id="one name for two classes",
        ),
        pytest.param(
            ("nvidia.enabled=true", "nvidia.driverRoot=/home/kubernetes/bin/nvidia", "mps.enabled=true"),
            "nvidia.driverRoot '/home/kubernetes/bin/nvidia' is GKE's folder",
            id="MPS on GKE",
        ),
    ],
)
def test_values_that_cannot_work_are_refused_with_a_sentence(
    template: Helm, values: tuple[str, ...], message: str
) -> None:
    done = template(*values)
    assert done.returncode != 0
    assert message in done.stderr
    [sentence] = [line for line in done.stderr.splitlines() if message in line and not line.startswith("level=")]
    assert sentence.endswith(".")


def test_all_that_cannot_work_is_told_at_once(template: Helm) -> None:
    done = template("sharing.strategy=MPS", "simulated.profile=custom", "deviceClasses.gpu.allocator=controller")
    assert done.returncode != 0
    for message in ("No backend", "so no MPS daemon", "customProfile is empty", "no controller is installed"):
        assert message in done.stderr


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(("nvidia.driverRoot=/home/kubernetes/bin/nvidia",), id="GKE without MPS"),
        pytest.param(("nvidia.driverRoot=/run/nvidia/driver", "mps.enabled=true"), id="MPS with a driver container"),
    ],
)
def test_the_root_of_the_driver_may_be_anywhere_but_where_mps_cannot_run(
    render: Render, values: tuple[str, ...]
) -> None:
    assert ("DaemonSet", "dra-kubeletplugin") in render("nvidia.enabled=true", *values)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ("simulatd.enabled=true", "simulatd"),
        ("kubeletPlugin.tolerations[0].efect=NoSchedule", "efect"),
        ("kubeletDir=var/lib/kubelet", "/kubeletDir"),
        ("kubeletDir=/var/lib/kubelet/", "/kubeletDir"),
        ("cdiDir=/var/run/../etc", "/cdiDir"),
        ("driverName=Accel.example.com", "/driverName"),
        ('driverName=a.b" || true', "/driverName"),
        ("image.pullPolicy=Sometimes", "/image/pullPolicy"),
        ("image.digest=0123", "/image/digest"),
        ("httpPort=0", "/httpPort"),
        ("slots=0", "/slots"),
        ("discoveryIntervalSeconds=0", "/discoveryIntervalSeconds"),
        ("log.level=loud", "/log/level"),
        ("simulated.profile=../etc/passwd", "/simulated/profile"),
        ("kubeletPlugin.maxSurge=0", "/kubeletPlugin/maxSurge"),
        ("deviceClasses.gpu.extendedResourceName=gpu", "/deviceClasses/gpu/extendedResourceName"),
        ("deviceClasses.gpu.extendedResourceName=kubernetes.io/gpu", "/deviceClasses/gpu/extendedResourceName"),
        ("deviceClasses.tpu.extendedResourceName=a.b/c", "tpu"),
    ],
)
def test_the_schema_refuses_malformed_values_and_names_them(template: Helm, value: str, place: str) -> None:
    done = template(ENABLED, value)
    assert done.returncode != 0
    assert "values don't meet the specifications of the schema" in done.stderr
    assert place in done.stderr


def test_it_does_not_disturb_a_chart_that_contains_it(template: Helm) -> None:
    assert template(ENABLED, "global.imageRegistry=example.com").returncode == 0


def test_the_policy_is_about_the_account_that_the_plugin_runs_as(render: Render) -> None:
    manifests = render()
    account = pod_of(manifests)["serviceAccountName"]
    assert ("ServiceAccount", account) in manifests
    binding = manifests["ClusterRoleBinding", "dra-kubeletplugin"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": account, "namespace": "dra-driver"}]
    policy = manifests["ValidatingAdmissionPolicy", "dra-kubeletplugin"]["spec"]
    [condition] = policy["matchConditions"]
    assert condition["expression"] == f'request.userInfo.username == "system:serviceaccount:dra-driver:{account}"'
    bound = manifests["ValidatingAdmissionPolicyBinding", "dra-kubeletplugin"]["spec"]
    assert bound == {"policyName": "dra-kubeletplugin", "validationActions": ["Deny"]}


def test_the_policy_covers_every_version_and_every_way_to_write_a_slice(render: Render) -> None:
    policy = render("driverName=gpus.example.com")["ValidatingAdmissionPolicy", "dra-kubeletplugin"]["spec"]
    assert policy["failurePolicy"] == "Fail"
    assert policy["matchConstraints"]["resourceRules"] == [
        {
            "apiGroups": ["resource.k8s.io"],
            "apiVersions": ["v1", "v1beta1", "v1beta2"],
            "operations": ["CREATE", "UPDATE", "DELETE"],
            "resources": ["resourceslices"],
        }
    ]
    assert 'variables.spec.driver == "gpus.example.com"' in find_values(policy, "expression")


def test_the_role_allows_what_the_plugin_needs_and_nothing_else(render: Render) -> None:
    rules = render()["ClusterRole", "dra-kubeletplugin"]["rules"]
    allowed = {
        (group, resource): set(rule["verbs"])
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert allowed == {
        ("", "nodes"): {"get", "list", "watch"},
        ("", "events"): {"create", "patch"},
        ("resource.k8s.io", "resourceslices"): {"get", "list", "watch", "create", "update", "patch", "delete"},
        ("resource.k8s.io", "resourceclaims"): {"get"},
        ("resource.k8s.io", "resourceclaims/status"): {"patch"},
        ("resource.k8s.io", "resourceclaims/driver"): {"associated-node:patch"},
    }
    [own] = [rule for rule in rules if "resourceclaims/driver" in rule["resources"]]
    assert own["resourceNames"] == ["accel.dra-driver.io"]


def test_the_plugin_has_one_capability_and_no_way_to_more(render: Render) -> None:
    manifests = render()
    security = container_of(manifests)["securityContext"]
    assert security["capabilities"] == {"drop": ["ALL"], "add": ["MKNOD"]}
    assert (security["privileged"], security["allowPrivilegeEscalation"]) == (False, False)
    assert security["readOnlyRootFilesystem"]
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod_of(manifests).keys()


def test_every_folder_of_the_host_is_mounted_at_its_own_path(render: Render) -> None:
    manifests = render("kubeletDir=/data/kubelet", "cdiDir=/etc/cdi", "driverName=gpus.example.com")
    mounted = {mount["name"]: mount["mountPath"] for mount in container_of(manifests)["volumeMounts"]}
    host = {volume["name"]: volume["hostPath"]["path"] for volume in pod_of(manifests)["volumes"]}
    assert mounted == host
    assert set(host.values()) == {
        "/data/kubelet/plugins/gpus.example.com",
        "/data/kubelet/plugins_registry",
        "/data/kubelet/pod-resources",
        "/etc/cdi",
        "/dev/dra-driver",
    }
    arguments = container_of(manifests)["args"]
    assert {"--kubelet-dir=/data/kubelet", "--cdi-dir=/etc/cdi", "--driver-name=gpus.example.com"} <= set(arguments)


def test_what_clients_of_mps_daemons_leave_in_memory_is_within_reach(render: Render) -> None:
    manifests = render("mps.enabled=true", "driverName=gpus.example.com")
    path = "/dev/shm/gpus.example.com-mps"
    assert {"name": "mps-memory", "mountPath": path} in container_of(manifests)["volumeMounts"]
    assert {"name": "mps-memory", "hostPath": {"path": path, "type": "DirectoryOrCreate"}} in pod_of(manifests)[
        "volumes"
    ]
    policy = manifests["ValidatingAdmissionPolicy", "dra-kubeletplugin-mps"]["spec"]
    assert any(f'startsWith("{path}/")' in each for each in find_values(policy, "expression"))


def test_mps_daemons_have_an_account_that_pulls_their_image_and_may_do_nothing(render: Render) -> None:
    manifests = render("mps.enabled=true", "imagePullSecrets[0].name=registry")
    account = manifests["ServiceAccount", "dra-mps-daemon"]
    assert (account["imagePullSecrets"], account["automountServiceAccountToken"]) == ([{"name": "registry"}], False)
    assert "--mps-service-account=dra-mps-daemon" in container_of(manifests)["args"]
    subjects = [subject for manifest in manifests.values() for subject in manifest.get("subjects", ())]
    assert "dra-mps-daemon" not in {subject["name"] for subject in subjects}


def test_a_profile_of_ones_own_reaches_the_plugin_as_it_was_written(helm: Helm, tmp_path: Path) -> None:
    profile, overrides = tmp_path / "profile.yaml", tmp_path / "overrides.yaml"
    profile.write_text(PROFILE)
    overrides.write_text("  \nunhealthy: {0: {reason: xid-79}}\n")
    files = (f"simulated.customProfile={profile}", f"simulated.overrides={overrides}")
    settings = ("--set", f"{ENABLED},simulated.profile=custom", *(f"--set-file={file}" for file in files))
    manifests = {
        (manifest["kind"], manifest["metadata"]["name"]): manifest
        for manifest in parse_manifests(helm("template", "rendered", CHART, *settings).stdout)
    }
    data = manifests["ConfigMap", "dra-kubeletplugin-simulated"]["data"]
    assert data == {"profile.yaml": profile.read_text(), "overrides.yaml": overrides.read_text()}
    assert parse_profile(data["profile.yaml"]).devices[0].model == "L4"
    [folder] = [each for each in container_of(manifests)["volumeMounts"] if each["name"] == "simulated-files"]
    arguments = container_of(manifests)["args"]
    assert f"--simulated-profile={folder['mountPath']}/profile.yaml" in arguments
    assert f"--simulated-overrides={folder['mountPath']}/overrides.yaml" in arguments


def test_pods_restart_for_a_new_profile_but_not_for_new_overrides(render: Render) -> None:
    def pod_template(*values: str) -> Manifest:
        manifest = render("simulated.profile=custom", *values)["DaemonSet", "dra-kubeletplugin"]["spec"]["template"]
        return dict(manifest)

    one = pod_template("simulated.customProfile=a", "simulated.overrides=a")
    assert pod_template("simulated.customProfile=a", "simulated.overrides=b") == one
    assert pod_template("simulated.customProfile=b", "simulated.overrides=a") != one


def test_an_update_starts_the_new_pod_first_under_sockets_of_its_own(render: Render) -> None:
    manifests = render("kubeletPlugin.maxSurge=2")
    strategy = manifests["DaemonSet", "dra-kubeletplugin"]["spec"]["updateStrategy"]
    assert strategy == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": 0}}
    container = container_of(manifests)
    assert "--pod-uid=$(POD_UID)" in container["args"]
    assert {"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}} in container["env"]
    # Two Pods could not have the same port of the host.
    assert "hostNetwork" not in pod_of(manifests)
    assert not any("hostPort" in port for port in container["ports"])


def test_probes_and_metrics_are_on_the_port_that_the_plugin_listens_on(render: Render) -> None:
    manifests = render("httpPort=9400", "podMonitor.enabled=true", "podMonitor.labels.release=prometheus")
    container = container_of(manifests)
    assert "--http-address=:9400" in container["args"]
    [port] = container["ports"]
    assert port == {"name": "http", "containerPort": 9400}
    probes = {name: container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
    assert {name: probe["path"] for name, probe in probes.items()} == {
        "startup": "/healthz",
        "liveness": "/healthz",
        "readiness": "/readyz",
    }
    monitor = manifests["PodMonitor", "dra-kubeletplugin"]
    assert {each["port"] for each in (*probes.values(), *monitor["spec"]["podMetricsEndpoints"])} == {"http"}
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    labels = manifests["DaemonSet", "dra-kubeletplugin"]["spec"]["template"]["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_by_default_the_plugin_is_on_every_node_whatever_its_taints(render: Render) -> None:
    pod = pod_of(render())
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert pod["priorityClassName"] == "system-node-critical"
    assert not {"nodeSelector", "affinity"} & pod.keys()


def test_classes_select_by_driver_first_then_by_attributes_that_every_device_has(render: Render) -> None:
    manifests = render("driverName=gpus.example.com", "deviceClasses.npu.extendedResourceName=example.com/npu")
    for name in CLASS_CONDITIONS:
        spec = manifests["DeviceClass", f"{name}.dra-driver.io"]["spec"]
        assert spec["selectors"] == [{"cel": {"expression": class_expression(name, "gpus.example.com")}}]
        assert spec.get("extendedResourceName") == ("example.com/npu" if name == "npu" else None)


@pytest.mark.parametrize(("version", "names_gates"), [("1.35.0", True), ("1.36.0", False)])
def test_the_notes_name_the_gates_that_are_off(
    template: Helm,
    tmp_path: Path,
    version: str,
    names_gates: bool,
) -> None:
    chart = tmp_path / "chart"
    shutil.copytree(CHART, chart)
    # Helm prints notes of a cluster's version only, so an ordinary template renders them here.
    (chart / "templates" / "NOTES.txt").rename(chart / "notes")
    (chart / "templates" / "notes.yaml").write_text('{kind: Notes, text: {{ tpl (.Files.Get "notes") . | toJson }}}')
    done = template(ENABLED, version=version, chart=chart)
    [notes] = [each["text"] for each in parse_manifests(done.stdout) if each["kind"] == "Notes"]
    assert ("DRAConsumableCapacity" in notes) is names_gates
    assert "SIMULATED (profile h100x8)" in notes
    assert all(name in notes for name in CLASSES)
