"""The words in which a refusal is told: the shortest true reason, in one line."""

from collections.abc import Iterator, Mapping

from controller.allocator import Cluster, Joined, summarize
from controller.allocator.search import Outcome
from controller.decision import Code, Refuse
from controller.placement import Misfit, find_misfit, name_class_resources, sum_requests
from controller.state import State
from dra_driver.api.core_v1 import Pod
from dra_driver.kube.resource import key_of

_EXPLAINED = (Code.DEVICES, Code.NODE, Code.NO_TAINT)


def explain_refusal(state: State, pod: Pod, refusal: Refuse) -> str:
    """Say why the Pod has to wait, as things stand now; empty if it has not, or for other reasons than devices."""
    if refusal.code is Code.FOREIGN:
        misfits = dict(_find_misfits(state, pod))
        return _explain(state.foreign, refusal, tuple(name for name in state.nodes if name not in misfits), misfits)
    if refusal.code in _EXPLAINED:
        return _explain(state.own, refusal, refusal.short, refusal.misfits)
    return refusal.text


def word_misfit(misfit: Misfit) -> str:
    """Give the words for a misfit that follow `2 nodes: `."""
    return misfit.message.removeprefix("node: ")


def _explain(cluster: Cluster, refusal: Refuse, nodes: tuple[str, ...], misfits: Mapping[str, str]) -> str:
    joined = cluster.explain(refusal.claims, [name for name in nodes if name in cluster.nodes])
    if _fits_somewhere(joined):
        return ""
    return summarize(joined, misfits.items())


def _fits_somewhere(joined: Joined) -> bool:
    return any(kind.outcome is Outcome.FOUND for kind in joined.kinds)


def _find_misfits(state: State, pod: Pod) -> Iterator[tuple[str, str]]:
    requests, known = sum_requests(pod), name_class_resources(state.classes.values())
    for name, node in state.nodes.items():
        others = state.requested_without(key_of(pod), name)
        misfit = find_misfit(pod, node, others, requests=requests, class_resources=known)
        if misfit is not None:
            yield name, word_misfit(misfit)
