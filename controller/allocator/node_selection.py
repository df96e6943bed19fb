"""Whether a node is one of those that a slice or device is for."""

from typing import Final

from controller.allocator.error import AllocationError
from dra_driver.api.core_v1 import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dra_driver.api.node_selector_validation import validate_node_selector

_INT64_MAX: Final = 2**63 - 1
_DIGITS_MAX: Final = 1000


def matches_node(
    node: Node, node_name: str | None, selector: NodeSelector | None, subject: str, *, all_nodes: bool | None
) -> bool:
    """Tell whether `node` is meant. Raises AllocationError if `selector` is malformed; `subject` is whose it is."""
    if node_name:
        return node.metadata.name == node_name
    if all_nodes:
        return True
    if selector is None:
        return False
    return matches_selector(node, selector, subject)


def matches_selector(node: Node, selector: NodeSelector, subject: str) -> bool:
    """Tell whether one of the terms of `selector` holds on `node`."""
    terms = tuple(term for term in selector.node_selector_terms if term.match_expressions or term.match_fields)
    problems = [error for error in _problems(terms) if not error.endswith("want at least one term")]
    if problems:
        raise AllocationError(f"{subject}: {'; '.join(problems)}")
    return any(_matches_term(node, term) for term in terms)


def _problems(terms: tuple[NodeSelectorTerm, ...]) -> list[str]:
    problems: list[str] = []
    for index, term in enumerate(terms):
        plain = NodeSelectorTerm(match_expressions=term.match_expressions)
        errors = validate_node_selector(NodeSelector(node_selector_terms=(plain,)), f"nodeSelector[{index}]")
        problems += map(str, errors)
        problems += _bound_problems(term)
        for requirement in term.match_fields:
            if requirement.operator not in ("In", "NotIn") or len(requirement.values) != 1:
                problems.append(f"matchFields {requirement.key!r}: want 'In' or 'NotIn' with one value")
    return problems


def _bound_problems(term: NodeSelectorTerm) -> list[str]:
    return [
        f"matchExpressions {requirement.key!r}: {value!r} is not an integer, want one for {requirement.operator!r}"
        for requirement in term.match_expressions
        if requirement.operator in ("Gt", "Lt")
        for value in requirement.values
        if _int64(value) is None
    ]


def _matches_term(node: Node, term: NodeSelectorTerm) -> bool:
    labels = node.metadata.labels
    fields = {"metadata.name": node.metadata.name} if node.metadata.name else {}
    if not all(_matches_label(labels, requirement) for requirement in term.match_expressions):
        return False
    return not fields or all(_matches_field(fields, requirement) for requirement in term.match_fields)


def _matches_label(labels: dict[str, str], requirement: NodeSelectorRequirement) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return value is not None and _compares(value, requirement)


def _compares(text: str, requirement: NodeSelectorRequirement) -> bool:
    value, bound = _int64(text), _int64(requirement.values[0])
    if value is None or bound is None:
        return False
    return value > bound if requirement.operator == "Gt" else value < bound


def _matches_field(fields: dict[str, str], requirement: NodeSelectorRequirement) -> bool:
    is_equal = fields.get(requirement.key, "") == requirement.values[0]
    return is_equal if requirement.operator == "In" else not is_equal


def _int64(text: str) -> int | None:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > _DIGITS_MAX:
        return None
    value = int(text)
    return value if -_INT64_MAX - 1 <= value <= _INT64_MAX else None
