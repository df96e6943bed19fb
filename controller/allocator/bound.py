"""Refutation by counting: whether what is left can serve what is still to be served.

Every check relaxes the question (constraints one at a time, firstAvailable as the cheapest of all alternatives,
counters as a number of devices a set), so that what it refutes has no solution. Devices count by class.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

from controller.allocator.constraint import Constraint
from controller.allocator.flow import Flow
from controller.allocator.ledger import Ledger
from controller.allocator.likeness import Likeness
from controller.allocator.need import (
    Group,
    Need,
    Part,
    Surveyor,
    count_parts,
    is_charged,
    is_shareable,
    left_of,
    size_of,
    values_of,
)
from controller.allocator.search import Position

_SOURCE, _SINK = "source", "sink"
_CounterSet: TypeAlias = tuple[Hashable, str]


@dataclass(slots=True, eq=False)
class Bound:
    """Checks of one table; the search asks at each step."""

    likeness: Likeness

    def is_refuted(self, ledger: Ledger, position: Position) -> bool:
        """Tell whether there is certainly no way on from `position`."""
        surveyor = Surveyor(ledger, position, self._group(ledger, position), self.likeness.risks)
        needs = surveyor.survey()
        if needs is None:
            return True
        if not self._flows(ledger, needs, {}) or self._is_short(ledger, needs):
            return True
        constraints = self.likeness.table.claims[position.alternative.claim].constraints
        rest = (plan.constraints for plan in self.likeness.table.claims[position.alternative.claim + 1 :])
        for constraint in (*constraints, *(entry for entries in rest for entry in entries)):
            covered = [need for need in needs if need.covered_by(constraint)]
            if covered and not self._meets(ledger, needs, covered, constraint):
                return True
        return False

    def _group(self, ledger: Ledger, position: Position) -> list[Group]:
        groups: dict[Hashable, Group] = {}
        late = set(position.alternative.order[position.start :])
        for index in range(len(ledger.table.candidates)):
            key = self.likeness.key(ledger, index)
            group = groups.get(key)
            if group is None:
                group = groups[key] = Group(index)
            group.size += 1
            group.late += index in late
        return list(groups.values())

    def _meets(self, ledger: Ledger, needs: list[Need], covered: list[Need], constraint: Constraint) -> bool:
        if constraint.is_match:
            if constraint.values and not constraint.lists:
                return True
            return self._has_common_value(ledger, needs, covered, constraint)
        return self._has_distinct_values(covered, constraint, {})

    def _has_common_value(self, ledger: Ledger, needs: list[Need], covered: list[Need], constraint: Constraint) -> bool:
        """Try the values as groups: one of them must be had by devices enough."""
        if sum(need.count for need in covered) <= 1 and not constraint.values:
            return True
        parts = {need: self._parts_by_value(need, constraint) for need in covered}
        for value in parts[covered[0]]:
            chosen = {need: parts[need].get(value, []) for need in covered}
            if (
                all(count_parts(need, chosen[need]) >= need.count for need in covered)
                and self._keeps_apart(needs, chosen)
                and self._flows(ledger, needs, chosen)
            ):
                return True
        return False

    def _keeps_apart(self, needs: list[Need], chosen: Mapping[Need, list[Part]]) -> bool:
        """Tell whether what must be alike may also be unlike in what must be."""
        claim = next(need.alternatives[0].claim for need in chosen)
        for constraint in self.likeness.table.claims[claim].constraints:
            covered = [need for need in needs if need.covered_by(constraint)]
            if covered and not constraint.is_match and not self._has_distinct_values(covered, constraint, chosen):
                return False
        return True

    def _parts_by_value(self, need: Need, constraint: Constraint) -> dict[Hashable, list[Part]]:
        parts: dict[Hashable, list[Part]] = {}
        for part in need.parts:
            for value in values_of(self.likeness.table.value(part[0], constraint, part[1].index)):
                parts.setdefault(value, []).append(part)
        return parts

    def _has_distinct_values(
        self, covered: list[Need], constraint: Constraint, chosen: Mapping[Need, list[Part]]
    ) -> bool:
        flow = Flow()
        total = 0
        for number, need in enumerate(covered):
            total += need.count
            flow.add(_SOURCE, ("need", number), need.count)
            values = {
                value
                for alternative, group in chosen.get(need, need.parts)
                for value in values_of(self.likeness.table.value(alternative, constraint, group.index))
            }
            for value in values:
                flow.add(("need", number), value, 1)
        for value in [node for node in flow.capacity if isinstance(node, tuple) and node[0] != "need"]:
            flow.add(value, _SINK, 1)
        return flow.maximum(_SOURCE, _SINK) >= total

    def _flows(self, ledger: Ledger, needs: list[Need], chosen: Mapping[Need, list[Part]]) -> bool:
        """Tell whether all needs can be served at once, those of `chosen` with these devices alone."""
        flow = Flow()
        total = 0
        demands: dict[Group, list[Mapping[str, int]]] = {}
        for number, need in enumerate(needs):
            edges: dict[Group, int] = {}
            for alternative, group in chosen.get(need, need.parts):
                edges[group] = max(edges.get(group, 0), size_of(need, alternative, group))
                cell = self.likeness.table.cell(alternative, group.index)
                demands.setdefault(group, []).append(dict(cell.demand))
            if sum(edges.values()) < need.count:
                return False
            if all(alternative.is_admin for alternative in need.alternatives):
                continue
            total += need.count
            flow.add(_SOURCE, number, need.count)
            for group, size in edges.items():
                flow.add(number, group, size)
        self._drain(ledger, flow, demands)
        return flow.maximum(_SOURCE, _SINK) >= total

    def _drain(self, ledger: Ledger, flow: Flow, demands: Mapping[Group, list[Mapping[str, int]]]) -> None:
        """Lead each group of devices to the sink, through the counter set that limits it."""
        by_set: dict[_CounterSet, list[tuple[Group, int]]] = {}
        for group, wishes in demands.items():
            shares = _shares(ledger, group.index, wishes)
            counter_set = _counter_set(ledger, group.index)
            if counter_set is None:
                flow.add(group, _SINK, group.size * shares)
                continue
            by_set.setdefault(counter_set, []).append((group, shares))
            flow.add(group, counter_set, group.size * shares)
        for counter_set, members in by_set.items():
            most = _most_devices(ledger, counter_set[1], [group for group, _ in members])
            flow.add(counter_set, _SINK, most * max(shares for _, shares in members))

    def _is_short(self, ledger: Ledger, needs: list[Need]) -> bool:
        """Tell whether the sum of what is wanted at least is more than there is, of counters or of capacity."""
        return _is_sum_short(
            needs, lambda part: _counter_demand(ledger, part), _counters_left(ledger)
        ) or _is_sum_short(needs, lambda part: _capacity_demand(ledger, part), _capacity_left(ledger, needs))


def _shares(ledger: Ledger, index: int, wishes: Sequence[Mapping[str, int]]) -> int:
    """Give how many requests one device can serve at most."""
    table = ledger.table
    if not is_shareable(ledger, index):
        return 1
    most = len(wishes)
    if index not in table.unmetered:
        for name, left in left_of(ledger, index).items():
            most = min(most, _fitting(sorted(wish.get(name, 0) for wish in wishes), left))
    return most


def _fitting(ascending: Sequence[int], left: int) -> int:
    """Count how many of the amounts fit together, the smallest first."""
    return sum(total <= left for total in accumulate(ascending))


def _counter_set(ledger: Ledger, index: int) -> _CounterSet | None:
    candidate = ledger.table.candidates[index]
    if not candidate.consumption or is_charged(ledger, index):
        return None
    return (ledger.table.pool_of[index], next(iter(candidate.consumption))[0])


def _most_devices(ledger: Ledger, counter_set: str, groups: Sequence[Group]) -> int:
    """Give how many of the devices the counters of a set allow at most."""
    table = ledger.table
    available = ledger.available_counters(table.pool_of[groups[0].index])
    most = sum(group.size for group in groups)
    names = {key for group in groups for key in table.candidates[group.index].consumption if key[0] == counter_set}
    for key in names:
        amounts = sorted(
            amount
            for group in groups
            for amount in [table.candidates[group.index].consumption.get(key, 0)] * group.size
        )
        most = min(most, _fitting(amounts, available[key]))
    return most


def _is_sum_short(
    needs: list[Need], demand: Callable[[Part], Mapping[Hashable, int]], left: Mapping[Hashable, int]
) -> bool:
    wanted: Counter[Hashable] = Counter()
    for need in needs:
        if not need.parts or all(alternative.is_admin for alternative in need.alternatives):
            continue
        least: Mapping[Hashable, int] | None = None
        for part in need.parts:
            amounts = demand(part)
            least = (
                dict(amounts) if least is None else {k: min(v, amounts[k]) for k, v in least.items() if k in amounts}
            )
            if not least:
                break
        for key, amount in (least or {}).items():
            wanted[key] += amount * need.count
    return any(amount > left.get(key, 0) for key, amount in wanted.items())


def _counter_demand(ledger: Ledger, part: Part) -> dict[Hashable, int]:
    candidate = ledger.table.candidates[part[1].index]
    if not candidate.consumption or is_charged(ledger, part[1].index) or is_shareable(ledger, part[1].index):
        return {}
    return {(ledger.table.pool_of[part[1].index], name): amount for (_, name), amount in candidate.consumption.items()}


def _counters_left(ledger: Ledger) -> dict[Hashable, int]:
    left: Counter[Hashable] = Counter()
    for pool in set(ledger.table.pool_of):
        if pool.counters:
            for (_, name), amount in ledger.available_counters(pool).items():
                left[pool, name] += max(amount, 0)
    return left


def _capacity_demand(ledger: Ledger, part: Part) -> dict[Hashable, int]:
    alternative, group = part
    if not is_shareable(ledger, group.index) or group.index in ledger.table.unmetered:
        return {}
    return dict(ledger.table.cell(alternative, group.index).demand)


def _capacity_left(ledger: Ledger, needs: list[Need]) -> dict[Hashable, int]:
    left: Counter[Hashable] = Counter()
    for group in {group for need in needs for _, group in need.parts}:
        for name, amount in left_of(ledger, group.index).items():
            left[name] += group.size * max(0, amount)
    return left
