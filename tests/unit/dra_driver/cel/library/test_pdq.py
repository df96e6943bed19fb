from hypothesis import given
from hypothesis import strategies as st

from dra_driver.cel.library.pdq import sort_places


@given(st.lists(st.integers(0, 20), max_size=200))
def test_places_come_out_in_order_and_each_once(keys: list[int]) -> None:
    places = sort_places(len(keys), lambda left, right: keys[left] < keys[right])

    assert sorted(places) == list(range(len(keys)))
    assert [keys[place] for place in places] == sorted(keys)


def test_equal_keys_come_in_the_order_of_go() -> None:
    places = sort_places(13, lambda left, right: (left + 1) % 2 < (right + 1) % 2)

    assert [place + 1 for place in places] == [10, 2, 4, 6, 8, 12, 3, 5, 7, 9, 1, 11, 13]
