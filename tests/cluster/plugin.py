"""The node plugin as a process of the tests, so that it can be killed, upgraded and looked into at any moment.

It runs where a real one would, in the namespaces of its node and with the default paths, and may do what the chart in
`deploy/` allows it: its API server knows it by the chart's service account, with a token that is bound to the node.
"""

import sys
from pathlib import Path
from typing import Any, Self

import yaml

from tests.cluster.cluster import Cluster
from tests.cluster.image import PROJECT
from tests.cluster.node import DEVICE_DIR
from tests.cluster.process import Process  # noqa: TC001 -- as in the other modules

CHART = PROJECT / "deploy" / "helm" / "dra-driver"
NAMESPACE = "dra-driver"
SERVICE_ACCOUNT = "dra-kubeletplugin"
DRIVER = "accel.dra-driver.io"

# What makes Pods, and what is about them.
_PODS = ("DaemonSet", "Deployment", "PodDisruptionBudget")

_HTTP = "http://127.0.0.1:8080"


def render_chart_without_daemonset(cluster: Cluster, *values: str) -> list[dict[str, Any]]:
    """Render what the chart brings (classes, RBAC, admission policies) but its Pods; `values` as in `helm --set`."""
    sets = [argument for value in ("simulated.enabled=true", *values) for argument in ("--set", value)]
    text = cluster.helm("template", "dra-driver", CHART, "--namespace", NAMESPACE, *sets)
    return [found for found in yaml.safe_load_all(text) if found and found["kind"] not in _PODS]


def apply_chart_without_daemonset(cluster: Cluster, *values: str) -> None:
    """Apply what `render_chart_without_daemonset` gives, and the namespace."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    cluster.apply([namespace, *render_chart_without_daemonset(cluster, *values)], namespace=NAMESPACE)


class PluginProcess:
    """`dra-kubeletplugin` on a node with a profile of simulated devices, as a `with` block that ends it.

    `flags` are the command's own, with underscores: `slots=4` is `--slots=4`. They go before those given here.
    """

    def __init__(self, cluster: Cluster, node: str, profile: str, **flags: object) -> None:
        self.cluster = cluster
        self.node = cluster.nodes[node]
        self.overrides_file = self.node.folder / "overrides.yaml"
        self._flags = {
            "node_name": node,
            "backend": "simulated",
            "simulated_profile": profile,
            "simulated_overrides": self.overrides_file,
            "simulated_dev_dir": DEVICE_DIR,
            "discovery_interval": 0.5,
            "recovery_hold": 0,
            "log_level": "debug",
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
        self.overrides_file.unlink(missing_ok=True)

    def start(self) -> None:
        """Start the process, without waiting for anything."""
        self.override({})
        kubeconfig = self.cluster.token_for(SERVICE_ACCOUNT, NAMESPACE, self.node.name)
        flags = {"kubeconfig": kubeconfig, **self._flags}
        names = {f"--{name.replace('_', '-')}": value for name, value in flags.items()}
        texts = [name if value is True else f"{name}={value}" for name, value in names.items()]
        command = self.node.namespace.command((sys.executable, "-P", "-m", "kubeletplugin", *texts))
        name = f"{self.node.name}-plugin"
        self.process = self.cluster.processes.start(name, command, {"PYTHONPATH": str(PROJECT)})

    def wait_until_ready(self, timeout: float = 30) -> None:
        """Wait until `/readyz` says so, that is: registered with the kubelet."""
        what = f"the plugin of {self.node.name} to be ready"
        self.cluster.wait_for(what, self._is_ready, timeout)

    def restart(self) -> None:
        """Stop in order, start again, wait until ready. `self.process` has `kill` and `start` for the other ways."""
        self.process.restart()
        self.wait_until_ready()

    def override(self, overrides: dict[str, Any]) -> None:
        """Change the simulated devices while the plugin runs, for instance `{"removed": [0]}`; `{}` changes nothing."""
        partial = self.overrides_file.with_suffix(".partial")
        partial.write_text(yaml.safe_dump(overrides))
        partial.rename(self.overrides_file)

    def metrics(self) -> str:
        return self.node.namespace.http_get(f"{_HTTP}/metrics")

    def slices(self) -> list[dict[str, Any]]:
        """List the ResourceSlices of the node as the API server has them."""
        return [found for found in self.cluster.list("resourceslices") if self._is_own(found["spec"])]

    def claim_files(self) -> list[Path]:
        """List the CDI specs of prepared claims."""
        return sorted(self.node.cdi_dir.glob(f"{DRIVER}-claim_*.json"))

    def _is_ready(self) -> bool:
        self.process.check()
        return bool(self.node.namespace.http_get(f"{_HTTP}/readyz") or True)

    def _is_own(self, spec: dict[str, Any]) -> bool:
        return spec["driver"] == DRIVER and spec.get("nodeName") == self.node.name
