"""Expressions that are true in Kubernetes 1.37, a table a library."""

import pytest

from dra_driver.cel import DeviceInput, EvaluationError, compile_selector

TRUE = {
    "arithmetic": [
        "7 / -2 == -3 && -7 % 3 == -1",
        "1.0 / 0.0 == double('Infinity') && 0.0 / 0.0 != 0.0 / 0.0",
        "18446744073709551615u - 1u == 18446744073709551614u",
        "-9223372036854775808 < 0 && --1 == 1",
        "dyn(9007199254740993) == 9007199254740992.0",
        "[1] + [2, 3] == [1, 2, 3] && b'a' + b'b' == b'ab'",
        "size('é') == 1 && size(b'é') == 2",
    ],
    "conversions": [
        "string(1000000.0) == '1e+06' && string(100000.0) == '100000' && string(0.00001) == '1e-05'",
        "int('+12') == 12 && uint('7') == 7u && double('0x1p-2') == 0.25 && bool('T')",
        "int(-1.9) == -1 && int(duration('1s')) == 1000000000 && bytes('é') == b'\\xc3\\xa9'",
        "string(ip('::1')) == '::1' && string(cidr('10.0.0.1/8')) == '10.0.0.1/8'",
        "type(1) == int && type([]) == list && type(null) == null_type",
        "type(duration('1s')) == google.protobuf.Duration",
    ],
    "times": [
        "duration('1h30m').getMinutes() == 90 && string(duration('-1.5s')) == '-1.5s'",
        "timestamp('2024-02-29T12:34:56.789Z').getDayOfYear() == 59",
        "timestamp('2024-02-29T23:00:00Z').getDate('+02:00') == 1",
        "timestamp('2024-01-01T00:00:00Z').getFullYear('America/New_York') == 2023",
        "timestamp('2024-01-01T00:00:00+02:00') == timestamp(1704060000)",
        "string(timestamp('2024-01-01T00:00:00+02:00') - duration('0s')) == '2024-01-01T00:00:00+02:00'",
        "timestamp(10) - timestamp(4) == duration('6s')",
    ],
    "strings": [
        "'tacocat'.indexOf('c', 3) == 4 && 'tacocat'.lastIndexOf('c') == 4 && 'abc'.indexOf('', 9) == 3",
        "'a,b,c'.split(',', 2) == ['a', 'b,c'] && 'ab'.split('') == ['a', 'b']",
        "'héllo'.charAt(1) == 'é' && 'hello'.substring(1, 3) == 'el' && ' x\\u00a0'.trim() == 'x'",
        "'aaa'.replace('a', 'b', 2) == 'bba' && 'ab'.replace('', '-') == '-a-b-'",
        "['a', 'b'].join('-') == 'a-b' && 'Ab'.lowerAscii() == 'ab' && 'Ab'.upperAscii() == 'AB'",
        "strings.quote('a\"\\n') == '\"a\\\\\"\\\\n\"'",
        "'abc'.matches('^a.c$') && 'a1b22'.findAll('[0-9]+') == ['1', '22'] && 'a1'.find('x') == ''",
    ],
    "format": [
        "'%f'.format([1234567.5]) == '1,234,567.500000' && '%.2f'.format([2.5]) == '2.50'",
        "'%e'.format([1234.5]) == '1.234500×10⁰³'",  # noqa: RUF001 - as Go prints powers
        "'%d %s %x %b %o'.format([1, 'a', 255, 5, 8]) == '1 a ff 101 10'",
        "'%s'.format([{'b': 1.0, 'a': [true, null]}]) == '{\"a\":[true, null], \"b\":1.000000}'",
        "'%s'.format([timestamp(0)]) == '1970-01-01T00:00:00Z' && '%%'.format([]) == '%'",
        "'%s'.format([[duration('1s')]]) == '[duration(\"1s\")]'",
    ],
    "lists": [
        "[3, 1, 2].sort() == [1, 2, 3] && ['b', 'a'].isSorted() == false && [1, 2].sum() == 3",
        "[[1], [2, 3]].flatten() == [1, 2, 3] && [1, 2, 2].distinct() == [1, 2]",
        "[1, 2, 3].slice(1, 2) == [2] && [1, 2].reverse() == [2, 1] && lists.range(3) == [0, 1, 2]",
        "[1, 2, 3].sortBy(x, -x) == [3, 2, 1] && [1, 2].max() == 2 && [1.5, 0.5].min() == 0.5",
        "[1, 2, 1].lastIndexOf(1) == 2 && [1].first().value() == 1 && [].last().hasValue() == false",
        "sets.contains([1, 2], [2]) && sets.equivalent([1, 2], [2, 1, 1]) && !sets.intersects([1], [2])",
        "1 in [1, 2] && dyn(1u) in [1] && !('a' in {'b': 1})",
    ],
    "macros": [
        "[1, 2].map(x, x > 1, x * 2) == [4] && [1, 2].filter(x, x > 1) == [2]",
        "[1, 2].all(i, v, v == i + 1) && {'a': 1}.exists(k, v, k == 'a' && v == 1)",
        "[1, 2].transformList(i, v, i * v) == [0, 2] && {'a': 1}.transformMap(k, v, v + 1) == {'a': 2}",
        "['a'].transformMapEntry(i, v, {v: i}) == {'a': 0} && [1, 2, 2].exists_one(x, x == 1)",
        "cel.bind(x, 1 + 1, x * x) == 4 && has({'a': 1}.a) && !has({'a': 1}.b)",
        "[1, 0].exists(x, 1 / x == 1) && [0, 1].exists(x, 1 / x == 1)",
    ],
    "optionals": [
        "optional.of(1).optMap(x, x + 1).value() == 2 && optional.none().orValue(3) == 3",
        "[1][?5].or(optional.of(2)).value() == 2 && {'a': {'b': 1}}.?a.b.orValue(0) == 1",
        "[?optional.none(), 1] == [1] && {?'a': optional.of(1)} == {'a': 1}",
        "optional.ofNonZeroValue('') == optional.none() && [optional.of(1)].unwrapOpt() == [1]",
        "optional.of(1).optFlatMap(x, optional.none()) == optional.none()",
    ],
    "kubernetes": [
        "quantity('2000m').isInteger() == false",
        "quantity('1Gi').add(1).isGreaterThan(quantity('1Gi')) && sign(quantity('-5')) == -1",
        "quantity('1e3').asInteger() == 1000 && quantity('1500m').asApproximateFloat() == 1.5",
        "!isQuantity('1 Gi') && isQuantity('1e-30000000')",
        "semver('v1.2', true).minor() == 2 && semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))",
        "semver('18446744073709551615.0.0').major() == -1 && !isSemver('01.0.0')",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && cidr('10.0.0.0/8').containsCIDR(cidr('10.1.0.0/16'))",
        "cidr('192.168.0.1/16').masked() == cidr('192.168.0.0/16') && ip('fe80::1').isLinkLocalUnicast()",
        "!isIP('::ffff:1.2.3.4') && !isIP('01.2.3.4') && isCIDR('192.168.0.1/16')",
        "url('http://u@a.com:80/p%20q?x=1&x=2').getQuery() == {'x': ['1', '2']}",
        "url('https://[::1]:90/a').getHostname() == '::1' && !isURL('a b')",
        "!format.dns1123Label().validate('a-b').hasValue() && format.named('uuid').hasValue()",
        "format.date().validate('2023-02-29').hasValue()",
    ],
}


@pytest.mark.parametrize(
    "expression", [each for table in TRUE.values() for each in table], ids=lambda expression: expression[:60]
)
def test_an_expression_is_true_with_and_without_counting(expression: str) -> None:
    selector = compile_selector(expression)

    assert selector.evaluate(DeviceInput("d")) is True
    assert selector.evaluate_with_cost(DeviceInput("d"))[0] is True


@pytest.mark.parametrize(
    "expression",
    [
        "1 / 0 == 1",
        "9223372036854775807 + 1 == 0",
        "0u - 1u == 0u",
        "-(-9223372036854775808) == 0",
        "int('9223372036854775808'.trim()) == 0",
        "timestamp(253402300799) + duration('1s') == timestamp(0)",
        "[1][1] == 1",
        "{'a': 1}['b'] == 1",
        "optional.none().value() == 1",
        "'a'.substring(2) == ''",
        "dyn(ip('10.0.0.1')).size() == 4",
        "[].max() == 1",
        "lists.range(1000001).size() > 0",
        "'%d'.format([dyn('a')]) == ''",
        "string(b'\\xff'.size() == 1 ? b'\\xff' : b'') == ''",
        "['a', 'a'].transformMapEntry(i, v, {v: i}).size() == 1",
        "'a'.matches('['.trim())",
        "ip('1.2.3.4'.trim() + '.5').family() == 4",
        "timestamp(0).getHours('No/Where') == 0",
        "dyn(1) + 'a' == 'a'",
        "dyn(0.0 / 0.0) < 1",
    ],
)
def test_what_has_no_value_is_an_error_with_and_without_counting(expression: str) -> None:
    selector = compile_selector(expression)

    for evaluate in (selector.evaluate, selector.evaluate_with_cost):
        with pytest.raises(EvaluationError):
            evaluate(DeviceInput("d"))


@pytest.mark.parametrize(
    "expression",
    [
        "cel.bind(a0, [1], "
        + "".join(f"cel.bind(a{i + 1}, a{i} + a{i}, " for i in range(100))
        + "a100.size() > 0"
        + ")" * 101,
        "'" + "a" * 4000 + "'.replace('', '" + "b" * 4000 + "').replace('', '" + "c" * 4000 + "') == ''",
        "quantity('1E3000000000').isInteger()",
    ],
    ids=["lists that double", "texts that grow", "exponent"],
)
def test_what_would_take_the_memory_or_the_time_of_the_process_is_an_error(expression: str) -> None:
    with pytest.raises(EvaluationError):
        compile_selector(expression).evaluate(DeviceInput("d"))


def test_a_pattern_takes_time_in_proportion_to_the_text() -> None:
    expression = "'" + "a" * 5000 + "'.matches('(a|aa)+$') && !'" + "a" * 3000 + "b'.matches('(a*)*c')"

    assert compile_selector(expression).evaluate(DeviceInput("d"))
