import json
from pathlib import Path
from typing import Any

import msgspec

from dra_driver.api import codec
from dra_driver.api.core_v1 import PodCondition
from dra_driver.api.meta_v1 import ObjectMeta
from kubeletplugin.sharing.mps_edits import MpsFolders
from kubeletplugin.sharing.mps_pod import (
    ContainerStatus,
    DaemonPod,
    DaemonSettings,
    DaemonStatus,
    build_pod,
    render_pod_name,
)
from kubeletplugin.sharing.mps_state import DaemonState
from tests.support.builder import NODE, a_device
from tests.support.manifest import refuse_unknown_fields

DEVICE = a_device("GPU-0")
SETTINGS = DaemonSettings(
    namespace="dra-driver",
    node_name=NODE,
    image="registry.example/dra-driver:1",
    folders=MpsFolders(pipes=Path("/plugin/mps"), memory=Path("/memory")),
    driver_root=Path("/run/nvidia/driver"),
    service_account="mps",
)


def manifest(backend: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(codec.encode(build_pod(DEVICE, backend, "node-uid", SETTINGS)))
    return found


def test_kubernetes_knows_every_field() -> None:
    for backend in ("simulated", "nvidia"):
        refuse_unknown_fields(manifest(backend))


def test_a_daemon_is_bound_to_its_node_and_goes_with_it() -> None:
    pod = manifest("nvidia")
    assert pod["spec"]["nodeName"] == NODE
    assert pod["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": "node-uid", "controller": True}
    ]
    assert pod["spec"]["restartPolicy"] == "Always"
    assert (pod["spec"]["serviceAccountName"], pod["spec"]["automountServiceAccountToken"]) == ("mps", False)


def test_the_drivers_daemon_runs_in_the_drivers_root_with_one_device() -> None:
    spec = manifest("nvidia")["spec"]
    [container] = spec["containers"]
    environment = {each["name"]: each["value"] for each in container["env"]}
    assert environment["CUDA_VISIBLE_DEVICES"] == "GPU-0"
    assert {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]} == {
        "host": "/host",
        "pipes": f"/host{environment['CUDA_MPS_PIPE_DIRECTORY']}",
        "memory": "/host/dev/shm",
    }
    assert {volume["name"]: volume["hostPath"]["path"] for volume in spec["volumes"]} == {
        "host": "/run/nvidia/driver",
        "pipes": f"/plugin/mps/{DEVICE.name}",
        "memory": f"/memory/{DEVICE.name}",
    }


def test_the_drivers_daemon_finds_itself_among_the_processes_of_its_root() -> None:
    assert manifest("nvidia")["spec"]["hostPID"] is True
    assert not {"hostIPC", "hostNetwork"} & manifest("nvidia")["spec"].keys()


def test_a_daemon_of_a_simulated_device_may_do_nothing() -> None:
    assert not {"hostPID", "hostIPC", "hostNetwork"} & manifest("simulated")["spec"].keys()
    [container] = manifest("simulated")["spec"]["containers"]
    assert "privileged" not in container["securityContext"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert all(volume["name"] != "host" for volume in manifest("simulated")["spec"]["volumes"])


def test_devices_of_two_nodes_have_daemons_of_their_own() -> None:
    assert render_pod_name("gpu-0123456789ab", "node-a") != render_pod_name("gpu-0123456789ab", "node-b")
    assert len(render_pod_name("gpu-0123456789ab", "n" * 253)) <= 63


def test_what_a_daemon_waits_for_is_told_once() -> None:
    waiting = [PodCondition(type=each, status="False", message="containers with unready status") for each in "AB"]
    pod = DaemonPod(status=DaemonStatus(phase="Pending", conditions=tuple(waiting)))
    assert pod.explain() == "phase Pending, containers with unready status"
    assert not pod.ready


def test_each_run_of_a_daemon_is_told_from_the_others() -> None:
    ready = (PodCondition(type="Ready", status="True"),)
    metadata = ObjectMeta(name="mps", namespace="n", uid="u")

    def state(restarts: int, **changed: str) -> DaemonState:
        status = DaemonStatus(conditions=ready, container_statuses=(ContainerStatus(restart_count=restarts),))
        return DaemonPod(metadata=msgspec.structs.replace(metadata, **changed), status=status).state

    first, again, other = state(0), state(1), state(0, uid="v")
    assert len({first.run, again.run, other.run}) == 3
    assert first.problem is None
    assert state(0, deletion_timestamp="2026-01-01T00:00:00Z").problem == "Pod n/mps: being deleted"


def test_the_memory_that_clients_share_is_open_to_those_that_are_not_root() -> None:
    for backend, folder in (("simulated", "/dev/shm"), ("nvidia", "/host/dev/shm")):
        [container] = manifest(backend)["spec"]["containers"]
        assert f"chmod 1777 {folder}" in container["command"][-1]
