"""Optional values."""

import math
from typing import Final

from dra_driver.cel.error import Fault
from dra_driver.cel.function import Library, Overload
from dra_driver.cel.library.standard import LIST_A, MAP_AB, A, B
from dra_driver.cel.record import RECORDS
from dra_driver.cel.type import BOOL, DYN, INT, STRING, list_of, optional_of
from dra_driver.cel.value import LISTS, MAPS, NONE, Duration, Optional, Timestamp, Uint, Value
from dra_driver.cel.value import optional_of as present

OPTIONS: Final = Library()
_OPTIONAL_A: Final = optional_of(A)
# 0001-01-01, which is what Go calls the zero of a time.
_ZERO_TIME: Final = -62135596800 * 10**9


def _is_zero(value: Value) -> bool:  # noqa: PLR0911 - a case of each type
    match value:
        case None:
            return True
        case bool() | int() | Uint() | float():
            return not value and not math.isnan(value)
        case str() | bytes():
            return not value
        case Duration():
            return value.nanos == 0
        case Timestamp():
            return value.nanos == _ZERO_TIME
        case _ if isinstance(value, RECORDS):
            return value.is_zero
        case _:
            return isinstance(value, LISTS + MAPS) and not len(value)


def _value(option: Optional) -> Value:
    if not option.present:
        raise Fault("optional.none() dereference")
    return option.value


def _first(values: Value) -> Optional:
    return present(values[0]) if len(values) else NONE


def _last(values: Value) -> Optional:
    return present(values[len(values) - 1]) if len(values) else NONE


def _unwrap(values: Value) -> Value:
    kept = []
    for value in values:
        if type(value) is not Optional:
            raise Fault(f"value {value!r} is not optional")
        if value.present:
            kept.append(value.value)
    return tuple(kept)


OPTIONS.add("optional.of", Overload("optional_of", (A,), _OPTIONAL_A, run=present))
OPTIONS.add(
    "optional.ofNonZeroValue",
    Overload(
        "optional_ofNonZeroValue", (A,), _OPTIONAL_A, run=lambda value: NONE if _is_zero(value) else present(value)
    ),
)
OPTIONS.add("optional.none", Overload("optional_none", (), _OPTIONAL_A, run=lambda: NONE))
OPTIONS.add("value", Overload("optional_value", (_OPTIONAL_A,), A, member=True, run=_value))
OPTIONS.add(
    "hasValue", Overload("optional_hasValue", (_OPTIONAL_A,), BOOL, member=True, run=lambda option: option.present)
)
OPTIONS.add("or", Overload("optional_or_optional", (_OPTIONAL_A, _OPTIONAL_A), _OPTIONAL_A, member=True))
OPTIONS.add("orValue", Overload("optional_orValue_value", (_OPTIONAL_A, A), A, member=True))
OPTIONS.add("_?._", Overload("select_optional_field", (DYN, STRING), _OPTIONAL_A))
OPTIONS.add(
    "_[?_]",
    Overload("list_optindex_optional_int", (LIST_A, INT), _OPTIONAL_A),
    Overload("optional_list_optindex_optional_int", (optional_of(LIST_A), INT), _OPTIONAL_A),
    Overload("map_optindex_optional_value", (MAP_AB, A), optional_of(B)),
    Overload("optional_map_optindex_optional_value", (optional_of(MAP_AB), A), optional_of(B)),
)
OPTIONS.add(
    "_[_]",
    Overload("optional_list_index_int", (optional_of(LIST_A), INT), _OPTIONAL_A),
    Overload("optional_map_index_value", (optional_of(MAP_AB), A), optional_of(B)),
)
OPTIONS.add("first", Overload("list_first", (LIST_A,), _OPTIONAL_A, member=True, run=_first))
OPTIONS.add("last", Overload("list_last", (LIST_A,), _OPTIONAL_A, member=True, run=_last))
OPTIONS.add("optional.unwrap", Overload("optional_unwrap", (list_of(_OPTIONAL_A),), LIST_A, run=_unwrap))
OPTIONS.add("unwrapOpt", Overload("optional_unwrapOpt", (list_of(_OPTIONAL_A),), LIST_A, member=True, run=_unwrap))
