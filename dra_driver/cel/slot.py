"""Where the variables of an evaluation are: a list, counted over the whole expression."""

from typing import Final

from dra_driver.cel.value import Value

Slots = list[Value]

# The first slots of an evaluation.
ROOT: Final = 0
ATTRIBUTES: Final = 1
CAPACITY: Final = 2
FIRST: Final = 3
_WIDTH: Final = 3


class Names:
    """Which slot a variable is in. Each loop has three: its accumulator and two variables."""

    __slots__ = ("counter", "places")

    def __init__(self, places: dict[str, int] | None = None, counter: list[int] | None = None) -> None:
        self.places = places or {}
        self.counter = counter or [FIRST]

    @property
    def size(self) -> int:
        """How many slots there are."""
        return self.counter[0]

    def find(self, name: str) -> int:
        """Give the slot of a variable; what is no variable of a loop is the device."""
        return self.places.get(name, ROOT)

    def is_accumulator(self, place: int) -> bool:
        """Tell whether a slot is that of an accumulator, whose first value is computed when somebody asks."""
        return place >= FIRST and (place - FIRST) % _WIDTH == 0

    def enter(self, accumulator: str, variable: str, variable2: str) -> tuple[int, "Names", "Names"]:
        """Take slots for a loop. Give the first, the names inside the loop, and those of its result."""
        place = self.counter[0]
        self.counter[0] += _WIDTH
        after = {**self.places, accumulator: place}
        inside = {**after, variable: place + 1}
        if variable2:
            inside[variable2] = place + 2
        return place, Names(inside, self.counter), Names(after, self.counter)
