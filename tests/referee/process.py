"""A process that answers questions, one JSON line each."""

import json
import queue
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

Question = Mapping[str, Any]
Answer = dict[str, Any]

_CALL_MS = 10_000


class Referee:
    """Keeps the process and replaces it when it ends or stays silent; then the answer is `{"panic": …}`.

    `grace` is what a question may take, in seconds, beyond the time that it grants its calls. The Go program notices
    a call that hangs after 5.
    One thread may use it. `begin` and `finish` let two referees think at the same time.
    """

    def __init__(self, command: Sequence[str | Path], *, grace: float = 15.0) -> None:
        self._command = tuple(command)
        self._grace = grace
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._limits: list[float] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, question: Question) -> Answer:
        """Put one question and wait for the answer."""
        self.begin(question)
        return self.finish()

    def begin(self, question: Question) -> None:
        """Put a question; `finish` gives the answer. There is one question at a time."""
        assert not self._limits, "the last question is not finished"
        self._limits.append(_granted(question) + self._grace)
        process = self._started()
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(question).encode() + b"\n")
            process.stdin.flush()

    def finish(self) -> Answer:
        """Wait for the answer to the question that was begun."""
        limit = self._limits.pop()
        try:
            line = self._lines.get(timeout=limit)
        except queue.Empty:
            self.close()
            return {"panic": f"no answer within {limit:g} s"}
        if line is None:
            self.close()
            return {"panic": "the process ended"}
        answer: Answer = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process; the next question starts another."""
        process, self._process = self._process, None
        self._limits.clear()
        if process is None:
            return
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            # Lines of a process that is gone must not meet the questions to the next one.
            lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
            self._lines = lines
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            threading.Thread(target=_read, args=(self._process, lines), daemon=True).start()
        return self._process


def _read(process: subprocess.Popen[bytes], lines: "queue.SimpleQueue[bytes | None]") -> None:
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            lines.put(line)
    lines.put(None)


def _granted(question: Question) -> float:
    return int(question.get("timeoutMs") or _CALL_MS) / 1000 * max(1, int(question.get("repeat") or 1))
