import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_driver.kube.backoff import Backoff


@pytest.mark.parametrize(("attempt", "ceiling"), [(0, 1.0), (1, 2.0), (2, 4.0), (3, 5.0), (10_000, 5.0)])
def test_the_delay_doubles_up_to_the_maximum(attempt: int, ceiling: float) -> None:
    assert Backoff(initial_s=1.0, max_s=5.0).delay_s(attempt, 0.0) == ceiling


@given(st.integers(0, 10**9), st.floats(0, 1, exclude_max=True))
def test_a_delay_is_never_nothing_and_never_above_the_maximum(attempt: int, random: float) -> None:
    assert 0 < Backoff(initial_s=0.1, max_s=30.0).delay_s(attempt, random) <= 30.0


def test_chance_takes_away_the_share_that_jitter_says() -> None:
    assert Backoff(initial_s=8.0, jitter=0.25).delay_s(0, 0.5) == 7.0
