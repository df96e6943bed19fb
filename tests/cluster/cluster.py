"""A real Kubernetes for tests: `with Cluster(nodes=("node-a", "node-b")) as cluster: …`.

Everything of it is in a folder, a cgroup and namespaces of its own, so several can run at once. With `CLUSTER_KEEP=1`
in the environment (and `pytest -s`) a cluster runs on for a look at it until the tests are interrupted.
"""

import builtins
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import yaml

from tests.cluster import image, network, program
from tests.cluster.control_plane import NAMES, SERVER, ControlPlane
from tests.cluster.folder import ClusterFolder
from tests.cluster.host import Host
from tests.cluster.node import Node
from tests.cluster.process import Process, Processes, wait_until

T = TypeVar("T")
Manifest = Mapping[str, Any]

# The kubelet's complaint, every ten seconds, where the root file system has no device by which to find its size.
_NOISE = ("eviction_manager.go", "cri_stats_provider.go")


class Cluster:
    """Control plane and nodes. `feature_gates` go to all components, over the defaults of the release.

    `scheduler_flags` are further flags of kube-scheduler.
    """

    def __init__(
        self,
        nodes: Sequence[str] = ("node-a",),
        feature_gates: Mapping[str, bool] | None = None,
        scheduler_flags: Sequence[str] = (),
    ) -> None:
        self._node_names = tuple(nodes)
        self._scheduler_flags = tuple(scheduler_flags)
        self._gates = dict(feature_gates or {})
        self.nodes: dict[str, Node] = {}

    def __enter__(self) -> Self:
        programs = build_programs()
        self._folder = ClusterFolder.create()
        self.folder = self._folder.path
        self.processes = Processes(self.folder / "logs", self._folder.cgroup)
        self._host = Host(self.folder, self._folder.cgroup, programs, self.processes)
        try:
            self._start()
        except BaseException as error:
            error.add_note(self.tails())
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _start(self) -> None:
        control = self.namespace = network.create_control_namespace(self.processes)
        self.control_plane = ControlPlane(self._host, control, self._gates, self._scheduler_flags)
        self.control_plane.start(self._node_names)
        for index, name in enumerate(self._node_names):
            self.nodes[name] = Node(name, index, self._host, self.control_plane)
            self.nodes[name].start(control)
        images = (image.pause_image(self.folder), image.busybox_image(self.folder))
        for node in self.nodes.values():
            node.wait_for_containerd()
            for archive in images:
                node.import_image(archive)
        self.control_plane.finish()
        for node in self.nodes.values():
            node.start_kubelet(self._gates)
        for name in self.nodes:
            self.wait_for(f"node {name} to be ready", partial(self.is_ready, "node", name))
        # Without it no Pod is admitted.
        self.wait_for("the default service account", partial(self.get, "serviceaccount", "default"))

    def _end(self) -> None:
        """End what is tested first, then the kubelets and their peers; the rest has nothing to lose."""
        if os.environ.get("CLUSTER_KEEP"):
            self._wait_for_interrupt()
        names = [process.name for process in self.processes]
        nodes = [f"{name}-{part}" for name in self._node_names for part in ("kubelet", "containerd", "namespace")]
        self.processes.stop([name for name in names if name not in {*NAMES, *nodes, network.CONTROL}])
        self.processes.stop([name for name in names if name.endswith("-kubelet") or name in NAMES[:2]], timeout=5)
        self._folder.remove()
        self.processes.reap()

    def _wait_for_interrupt(self) -> None:
        command = self.namespace.command((self._host.programs["kubectl"], "--kubeconfig", self.control_plane.admin))
        sys.stderr.write(f"\n{self.folder} runs on until Ctrl-C: {' '.join(map(str, command))}\n")
        with suppress(KeyboardInterrupt):
            signal.pause()

    # Talking to the API server

    def kubectl(self, *arguments: str | Path, stdin: str | None = None, timeout: float = 60) -> str:
        """Run kubectl as an administrator and return its output. Raises `CommandError` if it ends badly."""
        return self.kubectl_as(self.control_plane.admin, *arguments, stdin=stdin, timeout=timeout)

    def kubectl_as(
        self, kubeconfig: Path, *arguments: str | Path, stdin: str | None = None, timeout: float = 60
    ) -> str:
        """Run kubectl with another kubeconfig, as `token_for` gives one."""
        command = (self._host.programs["kubectl"], "--kubeconfig", kubeconfig, *arguments)
        return self.namespace.run(*command, stdin=stdin, timeout=timeout)

    def start_kubectl(self, name: str, *arguments: str) -> Process:
        """Start kubectl as an administrator, with a log of the name that gets what it writes."""
        kubectl, kubeconfig = self._host.programs["kubectl"], self.control_plane.admin
        return self.processes.start(name, self.namespace.command((kubectl, "--kubeconfig", kubeconfig, *arguments)))

    def shell(self, script: str, timeout: float = 60) -> str:
        """Run a shell script as an administrator would: `kubectl` is on the PATH and talks to this cluster."""
        folder = self._host.programs["kubectl"].parent
        environment = {"KUBECONFIG": str(self.control_plane.admin), "PATH": f"{folder}:{os.environ['PATH']}"}
        return self.namespace.run("sh", "-e", "-c", script, timeout=timeout, env=environment)

    def helm(self, *arguments: str | Path, timeout: float = 120) -> str:
        """Run the real helm as an administrator. Its caches are in the cluster's folder."""
        folders = {f"HELM_{name}_HOME": str(self.folder / "helm") for name in ("CACHE", "CONFIG", "DATA")}
        command = (self._host.programs["helm"], "--kubeconfig", self.control_plane.admin, *arguments)
        return self.namespace.run(*command, timeout=timeout, env=folders)

    def apply(self, manifests: str | Manifest | Iterable[Manifest], namespace: str = "default") -> None:
        """Apply YAML text, or one or several objects."""
        if isinstance(manifests, Mapping):
            manifests = (manifests,)
        text = manifests if isinstance(manifests, str) else yaml.safe_dump_all(manifests)
        self.kubectl("apply", "--namespace", namespace, "--filename", "-", stdin=text)

    def delete(self, kind: str, name: str, namespace: str = "default", *, force: bool = False) -> None:
        """Delete an object and wait until it is gone. A Pod with `force` goes without waiting for its containers."""
        how = ("--force", "--grace-period=0") if force else ()
        self.kubectl("delete", kind, name, "--namespace", namespace, "--ignore-not-found", *how)

    def get(self, kind: str, name: str, namespace: str = "default") -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.kubectl("get", kind, name, "--namespace", namespace, "--output=json"))
        return found

    def list(self, kind: str, namespace: str = "default", selector: str = "") -> list[dict[str, Any]]:
        """List the objects of a kind; `namespace` does not matter to kinds that have none."""
        command = ("get", kind, "--namespace", namespace, "--selector", selector, "--output=json")
        found: list[dict[str, Any]] = json.loads(self.kubectl(*command))["items"]
        return found

    def events(self, namespace: str = "default", **fields: str) -> builtins.list[dict[str, Any]]:
        """List the Events whose fields are as told, for instance `reason="PrepareFailed"`."""
        return [
            event
            for event in self.list("events", namespace)
            if all(event.get(field) == value for field, value in fields.items())
        ]

    def is_ready(self, kind: str, name: str, namespace: str = "default") -> bool:
        """Whether the condition `Ready` is true."""
        conditions = self.get(kind, name, namespace).get("status", {}).get("conditions", ())
        return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)

    def wait_for(self, what: str, probe: Callable[[], T | None], timeout: float = 60) -> T:
        """Return the first true answer of `probe`, see `wait_until`; fail if a program of the control plane ended."""
        return wait_until(what, probe, timeout, check=self.check)

    def check(self) -> None:
        """Raise `ProgramEndedError` if a program of the control plane has ended."""
        for name in NAMES:
            if name in [process.name for process in self.processes]:
                self.processes[name].check()

    # Pods

    def wait_for_phase(self, pod: str, phase: str, namespace: str = "default", timeout: float = 60) -> dict[str, Any]:
        """Wait for a Pod's phase (`Running`, `Succeeded`, `Failed`) and return the Pod."""

        def probe() -> dict[str, Any] | None:
            found = self.get("pod", pod, namespace)
            return found if found["status"]["phase"] == phase else None

        return self.wait_for(f"pod {namespace}/{pod} to be {phase}", probe, timeout)

    def pod_logs(self, pod: str, namespace: str = "default", container: str = "", *, previous: bool = False) -> str:
        which = (*(("--container", container) if container else ()), *(("--previous",) if previous else ()))
        return self.kubectl("logs", pod, "--namespace", namespace, *which)

    def exec(self, pod: str, *command: str, namespace: str = "default", container: str = "") -> str:
        which = ("--container", container) if container else ()
        return self.kubectl("exec", pod, "--namespace", namespace, *which, "--", *command)

    # What is tested

    def token_for(self, service_account: str, namespace: str, node: str | None = None, *, server: str = SERVER) -> Path:
        """Write a kubeconfig with a token of the service account, bound to a node as a Pod's is, if one is named.

        `server` is for what goes through something that stands before the API server.
        """
        bound = ("--bound-object-kind=Node", f"--bound-object-name={node}") if node else ()
        token = self.kubectl("create", "token", service_account, "--namespace", namespace, "--duration=2h", *bound)
        user = ".".join(filter(None, (namespace, service_account, node)))
        if server != SERVER:
            user = f"{user}.{server.rpartition(':')[2]}"
        return self.control_plane.write_kubeconfig(user, token.strip(), server)

    def load_image(self, archive: Path) -> None:
        """Give an image to every node."""
        for node in self.nodes.values():
            node.import_image(archive)

    # Looking for the reason of a failure

    def tails(self, lines: int = 15) -> str:
        """Show the ends of all logs."""
        return "\n\n".join(f"--- {process.name}\n{process.tail(lines, _NOISE)}" for process in self.processes)

    def describe(self) -> str:
        """Show what an administrator would look at first."""
        parts = []
        for command in (
            ("get", "pods,resourceclaims,resourceslices,nodes", "--all-namespaces", "--output=wide"),
            ("get", "events", "--all-namespaces", "--sort-by=.metadata.creationTimestamp"),
        ):
            try:
                parts.append(self.kubectl(*command, timeout=10))
            except subprocess.SubprocessError as error:
                parts.append(str(error))
        return "\n".join(parts)


def build_programs() -> dict[str, Path]:
    """Build the programs that are missing and return the path of each by its name."""
    return {
        name: folder / name
        for module in program.ALL
        for folder in (program.build(module),)
        for name, _ in module.packages
    }
