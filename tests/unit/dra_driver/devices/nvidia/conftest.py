"""GPUs with MIG: one whose mode is switched at will, and one that needs a reset for it."""

from pathlib import Path

import pytest

from tests.support.nvml.machine import an_a100_machine, an_h100_machine
from tests.support.nvml.mig_bench import MigBench


@pytest.fixture
def h100(tmp_path: Path) -> MigBench:
    """MIG mode is off, and can be switched."""
    return MigBench(an_h100_machine(), tmp_path)


@pytest.fixture
def a100(tmp_path: Path) -> MigBench:
    """MIG mode is on, and stays on."""
    return MigBench(an_a100_machine(mig=True), tmp_path)


@pytest.fixture(params=["h100", "a100"])
def bench(request: pytest.FixtureRequest) -> MigBench:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, MigBench)
    return found
