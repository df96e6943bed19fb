"""How the demo ends early: a signal at any moment, which lets everything be cleaned up."""

import asyncio
import contextlib
import signal
from collections.abc import Iterator


class Ending:
    """The signal that ended the demo, if one did."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self.is_wanted = False
        is_nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        self._numbers = (signal.SIGINT, signal.SIGTERM, *(() if is_nohup else (signal.SIGHUP,)))

    def note(self, number: signal.Signals) -> None:
        """Take note of the first signal."""
        self.signal = self.signal or number

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Let every signal interrupt what runs, as SIGINT does, until the block ends."""
        before = {number: signal.signal(number, self._interrupt) for number in self._numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def ignore(self) -> None:
        """Let nothing interrupt what is left to be cleaned up."""
        for number in self._numbers:
            signal.signal(number, signal.SIG_IGN)

    @contextlib.contextmanager
    def cancelling(self) -> Iterator[None]:
        """Have a signal cancel the current task, which then ends in order."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def cancel(number: signal.Signals) -> None:
            self.note(number)
            if task is not None:
                task.cancel()

        for number in self._numbers:
            loop.add_signal_handler(number, cancel, number)
        try:
            yield
        finally:
            for number in self._numbers:
                loop.remove_signal_handler(number)
                signal.signal(number, self._interrupt)

    def _interrupt(self, number: int, _: object) -> None:
        self.note(signal.Signals(number))
        raise KeyboardInterrupt
