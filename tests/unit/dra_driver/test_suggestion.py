import pytest

from dra_driver.suggestion import explain_meant


@pytest.mark.parametrize("word", ["modle", "Model", "MODLE"])
def test_a_near_word_is_suggested_whatever_its_case(word: str) -> None:
    assert explain_meant(word, ["memory", "model"]) == "; did you mean 'model'?"


@pytest.mark.parametrize("word", ["zebra", "", "model" * 10_000])
def test_a_word_that_nobody_misspells_so_gets_no_suggestion(word: str) -> None:
    assert explain_meant(word, ["memory", "model"]) == ""
