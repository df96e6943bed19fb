"""Reasons and blockers in words, as parts of a line."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from controller.allocator.blocker import Blocker, BlockerCode
from controller.allocator.joining import Constraint
from controller.allocator.reason import Reason, ReasonCode

_EXPRESSION_MAX: Final = 80
_KINDS_MAX: Final = 2
_NAMES_MAX: Final = 2
_SELECTORS: Final = (ReasonCode.CLASS_SELECTOR, ReasonCode.REQUEST_SELECTOR)


def count_of(count: int, noun: str) -> str:
    """Write a number of things."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def word_reasons(reasons: Counter[Reason]) -> list[tuple[int, str]]:
    """Say what is true of how many devices, of most first: `(3, "in use")`, `(1, 'has model "A100"')`.

    Reasons of one code come together where they are many.
    """
    by_code: dict[ReasonCode, Counter[Reason]] = {}
    for reason, count in reasons.items():
        known = Reason(ReasonCode.IN_USE, reason.subject) if _is_used_up(reason) else reason
        by_code.setdefault(known.code, Counter())[known] += count
    said: Counter[tuple[str, str]] = Counter()
    for group in by_code.values():
        for words, count in _word_group(group).items():
            said[words] += count
    texts = ((count, one if count == 1 else many) for (one, many), count in said.items())
    return sorted(texts, key=lambda entry: (-entry[0], entry[1]))


def _word_group(group: Counter[Reason]) -> Counter[tuple[str, str]]:
    words: Counter[tuple[str, str]] = Counter()
    for reason, count in group.items():
        words[_word(reason)] += count
    if len(words) <= _KINDS_MAX:
        return words
    return Counter({_word_together(list(group)): group.total()})


def _word(reason: Reason) -> tuple[str, str]:
    """Say of one device and of several what is so."""
    match reason.code:
        case ReasonCode.CLASS_SELECTOR | ReasonCode.REQUEST_SELECTOR if reason.seen != "false":
            return f"has {reason.seen}", f"have {reason.seen}"
        case ReasonCode.CAPACITY:
            return f"is too small ({reason.seen})", f"are too small ({reason.seen})"
        case ReasonCode.TAINT:
            return f"tainted {reason.seen}", f"tainted {reason.seen}"
        case ReasonCode.ROOM:
            text = f"with too little left ({reason.seen}, want {reason.wanted})"
            return text, text
        case ReasonCode.COUNTERS:
            text = f"with counters short ({reason.seen}, want {reason.wanted})"
            return text, text
        case _:
            return _word_together([reason])


def _word_together(reasons: Sequence[Reason]) -> tuple[str, str]:
    """Say what reasons of one code have in common."""
    code = reasons[0].code
    if code in _SELECTORS:
        return _word_selectors(reasons)
    return _TOGETHER[code]


def _word_selectors(reasons: Sequence[Reason]) -> tuple[str, str]:
    names = {reason.seen.partition(" ")[0] for reason in reasons}
    expressions = {reason.wanted for reason in reasons}
    if len(names) == 1 and names.isdisjoint(("no", "false")) and not any(", " in reason.seen for reason in reasons):
        return f"has another {min(names)}", f"have another {min(names)}"
    if reasons[0].code is ReasonCode.CLASS_SELECTOR:
        return f"is not of {reasons[0].wanted}", f"are not of {reasons[0].wanted}"
    if len(expressions) > 1:
        return "does not match the selectors of the request", "do not match the selectors of the request"
    expression = _quote(min(expressions))
    return f"does not match {expression}", f"do not match {expression}"


def _is_used_up(reason: Reason) -> bool:
    """Tell whether nothing is left of a capacity that is asked for: whoever has all of it has the device."""
    return reason.code is ReasonCode.ROOM and any(part.endswith(" 0") for part in reason.seen.split(", "))


def _quote(expression: str) -> str:
    line = " ".join(expression.split())
    return repr(line if len(line) <= _EXPRESSION_MAX else f"{line[: _EXPRESSION_MAX - 1]}…")


_TOGETHER: Final[Mapping[ReasonCode, tuple[str, str]]] = {
    ReasonCode.IN_USE: ("in use", "in use"),
    ReasonCode.ROOM: ("with too little left", "with too little left"),
    ReasonCode.COUNTERS: ("with counters short", "with counters short"),
    ReasonCode.TAINT: ("tainted", "tainted"),
    ReasonCode.ERROR: ("on which a selector fails", "on which a selector fails"),
    ReasonCode.BINDING_CONDITIONS: (
        "has binding conditions, which are off",
        "have binding conditions, which are off",
    ),
    ReasonCode.OTHER_NODE: ("is of other nodes", "are of other nodes"),
    ReasonCode.CAPACITY: ("is too small", "are too small"),
    ReasonCode.NODE_OPERATIONS: (
        "skipping node operations, which the node cannot",
        "skipping node operations, which the node cannot",
    ),
    ReasonCode.PARTITIONS_OFF: ("partitioned, which is off", "partitioned, which is off"),
}


def word_constraint(constraint: Constraint) -> str:
    """Say what a constraint wants, and how far devices are from it if that is known."""
    if not constraint.wanted:
        return constraint.text
    agree = "have it in common" if constraint.text.startswith("match") else "differ in it"
    return f"{constraint.text} (at most {constraint.most} free devices {agree}, want {constraint.wanted})"


def word_blockers(blockers: Sequence[Blocker], constraints: Mapping[Blocker, str]) -> str:
    """Say what would help; `constraints` says in words what constraints want."""
    if not blockers:
        return "the requests compete for devices"
    by_code: dict[BlockerCode, list[Blocker]] = {}
    for blocker in blockers:
        by_code.setdefault(blocker.code, []).append(blocker)
    dropped = [
        *sorted({constraints[blocker] for blocker in by_code.pop(BlockerCode.CONSTRAINT, ())}),
        *_name("request", [blocker.request.rpartition("/")[2] for blocker in by_code.pop(BlockerCode.REQUEST, ())]),
    ]
    changed = [text for code in sorted(by_code) for text in _word_blockers(code, by_code[code])]
    conditions = (
        f" without {' and '.join(dropped)}" if dropped else "",
        f" if {', '.join(changed)}" if changed else "",
    )
    return f"would fit{''.join(conditions)}"


def _word_blockers(code: BlockerCode, blockers: Sequence[Blocker]) -> Sequence[str]:
    if code in (BlockerCode.COUNTERS, BlockerCode.POOL_INCOMPLETE):
        names = _name("pool", [blocker.pool for blocker in blockers])
    else:
        names = _name("device", [blocker.device for blocker in blockers])
    return [f"{name} {_WANTED[code]}" for name in names]


def _name(noun: str, names: Sequence[str]) -> Sequence[str]:
    """Name the first things, in one text if there are any; repeated names count once."""
    known = sorted(set(names))
    more = f" and {len(known) - _NAMES_MAX} more" if len(known) > _NAMES_MAX else ""
    return (f"{noun} {', '.join(known[:_NAMES_MAX])}{more}",) if known else ()


_WANTED: Final[Mapping[BlockerCode, str]] = {
    BlockerCode.IN_USE: "were free",
    BlockerCode.TAINT: "were tolerated",
    BlockerCode.POOL_INCOMPLETE: "were complete",
    BlockerCode.BINDING_CONDITIONS: "might have binding conditions",
    BlockerCode.NODE_OPERATIONS: "might skip node operations",
    BlockerCode.PARTITIONS_OFF: "might be partitions",
    BlockerCode.OTHER_NODE: "were for the node",
    BlockerCode.COUNTERS: "had more counters",
    BlockerCode.ROOM: "had more left",
    BlockerCode.CAPACITY: "were larger",
    BlockerCode.REQUEST_SELECTOR: "matched the request",
    BlockerCode.CLASS_SELECTOR: "matched the class",
}
