"""Our answers to recorded questions, against what Kubernetes' own code answered."""

import sys
from collections.abc import Iterator

import pytest

from tests.referee.agreement import find_differences
from tests.referee.corpus import CORPORA, Corpus, read_corpus, record_cases, settled_answer
from tests.referee.ours import answer
from tests.referee.process import Referee

CASES = pytest.mark.parametrize("corpus", CORPORA, ids=lambda corpus: corpus.op)


@CASES
def test_we_answer_recorded_questions_as_upstream(corpus: Corpus) -> None:
    disagreements = [
        (kinds, case.question)
        for case in read_corpus(corpus.op)
        if (kinds := find_differences(case.question, case.answer, answer(case.question)))
    ]
    disagreements.sort(key=lambda disagreement: len(str(disagreement[1])))
    assert not disagreements, f"{len(disagreements)} disagreements, the smallest: {disagreements[0]}"


@CASES
def test_the_record_is_as_large_as_it_says(corpus: Corpus) -> None:
    assert len(read_corpus(corpus.op)) == corpus.size


_PROGRAM = """
import itertools, json, sys
for count, line in zip(itertools.count(), sys.stdin):
    text = json.loads(line)["text"]
    answers = {"new": {"canonical": str(count)}, "bad": {"error": f"bad {count}"}, "panic": {"panic": "x"}}
    print(json.dumps(answers.get(text, {"canonical": text, "us": count})), flush=True)
"""


@pytest.fixture
def referee() -> Iterator[Referee]:
    with Referee([sys.executable, "-c", _PROGRAM]) as referee:
        yield referee


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("1", {"canonical": "1"}), ("bad", {"error": "error"}), ("new", None), ("panic", None)],
)
def test_only_what_upstream_always_answers_is_recorded(
    referee: Referee, text: str, wanted: dict[str, str] | None
) -> None:
    assert settled_answer(referee, {"op": "quantity", "text": text}) == wanted


def test_a_corpus_is_recorded_without_repetitions_long_questions_and_too_much_of_the_same(referee: Referee) -> None:
    texts = ["1", "1", "bad", "x" * 100, "new", "2", "3"]
    corpus = Corpus("quantity", 3, lambda _: iter([{"text": text} for text in texts]), longest=50, shares={"": 0.7})
    assert [case.question["text"] for case in record_cases(referee, corpus)] == ["1", "bad", "2"]
