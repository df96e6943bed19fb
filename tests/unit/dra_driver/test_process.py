import os
import signal
from enum import StrEnum

import pytest

from dra_driver.process import build_registry, print_version, render_names, stop_signals
from tests.support.wait import until


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_asks_the_process_to_end(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_signals() as stop:
        os.kill(os.getpid(), number)
        await until(stop.is_set)
    assert signal.getsignal(number) in (before, signal.SIG_DFL, signal.default_int_handler)


def test_a_process_tells_of_itself() -> None:
    assert build_registry().get_sample_value("process_start_time_seconds")


class _One(StrEnum):
    A = "a"


class _Three(StrEnum):
    A = "a"
    B = "b"
    C = "c"


@pytest.mark.parametrize(("names", "text"), [(_One, "a"), (_Three, "a, b or c")])
def test_names_are_listed_as_in_a_sentence(names: type[StrEnum], text: str) -> None:
    assert render_names(names) == text


def test_the_version_follows_the_programs_name(capsys: pytest.CaptureFixture[str]) -> None:
    print_version("dra-thing")
    assert capsys.readouterr().out.startswith("dra-thing 0.")
