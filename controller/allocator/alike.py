"""Which of the nodes that problems are about are alike, so that one is examined for all."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from controller.allocator.allocation import Problem
from controller.allocator.error import AllocationError
from controller.allocator.expression import CelCompiler
from controller.allocator.joining import Group, Joined, join_groups
from controller.allocator.look import Numbers, find_glance, look_at_node, see_devices
from controller.allocator.pool import Pool, gather_pools
from controller.allocator.relaxation import Question, question_of
from controller.allocator.selector import SelectorCache
from controller.allocator.slice_index import SliceIndex, index_slices
from controller.allocator.taint import apply_taint_rules


def explain_nodes(problems: Sequence[Problem], selectors: SelectorCache | None = None) -> Joined:
    """Say why claims fit on none of several nodes. The problems differ in their nodes alone."""
    return join_groups(_group(problems, selectors or SelectorCache(CelCompiler())))


def shared_slices(pools: Iterable[Pool]) -> frozenset[str]:
    """Give the slices that other nodes may have, too, by name."""
    slices = {id(candidate.slice): candidate.slice for pool in pools for candidate in pool.candidates}
    return frozenset(slice_.metadata.name for slice_ in slices.values() if not slice_.spec.node_name)


def _group(problems: Sequence[Problem], selectors: SelectorCache) -> Iterator[Group]:
    if not problems:
        return
    first = problems[0]
    slices = first.slices
    if first.taint_rules and first.features.device_taints:
        slices = apply_taint_rules(slices, first.taint_rules)
    index = index_slices(slices)
    glance = find_glance(first.claims, first.classes)
    numbers: Numbers = {}
    question = question_of(first, selectors)
    groups: dict[Hashable, tuple[list[str], Question]] = {}
    for problem in sorted(problems, key=lambda problem: problem.node.metadata.name):
        node, name = problem.node, problem.node.metadata.name
        try:
            pools = gather_pools(node, index, first.features)
            sight = see_devices(node, pools, glance, selectors, numbers)
        except AllocationError as error:
            yield Group((name,), error)
            continue
        look = (look_at_node(pools, sight, question.state, numbers), shared_slices(pools))
        asked = replace(question, node=node, gather=_Gatherer(problem, index, pools))
        groups.setdefault(look, ([], asked))[0].append(name)
    for names, asked in groups.values():
        yield Group(tuple(names), asked)


@dataclass(frozen=True, slots=True)
class _Gatherer:
    """Gives the pools of a problem's node, once they are known."""

    problem: Problem
    index: SliceIndex
    pools: tuple[Pool, ...]

    def __call__(self, completed: frozenset[tuple[str, str]]) -> tuple[Pool, ...]:
        if not completed:
            return self.pools
        return gather_pools(self.problem.node, self.index, self.problem.features, completed)
