"""Our side of the referee's protocol."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator

from tests.referee.allocation import allocate
from tests.referee.process import Answer, Question, Referee
from tests.referee.selector import evaluate
from tests.referee.text import check_name, read_quantity, read_semver

OPERATIONS: dict[str, Callable[[Question], Answer]] = {
    "allocate": allocate,
    "cel": evaluate,
    "quantity": read_quantity,
    "semver": read_semver,
    "name": check_name,
}


def answer(question: Question) -> Answer:
    """Answer one question."""
    operation = OPERATIONS.get(question.get("op", ""))
    if operation is None:
        return {"badQuestion": f"unknown op {question.get('op')!r}, want {', '.join(OPERATIONS)}"}
    try:
        return operation(question)
    except Exception as error:  # noqa: BLE001 - a defect is an answer, and the next question has a right to its own
        return {"panic": f"{type(error).__name__}: {error}"}


def answer_lines(lines: Iterable[str]) -> Iterator[str]:
    """Answer JSON lines with JSON lines."""
    for line in lines:
        if line.strip():
            yield json.dumps(_answer_line(line), ensure_ascii=False)


def start() -> Referee:
    """Return a referee that answers with our modules, in a process of its own."""
    # An expression may cost 1,000,000 on each device, which takes seconds.
    return Referee([sys.executable, "-m", "tests.referee"], grace=60)


def _answer_line(line: str) -> Answer:
    try:
        question = json.loads(line)
    except ValueError as error:
        return {"badQuestion": str(error)}
    return answer(question) if isinstance(question, dict) else {"badQuestion": "not an object"}
