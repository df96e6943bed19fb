"""Fields and indexes: `a.b`, `a["b"]`, `a[0]`, and whether there is something."""

from dra_driver.cel.equality import index_of
from dra_driver.cel.error import Fault
from dra_driver.cel.record import RECORDS, find_field
from dra_driver.cel.value import LISTS, MAPS, Uint, Value, type_name

KEYS = frozenset((str, int, Uint, bool, float))


def no_such_key(key: Value) -> Fault:
    """Tell that a map has no such key."""
    return Fault(f"no such key: {key}")


def check_key(key: Value) -> None:
    """Refuse what can be no key."""
    if type(key) not in KEYS:
        raise Fault(f"a {type_name(key)} is no key or index")


def qualify(value: Value, key: Value) -> Value:
    """Give what is at a key or an index. Raises a fault if there is nothing."""
    if isinstance(value, MAPS):
        found, present = value.find(key)
        if present:
            return found
        raise no_such_key(key)
    if isinstance(value, LISTS):
        index = index_of(key)
        if 0 <= index < len(value):
            return value[index]
        raise Fault(f"index out of bounds: {key}")
    if isinstance(value, RECORDS):
        return find_field(value, key)[0]
    raise no_such_key(key)


def qualify_if_present(value: Value, key: Value) -> tuple[Value, bool]:
    """Give what is at a key or an index, and whether there is something."""
    if isinstance(value, MAPS):
        found, present = value.find(key)
        return found, present
    if isinstance(value, LISTS):
        index = index_of(key)
        if 0 <= index < len(value):
            return value[index], True
    elif isinstance(value, RECORDS):
        return find_field(value, key)
    return None, False
