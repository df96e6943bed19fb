"""Whether two answers to one question agree: verdicts, results, error classes and costs do; texts may differ."""

from collections.abc import Callable
from typing import Any

from tests.referee.process import Answer, Question

_INT64 = range(-(2**63), 2**63)
_NO_SUFFIX = 10**21


def find_differences(question: Question, theirs: Answer, ours: Answer) -> tuple[str, ...]:
    """Name the kinds of difference. None where upstream has no verdict: it panicked, hung or ran into its time limit.

    A difference of one kind reads the same whatever the question, so that kinds can be counted.
    """
    if "panic" in ours:
        return (f"ours: panic: {ours['panic'].partition(':')[0]}",)
    if "panic" in theirs:
        return ()
    if "badQuestion" in theirs or "badQuestion" in ours:
        return ("a bad question",) if ("badQuestion" in theirs) != ("badQuestion" in ours) else ()
    return tuple(_FINDERS[question["op"]](question, theirs, ours))


def _differ(theirs: Answer, ours: Answer, *fields: str) -> list[str]:
    return [field for field in fields if theirs.get(field) != ours.get(field)]


def _find_in_semver(_: Question, theirs: Answer, ours: Answer) -> list[str]:
    if "error" in theirs or "error" in ours:
        return _find_in_error(theirs, ours)
    return _differ(theirs, ours, *theirs)


def _find_in_name(question: Question, theirs: Answer, ours: Answer) -> list[str]:
    """Upstream takes whatever has two slashes for a fully qualified name; that is not followed."""
    fields = set(theirs) - {"fullyQualifiedName"} if question["text"].count("/") > 1 else theirs
    return _differ(theirs, ours, *fields)


def _find_in_quantity(_: Question, theirs: Answer, ours: Answer) -> list[str]:
    """Upstream's `value` and `milli` wrap beyond int64, and for negative amounts that it does not keep as int64.

    It prints 1000E as `1`.
    """
    if "error" in theirs or "error" in ours:
        return _find_in_error(theirs, ours)
    is_exact = theirs["sign"] >= 0 or theirs["exact"]
    fields = [field for field in ("value", "milli") if is_exact and ours[field] in _INT64]
    if abs(ours["value"]) < _NO_SUFFIX or not ours["canonical"].endswith("E"):
        fields.append("canonical")
    return _differ(theirs, ours, "sign", "int", "exact", *fields)


def _find_in_error(theirs: Answer, ours: Answer) -> list[str]:
    if ("error" in theirs) == ("error" in ours):
        return []
    return ["accepted, upstream refuses"] if "error" in theirs else ["refused, upstream accepts"]


def _find_in_cel(_: Question, theirs: Answer, ours: Answer) -> list[str]:
    if "compileError" in theirs or "compileError" in ours:
        if ("compileError" in theirs) == ("compileError" in ours):
            return []
        return ["compiles, upstream refuses"] if "compileError" in theirs else ["refused, upstream compiles"]
    kinds = _differ(theirs, ours, "maxCost")
    for verdict, our_verdict, cost, our_cost in zip(
        theirs["verdicts"], ours["verdicts"], theirs["costs"], ours["costs"], strict=True
    ):
        seen, wanted = _verdict(our_verdict), _verdict(verdict)
        if seen != wanted:
            kinds.append(f"verdict {seen}, upstream {wanted}")
        elif seen == "attribute" and our_verdict != verdict:
            kinds.append("attribute")
        elif cost is not None and cost != our_cost:
            kinds.append("cost of an error" if wanted == "error" else "cost")
    return list(dict.fromkeys(kinds))


def _verdict(verdict: bool | str | dict[str, Any]) -> str:
    """Name a verdict; a derived attribute is an attribute, and text is an error."""
    if isinstance(verdict, dict):
        return "attribute"
    return "error" if isinstance(verdict, str) else str(verdict).lower()


def _find_in_allocation(_: Question, theirs: Answer, ours: Answer) -> list[str]:
    has_given_up = theirs.get("errorClass") == "timeout"
    if ours.get("undecided"):
        return ["undecided, as upstream" if has_given_up else "undecided"]
    if has_given_up:
        return []
    if (wanted := theirs.get("errorClass")) != (seen := ours.get("errorClass")):
        return [f"error {seen}, upstream {wanted}"]
    kinds = _differ(theirs, ours, "fit")
    if bool(theirs.get("nodeOnly")) != bool(ours.get("nodeOnly")):
        kinds.append("nodeOnly")
    if not kinds and without_share_ids(theirs["result"]) != without_share_ids(ours["result"]):
        kinds.append("result")
    return kinds


def without_share_ids(result: Any) -> Any:
    """Copy an allocation without its share IDs, which are random; that there is one is kept."""
    if isinstance(result, dict):
        return {key: bool(value) if key == "shareID" else without_share_ids(value) for key, value in result.items()}
    if isinstance(result, list):
        return [without_share_ids(item) for item in result]
    return result


_FINDERS: dict[str, Callable[[Question, Answer, Answer], list[str]]] = {
    "allocate": _find_in_allocation,
    "cel": _find_in_cel,
    "quantity": _find_in_quantity,
    "semver": _find_in_semver,
    "name": _find_in_name,
}
