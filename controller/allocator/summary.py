"""The shortest true reason why claims fit nowhere, in one line.

    request gpu: 3 of 12 devices match, all in use; 9 have model "A100"; 2 nodes: unschedulable

The same state gives the same line, whatever the order of nodes, so that it can be compared with what was said before.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from controller.allocator.blocker import Blocker
from controller.allocator.joining import Constraint, Joined, Kind, Request
from controller.allocator.search import Outcome
from controller.allocator.tally import Tally, tally_siftings
from controller.allocator.wording import count_of, word_blockers, word_constraint, word_reasons

SIZE_MAX: Final = 1000
"""Bytes; an Event's message may have 1024."""

_TEXTS_MAX: Final = 4
_ELLIPSIS: Final = "…"


def summarize(joined: Joined, misfits: Iterable[tuple[str, str]] = ()) -> str:
    """Say in one line of at most 1000 bytes why the claims fit on no node.

    `misfits` are nodes that were not asked about, and why: `("node-a", "unschedulable")`.
    """
    parts = [*_explain_nodes(joined), *_explain_misfits(misfits)]
    return _cut(_flatten("; ".join(parts) or "there are no nodes"))


def _explain_nodes(joined: Joined) -> Iterator[str]:
    errors = [kind for kind in joined.kinds if kind.error is not None and not kind.error.node_only]
    if errors:
        yield min(str(kind.error) for kind in errors)
        return
    refusing = [kind for kind in joined.kinds if kind.error is None and kind.outcome is Outcome.NONE]
    yield from _explain_refusals(refusing)
    faults = Counter[str]()
    for kind in joined.kinds:
        if kind.error is not None:
            faults[str(kind.error)] += kind.count
    yield from _name_most(faults, _nodes)
    undecided = sum(kind.count for kind in joined.kinds if kind.outcome is Outcome.EXHAUSTED)
    if undecided:
        yield f"{_nodes(undecided)}: not decided within the budget"
    fitting = sum(kind.count for kind in joined.kinds if kind.outcome is Outcome.FOUND)
    if fitting:
        yield f"{_nodes(fitting)}: fits now"
    if joined.skipped:
        yield f"{_nodes(joined.skipped)} more: not looked into"


def _explain_refusals(kinds: Sequence[Kind]) -> Iterator[str]:
    """Name a request that is lacking on all of the nodes; else requests that are on as many as can be, and the rest."""
    total = sum(kind.count for kind in kinds)
    rest = list(kinds)
    while rest:
        number = _find_most_lacking(rest)
        if number is None:
            yield from _explain_competitions(rest, total)
            return
        chosen = [kind for kind in rest if kind.requests[number].is_lacking]
        rest = [kind for kind in rest if not kind.requests[number].is_lacking]
        yield f"{_where(chosen, total)}{_explain_request([(kind.requests[number], kind.count) for kind in chosen])}"


def _find_most_lacking(kinds: Sequence[Kind]) -> int | None:
    """Find the request that is lacking on most nodes; rather one that no device is meant by, then the shortest text."""
    best: tuple[int, bool, int, int] | None = None
    for number in range(len(kinds[0].requests)):
        found = [(kind.requests[number], kind.count) for kind in kinds if kind.requests[number].is_lacking]
        if found:
            text = _explain_request(found)
            can_match = any(tally.matching for tally in _tallies(found))
            key = (-sum(count for _, count in found), can_match, len(text), number)
            best = key if best is None else min(best, key)
    return best[-1] if best is not None else None


def _tallies(found: Sequence[tuple[Request, int]]) -> list[Tally]:
    """Tally alternative by alternative."""
    places = range(len(found[0][0].siftings))
    return [tally_siftings((request.siftings[place], count) for request, count in found) for place in places]


def _explain_request(found: Sequence[tuple[Request, int]]) -> str:
    request = found[0][0]
    tallies = _tallies(found)
    if len(tallies) == 1:
        return f"{request.subject}: {_explain_tally(tallies[0])}"
    parts = (f"{tally.request.rpartition('/')[2]}: {_explain_tally(tally)}" for tally in tallies)
    return f"{request.subject}: none of {len(tallies)} alternatives; {'; '.join(parts)}"


def _explain_tally(tally: Tally) -> str:
    return "; ".join((_explain_match(tally), *_explain_pools(tally)))


def _explain_match(tally: Tally) -> str:
    total = count_of(tally.total, "device")
    reasons = word_reasons(tally.unsuited)
    unsuited = ", ".join(f"{count} {text}" for count, text in reasons)
    if not tally.total:
        return f"no devices on {'the node' if tally.nodes == 1 else _nodes(tally.nodes)}"
    if not tally.matching:
        is_alike = len(reasons) == 1 and tally.total > 1
        return f"none of {total} matches: {f'all {reasons[0][1]}' if is_alike else unsuited}"
    kept = word_reasons(tally.kept)
    verb = "matches" if tally.matching == 1 else "match"
    parts = [f"{tally.matching} of {total} {verb}"]
    if tally.free:
        parts.append(f"{tally.free} free")
    if tally.free and tally.nodes > 1:
        parts.append(f"at most {tally.most} on a node")
    if tally.is_all:
        parts.append("want all")
    elif tally.wanted > 1:
        parts.append(f"want {tally.wanted}")
    if len(kept) == 1 and not tally.free and tally.matching > 1:
        parts.insert(1, f"all {kept[0][1]}")
    else:
        parts[1:1] = [f"{count} {text}" if tally.matching > 1 else text for count, text in kept]
    return "; ".join(filter(None, (", ".join(parts), unsuited)))


def _explain_pools(tally: Tally) -> Iterator[str]:
    for pools, text in ((tally.incomplete, "being updated"), (tally.invalid, "invalid")):
        if pools:
            more = f" and {len(pools) - 1} more" if len(pools) > 1 else ""
            yield f"pool {min(pools)}{more}: {text}"


def _explain_competitions(kinds: Sequence[Kind], total: int) -> Iterator[str]:
    """Say what keeps claims from nodes where each request alone could be served."""
    constraints = _word_constraints(kinds)
    texts = Counter[str]()
    for kind in kinds:
        texts[word_blockers(kind.blockers, constraints)] += kind.count
    if len(texts) == 1 and total == sum(texts.values()):
        yield next(iter(texts))
    else:
        yield from _name_most(texts, _nodes)


def _word_constraints(kinds: Sequence[Kind]) -> dict[Blocker, str]:
    """Say what constraints want, and how far devices are from it on the best node, if that is known of all."""
    found: dict[Blocker, list[Constraint]] = {}
    for constraint in (entry for kind in kinds for entry in kind.constraints):
        found.setdefault(constraint.blocker, []).append(constraint)
    best = {
        blocker: max(entries, key=lambda entry: (not entry.wanted, entry.most)) for blocker, entries in found.items()
    }
    return {blocker: word_constraint(entry) for blocker, entry in best.items()}


def _explain_misfits(misfits: Iterable[tuple[str, str]]) -> Iterator[str]:
    return _name_most(Counter(text for _, text in sorted(set(misfits))), _nodes)


def _name_most(texts: Counter[str], count: Callable[[int], str]) -> Iterator[str]:
    """Give the texts that are true of most, and how many others there are."""
    ordered = sorted(texts.items(), key=lambda entry: (-entry[1], entry[0]))
    for text, number in ordered[:_TEXTS_MAX]:
        yield f"{count(number)}: {text}"
    rest = sum(number for _, number in ordered[_TEXTS_MAX:])
    if rest:
        yield f"{count(rest)} more: for other reasons"


def _where(kinds: Sequence[Kind], total: int) -> str:
    count = sum(kind.count for kind in kinds)
    return f"{_nodes(count)}: " if count < total else ""


def _nodes(count: int) -> str:
    return count_of(count, "node")


def _flatten(text: str) -> str:
    """Make it one line of printable characters."""
    return "".join(character if character.isprintable() else " " for character in text)


def _cut(text: str) -> str:
    encoded = text.encode(errors="replace")
    if len(encoded) <= SIZE_MAX:
        return encoded.decode()
    kept = encoded[: SIZE_MAX - len(_ELLIPSIS.encode())].decode(errors="ignore")
    return f"{kept}{_ELLIPSIS}"
