"""The API server's rules for a node selector."""

from collections.abc import Iterator

from dra_driver.api.core_v1 import NodeSelector, NodeSelectorRequirement
from dra_driver.api.name import quote, validate_dns_subdomain, validate_label_key, validate_label_value
from dra_driver.errors import FieldError, FieldReason


def validate_node_selector(selector: NodeSelector, path: str) -> Iterator[FieldError]:
    """Yield what is wrong in `selector`, which stands at `path`."""
    terms_path = f"{path}.nodeSelectorTerms"
    if not selector.node_selector_terms:
        yield FieldError(terms_path, "is empty, want at least one term", FieldReason.REQUIRED)
    for index, term in enumerate(selector.node_selector_terms):
        for position, requirement in enumerate(term.match_expressions):
            yield from _validate_label(requirement, f"{terms_path}[{index}].matchExpressions[{position}]")
        for position, requirement in enumerate(term.match_fields):
            yield from _validate_field(requirement, f"{terms_path}[{index}].matchFields[{position}]")


def _validate_label(requirement: NodeSelectorRequirement, path: str) -> Iterator[FieldError]:
    count = len(requirement.values)
    match requirement.operator:
        case "In" | "NotIn":
            if count == 0:
                problem = f"is empty, want values for operator {requirement.operator!r}"
                yield FieldError(f"{path}.values", problem, FieldReason.REQUIRED)
        case "Exists" | "DoesNotExist":
            if count:
                yield FieldError(f"{path}.values", f"has values, want none for operator {requirement.operator!r}")
        case "Gt" | "Lt":
            if count != 1:
                yield FieldError(
                    f"{path}.values", f"has {count} values, want one for operator {requirement.operator!r}"
                )
        case unknown:
            want = "want 'In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt' or 'Lt'"
            yield FieldError(f"{path}.operator", f"unknown operator {quote(unknown)}, {want}")
    for problem in validate_label_key(requirement.key):
        yield FieldError(f"{path}.key", problem)
    for index, value in enumerate(requirement.values):
        for problem in validate_label_value(value):
            yield FieldError(f"{path}.values[{index}]", problem)


def _validate_field(requirement: NodeSelectorRequirement, path: str) -> Iterator[FieldError]:
    if requirement.operator not in ("In", "NotIn"):
        yield FieldError(f"{path}.operator", f"unknown operator {quote(requirement.operator)}, want 'In' or 'NotIn'")
    elif len(requirement.values) != 1:
        yield FieldError(f"{path}.values", f"has {len(requirement.values)} values, want one")
    if requirement.key != "metadata.name":
        yield FieldError(f"{path}.key", f"unknown field {quote(requirement.key)}, want 'metadata.name'")
        return
    for index, value in enumerate(requirement.values):
        for problem in validate_dns_subdomain(value):
            yield FieldError(f"{path}.values[{index}]", problem)
