import argparse
import sys
from pathlib import Path

import pytest

from benchmarks.argument import find_program, parse_count


def test_a_count_is_read() -> None:
    assert parse_count("20") == 20


@pytest.mark.parametrize("text", ["0", "-4", "x", "1.5", ""])
def test_what_is_no_count_is_refused_with_what_is_wanted(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=f"^'{text}', want a whole number from 1 on$"):
        parse_count(text)


def test_a_program_is_found_by_its_path() -> None:
    assert find_program(sys.executable) == Path(sys.executable)


def test_a_program_that_is_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").touch()
    for path in (tmp_path / "missing", tmp_path / "text", tmp_path):
        with pytest.raises(argparse.ArgumentTypeError, match="want the path of a program"):
            find_program(str(path))
