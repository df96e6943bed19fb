"""The API server's rules for the requests of a claim: what is asked for, with which selectors, under which names.

Source: pkg/apis/resource/validation and the declarative tags of resource/v1 in Kubernetes 1.37.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from dra_driver.api.device_validation import field_errors, required_errors, validate_unique
from dra_driver.api.name import (
    byte_length,
    quote,
    validate_dns_label,
    validate_dns_subdomain,
    validate_fully_qualified_name,
    validate_label_key,
    validate_label_value,
)
from dra_driver.api.resource_v1 import (
    DeviceConstraint,
    DeviceDerivedAttribute,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
)
from dra_driver.cel import MAX_COST, MAX_LENGTH, CompileError, Options, compile_attribute, compile_selector
from dra_driver.errors import FieldError, FieldReason

REQUESTS_MAX: Final = 32
SUBREQUESTS_MAX: Final = 8
SELECTORS_MAX: Final = 32
DERIVED_ATTRIBUTES_MAX: Final = 32

NEW: Final = Options(stored=False)
"""What expressions of new objects may use, with the feature gates as the release has them."""

_EFFECTS: Final = ("NoSchedule", "NoExecute", "None")


@dataclass(frozen=True, slots=True)
class Requests:
    """The names of a claim's requests, each with those of its subrequests."""

    names: Mapping[str, AbstractSet[str]]

    @classmethod
    def of(cls, requests: Iterable[DeviceRequest]) -> "Requests":
        """Collect the names."""
        return cls({request.name: {sub.name for sub in request.first_available} for request in requests})

    def validate_reference(self, name: str, path: str) -> Iterator[FieldError]:
        """Yield what is wrong with a reference: `request`, or `request/subrequest`."""
        want = "want the name of a request in the claim, or of a request and a subrequest separated by '/'"
        parts = name.split("/")
        if len(parts) <= 2:  # noqa: PLR2004 - a request and a subrequest
            for part in parts:
                yield from field_errors(path, validate_dns_label(part))
            if parts[0] in self.names and (len(parts) == 1 or parts[1] in self.names[parts[0]]):
                return
        yield FieldError(path, f"{quote(name)} is not there, {want}")


def validate_references(names: tuple[str, ...], requests: Requests, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with the requests that a constraint or a configuration is for."""
    if len(names) > REQUESTS_MAX:
        yield too_many(path, len(names), REQUESTS_MAX)
        return
    for index, name in enumerate(names):
        yield from requests.validate_reference(name, f"{path}[{index}]")
    yield from validate_unique(names, path)


class RequestValidator:
    """Checks requests. It knows the constraints, since derived attributes are for them, and adds up their cost."""

    def __init__(self, constraints: tuple[DeviceConstraint, ...], options: Options) -> None:
        self._options = options
        self._constrained: dict[str, set[str]] = {}
        self.cost = 0
        for constraint in constraints:
            attribute = constraint.match_attribute or constraint.distinct_attribute
            if attribute is not None:
                for request in constraint.requests or ("",):
                    self._constrained.setdefault(request, set()).add(attribute)

    def validate(self, request: DeviceRequest, path: str) -> Iterator[FieldError]:
        """Yield what is wrong in a request."""
        yield from field_errors(f"{path}.name", validate_dns_label(request.name))
        if request.exactly is None and not request.first_available:
            yield FieldError(path, "exactly one of `exactly` or `firstAvailable` is required", FieldReason.REQUIRED)
        elif request.exactly is not None and request.first_available:
            problem = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"
            yield FieldError(path, problem)
        elif request.exactly is not None:
            yield from self._validate_body(request.exactly, f"{path}.exactly", request.name)
        else:
            yield from self._validate_subrequests(request, f"{path}.firstAvailable")

    def _validate_subrequests(self, request: DeviceRequest, path: str) -> Iterator[FieldError]:
        subrequests = request.first_available
        if len(subrequests) > SUBREQUESTS_MAX:
            yield too_many(path, len(subrequests), SUBREQUESTS_MAX)
            return
        for index, sub in enumerate(subrequests):
            where = f"{path}[{index}]"
            yield from field_errors(f"{where}.name", validate_dns_label(sub.name))
            yield from self._validate_body(sub, where, f"{request.name}/{sub.name}")
        yield from validate_unique(tuple(sub.name for sub in subrequests), path)

    def _validate_body(self, body: ExactDeviceRequest | DeviceSubRequest, path: str, name: str) -> Iterator[FieldError]:
        yield from required_errors(f"{path}.deviceClassName", body.device_class_name, validate_dns_subdomain)
        yield from validate_selectors(body.selectors, f"{path}.selectors", self._options)
        yield from self._validate_derived(body.derived_attributes, f"{path}.derivedAttributes", name)
        yield from _validate_mode(body, path)
        for index, toleration in enumerate(body.tolerations):
            yield from validate_toleration(toleration, f"{path}.tolerations[{index}]")

    def _validate_derived(
        self, attributes: tuple[DeviceDerivedAttribute, ...], path: str, request: str
    ) -> Iterator[FieldError]:
        if len(attributes) > DERIVED_ATTRIBUTES_MAX:
            yield too_many(path, len(attributes), DERIVED_ATTRIBUTES_MAX)
            return
        for index, attribute in enumerate(attributes):
            where = f"{path}[{index}]"
            yield from field_errors(f"{where}.name", validate_fully_qualified_name(attribute.name))
            if attribute.name and not self._is_constrained(attribute.name, request):
                want = "want a matchAttribute or distinctAttribute constraint that targets this request"
                yield FieldError(f"{where}.name", f"{quote(attribute.name)} is not used, {want}")
            yield from self._validate_expression(attribute.expression, f"{where}.expression")
        yield from validate_unique(tuple(attribute.name for attribute in attributes), path)

    def _is_constrained(self, attribute: str, request: str) -> bool:
        targets = ("", request, request.partition("/")[0])
        return any(attribute in self._constrained.get(target, ()) for target in targets)

    def _validate_expression(self, expression: str, path: str) -> Iterator[FieldError]:
        if not expression:
            yield FieldError(path, "is missing, want an expression", FieldReason.REQUIRED)
            return
        if byte_length(expression) > MAX_LENGTH:
            yield _too_long(path)
            return
        try:
            compiled = compile_attribute(expression, options=self._options)
        except CompileError as error:
            yield _uncompilable(path, error)
            return
        self.cost += compiled.estimated_cost
        if compiled.estimated_cost > MAX_COST:
            yield _too_complex(path)


def validate_selectors(
    selectors: tuple[DeviceSelector, ...], path: str, options: Options | None = NEW
) -> Iterator[FieldError]:
    """Yield what is wrong in selectors. Without `options` they are stored already, and are not compiled again."""
    if len(selectors) > SELECTORS_MAX:
        yield too_many(path, len(selectors), SELECTORS_MAX)
        return
    for index, selector in enumerate(selectors):
        if selector.cel is None:
            yield FieldError(f"{path}[{index}].cel", "is missing, want an expression", FieldReason.REQUIRED)
        elif options is not None:
            yield from _validate_selector(selector.cel.expression, f"{path}[{index}].cel.expression", options)


def _validate_selector(expression: str, path: str, options: Options) -> Iterator[FieldError]:
    if byte_length(expression) > MAX_LENGTH:
        yield _too_long(path)
        return
    try:
        compiled = compile_selector(expression, options=options)
    except CompileError as error:
        yield _uncompilable(path, error)
        return
    if compiled.estimated_cost > MAX_COST:
        yield _too_complex(path)


def validate_toleration(toleration: DeviceToleration, path: str) -> Iterator[FieldError]:
    """Yield what is wrong in a toleration; its operator has its default."""
    if toleration.key:
        yield from field_errors(f"{path}.key", validate_label_key(toleration.key))
    match toleration.operator:
        case "Exists":
            if toleration.value:
                problem = f"{quote(toleration.value)} is set, want none for operator 'Exists'"
                yield FieldError(f"{path}.value", problem)
        case "Equal":
            yield from field_errors(f"{path}.value", validate_label_value(toleration.value))
        case "":
            yield FieldError(f"{path}.operator", "is missing, want 'Equal' or 'Exists'", FieldReason.REQUIRED)
        case unknown:
            yield not_supported(f"{path}.operator", unknown, ("Equal", "Exists"))
    if toleration.effect not in ("", *_EFFECTS):
        yield not_supported(f"{path}.effect", toleration.effect, _EFFECTS)


def _validate_mode(body: ExactDeviceRequest | DeviceSubRequest, path: str) -> Iterator[FieldError]:
    match body.allocation_mode:
        case "All":
            if body.count:
                yield FieldError(f"{path}.count", f"{body.count} is set, want none when allocationMode is 'All'")
        case "ExactCount":
            if body.count <= 0:
                yield FieldError(f"{path}.count", f"{body.count} is too small, want more than zero")
        case unknown:
            yield not_supported(f"{path}.allocationMode", unknown, ("All", "ExactCount"))


def too_many(path: str, count: int, limit: int) -> FieldError:
    """A list is too long."""
    return FieldError(path, f"has {count} entries, want at most {limit}", FieldReason.TOO_MANY)


def not_supported(path: str, found: str, wanted: tuple[str, ...]) -> FieldError:
    """A word is none of those that there are."""
    problem = f"unknown value {quote(found)}, want {', '.join(map(repr, wanted))}"
    return FieldError(path, problem, FieldReason.NOT_SUPPORTED)


def _too_long(path: str) -> FieldError:
    return FieldError(path, f"may not be more than {MAX_LENGTH} bytes", FieldReason.TOO_LONG)


def _too_complex(path: str) -> FieldError:
    return FieldError(path, "too complex, exceeds cost limit", FieldReason.FORBIDDEN)


def _uncompilable(path: str, error: CompileError) -> FieldError:
    return FieldError(path, f"{quote(error.expression)}: compilation failed: {'; '.join(map(str, error.issues))}")
