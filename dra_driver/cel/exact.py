"""Makes a closure of a plan that counts what every step costs, as the reference implementation does.

Errors are values here, since they cost too: a call whose arguments were all computed is charged, even if one of them
is an error. The limit is looked at wherever something is charged.
"""

from collections.abc import Callable
from typing import Final

from dra_driver.cel import bulk, charge
from dra_driver.cel.counting import Counted, Run
from dra_driver.cel.equality import is_equal
from dra_driver.cel.error import Abort, Fault, no_such_overload
from dra_driver.cel.loop import frozen, is_mutable, pairs_of, thawed
from dra_driver.cel.making import make_list, make_map, make_message
from dra_driver.cel.path import check_key, qualify, qualify_if_present
from dra_driver.cel.slot import ROOT, Names
from dra_driver.cel.step import (
    AnyKey,
    Apply,
    Choice,
    Const,
    Equality,
    Follow,
    Key,
    Logic,
    Loop,
    MakeList,
    MakeMap,
    MakeMessage,
    Membership,
    OrElse,
    Path,
    Relative,
    Step,
    Variable,
)
from dra_driver.cel.value import NONE, Optional, Value, distinct_list, map_key, optional_of, type_name


def compile_counted(step: Step, names: Names) -> Counted:
    """Make a closure of a step. It gives a value, or a fault as a value, and raises Abort."""
    return _COMPILE[type(step)](step, names)


def _const(step: Const, _: Names) -> Counted:
    value = step.value
    return lambda _: value


def _path(path: Path, names: Names) -> Counted:
    """Make a closure of a path. Raises its fault."""
    match path:
        case Choice():
            return _choice(path, names)
        case Relative():
            start = compile_counted(path.operand, names)
        case Variable():
            start = _variable(path.name, names, is_whole=not path.keys)
    return _keys(start, [_key(key, names) for key in path.keys])


def _keys(start: Counted, keys: list[tuple[Counted, bool, bool]]) -> Counted:
    def run(run: Run) -> Value:
        value = start(run)
        if type(value) is Fault:
            raise value
        is_optional = type(value) is Optional
        if is_optional:
            if not value.present:
                return value
            value = value.value
        for key, optional, test in keys:
            is_optional = is_optional or optional
            if is_optional:
                value, present = qualify_if_present(value, key(run))
                if not present:
                    return NONE
            else:
                value = _qualify(run, value, key, test=test)
            run.charge(1)
        return optional_of(value) if is_optional else value

    return run


def _qualify(run: Run, value: Value, key: Counted, *, test: bool) -> Value:
    try:
        return qualify_if_present(value, key(run))[1] if test else qualify(value, key(run))
    except Fault:
        run.charge(1)
        raise


def _key(key: AnyKey, names: Names) -> tuple[Counted, bool, bool]:
    if isinstance(key, Key):
        constant = key.value
        return (lambda _: constant), key.optional, key.test
    path = _path(key.path, names)

    def run(run: Run) -> Value:
        value = path(run)
        check_key(value)
        return value

    return run, key.optional, False


def _variable(name: str, names: Names, *, is_whole: bool) -> Counted:
    """Read a variable. All of `device` is another map each time, which as a key is equal to none but itself."""
    place = names.find(name)
    if place == ROOT and is_whole:
        return lambda run: run.slots[ROOT].copy()
    if not names.is_accumulator(place):
        return lambda run: run.slots[place]

    def accumulator(run: Run) -> Value:
        value = run.slots[place]
        if callable(value):
            value = run.slots[place] = value(run)
        return value

    return accumulator


def _choice(path: Choice, names: Names) -> Counted:
    condition = compile_counted(path.condition, names)
    chosen, other = _path(path.chosen, names), _path(path.other, names)

    def run(run: Run) -> Value:
        value = condition(run)
        if value is True:
            return chosen(run)
        if value is False:
            return other(run)
        raise value if type(value) is Fault else no_such_overload("_?_:_")

    return run


def _follow(step: Follow, names: Names) -> Counted:
    path = _path(step.path, names)
    cost = (0 if isinstance(step.path, Choice) else 1) - (1 if step.test else 0)
    test = step.test

    def run(run: Run) -> Value:
        value: Value
        try:
            value = path(run)
            if test and type(value) is Optional:
                value = value.present
        except Fault as fault:
            value = fault
        run.charge(cost)
        return value

    return run


def _apply(step: Apply, names: Names) -> Counted:
    arguments = [compile_counted(each, names) for each in step.arguments]
    cost_of = charge.charge_for(step.function, step.overload)
    call = step.run or _refuse
    early, strict = step.early, not step.non_strict
    is_known_before = charge.is_known_before(cost_of)
    weigh = bulk.WEIGHED.get(step.function, bulk.weigh_nothing)

    def run(run: Run) -> Value:
        values: list[Value] = []
        result: Value = None
        for argument in arguments:
            value = argument(run)
            if type(value) is Fault and strict:
                if early and len(values) + 1 < len(arguments):
                    return value
                result = result or value
            values.append(value)
        before = run.cost
        if is_known_before:
            run.charge(cost_of(values, result))
        if result is None:
            weigh(values)
            try:
                result = distinct_list(call(*values))
            except Fault as fault:
                result = fault
            except Abort:
                run.cost = before
                raise
        if not is_known_before:
            run.charge(cost_of(values, result))
        return result

    return run


def _refuse(*_: Value) -> Value:
    raise no_such_overload()


def _logic(step: Logic, names: Names) -> Counted:
    terms = [compile_counted(each, names) for each in step.terms]
    decisive = step.decisive

    def run(run: Run) -> Value:
        fault: Fault | None = None
        for term in terms:
            value = term(run)
            if value is decisive:
                return decisive
            if type(value) is not bool and fault is None:
                fault = value if type(value) is Fault else no_such_overload("&&")
        return not decisive if fault is None else fault

    return run


def _equality(step: Equality, names: Names) -> Counted:
    left, right = compile_counted(step.left, names), compile_counted(step.right, names)
    negated = step.negated

    def run(run: Run) -> Value:
        values = [left(run), right(run)]
        run.charge(charge.charge_equality(values, negated=negated))
        fault = next((each for each in values if type(each) is Fault), None)
        if fault is not None:
            return fault
        bulk.weigh_pair(values)
        return _compare(values, negated=negated)

    return run


def _compare(values: list[Value], *, negated: bool) -> Value:
    """Give `==`, or `!=`, for which what cannot be compared is not equal."""
    try:
        return is_equal(values[0], values[1]) is not negated
    except Fault as fault:
        return True if negated else fault


def _membership(step: Membership, names: Names) -> Counted:
    operand, keys = compile_counted(step.operand, names), step.keys

    def run(run: Run) -> Value:
        value = operand(run)
        return value if type(value) is Fault else map_key(value) in keys

    return run


def _make_list(step: MakeList, names: Names) -> Counted:
    return make_list(step, [compile_counted(each, names) for each in step.elements])


def _make_map(step: MakeMap, names: Names) -> Counted:
    return make_map(
        step,
        [compile_counted(each, names) for each in step.keys],
        [compile_counted(each, names) for each in step.values],
    )


def _make_message(step: MakeMessage, names: Names) -> Counted:
    return make_message(step, [compile_counted(value, names) for _, value, _ in step.fields])


def _loop(step: Loop, names: Names) -> Counted:
    range_, initial = compile_counted(step.range, names), compile_counted(step.initial, names)
    place, inside, after = names.enter(step.accumulator, step.variable, step.variable2)
    condition, advance = compile_counted(step.condition, inside), compile_counted(step.step, inside)
    result = compile_counted(step.result, after)
    two = bool(step.variable2)

    def start(run: Run) -> Value:
        return thawed(initial(run))

    def run(run: Run) -> Value:
        elements = range_(run)
        if type(elements) is Fault:
            return elements
        pairs = pairs_of(elements, two=two)
        if pairs is None:
            return Fault(f"a loop over a {type_name(elements)}, want a list or a map")
        slots = run.slots
        slots[place] = start
        for slots[place + 1], slots[place + 2] in pairs:
            if condition(run) is False:
                break
            slots[place] = advance(run)
            run.check()
        value = result(run)
        return frozen(value) if is_mutable(value) and is_mutable(slots[place]) else value

    return run


def _or_else(step: OrElse, names: Names) -> Counted:
    left, right, unwrap = compile_counted(step.left, names), compile_counted(step.right, names), step.unwrap

    def run(run: Run) -> Value:
        value = left(run)
        if type(value) is Optional:
            if not value.present:
                return right(run)
            return value.value if unwrap else value
        return value if type(value) is Fault else no_such_overload("or")

    return run


_COMPILE: Final[dict[type[Step], Callable[..., Counted]]] = {
    Const: _const,
    Follow: _follow,
    Apply: _apply,
    Logic: _logic,
    Equality: _equality,
    Membership: _membership,
    MakeList: _make_list,
    MakeMap: _make_map,
    MakeMessage: _make_message,
    Loop: _loop,
    OrElse: _or_else,
}


def evaluate(
    counted: Counted, slots: list[Value], limit: int, interrupt: Callable[[], bool] | None = None
) -> tuple[Value, int]:
    """Evaluate. Gives the value, or a fault or an abort as a value, and the cost."""
    run = Run(slots, limit, interrupt)
    try:
        return counted(run), run.cost
    except Abort as abort:
        return abort, run.cost
