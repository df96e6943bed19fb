"""The order in which Go sorts: `sort.Slice` is not stable, and expressions can see it.

A pattern-defeating quicksort: insertion sort for up to 12 elements, a heap after too many bad pivots, equal elements
partitioned apart, and a little scrambling, without chance, after an unbalanced partition.
"""

from collections.abc import Callable
from typing import Final

_INSERTION: Final = 12
_NINTHER: Final = 50
_MAX_SWAPS: Final = 12
_MAX_STEPS: Final = 5
_SMALL: Final = 8


def sort_places(count: int, before: Callable[[int, int], bool]) -> list[int]:
    """Give the places 0 to `count` - 1 in order; `before` compares two of them."""
    sorter = _Sorter(list(range(count)), before)
    sorter.sort(0, count, count.bit_length())
    return sorter.places


class _Sorter:
    __slots__ = ("before", "places", "swaps")

    def __init__(self, places: list[int], before: Callable[[int, int], bool]) -> None:
        self.places = places
        self.before = before
        self.swaps = 0

    def less(self, i: int, j: int) -> bool:
        return self.before(self.places[i], self.places[j])

    def swap(self, i: int, j: int) -> None:
        places = self.places
        places[i], places[j] = places[j], places[i]

    def sort(self, a: int, b: int, limit: int) -> None:
        balanced = partitioned = True
        while b - a > _INSERTION:
            if limit == 0:
                self.heap(a, b)
                return
            if not balanced:
                self.scramble(a, b)
                limit -= 1
            pivot, hint = self.choose(a, b)
            if hint < 0:
                self.places[a:b] = self.places[a:b][::-1]
                pivot = b - 1 - (pivot - a)
            if balanced and partitioned and hint and self.finish(a, b):
                return
            if a > 0 and not self.less(a - 1, pivot):
                a = self.partition_equal(a, b, pivot)
                continue
            length = b - a
            middle, partitioned = self.partition(a, b, pivot)
            left, right = middle - a, b - middle
            balanced = min(left, right) >= length // 8
            if left < right:
                self.sort(a, middle, limit)
                a = middle + 1
            else:
                self.sort(middle + 1, b, limit)
                b = middle
        self.insert(a, b)

    def insert(self, a: int, b: int) -> None:
        for i in range(a + 1, b):
            j = i
            while j > a and self.less(j, j - 1):
                self.swap(j, j - 1)
                j -= 1

    def heap(self, a: int, b: int) -> None:
        size = b - a
        for i in range((size - 1) // 2, -1, -1):
            self.sift(i, size, a)
        for i in range(size - 1, -1, -1):
            self.swap(a, a + i)
            self.sift(0, i, a)

    def sift(self, root: int, size: int, first: int) -> None:
        while (child := 2 * root + 1) < size:
            if child + 1 < size and self.less(first + child, first + child + 1):
                child += 1
            if not self.less(first + root, first + child):
                return
            self.swap(first + root, first + child)
            root = child

    def partition(self, a: int, b: int, pivot: int) -> tuple[int, bool]:
        """Put what is less than the pivot before it; tell whether it was so already."""
        self.swap(a, pivot)
        i, j = self.approach(a, a + 1, b - 1)
        already = i > j
        while i <= j:
            self.swap(i, j)
            i, j = self.approach(a, i + 1, j - 1)
        self.swap(j, a)
        return j, already

    def approach(self, pivot: int, i: int, j: int) -> tuple[int, int]:
        while i <= j and self.less(i, pivot):
            i += 1
        while i <= j and not self.less(j, pivot):
            j -= 1
        return i, j

    def partition_equal(self, a: int, b: int, pivot: int) -> int:
        """Put what equals the pivot first; nothing is less than it."""
        self.swap(a, pivot)
        i, j = a + 1, b - 1
        while True:
            while i <= j and not self.less(a, i):
                i += 1
            while i <= j and self.less(a, j):
                j -= 1
            if i > j:
                return i
            self.swap(i, j)
            i += 1
            j -= 1

    def finish(self, a: int, b: int) -> bool:
        """Move the few elements that are out of order; tell whether that was all."""
        i = a + 1
        for _ in range(_MAX_STEPS):
            while i < b and not self.less(i, i - 1):
                i += 1
            if i == b:
                return True
            if b - a < _NINTHER:
                return False
            self.swap(i, i - 1)
            if i - a >= 2:  # noqa: PLR2004 - there is something on the left
                self.shift(range(i - 1, 0, -1))
            if b - i >= 2:  # noqa: PLR2004 - there is something on the right
                self.shift(range(i + 1, b))
        return False

    def shift(self, places: range) -> None:
        for j in places:
            if not self.less(j, j - 1):
                return
            self.swap(j, j - 1)

    def scramble(self, a: int, b: int) -> None:
        length = b - a
        if length < _SMALL:
            return
        random = length
        mask = (1 << length.bit_length()) - 1
        middle = a + length // 4 * 2
        for place in range(middle - 1, middle + 2):
            random ^= random << 13 & 2**64 - 1
            random ^= random >> 7
            random ^= random << 17 & 2**64 - 1
            other = random & mask
            self.swap(place, a + (other - length if other >= length else other))

    def choose(self, a: int, b: int) -> tuple[int, int]:
        """Choose a pivot; the hint is 1 if all looks sorted, -1 if reversed, else 0."""
        quarter = (b - a) // 4
        i, j, k = a + quarter, a + quarter * 2, a + quarter * 3
        self.swaps = 0
        if b - a >= _SMALL:
            if b - a >= _NINTHER:
                i, j, k = self.median(i - 1, i, i + 1), self.median(j - 1, j, j + 1), self.median(k - 1, k, k + 1)
            j = self.median(i, j, k)
        return j, {0: 1, _MAX_SWAPS: -1}.get(self.swaps, 0)

    def order(self, a: int, b: int) -> tuple[int, int]:
        if self.less(b, a):
            self.swaps += 1
            return b, a
        return a, b

    def median(self, a: int, b: int, c: int) -> int:
        a, b = self.order(a, b)
        b, c = self.order(b, c)
        a, b = self.order(a, b)
        return b
