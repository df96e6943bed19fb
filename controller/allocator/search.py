"""Depth-first search in upstream's order: the first solution is the one that upstream finds.

Claim after claim, request after request, device after device; devices of one request in increasing order only. A stack
of frames stands for the recursion, so that no problem is too deep.

A `Pruner` may cut off branches that hold neither a solution nor an error. The outcome is then the same, sooner.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol, TypeAlias

from controller.allocator.error import AllocationError
from controller.allocator.ledger import Grant, Ledger
from controller.allocator.request import Alternative
from controller.allocator.result import Choices, Given
from controller.allocator.table import Table
from dra_driver.api.allocation_validation import RESULTS_MAX


class Outcome(Enum):
    """How a search ended."""

    FOUND = auto()
    NONE = auto()
    EXHAUSTED = auto()
    """The budget is used up; nothing is known."""


class Pruner(Protocol):
    """What tells the search where it need not look."""

    def alike(self, ledger: Ledger, index: int) -> Hashable:
        """Give a key that two devices share only if they are interchangeable for all that is still to come."""

    def is_hopeless(self, ledger: Ledger, position: "Position") -> bool:
        """Tell whether no way on from `position` leads to a solution or an error."""

    def state_key(self, ledger: Ledger, claim: int, request: int) -> Hashable:
        """Give a key that two states at the start of a request share only if they have the same future."""


@dataclass(frozen=True, slots=True)
class Position:
    """The next device to find: the `slot`-th of an alternative, not before candidate `start`."""

    alternative: Alternative
    slot: int
    start: int


class _Retreat(Enum):
    FAILED = auto()
    TOO_MANY = auto()
    """The claim would hold too many devices; only another subrequest can help."""


@dataclass(slots=True, eq=False)
class _ClaimFrame:
    """A claim boundary: too many devices here is an ordinary failure there."""


@dataclass(slots=True, eq=False)
class _RequestFrame:
    """The start of a request, by the key of the state there."""

    key: Hashable


@dataclass(slots=True, eq=False)
class _ChoiceFrame:
    """A request with subrequests, and which of them is tried."""

    claim: int
    request: int
    position: int = 0
    all_too_many: bool = True


@dataclass(slots=True, eq=False)
class _SlotFrame:
    """One device of a request: `next` is where to look on."""

    alternative: Alternative
    slot: int
    next: int
    tried: set[Hashable] | None = None


_Step: TypeAlias = Position | _Retreat | None
_Frame: TypeAlias = _ClaimFrame | _RequestFrame | _ChoiceFrame | _SlotFrame


@dataclass(slots=True, eq=False)
class Search:
    """One run over a table; `budget` is how many devices it may try."""

    table: Table
    pruner: Pruner | None = None
    budget: int = 1000
    ledger: Ledger = field(init=False)
    outcome: Outcome = Outcome.EXHAUSTED
    _is_cut: bool = False
    _stack: list[_Frame] = field(default_factory=list)
    _failed: dict[Hashable, _Retreat] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.table, counts=[0] * len(self.table.claims))

    @property
    def grants(self) -> list[Grant]:
        """What was given away, in order, once a solution is found."""
        return self.ledger.grants

    @property
    def given(self) -> list[list[Given]]:
        """What was given away, in order by claim, once a solution is found."""
        given: list[list[Given]] = [[] for _ in self.table.claims]
        for grant in self.ledger.grants:
            share = grant.cell if grant.is_share else None
            given[grant.alternative.claim].append((grant.alternative, grant.index, share))
        return given

    @property
    def choices(self) -> Choices:
        """Which subrequest was chosen, by claim and request."""
        frames = (frame for frame in self._stack if isinstance(frame, _ChoiceFrame))
        return {(frame.claim, frame.request): frame.position for frame in frames}

    def run(self) -> Outcome:
        """Look for the first solution. Raises AllocationError where upstream would.

        Without a solution nothing stays given away, so that another search may follow on the same table.
        """
        return self._go(self._descend(0, 0))

    def resume(self) -> Outcome:
        """Look for the next solution after one was found."""
        return self._go(_Retreat.FAILED)

    def _go(self, step: _Step) -> Outcome:
        self.outcome = self._run(step)
        if self.outcome is Outcome.EXHAUSTED:
            while self.ledger.grants:
                self.ledger.undo_last()
        return self.outcome

    def _run(self, step: _Step) -> Outcome:
        while step is not None:
            if isinstance(step, Position):
                step = self._enter(step)
            elif self._is_cut:
                return Outcome.EXHAUSTED
            elif not self._stack:
                if step is _Retreat.TOO_MANY:
                    raise AllocationError(f"claims: the devices are too many, want at most {RESULTS_MAX} in a claim")
                return Outcome.NONE
            elif self.budget <= 0:
                return Outcome.EXHAUSTED
            else:
                step = self._resume(self._stack[-1], step)
        return Outcome.FOUND

    def _descend(self, claim: int, request: int) -> _Step:
        """Go to the start of a request; None if everything is allocated."""
        claims = self.table.claims
        while claim < len(claims) and request >= len(claims[claim].requests):
            claim, request = claim + 1, 0
            self._stack.append(_ClaimFrame())
        if claim >= len(claims):
            return None
        if self.pruner is not None:
            key = self.pruner.state_key(self.ledger, claim, request)
            failed = self._failed.get(key)
            if failed is not None:
                return failed
            self._stack.append(_RequestFrame(key))
        planned = claims[claim].requests[request]
        if len(planned.alternatives) > 1:
            self._stack.append(_ChoiceFrame(claim, request))
        return Position(planned.alternatives[0], 0, 0)

    def _enter(self, position: Position) -> _Step:
        """Go to the next device of an alternative."""
        alternative, slot = position.alternative, position.slot
        if alternative.is_all and not alternative.devices:
            return _Retreat.FAILED
        if slot >= alternative.count:
            return self._descend(alternative.claim, alternative.request + 1)
        if alternative.count - slot > RESULTS_MAX - self.ledger.counts[alternative.claim]:
            return _Retreat.TOO_MANY
        if self.pruner is not None and self.pruner.is_hopeless(self.ledger, position):
            return _Retreat.FAILED
        frame = _SlotFrame(alternative, slot, position.start)
        self._stack.append(frame)
        return self._advance(frame)

    def _resume(self, frame: _Frame, retreat: _Retreat) -> _Step:
        """Go on in `frame` after what came below it did not work out."""
        if isinstance(frame, _SlotFrame):
            self.ledger.undo_last()
            if retreat is _Retreat.FAILED and not frame.alternative.is_all:
                return self._advance(frame)
            self._stack.pop()
            return retreat
        if isinstance(frame, _ChoiceFrame):
            return self._choose_next(frame, retreat)
        self._stack.pop()
        if isinstance(frame, _ClaimFrame):
            return _Retreat.FAILED
        self._failed[frame.key] = retreat
        return retreat

    def _choose_next(self, frame: _ChoiceFrame, retreat: _Retreat) -> _Step:
        if retreat is _Retreat.FAILED:
            frame.all_too_many = False
        alternatives = self.table.claims[frame.claim].requests[frame.request].alternatives
        frame.position += 1
        if frame.position < len(alternatives):
            return Position(alternatives[frame.position], 0, 0)
        self._stack.pop()
        return _Retreat.TOO_MANY if frame.all_too_many else _Retreat.FAILED

    def _advance(self, frame: _SlotFrame) -> _Step:
        """Give the next device that works to the frame's slot and go on; the frame goes if there is none."""
        alternative = frame.alternative
        if alternative.is_all:
            index = alternative.devices[frame.slot]
            cell = self.table.cell(alternative, index)
            if (
                cell.misfit is None
                and self.ledger.is_free(alternative, index)
                and self.ledger.grant(alternative, index, cell) is not None
            ):
                return Position(alternative, frame.slot + 1, 0)
        elif self._take_next(frame):
            return Position(alternative, frame.slot + 1, frame.next)
        self._stack.pop()
        return _Retreat.FAILED

    def _take_next(self, frame: _SlotFrame) -> bool:
        alternative, ledger, table, pruner = frame.alternative, self.ledger, self.table, self.pruner
        cells, order = alternative.cells, alternative.order
        for place in range(frame.next, len(order)):
            index = order[place]
            if not ledger.is_free(alternative, index):
                continue
            cell = cells[index] or table.cell(alternative, index)
            if cell.misfit is not None or not ledger.has_room(cell, index):
                continue
            if pruner is not None:
                key = pruner.alike(ledger, index)
                if frame.tried is None:
                    frame.tried = set()
                if key in frame.tried:
                    continue
                frame.tried.add(key)
            self.budget -= 1
            if ledger.grant(alternative, index, cell) is not None:
                frame.next = place + 1
                return True
            if self.budget <= 0:
                self._is_cut = True
                break
        return False
