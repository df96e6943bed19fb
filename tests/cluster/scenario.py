"""What the scenarios share: plugins on the nodes, builders of manifests, what a container sees, what a node holds."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.cluster import Cluster
from tests.cluster.image import BUSYBOX, PROJECT
from tests.cluster.node import Node
from tests.cluster.plugin import (
    DRIVER,
    NAMESPACE,
    PluginProcess,
    apply_chart_without_daemonset,
    render_chart_without_daemonset,
)

Manifest = dict[str, Any]

PROFILES = PROJECT / "dra_driver" / "devices" / "simulated" / "profiles"
SHIM_FOLDER = "/etc/dra-driver/shim.d"

# The shell is the container's first process, which gets only the signals that it asks for.
SLEEP = "trap 'exit 0' TERM; sleep 3600 & wait"

_LOOK = "find /dev -type c -exec stat -c '%n %t %T' {} +; echo; tr '\\0' '\\n' </proc/1/environ; echo; cat /proc/mounts"


# Manifests


def a_request(
    name: str = "device",
    device_class: str = "gpu.dra-driver.io",
    *selectors: str,
    capacity: Mapping[str, str] | None = None,
    **fields: Any,
) -> Manifest:
    """Build a request for one device: CEL expressions, amounts of capacity, other fields as in the API."""
    return {"name": name, "exactly": _alternative(device_class, selectors, capacity, fields)}


def an_alternative(
    name: str, device_class: str, *selectors: str, capacity: Mapping[str, str] | None = None, **fields: Any
) -> Manifest:
    """Build an entry of `firstAvailable`."""
    return {"name": name, **_alternative(device_class, selectors, capacity, fields)}


def _alternative(
    device_class: str, selectors: tuple[str, ...], capacity: Mapping[str, str] | None, fields: Mapping[str, Any]
) -> Manifest:
    found: Manifest = {"deviceClassName": device_class, **fields}
    if selectors:
        found["selectors"] = [{"cel": {"expression": expression}} for expression in selectors]
    if capacity:
        found["capacity"] = {"requests": dict(capacity)}
    return found


def a_claim(name: str, *requests: Manifest, **devices: Any) -> Manifest:
    """Build a claim, by default for one whole GPU; `devices` are further fields of `spec.devices`."""
    spec = {"devices": {"requests": list(requests) or [a_request()], **devices}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}, "spec": spec}


def a_claim_template(name: str, *requests: Manifest, **devices: Any) -> Manifest:
    claim = a_claim(name, *requests, **devices)
    return {**claim, "kind": "ResourceClaimTemplate", "spec": {"spec": claim["spec"]}}


def a_config(policy: str) -> Manifest:
    """Build an opaque config of the driver with a sharing policy."""
    parameters = {
        "apiVersion": "resource.dra-driver.io/v1alpha1",
        "kind": "DeviceConfig",
        "sharing": {"policy": policy},
    }
    return {"opaque": {"driver": DRIVER, "parameters": parameters}}


def a_pod(
    name: str, *claims: str, template: str = "", node: str = "", restart: str = "Never", **container: Any
) -> Manifest:
    """Build a Pod that waits to be deleted, with claims of those names, or one from a template.

    `node` leaves kube-scheduler no choice of a node. `restart` is the restart policy. `container` are further fields of
    its container, `main`.
    """
    sources = [{"name": claim, "resourceClaimName": claim} for claim in claims]
    if template:
        sources.append({"name": template, "resourceClaimTemplateName": template})
    spec: Manifest = {
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": 5,
        "containers": [
            {
                "name": "main",
                "image": BUSYBOX,
                "imagePullPolicy": "Never",
                "command": ["sh", "-c", SLEEP],
                "resources": {"claims": [{"name": source["name"]} for source in sources]},
                **container,
            }
        ],
        "resourceClaims": sources,
    }
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def write_profile(folder: Path, name: str, *, gpus: int) -> Path:
    """Write a profile of one's own: the first GPUs of a built-in one."""
    [group] = yaml.safe_load((PROFILES / f"{name}.yaml").read_text())["devices"]
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump({"devices": [{**group, "count": gpus, "slots": group["slots"][:gpus]}]}))
    return path


# What is running


@contextmanager
def run_plugins(
    cluster: Cluster, profiles: Mapping[str, str], values: Sequence[str] = (), **flags: object
) -> Iterator[dict[str, PluginProcess]]:
    """Run a plugin on each node that is named, with that profile, and leave the cluster as it was.

    `values` are the chart's, as in `helm --set`.
    """
    apply_chart_without_daemonset(cluster, *values)
    plugins = {node: PluginProcess(cluster, node, profile, **flags) for node, profile in profiles.items()}
    try:
        with ExitStack() as running:
            for plugin in plugins.values():
                plugin.start()
                running.push(plugin)
            for plugin in plugins.values():
                plugin.wait_until_ready()
            yield plugins
    finally:
        cluster.kubectl("delete", "resourceslices", "--all")
        remove(cluster, *render_chart_without_daemonset(cluster, *values), namespace=NAMESPACE)


def remove(cluster: Cluster, *manifests: Manifest, namespace: str = "default") -> None:
    """Delete objects and wait until they are gone; those that are not there are gone already."""
    text = yaml.safe_dump_all(manifests)
    cluster.kubectl("delete", "--namespace", namespace, "--ignore-not-found", "--filename", "-", stdin=text)


class Workload:
    """The objects of one test. `remove` takes away all of them, and sees to it that nothing is left on the nodes."""

    def __init__(self, cluster: Cluster, namespace: str = "default") -> None:
        self.cluster = cluster
        self.namespace = namespace
        self._applied: list[Manifest] = []

    def apply(self, *manifests: Manifest) -> None:
        self._applied += manifests
        self.cluster.apply(manifests, self.namespace)

    def run(self, *manifests: Manifest) -> None:
        """Apply, and wait until every Pod among the objects is running."""
        self.apply(*manifests)
        for manifest in manifests:
            if manifest["kind"] == "Pod":
                self.wait_for_phase(manifest["metadata"]["name"], "Running")

    def wait_for_phase(self, pod: str, phase: str) -> Manifest:
        return self.cluster.wait_for_phase(pod, phase, self.namespace)

    def wait_until_unschedulable(self, pod: str) -> str:
        """Wait until kube-scheduler has found no place for a Pod, and return what it says."""

        def probe() -> str | None:
            found = self.cluster.get("pod", pod, self.namespace)
            assert found["status"]["phase"] == "Pending", found["status"]
            conditions = found["status"].get("conditions", ())
            refused = (c for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False")
            return next((str(condition["message"]) for condition in refused), None)

        return self.cluster.wait_for(f"pod {pod} to be unschedulable", probe)

    def claim(self, name: str) -> Manifest:
        return self.cluster.get("resourceclaim", name, self.namespace)

    def claim_of(self, pod: str) -> Manifest:
        """Get the claim that was made for a Pod from a template."""
        [status] = self.cluster.get("pod", pod, self.namespace)["status"]["resourceClaimStatuses"]
        return self.claim(status["resourceClaimName"])

    def container_id(self, pod: str) -> str:
        """Give the ID of a Pod's container, which changes when the container is started again."""
        [status] = self.cluster.get("pod", pod, self.namespace)["status"]["containerStatuses"]
        return str(status["containerID"])

    def restart_containers(self, *pods: str) -> None:
        """Kill the Pods' containers as a crash would, and wait until the kubelet has started others."""
        before = {pod: self.container_id(pod) for pod in pods}
        for pod, container in before.items():
            node = self.cluster.get("pod", pod, self.namespace)["spec"]["nodeName"]
            self.cluster.nodes[node].kill_container(container)
        self.wait_for_restart(before)

    def wait_for_restart(self, before: Mapping[str, str]) -> None:
        """Wait until each of the Pods runs another container than the one with that ID."""

        def runs_another(pod: str) -> bool:
            [status] = self.cluster.get("pod", pod, self.namespace)["status"]["containerStatuses"]
            return status.get("containerID", before[pod]) != before[pod] and "running" in status["state"]

        for pod in before:
            self.cluster.wait_for(f"the container of {pod} to run again", lambda pod=pod: runs_another(pod))  # type: ignore[misc]

    def see(self, pod: str, container: str = "main") -> "View":
        return see(self.cluster, pod, self.namespace, container)

    def exec(self, pod: str, script: str, container: str = "main") -> str:
        """Run a shell script in a container."""
        return self.cluster.exec(pod, "sh", "-c", script, namespace=self.namespace, container=container)

    def shims(self, pod: str, container: str = "main") -> list[str]:
        """Read the shim configs that a container sees, in the order of their names."""
        text = self.exec(pod, f"for file in {SHIM_FOLDER}/*; do cat $file && echo; done", container)
        return [part + "\n" for part in text.split("\n\n") if part]

    def delete(self, kind: str, name: str) -> None:
        self.cluster.delete(kind, name, self.namespace)

    def remove(self) -> None:
        """Delete everything that was applied and wait until no claim is left, nor any trace of one on a node."""
        pods = [manifest for manifest in self._applied if manifest["kind"] == "Pod"]
        others = [manifest for manifest in self._applied if manifest["kind"] != "Pod"]
        for manifests in filter(None, (pods, others)):
            remove(self.cluster, *manifests, namespace=self.namespace)
        self._applied.clear()
        self.cluster.wait_for("claims to be gone", lambda: not self.cluster.list("resourceclaims", self.namespace))
        for node in self.cluster.nodes.values():
            self.cluster.wait_for(f"{node.name} to hold no claim", lambda node=node: not held(node))  # type: ignore[misc]


@contextmanager
def run_workload(*plugins: PluginProcess) -> Iterator[Workload]:
    """Give a test its objects, and remove them with the help of the plugins, which are started if they do not run."""
    workload = Workload(plugins[0].cluster)
    try:
        yield workload
    finally:
        for plugin in plugins:
            if plugin.process.returncode is not None:
                plugin.process.start()
                plugin.wait_until_ready()
        workload.remove()


def results(claim: Manifest) -> list[Manifest]:
    """Give the allocation results of a claim."""
    found: list[Manifest] = claim["status"]["allocation"]["devices"]["results"]
    return found


def device_of(claim: Manifest) -> tuple[str, str]:
    """Give node and device of a claim that has one device."""
    [result] = results(claim)
    return result["pool"], result["device"]


def attributes_of(plugin: PluginProcess, device: str) -> dict[str, Any]:
    """Give the attributes of a published device, without their types."""
    [found] = [each for part in plugin.slices() for each in part["spec"].get("devices", ()) if each["name"] == device]
    return {name: value for name, typed in found["attributes"].items() for value in typed.values()}


# What a container sees


@dataclass(frozen=True, slots=True)
class View:
    """Device nodes with major and minor, variables, and mount points with their options."""

    devices: dict[str, tuple[int, int]]
    environment: dict[str, str]
    mounts: dict[str, tuple[str, ...]]

    @property
    def given(self) -> set[str]:
        """List the simulated devices that were given, partitions included, by name."""
        prefix = "SIMULATED_DEVICE_"
        names = {name.removeprefix(prefix) for name in self.environment if name.startswith(prefix)}
        return {name.lower().replace("_", "-") for name in names}

    def beyond(self, other: "View") -> "View":
        """Give what is here and not, or not so, in the other view."""
        return View(
            *(
                {name: value for name, value in mine.items() if theirs.get(name) != value}
                for mine, theirs in (
                    (self.devices, other.devices),
                    (self.environment, other.environment),
                    (self.mounts, other.mounts),
                )
            )  # type: ignore[arg-type]
        )


def see(cluster: Cluster, pod: str, namespace: str = "default", container: str = "main") -> View:
    """Look around in a container. What differs from Pod to Pod by nature, its name and its root, is left out."""
    text = cluster.exec(pod, "sh", "-c", _LOOK, namespace=namespace, container=container)
    devices, environment, mounts = (part.splitlines() for part in text.split("\n\n"))
    fields = [line.split() for line in devices]
    variables = dict(line.split("=", 1) for line in environment)
    return View(
        devices={path: (int(major, 16), int(minor, 16)) for path, major, minor in fields},
        environment={name: value for name, value in variables.items() if name != "HOSTNAME"},
        mounts={
            point: tuple(options.split(","))
            for _, point, _, options, *_ in (line.split() for line in mounts)
            if point != "/"
        },
    )


# What a node holds


def plugin_dir(node: Node) -> Path:
    return node.kubelet_dir / "plugins" / DRIVER


def held(node: Node) -> set[str]:
    """List what is on a node for claims: CDI specs, claim records, shim configs and partitions, by path."""
    state = plugin_dir(node)
    folders = (("cdi", node.cdi_dir), ("claims", state / "claims"), ("shim", state / "shim"))
    found = {f"{name}/{path.name}" for name, folder in folders if folder.is_dir() for path in folder.glob("[!.]*")}
    return found | {f"partitions/{path.name}" for path in (state / "simulated" / "partitions").glob("[!.]*")}
