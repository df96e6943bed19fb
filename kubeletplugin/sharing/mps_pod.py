"""The Pod of a device's MPS control daemon. Pure.

It is a Pod of its own, bound to the node, so that it outlives plugins; the kubelet starts it again when it crashes and
after a reboot. The Node owns it: it goes when the Node goes.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from dra_driver.api.core_v1 import PodHead, PodStatus
from dra_driver.api.meta_v1 import JsonObject, ListMeta, ObjectMeta, OwnerReference, Wire, constant
from dra_driver.devices.model import Device
from dra_driver.kube.resource import Resource
from kubeletplugin.sharing.mps_edits import CONTAINER_PIPES, MpsFolders
from kubeletplugin.sharing.mps_state import DaemonState

COMPONENT: Final = "mps-daemon"
COMPONENT_LABEL: Final = "app.kubernetes.io/component"
NODE_LABEL: Final = "dra-driver.io/node"
DEVICE_LABEL: Final = "dra-driver.io/device"

_HOST: Final = "/host"
_SIMULATED: Final = "simulated"
_NODE_DIGITS: Final = 8


class ContainerStatus(Wire, frozen=True, kw_only=True):
    """How often a container was started again."""

    restart_count: int = 0


class DaemonStatus(PodStatus, frozen=True, kw_only=True):
    """How far a daemon is."""

    container_statuses: tuple[ContainerStatus, ...] = ()


class DaemonPod(PodHead, frozen=True, kw_only=True):
    """A Pod whose spec is written, and never read."""

    spec: JsonObject = msgspec.field(default_factory=dict)
    status: DaemonStatus = msgspec.field(default_factory=DaemonStatus)

    @property
    def ready(self) -> bool:
        """Whether clients can connect."""
        return any(each.type == "Ready" and each.status == "True" for each in self.status.conditions)

    @property
    def ended(self) -> bool:
        """Whether it never runs again: it was evicted, or the node shut down."""
        return self.status.phase in ("Failed", "Succeeded")

    @property
    def state(self) -> DaemonState:
        """How the daemon is, told from each that ran before it."""
        restarts = sum(each.restart_count for each in self.status.container_statuses)
        is_going = self.metadata.deletion_timestamp is not None
        problem = "being deleted" if is_going else None if self.ready else self.explain()
        subject = f"{self.metadata.namespace}/{self.metadata.name}"
        return DaemonState(
            run=f"{self.metadata.uid}/{restarts}", problem=f"Pod {subject}: {problem}" if problem else None
        )

    def explain(self) -> str:
        """Say in one line how far it is."""
        waiting = [each.message for each in self.status.conditions if each.status != "True" and each.message]
        return f"phase {self.status.phase or 'unknown'}{''.join(f', {text}' for text in dict.fromkeys(waiting))}"


class DaemonPodList(Wire, frozen=True, kw_only=True):
    """A list of them."""

    api_version: Literal["v1"] = constant("v1")
    kind: Literal["PodList"] = constant("PodList")
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: tuple[DaemonPod, ...] = ()


DAEMON_PODS: Final = Resource("", "v1", "pods", DaemonPod, DaemonPodList, namespaced=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonSettings:
    """Where daemons run and from what. `driver_root` is the driver's root on the host."""

    namespace: str
    node_name: str
    image: str
    service_account: str = "default"
    folders: MpsFolders
    driver_root: Path = Path("/")


def render_pod_name(device: str, node_name: str) -> str:
    """The name of a device's daemon: simulated nodes may have devices of the same name."""
    return f"{COMPONENT}-{device}-{_digest(node_name)}"


def render_selector(node_name: str) -> str:
    """The label selector of a node's daemons."""
    return f"{COMPONENT_LABEL}={COMPONENT},{NODE_LABEL}={_digest(node_name)}"


def build_pod(device: Device, backend: str, node_uid: str, settings: DaemonSettings) -> DaemonPod:
    """Build the Pod of a device's daemon. The simulated backend's does nothing but be there."""
    owner = OwnerReference(api_version="v1", kind="Node", name=settings.node_name, uid=node_uid, controller=True)
    labels = {
        COMPONENT_LABEL: COMPONENT,
        NODE_LABEL: _digest(settings.node_name),
        DEVICE_LABEL: device.name,
    }
    metadata = ObjectMeta(
        name=render_pod_name(device.name, settings.node_name),
        namespace=settings.namespace,
        labels=labels,
        owner_references=(owner,),
    )
    container = _simulated_container() if backend == _SIMULATED else _nvidia_container(device)
    volumes = {
        "pipes": {"path": str(settings.folders.pipes_of(device.name)), "type": "DirectoryOrCreate"},
        "memory": {"path": str(settings.folders.memory_of(device.name)), "type": "DirectoryOrCreate"},
    }
    if backend != _SIMULATED:
        volumes["host"] = {"path": str(settings.driver_root), "type": "Directory"}
    spec: dict[str, Any] = {
        # MPS looks for itself in the /proc of the driver's root, which is the host's.
        **({"hostPID": True} if backend != _SIMULATED else {}),
        "nodeName": settings.node_name,
        "serviceAccountName": settings.service_account,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "priorityClassName": "system-node-critical",
        "tolerations": [{"operator": "Exists"}],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 5,
        "containers": [{"name": "mps", "image": settings.image, "imagePullPolicy": "IfNotPresent", **container}],
        "volumes": [{"name": name, "hostPath": path} for name, path in volumes.items()],
    }
    return DaemonPod(metadata=metadata, spec=spec)


def _digest(node_name: str) -> str:
    return hashlib.sha256(node_name.encode()).hexdigest()[:_NODE_DIGITS]


_PIPES: Final = {"name": "CUDA_MPS_PIPE_DIRECTORY", "value": CONTAINER_PIPES}

_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - it is the clients' own
_OPEN_TO_ALL: Final = "1777"
"""As every `/dev/shm` is: clients need not be root."""

_SIMULATED_DAEMON: Final = f"""
chmod {_OPEN_TO_ALL} {_SHARED_MEMORY}
rm -f {CONTAINER_PIPES}/control
mkfifo {CONTAINER_PIPES}/control
trap 'exit 0' TERM INT
while :; do sleep 3600 & wait $!; done
"""


def _simulated_container() -> dict[str, Any]:
    return {
        "command": ["sh", "-c", _SIMULATED_DAEMON],
        "env": [_PIPES],
        "securityContext": {"runAsUser": 0, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "startupProbe": _probe(["test", "-p", f"{CONTAINER_PIPES}/control"]),
        "volumeMounts": [
            {"name": "pipes", "mountPath": CONTAINER_PIPES},
            {"name": "memory", "mountPath": _SHARED_MEMORY},
        ],
    }


def _nvidia_container(device: Device) -> dict[str, Any]:
    """The driver's own daemon, in the driver's root: its programs need that root's libraries and no others.

    The pipes have the same path there as in the clients.
    """
    control = "nvidia-cuda-mps-control"
    script = (
        f"chmod {_OPEN_TO_ALL} {_HOST}{_SHARED_MEMORY}; "
        f"trap 'echo quit | chroot {_HOST} {control}; exit 0' TERM INT; chroot {_HOST} {control} -f & wait $!"
    )
    environment = {"CUDA_VISIBLE_DEVICES": device.identity, "CUDA_MPS_LOG_DIRECTORY": CONTAINER_PIPES}
    return {
        "command": ["sh", "-c", script],
        "env": [_PIPES, *({"name": name, "value": value} for name, value in environment.items())],
        "securityContext": {"runAsUser": 0, "privileged": True},
        "startupProbe": _probe(["sh", "-c", f"echo get_server_list | chroot {_HOST} {control}"]),
        "volumeMounts": [
            {"name": "host", "mountPath": _HOST},
            {"name": "pipes", "mountPath": f"{_HOST}{CONTAINER_PIPES}"},
            {"name": "memory", "mountPath": f"{_HOST}{_SHARED_MEMORY}"},
        ],
    }


def _probe(command: list[str]) -> Mapping[str, Any]:
    """Ask every second, for as long as a prepare waits."""
    return {"exec": {"command": command}, "periodSeconds": 1, "timeoutSeconds": 5, "failureThreshold": 30}
