"""Which taints of a node a Pod tolerates (`Toleration.ToleratesTaint` of k8s.io/api)."""

import re
from collections.abc import Iterable
from typing import Final

from dra_driver.api.core_v1 import Taint, Toleration

_PREVENTING: Final = ("NoSchedule", "NoExecute")
_UNSCHEDULABLE: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")
_INT64_MAX: Final = 2**63 - 1


def untolerated_taint(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> Taint | None:
    """Give the first taint that keeps the Pod away; `PreferNoSchedule` keeps nobody away."""
    tolerations = tuple(tolerations)
    for taint in taints:
        if taint.effect in _PREVENTING and not any(tolerates(toleration, taint) for toleration in tolerations):
            return taint
    return None


def tolerates_unschedulable(tolerations: Iterable[Toleration]) -> bool:
    """Tell whether a Pod goes also to nodes that are unschedulable."""
    return any(tolerates(toleration, _UNSCHEDULABLE) for toleration in tolerations)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Tell whether `toleration` covers `taint`: an empty key or effect covers all, an empty operator is `Equal`.

    `Lt` and `Gt` compare integers, and stand in a Pod only where TaintTolerationComparisonOperators is on.
    """
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Lt" | "Gt":
            return _compares(toleration, taint)
        case _:
            return False


def _compares(toleration: Toleration, taint: Taint) -> bool:
    bound, value = _int64(toleration.value), _int64(taint.value)
    if bound is None or value is None:
        return False
    return value < bound if toleration.operator == "Lt" else value > bound


def _int64(text: str) -> int | None:
    if not _INTEGER.fullmatch(text):
        return None
    value = int(text)
    return value if -_INT64_MAX - 1 <= value <= _INT64_MAX else None
