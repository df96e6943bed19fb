"""What is particular to Pods: the defaults that a Pod has after admission, what of it may change, and how it ends."""

# ruff: noqa: ARG002 - hooks take what some of those that replace them need

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Final

from dra_driver.api.name import quote, validate_dns_label, validate_dns_subdomain, validate_label_key
from dra_driver.errors import FieldError, FieldReason
from sandbox.api_server.kind import Object
from sandbox.api_server.metadata import validate_metadata_update
from sandbox.api_server.strategy import Context, Strategy

_GRACE_PERIOD_S: Final = 30
_TERMINAL: Final = ("Succeeded", "Failed")
_NOT_READY_S: Final = 300
_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_MUTABLE: Final = (
    *("activeDeadlineSeconds", "tolerations", "schedulingGates", "nodeSelector", "affinity"),
    "terminationGracePeriodSeconds",
)
_RESOURCES: Final = ("cpu", "memory")


class PodStrategy(Strategy):
    """How a Pod is written."""

    counts_generations: ClassVar = True
    ends_gracefully: ClassVar = True

    def canonicalize(self, value: Object, now: str) -> Object:
        """Add the defaults of a Pod."""
        spec = value.setdefault("spec", {})
        spec.setdefault("restartPolicy", "Always")
        spec.setdefault("terminationGracePeriodSeconds", _GRACE_PERIOD_S)
        spec.setdefault("dnsPolicy", "ClusterFirst")
        spec.setdefault("securityContext", {})
        spec.setdefault("schedulerName", "default-scheduler")
        spec.setdefault("enableServiceLinks", True)
        if name := spec.get("serviceAccountName") or spec.get("serviceAccount"):
            spec["serviceAccountName"] = spec["serviceAccount"] = name
        for container in _containers(spec):
            _set_container_defaults(container)
        for condition in (value.get("status") or {}).get("conditions") or ():
            condition.setdefault("lastProbeTime", None)
            condition.setdefault("lastTransitionTime", None)
        return value

    def prepare_create(self, value: Object, context: Context) -> None:
        """Begin as pending, and add what admission adds."""
        spec = value["spec"]
        spec.setdefault("serviceAccountName", "default")
        spec["serviceAccount"] = spec["serviceAccountName"]
        spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
        spec.setdefault("priority", 0)
        _add_tolerations(spec)
        value["status"] = {"phase": "Pending", "qosClass": _qos_class(spec)}
        if spec.get("schedulingGates"):
            value["status"]["conditions"] = [_gated(context.now)]

    def prepare_status(self, value: Object, old: Object, context: Context) -> None:
        """Owners are kept; the status begins with what only the server says."""
        super().prepare_status(value, old, context)
        status = value.setdefault("status", {})
        if qos_class := (old.get("status") or {}).get("qosClass"):
            status.setdefault("qosClass", qos_class)

    def validate(self, value: Object) -> Iterator[FieldError]:
        """Check what is needed to run the Pod."""
        spec = value["spec"]
        if not spec.get("containers"):
            yield FieldError("spec.containers", "is missing, want at least one", FieldReason.REQUIRED)
        claims = [claim.get("name", "") for claim in spec.get("resourceClaims") or ()]
        for field in ("initContainers", "containers"):
            yield from _validate_containers(spec.get(field) or (), f"spec.{field}", claims)
        if spec["restartPolicy"] not in _RESTART_POLICIES:
            problem = f"unknown value {quote(str(spec['restartPolicy']))}, want 'Always', 'OnFailure' or 'Never'"
            yield FieldError("spec.restartPolicy", problem, FieldReason.NOT_SUPPORTED)
        yield from _validate_claims(spec.get("resourceClaims") or ())
        yield from _validate_gates(spec.get("schedulingGates") or ())
        if spec.get("nodeName") and spec.get("schedulingGates"):
            yield FieldError("spec.nodeName", "cannot be set until all schedulingGates have been cleared",
                             FieldReason.FORBIDDEN)  # fmt: skip

    def validate_update(self, value: Object, old: Object, context: Context) -> Iterable[FieldError]:
        """Little of a Pod may change."""
        yield from validate_metadata_update(value["metadata"], old["metadata"])
        new, before = value["spec"], old["spec"]
        gates = {gate["name"] for gate in before.get("schedulingGates") or ()}
        for index, gate in enumerate(new.get("schedulingGates") or ()):
            if gate.get("name") not in gates:
                problem = f"only deletion is allowed, but found new scheduling gate {quote(str(gate.get('name')))}"
                yield FieldError(f"spec.schedulingGates[{index}].name", problem, FieldReason.FORBIDDEN)
        if len(new.get("containers") or ()) != len(before["containers"]):
            if not new.get("containers"):
                yield FieldError("spec.containers", "is missing, want at least one", FieldReason.REQUIRED)
            problem = "pod updates may not add or remove containers"
            yield FieldError("spec.containers", problem, FieldReason.FORBIDDEN)
        elif _fixed(new) != _fixed(before) or (not gates and _placing(new) != _placing(before)):
            problem = "pod updates may not change fields other than images, activeDeadlineSeconds, added tolerations"
            yield FieldError("spec", f"{problem} and removed schedulingGates", FieldReason.FORBIDDEN)

    def grace_period_s(self, value: Object, wanted: int | None) -> int:
        """Give a Pod on a node time to end; another one is gone at once."""
        spec, phase = value["spec"], (value.get("status") or {}).get("phase")
        if not spec.get("nodeName") or phase in _TERMINAL:
            return 0
        return spec["terminationGracePeriodSeconds"] if wanted is None else wanted


def _containers(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for field in ("initContainers", "containers"):
        yield from spec.get(field) or ()


def _set_container_defaults(container: dict[str, Any]) -> None:
    image = container.get("image", "")
    tag = image.rpartition("/")[2].partition(":")[2]
    is_latest = "@" not in image and tag in ("", "latest")
    container.setdefault("imagePullPolicy", "Always" if is_latest else "IfNotPresent")
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    resources = container.setdefault("resources", {})
    for name, amount in (resources.get("limits") or {}).items():
        resources.setdefault("requests", {}).setdefault(name, amount)
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")


def _add_tolerations(spec: dict[str, Any]) -> None:
    """Stay on a node that has trouble, for five minutes."""
    tolerations = spec.get("tolerations") or []
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(each.get("key") in (key, None, "") and each.get("effect") in ("NoExecute", None, "")
                   for each in tolerations):  # fmt: skip
            toleration = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _NOT_READY_S}
            tolerations = [*tolerations, toleration]
    spec["tolerations"] = tolerations


def _qos_class(spec: dict[str, Any]) -> str:
    requests, limits, guaranteed = False, False, True
    for container in _containers(spec):
        resources = container.get("resources") or {}
        asked, most = resources.get("requests") or {}, resources.get("limits") or {}
        requests = requests or any(name in asked for name in _RESOURCES)
        limits = limits or any(name in most for name in _RESOURCES)
        guaranteed = guaranteed and all(name in most and asked.get(name) == most[name] for name in _RESOURCES)
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _gated(now: str) -> dict[str, Any]:
    message = "Scheduling is blocked due to non-empty scheduling gates"
    condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": message}
    return condition | {"lastProbeTime": None, "lastTransitionTime": now}


def _validate_containers(containers: Iterable[dict[str, Any]], path: str, claims: list[str]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, container in enumerate(containers):
        where, name = f"{path}[{index}]", container.get("name", "")
        for problem in validate_dns_label(name):
            reason = FieldReason.INVALID if name else FieldReason.REQUIRED
            yield FieldError(f"{where}.name", problem, reason)
        if name in seen:
            yield FieldError(f"{where}.name", f"{quote(name)} is there twice", FieldReason.DUPLICATE)
        seen.add(name)
        if not container.get("image"):
            yield FieldError(f"{where}.image", "is missing, want one", FieldReason.REQUIRED)
        for at, claim in enumerate((container.get("resources") or {}).get("claims") or ()):
            if claim.get("name") not in claims:
                problem = f"{quote(str(claim.get('name')))} must be one of the names in pod.spec.resourceClaims"
                yield FieldError(f"{where}.resources.claims[{at}]", problem, FieldReason.NOT_FOUND)


def _validate_claims(claims: Iterable[dict[str, Any]]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        path, name = f"spec.resourceClaims[{index}]", claim.get("name", "")
        for problem in validate_dns_label(name):
            yield FieldError(f"{path}.name", problem, FieldReason.INVALID if name else FieldReason.REQUIRED)
        if name in seen:
            yield FieldError(f"{path}.name", f"{quote(name)} is there twice", FieldReason.DUPLICATE)
        seen.add(name)
        sources = [field for field in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(field)]
        if len(sources) != 1:
            yield FieldError(path, "must specify exactly one of: `resourceClaimName`, `resourceClaimTemplateName`")
        for field in sources:
            for problem in validate_dns_subdomain(claim[field]):
                yield FieldError(f"{path}.{field}", problem)


def _validate_gates(gates: Iterable[dict[str, Any]]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        for problem in validate_label_key(name):
            yield FieldError(f"spec.schedulingGates[{index}]", problem)
        if name in seen:
            yield FieldError(f"spec.schedulingGates[{index}]", f"{quote(name)} is there twice", FieldReason.DUPLICATE)
        seen.add(name)


def _fixed(spec: dict[str, Any]) -> dict[str, Any]:
    """Give what never changes: without images and what may change."""
    fixed = {name: value for name, value in spec.items() if name not in _MUTABLE}
    for field in ("initContainers", "containers"):
        fixed[field] = [{**container, "image": ""} for container in spec.get(field) or ()]
    return fixed


def _placing(spec: dict[str, Any]) -> tuple[Any, Any]:
    """Give what may change only while the Pod has gates."""
    return spec.get("nodeSelector"), spec.get("affinity")
