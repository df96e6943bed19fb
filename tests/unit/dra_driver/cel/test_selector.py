import pytest

from dra_driver.api.quantity import Quantity
from dra_driver.api.resource_v1 import DeviceAttribute, DeviceCapacity
from dra_driver.cel import CompileError, DeviceInput, EvaluationError, LimitError, Options, Read, compile_selector

DRIVER = "gpu.example.com"
DEVICE = DeviceInput(
    DRIVER,
    {
        "model": DeviceAttribute(string="A100"),
        "index": DeviceAttribute(int=0),
        "healthy": DeviceAttribute(bool=True),
        "version": DeviceAttribute(version="1.0.0"),
        "other.example.com/zone": DeviceAttribute(string="a"),
        "numbers": DeviceAttribute(ints=(1, 2, 3)),
    },
    {"memory": DeviceCapacity(value=Quantity.parse("80Gi"))},
    name="gpu-0",
)
BARE = f'device.attributes["{DRIVER}"]'

VERDICTS = {
    f'{BARE}.model == "A100"': True,
    f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0': True,
    f'device.driver == "{DRIVER}" && !device.allowMultipleAllocations': True,
    'device.attributes["unknown.domain"].size() == 0': True,
    '"unknown.domain" in device.attributes': False,
    'device.attributes[?"unknown.domain"].hasValue()': True,
    'has(device.attributes["unknown.domain"].x)': False,
    'device.attributes["unknown.domain"].?x.hasValue()': False,
    f'{BARE}.?missing.orValue("v") == "v"': True,
    f"{BARE}.missing || true": True,
    f"false && {BARE}.missing": False,
    f"{BARE}.missing && false": False,
    f"{BARE}.model == 100": False,
    f"{BARE}.model != 100": True,
    f"{BARE}.index == 0.0": True,
    "dyn(1) == 1.0": True,
    "10 < 4.0": False,
    "4.0 < 10": True,
    'quantity("64Gi") == quantity("65536Mi")': True,
    'quantity("1500m").isInteger()': False,
    'semver("550.127.08", true) == semver("550.127.8")': True,
    'semver("1.0.0+a") == semver("1.0.0+b")': True,
    f'"1.0.0" == {BARE}.version': False,
    f'{BARE}.version != "1.0.0"': True,
    'quantity("1").add(1) == quantity("2")': True,
    'quantity("2") != quantity("1").add(1)': True,
    "[1, 2].includes(1)": True,
    f"{BARE}.numbers.exists(x, x > 2)": True,
    "has(device.attributes.nope)": True,
    'quantity("2").compareTo([1].map(x, quantity("1"))[0]) >= 0': True,
    f"{BARE}.numbers in {{{BARE}.numbers: 1}}": False,
    f"cel.bind(list, {BARE}.numbers, list in {{list: 1}})": True,
    f"{{{BARE}: 1}} == {{{BARE}: 1}}": False,
    "{device: 1} == {device: 1}": False,
    "cel.bind(some, optional.of(1), some in {some: 1})": False,
    'type(1) in {int: 1} && ip("1.2.3.4") in {ip("1.2.3.4"): 1}': True,
    "lists.range(13).map(x, x + 1).sortBy(x, x % 2) == [10, 2, 4, 6, 8, 12, 3, 5, 7, 9, 1, 11, 13]": True,
}


@pytest.mark.parametrize(("expression", "verdict"), VERDICTS.items(), ids=VERDICTS)
def test_a_selector_decides_as_kubernetes_does_with_and_without_counting(expression: str, verdict: bool) -> None:
    selector = compile_selector(expression)

    assert selector.evaluate(DEVICE) is verdict
    assert selector.evaluate_with_cost(DEVICE)[0] is verdict


@pytest.mark.parametrize(
    "expression",
    [
        f"{BARE}.missing == 1",
        f"{BARE}.model > 1",
        'quantity("6 Gi").isInteger()',
        'semver("550.127.08").major() == 550',
        f'{BARE}.version == "1.0.0"',
        'quantity("2") == quantity("1").add(1)',
        f"{BARE}.model",
        f'{BARE}.version in ["1.2.3"] || true',
        "[1 / 0].sort() == [] || true",
    ],
)
def test_an_error_that_nothing_absorbs_is_told_with_device_and_expression(expression: str) -> None:
    selector = compile_selector(expression)

    for evaluate in (selector.evaluate, selector.evaluate_with_cost):
        with pytest.raises(EvaluationError) as caught:
            evaluate(DEVICE)
        assert "gpu-0" in str(caught.value)
        assert repr(expression) in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("device.atributes", "did you mean 'attributes'?"),
        ("1 == 1.0", "no int == double"),
        (f'device.capacity["{DRIVER}"].memory >= quantity("80Gi")', 'write a.compareTo(quantity("80Gi")) >= 0'),
        ("1 +", "unexpected end, want an expression"),
        ("device.driver == 1", "no string == int, want string == string"),
        ("1", "gives an int, want a bool"),
        ("math.greatest(1, 2) == 2", "unknown name 'math'"),
        ('quantity("1").sign() == 1', "write sign(a)"),
        ('matches("(", "a")', "is no pattern"),
        ("[?dyn(optional.of(1))] == [1]", "want an optional value"),
        ('true || int("abc") == 1', "type conversion error"),
    ],
)
def test_a_wrong_expression_is_refused_with_what_was_found_and_what_to_write(expression: str, text: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_selector(expression)

    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        (f'{BARE}.model == "A100"', 5),
        ("[1, 2, 3].size() == 3", 2),
        ('"éééééééééé" == "éééééééééé"', 1),
        ('b"éééééééééé" == b"éééééééééé"', 2),
        ("dyn([3, 1, 2]).sort() == [1, 2, 3]", 2),
    ],
)
def test_the_cost_of_an_evaluation_is_that_of_kubernetes(expression: str, cost: int) -> None:
    assert compile_selector(expression).evaluate_with_cost(DEVICE)[1] == cost


def test_the_cost_limit_is_inclusive() -> None:
    assert compile_selector("lists.range(999987).size() > 0").evaluate_with_cost(DEVICE) == (True, 1_000_000)
    with pytest.raises(LimitError):
        compile_selector("lists.range(999988).size() > 0").evaluate(DEVICE)


def test_nested_loops_end_at_the_cost_limit() -> None:
    expression = "true"
    for name in "abcdef":
        expression = f"[0, 1, 2, 3, 4, 5, 6, 7, 8, 9].all({name}, {expression})"

    with pytest.raises(LimitError, match="cost limit exceeded"):
        compile_selector(expression, options=Options(cost_limit=20_000)).evaluate(DEVICE)


def test_a_selector_knows_what_it_reads() -> None:
    selector = compile_selector(f'{BARE}.model == "A100" && device.driver != "x"')

    assert selector.reads == {Read("attributes", DRIVER, "model"), Read("driver")}
    assert selector.key(DEVICE) == selector.key(DeviceInput(DRIVER, {"model": DeviceAttribute(string="A100")}))
    assert selector.key(DEVICE) != selector.key(DeviceInput(DRIVER, {"model": DeviceAttribute(string="H100")}))
