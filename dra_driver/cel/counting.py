"""One evaluation that counts what it costs, and stops at a limit or when its caller asks."""

from collections.abc import Callable
from typing import Final

from dra_driver.cel.error import Interrupted, OverLimit
from dra_driver.cel.value import Value

CHECK_EVERY: Final = 100


class Run:
    """One evaluation: its variables and what it cost so far."""

    __slots__ = ("checks", "cost", "interrupt", "limit", "slots")

    def __init__(self, slots: list[Value], limit: int, interrupt: Callable[[], bool] | None) -> None:
        self.slots = slots
        self.limit = limit
        self.interrupt = interrupt
        self.cost = 0
        self.checks = 0

    def charge(self, cost: int) -> None:
        """Add to the cost. Raises OverLimit."""
        self.cost += cost
        if not 0 <= self.cost <= self.limit:
            # The reference counts without a sign in 64 bits: has() of a choice that costs nothing takes one from zero.
            self.cost %= 2**64
            if self.cost > self.limit:
                raise OverLimit(f"actual cost limit exceeded: {self.cost}, want at most {self.limit}")

    def check(self) -> None:
        """Ask the caller now and then whether to go on. Raises Interrupted."""
        self.checks += 1
        if self.interrupt is not None and self.checks % CHECK_EVERY == 0 and self.interrupt():
            raise Interrupted("operation interrupted")


Counted = Callable[[Run], Value]
