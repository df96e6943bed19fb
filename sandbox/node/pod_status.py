"""What a kubelet writes into a Pod's status. Pure: merge patches, as far as `kubectl get` and `describe` show them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sandbox.node.pod import Pod

Patch = dict[str, Any]

_KUBELET_CONDITIONS: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


@dataclass(frozen=True, slots=True)
class Waiting:
    """The containers do not run yet."""

    reason: str = "ContainerCreating"
    message: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    """The containers have run since `since`."""

    since: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The containers have ended: by themselves, or because the Pod was deleted."""

    since: str
    at: str


State = Waiting | Running | Ended

NO_RESOURCES: Final[Mapping[str, Sequence[Patch]]] = {}


def build_status(pod: Pod, state: State, now: str, resources: Mapping[str, Sequence[Patch]] = NO_RESOURCES) -> Patch:
    """Build the patch of a Pod's status. Conditions of others stay, and so does the time of one that is the same.

    `resources` are `allocatedResourcesStatus` by container.
    """
    is_ready = isinstance(state, Running)
    phase = {Waiting: "Pending", Running: "Running", Ended: "Succeeded"}[type(state)]
    reason = "PodCompleted" if isinstance(state, Ended) else "" if is_ready else "ContainersNotReady"
    wanted = {
        "PodReadyToStartContainers": (isinstance(state, Running), ""),
        "Initialized": (True, "PodCompleted" if isinstance(state, Ended) else ""),
        "Ready": (is_ready, reason),
        "ContainersReady": (is_ready, reason),
    }
    return {
        "status": {
            "phase": phase,
            "startTime": pod.status.start_time or now,
            "conditions": _merge_conditions(pod, wanted, now),
            "containerStatuses": [
                _build_container(pod, index, state)
                | ({"allocatedResourcesStatus": found} if (found := resources.get(container.name)) else {})
                for index, container in enumerate(pod.spec.containers)
            ],
        }
    }


def _merge_conditions(pod: Pod, wanted: Mapping[str, tuple[bool, str]], now: str) -> Sequence[Patch]:
    before = {condition.type: condition for condition in pod.status.conditions}
    conditions: list[Patch] = []
    for kind, (holds, reason) in wanted.items():
        status = str(holds)
        old = before.get(kind)
        since = old.last_transition_time if old is not None and old.status == status else None
        condition = {"type": kind, "status": status, "lastTransitionTime": since or now}
        conditions.append(condition | ({"reason": reason} if reason else {}))
    others = (condition for condition in pod.status.conditions if condition.type not in wanted)
    for other in others:
        fields = {"reason": other.reason, "message": other.message, "lastTransitionTime": other.last_transition_time}
        kept = {name: value for name, value in fields.items() if value}
        conditions.append({"type": other.type, "status": other.status, **kept})
    return conditions


def _build_container(pod: Pod, index: int, state: State) -> Patch:
    container = pod.spec.containers[index]
    is_running = isinstance(state, Running)
    status: Patch = {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "ready": is_running,
        "started": is_running,
        "restartCount": 0,
        "state": _build_state(state),
    }
    if not isinstance(state, Waiting):
        status["containerID"] = f"sandbox://{pod.metadata.uid}/{container.name}"
    return status


def _build_state(state: State) -> Patch:
    match state:
        case Waiting(reason, message):
            return {"waiting": {"reason": reason} | ({"message": message} if message else {})}
        case Running(since):
            return {"running": {"startedAt": since}}
        case Ended(since, at):
            return {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": since, "finishedAt": at}}
