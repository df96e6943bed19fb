"""The row of a Pod in `kubectl get pods`: what its containers do, in one word."""

from datetime import datetime
from typing import Any, Final

from sandbox.api_server.duration import render_age
from sandbox.api_server.kind import Object

_NONE: Final = "<none>"
_TERMINAL: Final = ("Succeeded", "Failed")


def pod_conditions(value: Object) -> list[dict[str, Any]]:
    """Give the conditions of the row: whether the Pod has ended."""
    phase = (value.get("status") or {}).get("phase")
    if phase not in _TERMINAL:
        return []
    message = "The pod has completed successfully." if phase == "Succeeded" else "The pod failed."
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}]


def pod_cells(value: Object, now: datetime) -> list[Any]:
    """Give the cells."""
    metadata, spec, status = value["metadata"], value.get("spec") or {}, value.get("status") or {}
    sidecars = [each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"]
    ready, word, restarts, restarted = _summarize(value, {each["name"] for each in sidecars})
    total = len(spec.get("containers") or ()) + len(sidecars)
    count = f"{restarts} ({render_age(restarted, now)} ago)" if restarts and restarted else str(restarts)
    addresses = status.get("podIPs") or [{}]
    return [
        *(metadata["name"], f"{ready}/{total}", word, count, render_age(metadata.get("creationTimestamp"), now)),
        *(addresses[0].get("ip") or _NONE, spec.get("nodeName") or _NONE, status.get("nominatedNodeName") or _NONE),
        _readiness_gates(spec, status),
    ]


def _summarize(value: Object, sidecars: set[str]) -> tuple[int, str, int, str]:
    """Give how many containers are ready, the word, and how often and when last they restarted."""
    status = value.get("status") or {}
    phase = status.get("phase", "")
    word = status.get("reason") or phase
    conditions = {each.get("type"): each for each in status.get("conditions") or ()}
    if conditions.get("PodScheduled", {}).get("reason") == "SchedulingGated":
        word = "SchedulingGated"
    begun = [each for each in status.get("initContainerStatuses") or () if isinstance(each, dict)]
    ready, blocked = _look_at_init(value, begun, sidecars)
    restarting = begun
    if not blocked or conditions.get("Initialized", {}).get("status") == "True":
        main = status.get("containerStatuses") or []
        running, word = _look_at_main(
            main, blocked or word, is_ready=conditions.get("Ready", {}).get("status") == "True"
        )
        ready += running
        restarting = [each for each in begun if each.get("name") in sidecars] + main
    else:
        word = blocked
    if "deletionTimestamp" in value["metadata"]:
        if status.get("reason") == "NodeLost":
            word = "Unknown"
        elif phase not in _TERMINAL:
            word = "Terminating"
    ends = [((each.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or "" for each in restarting]
    return ready, word, sum(each.get("restartCount", 0) for each in restarting), max(ends, default="")


def _look_at_init(value: Object, statuses: list[dict[str, Any]], sidecars: set[str]) -> tuple[int, str]:
    """Give how many sidecars are ready, and the word for the init container that the Pod waits for."""
    ready = 0
    total = len(value["spec"].get("initContainers") or ())
    for index, each in enumerate(statuses):
        state = each.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting") or {}
        if ended is not None and ended.get("exitCode", 0) == 0:
            continue
        if each.get("name") in sidecars and each.get("started"):
            ready += bool(each.get("ready"))
            continue
        if ended is not None:
            return ready, f"Init:{_ending(ended)}"
        if waiting.get("reason") not in (None, "", "PodInitializing"):
            return ready, f"Init:{waiting['reason']}"
        return ready, f"Init:{index}/{total}"
    return ready, ""


def _look_at_main(statuses: list[dict[str, Any]], word: str, *, is_ready: bool) -> tuple[int, str]:
    """Give how many containers run and are ready, and the word for all of them."""
    ready, failed = 0, ""
    for each in reversed(statuses):
        state = each.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting") or {}
        if waiting.get("reason"):
            word = waiting["reason"]
        elif ended is not None:
            word = _ending(ended)
            failed = word if ended.get("exitCode", 0) else failed
        elif each.get("ready") and state.get("running") is not None:
            ready += 1
    if word == "Completed":
        if ready and is_ready:
            word = "Running"
        elif failed:
            word = failed
        elif ready:
            word = "NotReady"
    return ready, word


def _ending(terminated: dict[str, Any]) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _readiness_gates(spec: dict[str, Any], status: dict[str, Any]) -> str:
    gates = spec.get("readinessGates") or ()
    states = {each.get("type"): each.get("status") for each in status.get("conditions") or ()}
    met = sum(states.get(gate.get("conditionType")) == "True" for gate in gates)
    return f"{met}/{len(gates)}" if gates else _NONE
