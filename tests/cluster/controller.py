"""The controller as a process of the tests, so that it can be killed, stopped and replaced at any moment.

It runs beside the control plane and may do what the chart in `deploy/` allows it.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import yaml

from tests.cluster.cluster import Cluster
from tests.cluster.control_plane import SERVER
from tests.cluster.image import PROJECT
from tests.cluster.plugin import DRIVER, NAMESPACE, PluginProcess
from tests.cluster.process import Process  # noqa: TC001 -- as in the other modules
from tests.cluster.scenario import PROFILES, Manifest, run_plugins

SERVICE_ACCOUNT = "dra-controller"
LABEL = "dra-driver.io/allocator"
GATE = "dra-driver.io/allocation"

DEVICE = "device.test.local"
"""A class of the controller's: a whole or shared GPU."""
PART = "part.test.local"
"""A class of the controller's: a partition."""

_CLASSES = ((DEVICE, "accelerator"), (PART, "partition"))
CHART_VALUES = (
    "controller.enabled=true",
    *(f"controller.classes[{i}].name={name}" for i, (name, _) in enumerate(_CLASSES)),
    *(f"controller.classes[{i}].like={like}" for i, (_, like) in enumerate(_CLASSES)),
)

_FIRST_PORT = 8090


class ControllerProcess:
    """`dra-controller`, as a `with` block that ends it.

    `replica` tells several from each other. `flags` are the command's own, with underscores. `server` is for one that
    goes through a proxy.
    """

    def __init__(self, cluster: Cluster, replica: int = 0, *, server: str = SERVER, **flags: object) -> None:
        self.cluster = cluster
        self.identity = f"controller-{replica}"
        self._address = f"127.0.0.1:{_FIRST_PORT + replica}"
        self._server = server
        self._flags = {
            "identity": self.identity,
            "http_address": self._address,
            "log_level": "debug",
            # Whoever is killed does not release its lease, and nobody here waits for 15 seconds.
            "lease_duration": 3,
            "renew_deadline": 2,
            "retry_period": 0.5,
            **flags,
        }
        self.process: Process  # from `start` on

    def __enter__(self) -> Self:
        self.start()
        self.wait_until_ready()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.returncode is None:
            self.process.stop()

    def start(self) -> None:
        """Start the process, without waiting for anything."""
        kubeconfig = self.cluster.token_for(SERVICE_ACCOUNT, NAMESPACE, server=self._server)
        flags = {"kubeconfig": kubeconfig, **self._flags}
        texts = [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
        command = self.cluster.namespace.command((sys.executable, "-P", "-m", "controller", *texts))
        self.process = self.cluster.processes.start(self.identity, command, {"PYTHONPATH": str(PROJECT)})

    def wait_until_ready(self, timeout: float = 30) -> None:
        """Wait until `/readyz` says so, that is: everything is known."""
        self.cluster.wait_for(f"{self.identity} to be ready", self._is_ready, timeout)

    def metrics(self) -> dict[str, float]:
        """Read all samples, by name and labels as they are written."""
        lines = self.cluster.namespace.http_get(f"http://{self._address}/metrics").splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[:1] != "#")}

    @property
    def is_leading(self) -> bool:
        return self.metrics()["dra_controller_leader"] == 1

    def _is_ready(self) -> bool:
        self.process.check()
        return bool(self.cluster.namespace.http_get(f"http://{self._address}/readyz") or True)


@contextmanager
def give_nodes(
    cluster: Cluster, profiles: dict[str, str], given: Sequence[str] = (), **flags: object
) -> Iterator[dict[str, PluginProcess]]:
    """Run plugins on nodes, and give nodes to the controller (all, if none is named)."""
    nodes = given or list(profiles)
    for node in nodes:
        cluster.kubectl("label", "--overwrite", "node", node, f"{LABEL}=controller")
    try:
        with run_plugins(cluster, profiles, CHART_VALUES, **flags) as plugins:
            yield plugins
    finally:
        for node in nodes:
            cluster.kubectl("label", "node", node, f"{LABEL}-")


def gated(pod: Manifest) -> Manifest:
    """Build the same Pod, for which kube-scheduler waits."""
    gates = [*pod["spec"].get("schedulingGates", ()), {"name": GATE}]
    return {**pod, "spec": {**pod["spec"], "schedulingGates": gates}}


def with_policy(claim: Manifest, policy: str) -> Manifest:
    """Build the same claim, to be allocated by a policy."""
    return {**claim, "metadata": {**claim["metadata"], "annotations": {"dra-driver.io/policy": policy}}}


def told(cluster: Cluster, kind: str, name: str) -> list[str]:
    """List what the Events of an object say about why its devices do not fit."""
    events = cluster.events(reason="DevicesDoNotFit")
    about: list[dict[str, Any]] = [event["involvedObject"] | {"text": event["message"]} for event in events]
    return [str(each["text"]) for each in about if (each["kind"], each["name"]) == (kind, name)]


def write_fleet_profile(folder: Path) -> Path:
    """Write a profile of four GPUs: two A100, linked and to be partitioned, and two L40S."""
    groups = []
    for name in ("a100x8", "l40sx4"):
        [group] = yaml.safe_load((PROFILES / f"{name}.yaml").read_text())["devices"]
        groups.append({**group, "count": 2, "slots": group["slots"][:2]})
    path = folder / "fleet.yaml"
    path.write_text(yaml.safe_dump({"devices": groups}))
    return path


def of_model(model: str) -> str:
    """Build the expression that selects a model's GPUs."""
    return f'device.attributes["{DRIVER}"].model == "{model}"'


def of_partition(profile: str) -> str:
    """Build the expression that selects a profile's partitions."""
    return f'device.attributes["{DRIVER}"].partitionProfile == "{profile}"'
