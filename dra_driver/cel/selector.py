"""Selectors: expressions that are compiled once and decide for many devices."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from dra_driver.api.semver import Semver
from dra_driver.cel import exact
from dra_driver.cel import type as t
from dra_driver.cel.check import Checked, check
from dra_driver.cel.depth import with_room
from dra_driver.cel.device import DeviceInput
from dra_driver.cel.environment import Environment, environment
from dra_driver.cel.error import (
    Abort,
    CompileError,
    EvaluationError,
    Fault,
    Interrupted,
    InterruptError,
    LimitError,
    OverLimit,
    issue_at,
)
from dra_driver.cel.estimate import estimate
from dra_driver.cel.fast import Unfit, compile_step
from dra_driver.cel.parser import parse
from dra_driver.cel.plan import plan
from dra_driver.cel.reads import Read, find_reads, project
from dra_driver.cel.slot import FIRST, Names
from dra_driver.cel.step import Step
from dra_driver.cel.tree import MapNode, walk
from dra_driver.cel.type import Kind, Type
from dra_driver.cel.validate import validate
from dra_driver.cel.value import LISTS, Optional, TypeValue, Value, type_name

MAX_COST: Final = 1_000_000
MAX_LENGTH: Final = 10 * 1024
CACHE_SIZE: Final = 512
# The static model is no proof: what it puts far from the limit cannot reach it. It is furthest off, by up to 24 times,
# for named formats, whose patterns it takes to be of one size.
_MARGIN: Final = 4
_FORMAT_MARGIN: Final = 32
_NO_KEY: Final = "no such key: "


@dataclass(frozen=True, slots=True)
class Options:
    """What an expression may use.

    `stored`: everything that Kubernetes 1.37 knows, as its allocator does; else what its API server accepts in new
    objects. `lists` and `consumable_capacity` are the feature gates DRAListTypeAttributes and DRAConsumableCapacity,
    which only matter for new ones. `cost_limit` is that of one evaluation.
    """

    stored: bool = True
    lists: bool = False
    consumable_capacity: bool = True
    cost_limit: int = MAX_COST


DEFAULT: Final = Options()


class Program:
    """A compiled expression. Safe to share between threads."""

    __slots__ = (
        "_counted",
        "_fast",
        "_is_flat",
        "_limit",
        "_reads",
        "_slots",
        "estimated_cost",
        "expression",
        "reads",
        "type",
    )

    def __init__(self, expression: str, checked: Checked, env: Environment, options: Options) -> None:
        self.expression = expression
        self.type = checked.type
        self.reads: frozenset[Read] = find_reads(checked.root)
        self._reads = tuple(sorted(self.reads))
        self.estimated_cost = estimate(checked, env).high
        self._limit = options.cost_limit
        step = plan(checked, env)
        names = Names()
        self._counted = exact.compile_counted(step, names)
        fast_names = Names()
        self._fast = None if _has_keys_by_identity(checked) else self._compile_fast(step, fast_names)
        self._slots: list[Value] = [None] * max(names.size, fast_names.size)
        self._is_flat = fast_names.size == FIRST

    def _compile_fast(self, step: Step, names: Names) -> Callable[[list[Value]], Value] | None:
        """Make a closure that does not count, if the limit is out of reach."""
        margin = _FORMAT_MARGIN if "validate" in self.expression else _MARGIN
        if self.estimated_cost * margin > self._limit:
            return None
        try:
            return compile_step(step, names)
        except Unfit:
            return None

    def key(self, device: DeviceInput) -> Hashable:
        """Give what the expression sees of a device. Devices with equal keys have equal results."""
        return project(self._reads, device)

    def value(self, device: DeviceInput) -> Value:
        """Give the value for a device. Raises EvaluationError."""
        fast, view = self._fast, device.view
        if fast is None or not view.is_plain:
            return self.value_with_cost(device)[0]
        slots = self._slots.copy()
        slots[:FIRST] = view.slots
        try:
            return with_room(lambda: fast(slots.copy()))
        except (Fault, Abort, RecursionError) as error:
            raise self._translate(device, error, 0) from None

    def value_with_cost(self, device: DeviceInput, interrupt: Callable[[], bool] | None = None) -> tuple[Value, int]:
        """Give the value for a device and what it cost. `interrupt` is asked now and then whether to stop.

        Raises EvaluationError with the cost until then.
        """
        view = device.view
        if view.problem:
            raise self._error(device, view.problem, EvaluationError, 0)
        slots = self._slots.copy()
        slots[0] = view.root
        try:
            value, cost = with_room(lambda: exact.evaluate(self._counted, slots.copy(), self._limit, interrupt))
        except RecursionError as error:
            raise self._translate(device, error, 0) from None
        if isinstance(value, Fault | Abort):
            raise self._translate(device, value, cost) from None
        return value, cost

    def _translate(self, device: DeviceInput, error: Exception, cost: int) -> EvaluationError:
        match error:
            case OverLimit():
                return self._error(device, str(error), LimitError, cost)
            case Interrupted():
                return self._error(device, str(error), InterruptError, cost)
            case RecursionError():
                return self._error(device, "nested too deeply", LimitError, cost)
            case _:
                return self._error(device, explain_fault(str(error), self._reads), EvaluationError, cost)

    def _error(self, device: DeviceInput, problem: str, kind: type[EvaluationError], cost: int) -> EvaluationError:
        subject = f"device {device.name}: " if device.name else ""
        return kind(
            f"{subject}{self.expression!r}: {problem}", expression=self.expression, device=device.name, cost=cost
        )


def _has_keys_by_identity(checked: Checked) -> bool:
    """Tell whether maps may have keys that equal nothing but themselves; what counts keeps track of identity."""
    return any(
        checked.types[entry.key.id].kind not in _PLAIN_KEYS
        for node in walk(checked.root)
        if isinstance(node, MapNode)
        for entry in node.entries
    )


_PLAIN_KEYS: Final = frozenset((Kind.BOOL, Kind.INT, Kind.UINT, Kind.DOUBLE, Kind.STRING))


class Selector(Program):
    """A compiled expression that gives a bool."""

    __slots__ = ()

    def evaluate(self, device: DeviceInput, interrupt: Callable[[], bool] | None = None) -> bool:
        """Tell whether the expression selects the device. Raises EvaluationError.

        `interrupt` is asked now and then whether to stop.
        """
        fast = self._fast
        view = device.view
        if fast is None or interrupt is not None or not view.is_plain:
            return self._check(device, *self.value_with_cost(device, interrupt))
        if self._is_flat:
            slots = view.slots
        else:
            slots = self._slots.copy()
            slots[:FIRST] = view.slots
        try:
            value = fast(slots)
        except RecursionError:
            return self._check(device, self.value(device), 0)
        except (Fault, Abort) as error:
            raise self._translate(device, error, 0) from None
        if value is True or value is False:
            return value
        return self._check(device, value, 0)

    def evaluate_with_cost(self, device: DeviceInput, interrupt: Callable[[], bool] | None = None) -> tuple[bool, int]:
        """Tell whether the expression selects the device, and what that cost. Raises EvaluationError."""
        value, cost = self.value_with_cost(device, interrupt)
        return self._check(device, value, cost), cost

    def _check(self, device: DeviceInput, value: Value, cost: int) -> bool:
        if type(value) is bool:
            return value
        raise self._error(device, f"gives {_with_article(type_name(value))}, want a bool", EvaluationError, cost)


Scalar = bool | int | str | Semver


class DerivedAttribute(Program):
    """A compiled expression that gives the value of an attribute: a bool, int, string or version, or a list of them."""

    __slots__ = ()

    def evaluate(self, device: DeviceInput) -> Scalar | tuple[Scalar, ...]:
        """Give the value for a device. Raises EvaluationError."""
        value = self.value(device)
        scalar = _native(value)
        if type(scalar) in _SCALARS:
            return scalar  # type: ignore[no-any-return]
        if isinstance(value, LISTS):
            elements = tuple(map(_native, value))
            if all(type(element) is type(elements[0]) and type(element) in _SCALARS for element in elements):
                return elements
        raise self._error(
            device, f"gives {_with_article(type_name(value))}, want a scalar or a list of one kind", EvaluationError, 0
        )


def _native(value: Value) -> Value:
    """Give what the API would hold: a type is its name, and an optional is its value."""
    while type(value) is Optional and value.present:
        value = value.value
    return value.name if type(value) is TypeValue else value


_SCALARS: Final = frozenset((bool, int, str, Semver))


def explain_fault(problem: str, reads: tuple[Read, ...]) -> str:
    """Add how to guard against an error, if that is known."""
    if not problem.startswith(_NO_KEY):
        return problem
    name = problem.removeprefix(_NO_KEY)
    read = next((read for read in reads if name and read.name == name), None)
    if read is None:
        return problem
    domain = f'device.{read.field}["{read.domain}"]'
    return f"{problem}; guard it with has({domain}.{name}) && …, or read {domain}.?{name}.orValue(…)"


def compile_selector(expression: str, *, options: Options = DEFAULT) -> Selector:
    """Compile a selector. Raises CompileError with all that is wrong. What was compiled lately is kept."""
    return _compile_selector(expression, options)


def compile_attribute(expression: str, *, options: Options = DEFAULT) -> DerivedAttribute:
    """Compile the expression of a derived attribute. Raises CompileError."""
    return _compile_attribute(expression, options)


@lru_cache(CACHE_SIZE)
def _compile_selector(expression: str, options: Options) -> Selector:
    return with_room(lambda: _build_selector(expression, options))


def _build_selector(expression: str, options: Options) -> Selector:
    checked, env = _analyse(expression, options)
    if checked.type not in (t.BOOL, env.value):
        raise _wrong_result(expression, checked, "want a bool")
    return Selector(expression, checked, env, options)


@lru_cache(CACHE_SIZE)
def _compile_attribute(expression: str, options: Options) -> DerivedAttribute:
    return with_room(lambda: _build_attribute(expression, options))


def _build_attribute(expression: str, options: Options) -> DerivedAttribute:
    checked, env = _analyse(expression, options)
    type_ = checked.type
    if type_.kind is Kind.LIST and (options.stored or options.lists):
        type_ = type_.parameters[0]
    if not _is_scalar(type_):
        raise _wrong_result(expression, checked, "want a string, int, bool or semver, or a list of them")
    return DerivedAttribute(expression, checked, env, options)


def _is_scalar(type_: Type) -> bool:
    return type_ in (t.BOOL, t.INT, t.STRING, t.ANY, t.DYN, t.SEMVER)


def _analyse(expression: str, options: Options) -> tuple[Checked, Environment]:
    env = environment(stored=options.stored, lists=options.lists, consumable_capacity=options.consumable_capacity)
    checked = check(expression, parse(expression), env)
    validate(checked)
    return checked, env


def _wrong_result(expression: str, checked: Checked, wanted: str) -> CompileError:
    if t.unwrap_optional(checked.type)[1]:
        wanted += "; write a.orValue(…)"
    elif wanted == "want a bool":
        wanted += "; compare it, as in a == b"
    found = f"the expression gives {_with_article(str(checked.type))}"
    return CompileError(expression, (issue_at(expression, 0, found, wanted),))


def _with_article(type_: str) -> str:
    return f"an {type_}" if type_.startswith(("int", "optional")) else f"a {type_}"


def validate_selector(expression: str, *, options: Options = DEFAULT) -> tuple[str, ...]:
    """Give everything that the API server has against an expression; nothing, if it accepts it."""
    size = len(expression.encode(errors="replace"))
    if size > MAX_LENGTH:
        return (f"{size} bytes, want at most {MAX_LENGTH}",)
    try:
        selector = compile_selector(expression, options=options)
    except CompileError as error:
        return tuple(map(str, error.issues))
    if selector.estimated_cost > MAX_COST:
        return (f"estimated cost {selector.estimated_cost}, want at most {MAX_COST}; use fewer or smaller loops",)
    return ()
