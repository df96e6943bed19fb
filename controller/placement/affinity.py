"""Whether a node is one of those that a Pod's node selector and required node affinity name.

Both must hold. As in kube-scheduler a malformed term holds nowhere, while another term may hold.
"""

from collections.abc import Iterator, Mapping

from controller.allocator.error import AllocationError
from controller.allocator.node_selection import matches_selector
from dra_driver.api.core_v1 import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dra_driver.api.name import quote

_SUBJECT = "node affinity"


def find_selector_problem(selector: Mapping[str, str], node: Node) -> str | None:
    """Say which label of `selector` the node lacks; None if it has all."""
    for key, wanted in sorted(selector.items()):
        if node.metadata.labels.get(key) != wanted:
            return f"node selector: {_seen_label(node, key)}, want {quote(wanted)}"
    return None


def find_affinity_problem(selector: NodeSelector, node: Node) -> str | None:
    """Say what each term of `selector` wants that the node lacks; None if one of the terms holds."""
    problems: list[str] = []
    for term in selector.node_selector_terms:
        problem = _find_term_problem(term, node)
        if problem is None:
            return None
        problems.append(problem)
    if not problems:
        return f"{_SUBJECT}: no term, want at least one"
    return f"{_SUBJECT}: {' or '.join(dict.fromkeys(problems))}"


def _find_term_problem(term: NodeSelectorTerm, node: Node) -> str | None:
    try:
        if matches_selector(node, NodeSelector(node_selector_terms=(term,)), _SUBJECT):
            return None
        for requirement, alone in _split(term):
            if not matches_selector(node, NodeSelector(node_selector_terms=(alone,)), _SUBJECT):
                return _render(requirement, alone, node)
    except AllocationError as error:
        return str(error).removeprefix(f"{_SUBJECT}: ")
    return "empty term, want a requirement"


def _split(term: NodeSelectorTerm) -> Iterator[tuple[NodeSelectorRequirement, NodeSelectorTerm]]:
    for requirement in term.match_expressions:
        yield requirement, NodeSelectorTerm(match_expressions=(requirement,))
    for requirement in term.match_fields:
        yield requirement, NodeSelectorTerm(match_fields=(requirement,))


def _render(requirement: NodeSelectorRequirement, term: NodeSelectorTerm, node: Node) -> str:
    if term.match_fields:
        known = node.metadata.name if requirement.key == "metadata.name" else ""
        seen = f"{requirement.key} is {known!r}"
    else:
        seen = _seen_label(node, requirement.key)
    values = f" {', '.join(map(quote, requirement.values))}" if requirement.values else ""
    return f"{seen}, want {requirement.operator}{values}"


def _seen_label(node: Node, key: str) -> str:
    value = node.metadata.labels.get(key)
    return f"label {key} is absent" if value is None else f"label {key} is {value!r}"
