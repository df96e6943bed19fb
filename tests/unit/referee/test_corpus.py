"""Our answers to recorded questions, against what Kubernetes' own code answered."""

import pytest

from tests.referee.agreement import find_differences
from tests.referee.corpus import CORPORA, Corpus, read_corpus
from tests.referee.ours import answer

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
