"""Closures for paths: variables, fields and indexes."""

from collections.abc import Callable
from typing import Final

from dra_driver.cel.error import Fault, no_such_overload
from dra_driver.cel.path import check_key, no_such_key, qualify, qualify_if_present
from dra_driver.cel.slot import ATTRIBUTES, CAPACITY, ROOT, Names, Slots
from dra_driver.cel.step import AnyKey, Choice, Key, Path, Relative, Step, Variable
from dra_driver.cel.value import NONE, Optional, Value, optional_of

Run = Callable[[Slots], Value]
Compile = Callable[[Step, Names], Run]
_ABSENT: Final = object()


def compile_path(path: Path, names: Names, compile_step: Compile) -> Run:
    """Make a closure of a path."""
    match path:
        case Choice():
            return _choice(path, names, compile_step)
        case Relative():
            start = compile_step(path.operand, names)
        case Variable():
            special = _device_path(path, names)
            if special is not None:
                return special
            start = _variable(path.name, names)
    if not path.keys:
        return start
    return _keys(start, path.keys, names, compile_step)


def _choice(path: Choice, names: Names, compile_step: Compile) -> Run:
    condition = compile_step(path.condition, names)
    chosen = compile_path(path.chosen, names, compile_step)
    other = compile_path(path.other, names, compile_step)

    def run(slots: Slots) -> Value:
        value = condition(slots)
        if value is True:
            return chosen(slots)
        if value is False:
            return other(slots)
        raise no_such_overload("_?_:_")

    return run


def _variable(name: str, names: Names) -> Run:
    place = names.find(name)
    if not names.is_accumulator(place):
        return lambda slots: slots[place]

    def accumulator(slots: Slots) -> Value:
        value = slots[place]
        if callable(value):
            value = slots[place] = value(slots)
        if isinstance(value, Fault):
            raise value
        return value

    return accumulator


def _device_path(path: Variable, names: Names) -> Run | None:
    """Make a closure for what most expressions read: `device.attributes["domain"].name`."""
    if names.find(path.name) != ROOT:
        return None
    match path.keys:
        case [Key(value="driver" | "allowMultipleAllocations" as field, optional=False, test=False)]:
            return lambda slots: slots[ROOT].native[field]
        case [
            Key(value="attributes" | "capacity" as field, optional=False),
            Key(value=str(domain), optional=False),
            Key(value=str(name)) as last,
        ]:
            place = ATTRIBUTES if field == "attributes" else CAPACITY
            if last.test:
                return lambda slots: name in slots[place].get(domain, ())
            return (_optional_value if last.optional else _value)(place, domain, name)
        case _:
            return None


def _value(place: int, domain: str, name: str) -> Run:
    def run(slots: Slots) -> Value:
        values = slots[place].get(domain)
        if values is not None:
            value = values.get(name, _ABSENT)
            if value is not _ABSENT:
                return value
        raise no_such_key(name)

    return run


def _optional_value(place: int, domain: str, name: str) -> Run:
    def run(slots: Slots) -> Value:
        values = slots[place].get(domain)
        if values is None or name not in values:
            return NONE
        return optional_of(values[name])

    return run


def _keys(start: Run, keys: list[AnyKey], names: Names, compile_step: Compile) -> Run:
    steps = [_compile_key(key, names, compile_step) for key in keys]

    def run(slots: Slots) -> Value:
        value = start(slots)
        is_optional = type(value) is Optional
        if is_optional:
            if not value.present:
                return value
            value = value.value
        for key_of, optional, test in steps:
            is_optional = is_optional or optional
            if is_optional:
                value, present = qualify_if_present(value, key_of(slots))
                if not present:
                    return NONE
            elif test:
                value = qualify_if_present(value, key_of(slots))[1]
            else:
                value = qualify(value, key_of(slots))
        return optional_of(value) if is_optional else value

    return run


def _compile_key(key: AnyKey, names: Names, compile_step: Compile) -> tuple[Run, bool, bool]:
    if isinstance(key, Key):
        constant = key.value
        return (lambda _: constant), key.optional, key.test
    path = compile_path(key.path, names, compile_step)

    def run(slots: Slots) -> Value:
        value = path(slots)
        check_key(value)
        return value

    return run, key.optional, False
