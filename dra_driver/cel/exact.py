"""Runs a plan step by step and counts what it costs, as the reference implementation does.

Errors are values here, since they cost too. The cost of a call needs the values of its arguments; the reference
finds them on a stack of all that was computed, by the numbers of the steps, and charges nothing where an argument was
never computed. So do we.
"""

from collections.abc import Callable, Iterator
from typing import Final

from dra_driver.cel import charge
from dra_driver.cel.equality import is_equal
from dra_driver.cel.error import Abort, Fault, Interrupted, OverLimit, no_such_overload
from dra_driver.cel.path import check_key, qualify, qualify_if_present
from dra_driver.cel.plan import (
    AnyKey,
    Apply,
    Choice,
    ComputedKey,
    Const,
    Equality,
    Follow,
    Key,
    Logic,
    Loop,
    MakeList,
    MakeMap,
    Membership,
    OrElse,
    Path,
    Relative,
    Step,
    Variable,
)
from dra_driver.cel.value import (
    LISTS,
    MAPS,
    NONE,
    Map,
    MutableList,
    MutableMap,
    Optional,
    Value,
    map_key,
    optional_of,
    type_name,
)

CHECK_EVERY: Final = 100
_LAZY: Final = object()


class Scope:
    """The variables of a loop, within those around it."""

    __slots__ = ("accumulator", "done", "loop", "mutable", "one", "parent", "two")

    def __init__(self, loop: Loop, parent: "Scope | None") -> None:
        self.loop = loop
        self.parent = parent
        self.accumulator: Value = _LAZY
        self.one: Value = None
        self.two: Value = None
        self.done = False
        self.mutable = False


class Run:
    """One evaluation: what was computed, and what it cost."""

    __slots__ = ("charges", "checks", "cost", "device", "ids", "interrupt", "limit", "places", "scope", "values")

    def __init__(self, device: Value, limit: int, interrupt: Callable[[], bool] | None = None) -> None:
        self.device = device
        self.limit = limit
        self.interrupt = interrupt
        self.cost = 0
        self.checks = 0
        self.scope: Scope | None = None
        self.ids: list[int] = []
        self.values: list[Value] = []
        self.places: dict[int, list[int]] = {}
        self.charges: dict[int, charge.Charge] = {}

    def evaluate(self, step: Step) -> Value:
        """Give a value, or a fault as a value. Raises Abort."""
        return _RUN[type(step)](self, step)

    def push(self, number: int, value: Value) -> None:
        """Note what a step gave, and look at the limit."""
        self.places.setdefault(number, []).append(len(self.ids))
        self.ids.append(number)
        self.values.append(value)
        if self.cost > self.limit:
            raise OverLimit(f"actual cost limit exceeded: {self.cost}, want at most {self.limit}")

    def drop(self, number: int) -> Value:
        """Forget the latest of a step and all after it. Give its value, or the lazy mark if there is none."""
        places = self.places.get(number)
        if not places:
            return _LAZY
        place = places[-1]
        value = self.values[place]
        for later in self.ids[place:]:
            self.places[later].pop()
        del self.ids[place:], self.values[place:]
        return value

    def drop_arguments(self, steps: list[Step]) -> list[Value] | None:
        """Forget the arguments of a call. Give their values, or None if one was not computed."""
        values = []
        for step in reversed(steps):
            value = self.drop(step.id)
            if value is _LAZY:
                return None
            values.append(value)
        values.reverse()
        return values

    def find(self, name: str) -> Value:
        """Give the value of a variable."""
        scope = None if name.startswith(".") else self.scope
        while scope is not None:
            loop = scope.loop
            if name == loop.accumulator:
                return self.accumulated(scope)
            if not scope.done:
                if name == loop.variable:
                    return scope.one
                if name == loop.variable2:
                    return scope.two
            scope = scope.parent
        return self.device

    def accumulated(self, scope: Scope) -> Value:
        """Give the accumulator; its first value is computed when somebody asks."""
        if scope.accumulator is _LAZY:
            inner, self.scope = self.scope, scope.parent
            value = self.evaluate(scope.loop.initial)
            self.scope = inner
            if isinstance(value, LISTS) and not len(value):
                value, scope.mutable = MutableList(), True
            elif isinstance(value, MAPS) and not len(value):
                value, scope.mutable = MutableMap({}), True
            scope.accumulator = value
        return scope.accumulator

    def is_interrupted(self) -> bool:
        """Ask the caller now and then whether to go on."""
        self.checks += 1
        return self.interrupt is not None and self.checks % CHECK_EVERY == 0 and self.interrupt()


def _const(run: Run, step: Const) -> Value:
    run.push(step.id, step.value)
    return step.value


def resolve(run: Run, path: Path) -> Value:
    """Follow a path. Raises a fault."""
    match path:
        case Choice():
            condition = run.evaluate(path.condition)
            if condition is True:
                return resolve(run, path.chosen)
            if condition is False:
                return resolve(run, path.other)
            raise condition if isinstance(condition, Fault) else no_such_overload("_?_:_")
        case Relative():
            value = run.evaluate(path.operand)
        case Variable():
            value = run.find(path.name)
    if isinstance(value, Fault):
        raise value
    return _apply_keys(run, value, path.keys)


def _apply_keys(run: Run, value: Value, keys: list[AnyKey]) -> Value:
    is_optional = type(value) is Optional
    if is_optional:
        if not value.present:
            return value
        value = value.value
    for key in keys:
        is_optional = is_optional or key.optional
        if not is_optional:
            value = _qualify(run, value, key)
            continue
        value, present = _qualify_if_present(run, value, key)
        if not present:
            return NONE
    return optional_of(value) if is_optional else value


def _key_of(run: Run, key: AnyKey) -> Value:
    if isinstance(key, Key):
        return key.value
    value = resolve(run, key.path)
    check_key(value)
    return value


def _qualify(run: Run, value: Value, key: AnyKey) -> Value:
    result: Value
    try:
        if isinstance(key, Key) and key.test:
            result = qualify_if_present(value, key.value)[1]
        else:
            result = qualify(value, _key_of(run, key))
    except Fault as fault:
        _observe_key(run, key, fault)
        raise
    _observe_key(run, key, result)
    return result


def _qualify_if_present(run: Run, value: Value, key: AnyKey) -> tuple[Value, bool]:
    result, present = qualify_if_present(value, _key_of(run, key))
    if present:
        _observe_key(run, key, result)
    return result, present


def _observe_key(run: Run, key: AnyKey, value: Value) -> None:
    if isinstance(key, ComputedKey) and key.step:
        run.drop(key.id)
    run.cost += 1
    run.push(key.id, value)


def _follow(run: Run, step: Follow) -> Value:
    value: Value
    try:
        value = resolve(run, step.path)
        if step.test and type(value) is Optional:
            value = value.present
    except Fault as fault:
        value = fault
    path = step.path
    if isinstance(path, Choice):
        run.drop(path.other.last)
        run.drop(path.chosen.last)
        run.drop(path.condition.id)
    else:
        run.drop(path.last)
        run.cost += 1
    if step.test:
        run.cost -= 1
    run.push(step.id, value)
    return value


def _apply(run: Run, step: Apply) -> Value:
    value = _call(run, step)
    arguments = run.drop_arguments(step.arguments)
    if arguments is not None:
        charged = run.charges.get(step.id)
        if charged is None:
            charged = run.charges[step.id] = charge.charge_for(step.function, step.overload)
        run.cost += charged(arguments, value)
    run.push(step.id, value)
    return value


def _call(run: Run, step: Apply) -> Value:
    arguments = []
    fault: Fault | None = None
    for each in step.arguments:
        argument = run.evaluate(each)
        if isinstance(argument, Fault) and not step.non_strict:
            if step.early:
                return argument
            fault = fault or argument
        arguments.append(argument)
    if fault is not None:
        return fault
    if step.run is None:
        return no_such_overload(step.function)
    try:
        return step.run(*arguments)
    except Fault as error:
        return error


def _logic(run: Run, step: Logic) -> Value:
    result: Value = not step.decisive
    for term in step.terms:
        value = run.evaluate(term)
        if value is step.decisive:
            result = value
            break
        if type(value) is not bool and not isinstance(result, Fault):
            result = value if isinstance(value, Fault) else no_such_overload("&&")
    for term in step.terms:
        run.drop(term.id)
    run.push(step.id, result)
    return result


def _equality(run: Run, step: Equality) -> Value:
    left = run.evaluate(step.left)
    right = run.evaluate(step.right)
    value: Value
    if isinstance(left, Fault):
        value = left
    elif isinstance(right, Fault):
        value = right
    else:
        value = equal_or_fault(left, right, negated=step.negated)
    arguments = run.drop_arguments([step.left, step.right])
    if arguments is not None:
        run.cost += charge.charge_equality(arguments, negated=step.negated)
    run.push(step.id, value)
    return value


def equal_or_fault(left: Value, right: Value, *, negated: bool) -> Value:
    """Give `==`, or `!=`, for which what cannot be compared is not equal."""
    try:
        return is_equal(left, right) is not negated
    except Fault as fault:
        return True if negated else fault


def _membership(run: Run, step: Membership) -> Value:
    value = run.evaluate(step.operand)
    if not isinstance(value, Fault):
        value = map_key(value) in step.keys
    run.push(step.id, value)
    return value


def _make_list(run: Run, step: MakeList) -> Value:
    value = _elements(run, step)
    run.drop_arguments(step.elements)
    run.cost += charge.LIST
    run.push(step.id, value)
    return value


def _elements(run: Run, step: MakeList) -> Value:
    elements = []
    for place, each in enumerate(step.elements):
        value = run.evaluate(each)
        if isinstance(value, Fault):
            return value
        if place in step.optional:
            if type(value) is not Optional:
                return Fault(f"cannot initialize optional list element from a {type_name(value)}")
            if not value.present:
                continue
            value = value.value
        elements.append(value)
    return tuple(elements)


def _make_map(run: Run, step: MakeMap) -> Value:
    value = _entries(run, step)
    run.drop_arguments([each for pair in zip(step.keys, step.values, strict=True) for each in pair])
    run.cost += charge.MAP
    run.push(step.id, value)
    return value


def _entries(run: Run, step: MakeMap) -> Value:
    entries: dict[Value, tuple[Value, Value]] = {}
    for key_step, value_step, optional in zip(step.keys, step.values, step.optional, strict=True):
        key = run.evaluate(key_step)
        if isinstance(key, Fault):
            return key
        value = run.evaluate(value_step)
        if isinstance(value, Fault):
            return value
        if optional:
            if type(value) is not Optional:
                return Fault(f"cannot initialize optional entry from a {type_name(value)}")
            if not value.present:
                entries.pop(map_key(key), None)
                continue
            value = value.value
        entries[map_key(key)] = (key, value)
    return Map(entries)


def _loop(run: Run, step: Loop) -> Value:
    outer = run.scope
    value = _fold(run, step)
    run.scope = outer
    run.drop(step.range.id)
    run.push(step.id, value)
    return value


def _fold(run: Run, step: Loop) -> Value:
    range_ = run.evaluate(step.range)
    if isinstance(range_, Fault):
        return range_
    pairs = pairs_of(range_, two=bool(step.variable2))
    if pairs is None:
        return Fault(f"a loop over a {type_name(range_)}, want a list or a map")
    scope = run.scope = Scope(step, run.scope)
    for scope.one, scope.two in pairs:
        condition = run.evaluate(step.condition)
        if condition is False:
            break
        scope.accumulator = run.evaluate(step.step)
        if run.is_interrupted():
            raise Interrupted("operation interrupted")
    scope.done = True
    result = run.evaluate(step.result)
    return frozen(result) if scope.mutable else result


def pairs_of(range_: Value, *, two: bool) -> Iterator[tuple[Value, Value]] | None:
    """Give what the variables of a loop become; None if that is nothing to loop over."""
    if isinstance(range_, LISTS):
        elements = tuple(range_)
        return enumerate(elements) if two else ((element, None) for element in elements)
    if isinstance(range_, MAPS):
        return iter(range_.items())
    return None


def frozen(value: Value) -> Value:
    """Give a list or a map that a macro built as one that does not change."""
    if type(value) is MutableList:
        return tuple(value)
    if type(value) is MutableMap:
        return Map.of(value.items())
    return value


def _or_else(run: Run, step: OrElse) -> Value:
    value = run.evaluate(step.left)
    if type(value) is Optional:
        if not value.present:
            value = run.evaluate(step.right)
        elif step.unwrap:
            value = value.value
    elif not isinstance(value, Fault):
        value = no_such_overload("or")
    run.push(step.id, value)
    return value


_RUN: Final[dict[type[Step], Callable[..., Value]]] = {
    Const: _const,
    Follow: _follow,
    Apply: _apply,
    Logic: _logic,
    Equality: _equality,
    Membership: _membership,
    MakeList: _make_list,
    MakeMap: _make_map,
    Loop: _loop,
    OrElse: _or_else,
}


def evaluate(step: Step, device: Value, limit: int, interrupt: Callable[[], bool] | None = None) -> tuple[Value, Run]:
    """Evaluate a plan. Gives the value, or a fault or an abort as a value, and the run with its cost."""
    run = Run(device, limit, interrupt)
    try:
        return run.evaluate(step), run
    except Abort as abort:
        return abort, run
