"""Recorded questions with upstream's answers, so that tests have its verdicts without Go.

One JSON line a question in `corpus/<op>.jsonl`. Texts of errors and timings are left out.
`python -m tests.referee.corpus [op …]` records anew.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random

from tests.referee import generate_cel, generate_text, upstream
from tests.referee.generate_allocation import allocate_question
from tests.referee.process import Answer, Question, Referee

FOLDER = Path(__file__).parent / "corpus"
SEED = 37
# An answer that upstream does not give every time is no verdict. Its maps of two entries begin with one of them in
# seven of eight cases.
_TIMES = 40
# Replaying takes Python a second for each 100,000.
_DEAREST = 100_000


@dataclass(frozen=True, slots=True)
class Case:
    """A question with upstream's answer."""

    question: Question
    answer: Answer


@dataclass(frozen=True, slots=True)
class Corpus:
    """What is recorded of one operation: the first `size` of `questions` that are no longer than `longest` bytes.

    `shares` bounds how much of the whole an outcome may be; that of `""` holds for those that are not named.
    """

    op: str
    size: int
    questions: Callable[[Random], Iterator[Question]]
    longest: int = 1000
    shares: Mapping[str, float] = field(default_factory=dict)


def _endless(draw: Callable[[Random], Question]) -> Callable[[Random], Iterator[Question]]:
    return lambda random: (draw(random) for _ in count())


def _selectors(random: Random) -> Iterator[Question]:
    yield from generate_cel.edge_questions()
    yield from _endless(generate_cel.cel_question)(random)


CORPORA = (
    Corpus("allocate", 1600, _endless(allocate_question), longest=3000, shares={"True": 1, "False": 0.3, "": 0.08}),
    Corpus("cel", 2190, _selectors, longest=1500, shares={"": 0.2}),
    Corpus("quantity", 1500, _endless(generate_text.quantity_question)),
    Corpus("semver", 700, _endless(generate_text.semver_question)),
    Corpus("name", 1000, _endless(generate_text.name_question)),
)


def read_corpus(op: str) -> list[Case]:
    """Read the recorded cases of an operation."""
    lines = (FOLDER / f"{op}.jsonl").read_text(encoding="utf-8").splitlines()
    return [Case(**json.loads(line)) for line in lines]


def record_cases(referee: Referee, corpus: Corpus) -> Iterator[Case]:
    """Ask upstream until there are enough cases, each question once."""
    seen, outcomes = set[str](), Counter[str]()
    for question in corpus.questions(Random(SEED)):
        key = json.dumps(question, sort_keys=True)
        if key in seen or len(key) > corpus.longest:
            continue
        seen.add(key)
        answer = None if _is_dear(referee.ask(question)) else settled_answer(referee, question)
        if answer is None:
            continue
        outcome = _outcome(answer)
        if outcomes[outcome] >= corpus.size * corpus.shares.get(outcome, corpus.shares.get("", 1)):
            continue
        outcomes[outcome] += 1
        yield Case(question, answer)
        if outcomes.total() == corpus.size:
            return


def _is_dear(answer: Answer) -> bool:
    return max((cost or 0 for cost in answer.get("costs", ())), default=0) > _DEAREST


def _outcome(answer: Answer) -> str:
    """Name what came out, coarsely."""
    if "verdicts" in answer:
        return json.dumps(answer["verdicts"])
    return next((str(answer[field]) for field in ("errorClass", "error", "compileError", "fit") if field in answer), "")


def settled_answer(referee: Referee, question: Question) -> Answer | None:
    """Ask several times; None if the answers differ or are no verdict."""
    first = referee.ask(question)
    if "badQuestion" in first or "panic" in first or first.get("errorClass") == "timeout":
        return None
    verdict = _without_texts(first)
    for _ in range(_TIMES - 1):
        if _without_texts(referee.ask(question)) != verdict:
            return None
    return verdict


def _without_texts(answer: Answer) -> Answer:
    kept = {key: value for key, value in answer.items() if key not in ("us", "firstUs", "bestUs")}
    for key in ("error", "compileError"):
        if key in kept:
            kept[key] = "error"
    if "verdicts" in kept:
        kept["verdicts"] = ["error" if isinstance(verdict, str) else verdict for verdict in kept["verdicts"]]
    return kept


def main() -> None:
    """Record the corpora that are named, by default all."""
    known = {corpus.op: corpus for corpus in CORPORA}
    parser = argparse.ArgumentParser(prog="python -m tests.referee.corpus", description=__doc__)
    parser.add_argument("ops", nargs="*", choices=[*known, []], help="default: all")
    FOLDER.mkdir(exist_ok=True)
    for op in parser.parse_args().ops or known:
        with upstream.start() as referee, (FOLDER / f"{op}.jsonl").open("w", encoding="utf-8") as file:
            for case in record_cases(referee, known[op]):
                line = {"question": case.question, "answer": case.answer}
                file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
        sys.stderr.write(f"recorded {known[op].size} answers to {op}\n")


if __name__ == "__main__":
    main()
