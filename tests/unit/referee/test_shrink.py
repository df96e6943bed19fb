"""Disagreements are cut down to what they need."""

from random import Random

from tests.referee.expression import Tree, reductions, render
from tests.referee.generate_cel import expression, question_of
from tests.referee.shrink import shrink_expression, shrink_question


def test_an_expression_shrinks_to_the_part_that_disagrees() -> None:
    tree: Tree = ("(", ("size(", ('"abc"',), ")"), " == ", ("1",), ")", " || ", ("true",))
    question = {"op": "cel", "expr": render(tree), "driver": "d", "devices": [{"name": "a"}, {"name": "b"}]}
    small = shrink_expression(question, tree, lambda smaller: "size(" in smaller["expr"])
    assert small == {"op": "cel", "driver": "d", "expr": "size(1)"}


def test_reductions_are_all_smaller_parts_first() -> None:
    for seed in range(50):
        tree = expression(Random(seed))
        lengths = [len(render(smaller)) for smaller in reductions(tree)]
        assert lengths == sorted(lengths)


def test_an_object_shrinks_to_what_disagrees() -> None:
    question = {
        "op": "allocate",
        "slices": [{"metadata": {"name": f"s{index}"}, "spec": {"devices": [{"name": "a"}]}} for index in range(9)],
        "claims": [{"metadata": {"name": "c"}}],
    }
    small = shrink_question(question, lambda smaller: "s7" in str(smaller))
    assert small == {"op": "allocate", "slices": [{"metadata": {"name": "s7"}, "spec": {}}]}


def test_shrinking_ends_when_it_has_asked_too_often() -> None:
    asked: list[object] = []

    def never(smaller: object) -> bool:
        asked.append(smaller)
        return False

    shrink_question({"op": "x", "list": list(range(1000))}, never, tries=10)
    assert len(asked) == 10


def test_the_same_seed_draws_the_same_questions() -> None:
    first, second = (question_of(random := Random(5), expression(random)) for _ in range(2))
    assert first == second
