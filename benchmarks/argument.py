"""Numbers and programs on a command line: refused with what is wanted, before anything is measured."""

import argparse
import shutil
from pathlib import Path


def parse_count(text: str) -> int:
    """Read how many. Raises ArgumentTypeError."""
    try:
        count = int(text)
    except ValueError:
        count = 0
    if count < 1:
        problem = f"{text!r}, want a whole number from 1 on"
        raise argparse.ArgumentTypeError(problem)
    return count


def find_program(text: str) -> Path:
    """Find a program that is named by its path. Raises ArgumentTypeError."""
    path = Path(text).absolute()
    if shutil.which(path) is None:
        problem = f"{text!r}, want the path of a program"
        raise argparse.ArgumentTypeError(problem)
    return path
