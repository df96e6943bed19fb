"""What tells a search where it need not look."""

from collections.abc import Hashable
from dataclasses import dataclass

from controller.allocator.bound import Bound
from controller.allocator.ledger import Ledger
from controller.allocator.likeness import Likeness
from controller.allocator.search import Position
from controller.allocator.table import Table


@dataclass(slots=True, eq=False)
class CountingPruner:
    """Treats alike devices as one, forgets no failed state, and counts before it looks."""

    likeness: Likeness
    bound: Bound

    def alike(self, ledger: Ledger, index: int) -> Hashable:
        """See Pruner."""
        return self.likeness.key(ledger, index)

    def state_key(self, ledger: Ledger, claim: int, request: int) -> Hashable:
        """See Pruner."""
        return self.likeness.state_key(ledger, claim, request)

    def is_hopeless(self, ledger: Ledger, position: Position) -> bool:
        """See Pruner. Where an error may be met, only looking tells."""
        risks, alternative = self.likeness.risks, position.alternative
        if alternative.is_all and position.slot == 0 and risks.is_dead(ledger, alternative):
            return True
        if alternative in risks.guards or risks.may_fail(ledger, alternative):
            return False
        return self.bound.is_refuted(ledger, position)


def build_pruner(table: Table) -> CountingPruner:
    """Learn all about the table that does not change while it is searched."""
    likeness = Likeness(table)
    return CountingPruner(likeness, Bound(likeness))
