"""Closures that make lists, maps and messages, and count what that costs."""

from dra_driver.cel import bulk, charge
from dra_driver.cel.counting import Counted, Run
from dra_driver.cel.error import Fault
from dra_driver.cel.step import MakeList, MakeMap, MakeMessage
from dra_driver.cel.value import Map, Optional, Value, distinct_list, map_key, type_name


def make_list(step: MakeList, values_of: list[Counted]) -> Counted:
    """Make a closure that makes a list."""
    elements = [(each, place in step.optional) for place, each in enumerate(values_of)]

    def make(run: Run) -> Value:
        values: list[Value] = []
        for element, optional in elements:
            value = element(run)
            if type(value) is Fault:
                return value
            if optional:
                if type(value) is not Optional:
                    return Fault(f"cannot initialize optional list element from a {type_name(value)}")
                if not value.present:
                    continue
                value = value.value
            values.append(value)
        return distinct_list(tuple(values))

    def run(run: Run) -> Value:
        value = make(run)
        run.charge(charge.LIST)
        return value

    return run


def make_map(step: MakeMap, keys_of: list[Counted], values_of: list[Counted]) -> Counted:
    """Make a closure that makes a map."""
    parts = list(zip(keys_of, values_of, step.optional, strict=True))

    def make(run: Run) -> Value:
        made: dict[Value, tuple[Value, Value]] = {}
        for key_of, value_of, optional in parts:
            key = key_of(run)
            if type(key) is Fault:
                return key
            value = value_of(run)
            if type(value) is Fault:
                return value
            if optional:
                if type(value) is not Optional:
                    return Fault(f"cannot initialize optional entry from a {type_name(value)}")
                if not value.present:
                    made.pop(map_key(key), None)
                    continue
                value = value.value
            made[map_key(key)] = (key, value)
        return Map(made)

    def run(run: Run) -> Value:
        value = make(run)
        run.charge(charge.MAP)
        return value

    return run


def make_message(step: MakeMessage, values_of: list[Counted]) -> Counted:
    """Make a closure that makes a message."""
    fields = [(name, each, optional) for (name, _, optional), each in zip(step.fields, values_of, strict=True)]

    def make(run: Run) -> Value:
        given: dict[str, Value] = {}
        for name, value_of, optional in fields:
            value = value_of(run)
            if type(value) is Fault:
                return value
            if optional:
                if type(value) is not Optional:
                    return Fault(f"cannot initialize optional field from a {type_name(value)}")
                if not value.present:
                    given.pop(name, None)
                    continue
                value = value.value
            given[name] = value
        bulk.check_weight(sum(map(bulk.weight, given.values())))
        try:
            return distinct_list(step.build(given))
        except Fault as fault:
            return fault

    def run(run: Run) -> Value:
        value = make(run)
        run.charge(charge.MESSAGE)
        return value

    return run
