"""Makes a closure of a plan: the same values and errors as `exact`, without the cost.

Fit for expressions whose estimate says that the limit is out of reach. Errors are exceptions here, so that what works
pays nothing for what could fail.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from dra_driver.cel.charge import NEEDS_LIST, NO_DEPTH, NO_LIST
from dra_driver.cel.equality import is_equal
from dra_driver.cel.error import Abort, Fault, no_such_overload
from dra_driver.cel.fastloop import compile_loop
from dra_driver.cel.fastpath import compile_path
from dra_driver.cel.slot import Names, Slots
from dra_driver.cel.step import (
    Apply,
    Choice,
    Const,
    Equality,
    Follow,
    Logic,
    Loop,
    MakeList,
    MakeMap,
    MakeMessage,
    Membership,
    OrElse,
    Step,
)
from dra_driver.cel.value import LISTS, Map, Optional, Value, classes_of, map_key, type_name

Run = Callable[[Slots], Value]
_FOLDABLE: Final = frozenset(
    ("string_to_quantity", "string_to_semver", "string_bool_to_semver", "string_to_cidr", "string_to_ip")
)


class Unfit(Exception):  # noqa: N818 - a plan, not a program, is at fault
    """A plan whose cost has to be counted."""


def compile_step(step: Step, names: Names) -> Run:
    """Make a closure of a step."""
    return _COMPILE[type(step)](step, names)


def _const(step: Const, _: Names) -> Run:
    value = step.value
    return lambda _: value


def _follow(step: Follow, names: Names) -> Run:
    if step.test and isinstance(step.path, Choice):
        raise Unfit("its cost can pass the limit by falling below zero")
    run = compile_path(step.path, names, compile_step)
    if not step.test:
        return run

    def test(slots: Slots) -> Value:
        value = run(slots)
        return value.present if type(value) is Optional else value

    return test


def _apply(step: Apply, names: Names) -> Run:
    if step.run is None:
        return _refusing(step, names)
    folded = _fold_constants(step)
    if folded is not None:
        return folded
    if step.overload in _ORDERS and (ordering := _quantity_ordering(step, names)) is not None:
        return ordering
    arguments = [compile_step(each, names) for each in step.arguments]
    if step.overload in NEEDS_LIST:
        place = NEEDS_LIST[step.overload]
        arguments[place] = _needing_list(arguments[place])
    if step.overload == "list_flatten_int":
        arguments[1] = _needing_depth(arguments[1])
    if step.non_strict:
        return _non_strict(step.run, arguments[0])
    if step.overload in _ORDERS:
        return _ordering(step, arguments)
    return _call(step.run, arguments, early=step.early)


def _fold_constants(step: Apply) -> Run | None:
    """Compute quantities and versions once."""
    values = [each.value for each in step.arguments if isinstance(each, Const)]
    if step.overload not in _FOLDABLE or len(values) != len(step.arguments) or step.run is None:
        return None
    try:
        value = step.run(*values)
    except Fault:
        return None
    return lambda _: value


def _call(run: Callable[..., Value], arguments: list[Run], *, early: bool) -> Run:
    match arguments:
        case []:
            return lambda _: run()
        case [one]:
            return lambda slots: run(one(slots))
        case [one, two] if not early:
            return _call_two(run, one, two)
        case _:
            return lambda slots: run(*[each(slots) for each in arguments])


def _call_two(run: Callable[..., Value], left: Run, right: Run) -> Run:
    """Call with two arguments. Both are computed, since an abort of the second hides a fault of the first."""

    def call(slots: Slots) -> Value:
        try:
            one = left(slots)
        except Fault as fault:
            raise _other(right, slots, fault) from None
        return run(one, right(slots))

    return call


def _other(right: Run, slots: Slots, fault: Fault) -> Fault:
    """Compute the second argument after a fault of the first, which is what counts unless the second aborts."""
    with suppress(Fault):
        right(slots)
    return fault


def _refusing(step: Apply, names: Names) -> Run:
    arguments = [compile_step(each, names) for each in step.arguments]

    def run(slots: Slots) -> Value:
        for argument in arguments:
            argument(slots)
        raise no_such_overload(step.function)

    return run


def _non_strict(run: Callable[..., Value], argument: Run) -> Run:
    def call(slots: Slots) -> Value:
        try:
            value = argument(slots)
        except Fault as fault:
            value = fault
        return run(value)

    return call


def _needing_list(argument: Run) -> Run:
    def run(slots: Slots) -> Value:
        try:
            value = argument(slots)
        except Fault:
            raise Abort(NO_LIST) from None
        if not isinstance(value, LISTS):
            raise Abort(NO_LIST)
        return value

    return run


def _needing_depth(argument: Run) -> Run:
    def run(slots: Slots) -> Value:
        try:
            value = argument(slots)
        except Fault:
            raise Abort(NO_DEPTH) from None
        if type(value) is not int:
            raise Abort(NO_DEPTH)
        return value

    return run


_QUANTITIES: Final = classes_of("kubernetes.Quantity")
_ORDERS: Final[dict[str, Callable[[int, int], bool]]] = {
    "less_int64": int.__lt__,
    "less_equals_int64": int.__le__,
    "greater_int64": int.__gt__,
    "greater_equals_int64": int.__ge__,
}


def _ordering(step: Apply, arguments: list[Run]) -> Run:
    """Compare whole numbers without looking for an overload."""
    order, general = _ORDERS[step.overload], step.run
    assert general is not None  # noqa: S101 - orders have implementations

    def compare(one: Value, two: Value) -> Value:
        if type(one) is int and type(two) is int:
            return order(one, two)
        return general(one, two)

    left, right = arguments
    constant = step.arguments[1]
    if not isinstance(constant, Const):
        return _call_two(compare, left, right)
    bound = constant.value

    def run(slots: Slots) -> Value:
        one = left(slots)
        return order(one, bound) if type(one) is int else general(one, bound)

    return run


def _quantity_ordering(step: Apply, names: Names) -> Run | None:
    """Compare quantities at once in `a.compareTo(b) >= 0`."""
    match step.arguments:
        case [Apply(overload="quantity_compare_to", arguments=[left, right], run=compare), Const(value=0)]:
            order = _ORDERS[step.overload]
        case _:
            return None
    assert compare is not None  # noqa: S101 - the library has it

    def run(one: Value, two: Value) -> Value:
        if type(one) in _QUANTITIES and type(two) in _QUANTITIES:
            return order(one.nanos, two.nanos)
        return order(compare(one, two), 0)

    return _call_two(run, compile_step(left, names), compile_step(right, names))


def _logic(step: Logic, names: Names) -> Run:
    left, right = (compile_step(each, names) for each in step.terms)
    decisive = step.decisive

    def other(slots: Slots, fault: Fault) -> Value:
        try:
            if right(slots) is decisive:
                return decisive
        except Fault:
            raise fault from None
        raise fault

    def run(slots: Slots) -> Value:
        try:
            one = left(slots)
        except Fault as fault:
            return other(slots, fault)
        if one is decisive:
            return decisive
        if type(one) is not bool:
            return other(slots, no_such_overload("&&"))
        two = right(slots)
        if type(two) is bool:
            return two
        raise no_such_overload("&&")

    return run


def _equality(step: Equality, names: Names) -> Run:
    left, right = compile_step(step.left, names), compile_step(step.right, names)
    if step.negated:
        return _call_two(_differ, left, right)
    if not isinstance(step.right, Const):
        return _call_two(is_equal, left, right)
    constant = step.right.value
    kind = type(constant)
    if kind is not str and kind is not bool:
        return lambda slots: is_equal(left(slots), constant)

    def equals_constant(slots: Slots) -> Value:
        value = left(slots)
        return value == constant if type(value) is kind else is_equal(value, constant)

    return equals_constant


def _differ(left: Value, right: Value) -> bool:
    """`!=`: what cannot be compared is not equal."""
    try:
        return not is_equal(left, right)
    except Fault:
        return True


def _membership(step: Membership, names: Names) -> Run:
    operand, keys = compile_step(step.operand, names), step.keys
    return lambda slots: map_key(operand(slots)) in keys


def _make_list(step: MakeList, names: Names) -> Run:
    elements = [compile_step(each, names) for each in step.elements]
    optional = step.optional
    if not optional:
        return lambda slots: tuple([element(slots) for element in elements])

    def run(slots: Slots) -> Value:
        values = []
        for place, element in enumerate(elements):
            value = element(slots)
            if place in optional:
                if type(value) is not Optional:
                    raise Fault(f"cannot initialize optional list element from a {type_name(value)}")
                if not value.present:
                    continue
                value = value.value
            values.append(value)
        return tuple(values)

    return run


def _make_map(step: MakeMap, names: Names) -> Run:
    entries = [
        (compile_step(key, names), compile_step(value, names), optional)
        for key, value, optional in zip(step.keys, step.values, step.optional, strict=True)
    ]

    def run(slots: Slots) -> Value:
        made: dict[Value, tuple[Value, Value]] = {}
        for key_run, value_run, optional in entries:
            key, value = key_run(slots), value_run(slots)
            if optional:
                if type(value) is not Optional:
                    raise Fault(f"cannot initialize optional entry from a {type_name(value)}")
                if not value.present:
                    made.pop(map_key(key), None)
                    continue
                value = value.value
            made[map_key(key)] = (key, value)
        return Map(made)

    return run


def _make_message(_: MakeMessage, __: Names) -> Run:
    raise Unfit("messages are made where costs are counted")


def _or_else(step: OrElse, names: Names) -> Run:
    left, right, unwrap = compile_step(step.left, names), compile_step(step.right, names), step.unwrap

    def run(slots: Slots) -> Value:
        value = left(slots)
        if type(value) is not Optional:
            raise no_such_overload("or")
        if not value.present:
            return right(slots)
        return value.value if unwrap else value

    return run


def _loop(step: Loop, names: Names) -> Run:
    return compile_loop(step, names, compile_step)


_COMPILE: Final[dict[type[Step], Callable[..., Run]]] = {
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
