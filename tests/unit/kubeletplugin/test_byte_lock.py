import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubeletplugin.byte_lock import find_locked_byte, lock_byte, unlock_byte

FAR = 1 << 40


@pytest.fixture
def parties(tmp_path: Path) -> Iterator[tuple[int, int]]:
    opened = [os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT, 0o600) for _ in range(2)]
    yield opened[0], opened[1]
    for descriptor in opened:
        os.close(descriptor)


def test_a_byte_that_one_party_has_is_kept_from_others_until_it_lets_go(parties: tuple[int, int]) -> None:
    one, other = parties
    assert lock_byte(one, FAR)
    assert not lock_byte(other, FAR)
    assert lock_byte(other, FAR + 1)
    unlock_byte(one, FAR)
    assert lock_byte(other, FAR)


def test_several_parties_share_a_byte_that_none_has_alone(parties: tuple[int, int]) -> None:
    one, other = parties
    assert lock_byte(one, FAR)
    assert lock_byte(one, FAR, shared=True)
    assert lock_byte(other, FAR, shared=True)
    assert not lock_byte(one, FAR)


def test_the_bytes_of_others_are_found_and_own_ones_are_not(parties: tuple[int, int]) -> None:
    one, other = parties
    assert lock_byte(one, FAR)
    assert find_locked_byte(one, 0, FAR + 1) is None
    assert find_locked_byte(other, 0, FAR + 1) == FAR
    assert find_locked_byte(other, 0, FAR) is None
