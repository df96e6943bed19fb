"""Runs a module of Python's with a machine behind the fake library: `LIBRARY MACHINE python -m MODULE ARGUMENT…`.

Whoever loads the library by another path to the same file has this machine, too.
"""

import runpy
import sys
from pathlib import Path

import pynvml

from tests.support.nvml.fake import FakeNvml
from tests.support.nvml.library import NativeNvml
from tests.support.nvml.machine import MACHINES


def main(library: Path, machine: str, module: str, *arguments: str) -> None:
    """Give the library its machine, and become the module."""
    native = NativeNvml(FakeNvml(MACHINES[machine]()))
    native.load(library)
    pynvml.nvmlLib = None
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], *sys.argv[5:])
