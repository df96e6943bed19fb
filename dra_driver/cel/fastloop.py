"""Closures for loops that do not count: `all` and `exists` on their own, names for values, and all others."""

from collections.abc import Callable, Iterator

from dra_driver.cel.error import Fault, no_such_overload
from dra_driver.cel.loop import frozen, is_mutable, pairs_of, thawed
from dra_driver.cel.slot import Names, Slots
from dra_driver.cel.step import Apply, Const, Follow, Logic, Loop, Step, Variable
from dra_driver.cel.value import Value, type_name

Run = Callable[[Slots], Value]
Compile = Callable[[Step, Names], Run]


def compile_loop(step: Loop, names: Names, compile_step: Compile) -> Run:
    """Make a closure of a loop."""
    range_, initial = compile_step(step.range, names), compile_step(step.initial, names)
    place, inner, after = names.enter(step.accumulator, step.variable, step.variable2)
    if isinstance(step.condition, Const) and step.condition.value is False:
        return _bind(place, initial, compile_step(step.result, after))
    quantifier = _quantifier(step)
    if quantifier is not None:
        decisive, predicate = quantifier
        return _quantify(range_, place, bool(step.variable2), decisive, compile_step(predicate, inner))
    return _general_loop(
        step,
        (range_, initial, compile_step(step.condition, inner), compile_step(step.step, inner)),
        compile_step(step.result, after),
        place,
    )


def _bind(place: int, initial: Run, result: Run) -> Run:
    def start(slots: Slots) -> Value:
        return thawed(initial(slots))

    def run(slots: Slots) -> Value:
        slots[place] = start
        value = result(slots)
        return frozen(value) if is_mutable(value) and is_mutable(slots[place]) else value

    return run


def _quantifier(step: Loop) -> tuple[bool, Step] | None:
    """Tell whether a loop is `all` or `exists`: what decides it, and its predicate."""
    match step:
        case Loop(
            accumulator="@result",
            condition=Apply(function="@not_strictly_false"),
            step=Logic(decisive=decisive, terms=[Follow(path=Variable(name="@result", keys=[])), predicate]),
            result=Follow(path=Variable(name="@result", keys=[])),
            initial=Const(value=bool()),
        ):
            return decisive, predicate
        case _:
            return None


def _quantify(range_: Run, place: int, two: bool, decisive: bool, predicate: Run) -> Run:  # noqa: FBT001 - internal
    one, other = place + 1, place + 2

    def run(slots: Slots) -> Value:
        pairs = _pairs(range_(slots), two=two)
        fault: Fault | None = None
        for slots[one], slots[other] in pairs:
            try:
                value = predicate(slots)
            except Fault as error:
                fault = fault or error
                continue
            if value is decisive:
                return decisive
            if type(value) is not bool:
                fault = fault or no_such_overload("&&")
        if fault is not None:
            raise fault
        return not decisive

    return run


def _pairs(range_: Value, *, two: bool) -> Iterator[tuple[Value, Value]]:
    pairs = pairs_of(range_, two=two)
    if pairs is None:
        raise Fault(f"a loop over a {type_name(range_)}, want a list or a map")
    return pairs


def _general_loop(step: Loop, parts: tuple[Run, Run, Run, Run], result: Run, place: int) -> Run:
    range_, initial, condition, advance = parts
    two = bool(step.variable2)

    def run(slots: Slots) -> Value:
        pairs = _pairs(range_(slots), two=two)
        slots[place] = lambda slots: thawed(initial(slots))
        for slots[place + 1], slots[place + 2] in pairs:
            try:
                if condition(slots) is False:
                    break
            except Fault:
                pass
            try:
                slots[place] = advance(slots)
            except Fault as fault:
                slots[place] = fault
        value = result(slots)
        return frozen(value) if is_mutable(value) and is_mutable(slots[place]) else value

    return run
