"""When two answers count as the same."""

from typing import Any

import pytest

from tests.referee.agreement import find_differences

CEL = {"op": "cel", "expr": "true", "driver": "d"}
ALLOCATE = {"op": "allocate"}
TRUE: bool | str = True
FALSE: bool | str = False
FITS = {"fit": True, "result": [{"devices": {"results": [{"device": "a", "shareID": "x"}]}}]}


def cel(verdict: bool | str, cost: int = 3, estimate: int = 4) -> dict[str, Any]:
    return {"maxCost": estimate, "verdicts": [verdict], "costs": [cost], "us": 1.5}


@pytest.mark.parametrize(
    ("question", "theirs", "ours", "kinds"),
    [
        (CEL, cel(TRUE), cel(TRUE), ()),
        (CEL, cel(TRUE), cel(FALSE), ("verdict false, upstream true",)),
        (CEL, cel("no such key: a"), cel("device x: no attribute 'a'"), ()),
        (CEL, cel("no such key: a"), cel(FALSE), ("verdict false, upstream error",)),
        (CEL, cel(TRUE, cost=3), cel(TRUE, cost=4), ("cost",)),
        (CEL, cel("no such key"), cel("no attribute", cost=4), ("cost of an error",)),
        (CEL, cel(TRUE, estimate=3), cel(TRUE), ("maxCost",)),
        (CEL, {"compileError": "x"}, {"compileError": "y"}, ()),
        (CEL, {"compileError": "x"}, cel(TRUE), ("compiles, upstream refuses",)),
        (CEL, cel(TRUE), {"compileError": "x"}, ("refused, upstream compiles",)),
        (ALLOCATE, FITS, {"fit": True, "result": [{"devices": {"results": [{"device": "a", "shareID": "y"}]}}]}, ()),
        (ALLOCATE, FITS, {"fit": True, "result": [{"devices": {"results": [{"device": "a"}]}}]}, ("result",)),
        (ALLOCATE, FITS, {"fit": False, "result": None}, ("fit",)),
        (ALLOCATE, FITS, {"fit": False, "result": None, "undecided": True}, ("undecided",)),
        (
            ALLOCATE,
            {"fit": False, "result": None, "error": "a", "errorClass": "invalid", "nodeOnly": True},
            {"fit": False, "result": None, "error": "b", "errorClass": "invalid"},
            ("nodeOnly",),
        ),
        (
            ALLOCATE,
            {"fit": False, "result": None, "error": "a", "errorClass": "compile"},
            {"fit": False, "result": None},
            ("error None, upstream compile",),
        ),
        (ALLOCATE, {"fit": False, "errorClass": "timeout"}, {"fit": False, "result": None}, ()),
        (ALLOCATE, {"errorClass": "timeout"}, {"fit": False, "undecided": True}, ("undecided, as upstream",)),
        (ALLOCATE, {"panic": "x"}, FITS, ()),
        (ALLOCATE, FITS, {"panic": "KeyError: 'x'"}, ("ours: panic: KeyError",)),
    ],
)
def test_answers_agree_on_what_matters(question: Any, theirs: Any, ours: Any, kinds: tuple[str, ...]) -> None:
    assert find_differences(question, theirs, ours) == kinds
