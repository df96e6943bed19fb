import pytest

from dra_driver.cel import MAX_COST, Options, compile_selector, validate_selector

NEW = Options(stored=False)
LISTS = Options(stored=False, lists=True)
ATTRIBUTE = 'device.attributes["d"].a'


@pytest.mark.parametrize(
    ("expression", "options", "cost"),
    [
        (f"dyn({ATTRIBUTE}) == 1", NEW, 6),
        (f'{ATTRIBUTE} == "a"', NEW, 5),
        ('device.capacity["d"].c.isGreaterThan(quantity("1"))', NEW, 6),
        ("cel.bind(d, device.driver, true)", NEW, 12),
        (f"{ATTRIBUTE}.includes(1)", LISTS, 4 + 64),
        (f"{ATTRIBUTE}.exists(x, x > 0)", LISTS, 5 + 6 * 64),
        ("device.attributes.exists_one(x, true)", NEW, 68),
        (f"has({ATTRIBUTE})", NEW, 3),
        ("[1, 2, 3].size() == 3", NEW, 12),
        ('quantity("1") != quantity("2")', NEW, 1844674407370955266),
        ("true ? true : false", NEW, 0),
    ],
)
def test_the_estimate_is_that_of_kubernetes(expression: str, options: Options, cost: int) -> None:
    assert compile_selector(expression, options=options).estimated_cost == cost


def test_an_expression_that_may_cost_too_much_is_refused_when_it_is_written_only() -> None:
    expression = 'quantity("1") != quantity("2")'

    assert "estimated cost" in validate_selector(expression, options=NEW)[0]
    assert compile_selector(expression).estimated_cost > MAX_COST


def test_a_long_expression_is_refused_when_it_is_written() -> None:
    assert "10241 bytes" in validate_selector("true" + " " * (10 * 1024 - 3))[0]
    assert validate_selector("true" + " " * (10 * 1024 - 4)) == ()


def test_all_that_is_wrong_is_told_at_once() -> None:
    assert len(validate_selector("device.a && device.b")) == 2
