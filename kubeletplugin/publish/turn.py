"""Which of the node's processes publishes: there are two while an update goes on."""

from typing import Protocol


class Turn(Protocol):
    """Which of the node's processes writes slices."""

    def take_turn(self) -> bool:
        """Say that this process writes from now on. Return whether it may: no younger one said so."""
        ...

    def give_turn_back(self) -> None:
        """Say that this process does not write, so that an older one may."""
        ...


class Alone:
    """There is no other process."""

    def take_turn(self) -> bool:
        """Return that this process may write."""
        return True

    def give_turn_back(self) -> None:
        """Do nothing: nobody waits."""
