"""The status that the simulated kubelet writes."""

from dra_driver.api.core_v1 import PodCondition
from dra_driver.api.meta_v1 import ObjectMeta
from sandbox.node.pod import Container, Pod, PodSpec, PodStatus
from sandbox.node.pod_status import Ended, Running, Waiting, build_status

THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def a_pod(*conditions: PodCondition, start_time: str | None = None) -> Pod:
    return Pod(
        metadata=ObjectMeta(name="pod", namespace="default", uid="uid-1"),
        spec=PodSpec(containers=(Container(name="main", image="busybox:1"),)),
        status=PodStatus(conditions=conditions, start_time=start_time),
    )


def test_a_pod_that_waits_is_pending_with_the_reason() -> None:
    status = build_status(a_pod(), Waiting(), NOW)["status"]
    assert (status["phase"], status["startTime"]) == ("Pending", NOW)
    [container] = status["containerStatuses"]
    assert container["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert not container["ready"]
    assert "containerID" not in container


def test_a_pod_that_runs_is_ready_and_keeps_its_start() -> None:
    status = build_status(a_pod(start_time=THEN), Running(NOW), NOW)["status"]
    assert (status["phase"], status["startTime"]) == ("Running", THEN)
    assert {each["type"] for each in status["conditions"] if each["status"] == "True"} == {
        *("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
    }
    assert status["containerStatuses"][0]["state"] == {"running": {"startedAt": NOW}}


def test_a_pod_that_has_ended_succeeded() -> None:
    status = build_status(a_pod(), Ended(THEN, NOW), NOW)["status"]
    assert status["phase"] == "Succeeded"
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


def test_conditions_of_others_and_times_of_what_stays_the_same_are_kept() -> None:
    scheduled = PodCondition(type="PodScheduled", status="True", last_transition_time=THEN)
    initialized = PodCondition(type="Initialized", status="True", last_transition_time=THEN)
    ready = PodCondition(type="Ready", status="False", last_transition_time=THEN)
    status = build_status(a_pod(scheduled, initialized, ready), Running(NOW), NOW)["status"]
    times = {each["type"]: each["lastTransitionTime"] for each in status["conditions"]}
    assert (times["PodScheduled"], times["Initialized"], times["Ready"]) == (THEN, THEN, NOW)


def test_a_container_tells_how_its_devices_are() -> None:
    resources = [{"name": "claim:gpu", "resources": [{"resourceID": "vendor/class=a", "health": "Healthy"}]}]
    status = build_status(a_pod(), Running(NOW), NOW, {"main": resources, "other": []})["status"]
    assert status["containerStatuses"][0]["allocatedResourcesStatus"] == resources
    assert "allocatedResourcesStatus" not in build_status(a_pod(), Running(NOW), NOW)["status"]["containerStatuses"][0]
