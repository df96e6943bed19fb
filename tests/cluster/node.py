"""A node of a cluster: containerd and kubelet in namespaces of their own.

To all that runs in it, the node looks like a machine of its own, with the usual paths. On the machine of the tests the
folder of a node holds them:

    kubelet/   /var/lib/kubelet   the kubelet's root directory, with the sockets of plugins
    run/       /run               containerd's socket and state
    run/cdi/   /var/run/cdi       the only CDI directory
    dev/       /dev/dra-driver    device nodes of pretended devices
    cni/                          network configuration and address leases
"""

import json
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cluster import network
from tests.cluster.control_plane import ControlPlane, render_gates
from tests.cluster.host import Host
from tests.cluster.image import BUSYBOX, PAUSE
from tests.cluster.network import Namespace
from tests.cluster.process import Process, wait_until

KUBELET_DIR = Path("/var/lib/kubelet")
CDI_DIR = Path("/var/run/cdi")
DEVICE_DIR = Path("/dev/dra-driver")

_CONTAINERD_SOCKET = "/run/containerd/containerd.sock"

# restrict_oom_score_adj: where root lacks CAP_SYS_RESOURCE, runc may not lower a score and gives up.
_CONTAINERD = """
version = 3
root = "{folder}/containerd"
state = "/run/containerd"
[grpc]
  address = "{socket}"
[plugins.'io.containerd.cri.v1.runtime']
  enable_cdi = true
  cdi_spec_dirs = ["{cdi}"]
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["/usr/lib/cni", "/opt/cni/bin"]
    conf_dir = "{folder}/cni"
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      SystemdCgroup = false
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "{pause}"
"""


class Node:
    """One node. `namespace` is where its programs run, and where a plugin that is tested belongs."""

    def __init__(
        self,
        name: str,
        index: int,
        host: Host,
        control_plane: ControlPlane,
    ) -> None:
        self.name = name
        self.index = index
        self.folder = host.folder / name
        self.namespace: Namespace
        self._host = host
        self._control_plane = control_plane

    @property
    def kubelet_dir(self) -> Path:
        """`/var/lib/kubelet` of the node, as the tests see it."""
        return self.folder / "kubelet"

    @property
    def cdi_dir(self) -> Path:
        """`/var/run/cdi` of the node, as the tests see it."""
        return self.folder / "run" / "cdi"

    @property
    def containerd(self) -> Process:
        return self._host.processes[f"{self.name}-containerd"]

    @property
    def kubelet(self) -> Process:
        """Its `restart` keeps the state below `/var/lib/kubelet`, as on a real node."""
        return self._host.processes[f"{self.name}-kubelet"]

    def start(self, control: Namespace) -> None:
        """Start the namespace and containerd, which needs no API server."""
        for name in ("kubelet", "run/cdi", "dev", "cni", "cni-cache"):
            (self.folder / name).mkdir(parents=True)
        mounts = {
            Path("/run"): self.folder / "run",
            KUBELET_DIR: self.kubelet_dir,
            DEVICE_DIR: self.folder / "dev",
            Path("/var/lib/cni"): self.folder / "cni-cache",
            # Unpacked images: on a disk, removing them took longer than all the rest.
            self.folder / "containerd": None,
        }
        self.namespace = network.create_node_namespace(self._host.processes, control, self.name, self.index, mounts)
        self._write_network_config()
        config = self.folder / "containerd.toml"
        config.write_text(_CONTAINERD.format(folder=self.folder, socket=_CONTAINERD_SOCKET, cdi=CDI_DIR, pause=PAUSE))
        command = self.namespace.command((self._host.programs["containerd"], "--config", config))
        shims = str(self._host.programs["containerd-shim-runc-v2"].parent)
        self._host.processes.start(
            f"{self.name}-containerd", command, {"PATH": f"{shims}:/usr/sbin:/usr/bin:/sbin:/bin"}
        )

    def wait_for_containerd(self, timeout: float = 30) -> None:
        what = f"containerd of {self.name}"
        wait_until(what, lambda: self.ctr("version"), timeout, check=self.containerd.check)

    def start_kubelet(self, feature_gates: Mapping[str, bool]) -> None:
        config = self.folder / "kubelet.json"
        config.write_text(json.dumps(self._kubelet_config(self._host.cgroup.create_child(self.name)), indent=1))
        flags = (
            f"--config={config}",
            f"--kubeconfig={self._control_plane.kubeconfig(self.name)}",
            f"--root-dir={KUBELET_DIR}",
            f"--hostname-override={self.name}",
            f"--node-ip={network.node_address(self.index)}",
            *render_gates(feature_gates),
        )
        self._host.processes.start(
            f"{self.name}-kubelet", self.namespace.command((self._host.programs["kubelet"], *flags))
        )

    def ctr(self, *arguments: str | Path, timeout: float = 60) -> str:
        """Run containerd's own client in the namespace in which Kubernetes keeps its images and containers."""
        address = ("--address", _CONTAINERD_SOCKET, "--namespace", "k8s.io")
        return self.namespace.run(self._host.programs["ctr"], *address, *arguments, timeout=timeout)

    def import_image(self, archive: Path) -> None:
        self.ctr("images", "import", archive)

    def run_with_cdi_device(self, device: str, *command: str) -> str:
        """Run a busybox container, without Kubernetes, to which containerd's own library applies a CDI device."""
        return self.run_with_cdi_devices((device,), *command)

    def run_with_cdi_devices(self, devices: Sequence[str], *command: str) -> str:
        """Likewise with several devices. An error names those that the library did not find in any spec it accepts."""
        cgroup = f"{self._host.cgroup.create_child('ctr')}/{secrets.token_hex(4)}"
        flags = [argument for device in devices for argument in ("--device", device)]
        return self.ctr("run", "--rm", *flags, "--cgroup", cgroup, BUSYBOX, secrets.token_hex(4), *command)

    def kill_container(self, container_id: str) -> None:
        """Kill a container as a crash would; `container_id` as in a Pod's status (`containerd://…`) or bare."""
        self.ctr("tasks", "kill", "--signal", "SIGKILL", container_id.rpartition("/")[2])

    def _write_network_config(self) -> None:
        bridge = {
            "type": "bridge",
            "bridge": "pods",
            "isGateway": True,
            "ipam": {
                "type": "host-local",
                "dataDir": str(self.folder / "cni" / "leases"),
                "subnet": network.pod_range(self.index),
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }
        config = {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge]}
        (self.folder / "cni" / "10-pods.conflist").write_text(json.dumps(config, indent=1))

    def _kubelet_config(self, cgroup: str) -> dict[str, object]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "failCgroupV1": False,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": cgroup,
            "containerRuntimeEndpoint": f"unix://{_CONTAINERD_SOCKET}",
            "podLogsDir": str(self.folder / "pod-logs"),
            "resolvConf": "",
            "failSwapOn": False,
            "enforceNodeAllocatable": [],
            # In a virtual machine the root file system may have no device by which its size could be found.
            "localStorageCapacityIsolation": False,
            "evictionHard": {"memory.available": "100Mi"},
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(self._control_plane.pki.crt("ca"))},
            },
            "authorization": {"mode": "Webhook"},
            "syncFrequency": "2s",
        }
