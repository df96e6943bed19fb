"""Random texts that are, or nearly are, quantities, semantic versions and names."""

from random import Random

from tests.referee.process import Question

_SUFFIXES = (
    "",
    "",
    "n",
    "u",
    "m",
    "k",
    "M",
    "G",
    "T",
    "P",
    "E",
    "Ki",
    "Mi",
    "Gi",
    "Ti",
    "Pi",
    "Ei",
    "e3",
    "E-2",
    "e+6",
)
_BAD_SUFFIXES = ("K", "ki", "GB", "Gib", "e", "e+", "E1.5", "e99", " Gi", "i", "mm", "B")
_ODD = (
    "",
    "+",
    "-",
    ".",
    "1.",
    ".5",
    "+-1",
    "1..2",
    "0x10",
    "1_0",
    " 1",
    "1 ",
    "\u0663",
    "1,5",
    "NaN",
    "inf",
    "1e",
    "\n1",
)
_EDGES = (2**63 - 1, 2**63, 2**64, 10**15, 10**18, 10**19, 1023, 1024, 1025, 1000, 999)
_ODD_NUMBERS = ("10", "01", "00", "", "-1", "1a", "9223372036854775808", "18446744073709551615", "18446744073709551616")
_IDENTIFIERS = ("0", "1", "2", "10", "rc", "rc1", "alpha", "x-y", "-", "1a")
_ODD_IDENTIFIERS = ("01", "", "a_b", "é", "+", "18446744073709551615", "18446744073709551616")
_LETTERS = "abcxyz0189-_.AZ"
_NAME_ODDS = ("é", " ", "/", "..", "--", "_", "\n", "\x00", "kubernetes.io/", "requests.", "example.com/")


def quantity_question(random: Random) -> Question:
    """Draw a question about a quantity."""
    return {"op": "quantity", "text": _quantity(random)}


def semver_question(random: Random) -> Question:
    """Draw a question about a version, or about two."""
    question = {"op": "semver", "text": _semver(random)}
    return question | {"other": _semver(random)} if random.random() < 0.5 else question


def name_question(random: Random) -> Question:
    """Draw a question about a name."""
    return {"op": "name", "text": _name(random)}


def _quantity(random: Random) -> str:
    roll = random.random()
    if roll < 0.04:
        return random.choice(_ODD)
    text = random.choice(("", "", "", "-", "+")) + _number(random)
    return text + random.choice(_BAD_SUFFIXES if roll < 0.1 else _SUFFIXES)


def _number(random: Random) -> str:
    if random.random() < 0.15:
        whole = str(random.choice(_EDGES) + random.randint(-1, 1))
    else:
        whole = _digits(random, random.choice((0, 1, 1, 2, 3, 4, 6, 10, 15, 18, 19, 24)))
    if random.random() < 0.35:
        return f"{whole}.{_digits(random, random.choice((0, 1, 2, 3, 6, 9, 10, 12)))}"
    return whole


def _digits(random: Random, count: int) -> str:
    # Runs of zeros are what canonical forms turn on.
    return "".join(random.choice("0005123456789") for _ in range(count))


def _semver(random: Random) -> str:
    numbers = [random.choice("0123") if random.random() < 0.9 else random.choice(_ODD_NUMBERS) for _ in range(3)]
    if random.random() < 0.05:
        numbers = random.choice((numbers[:1], numbers[:2], [*numbers, "4"]))
    text = (random.choice("v =") if random.random() < 0.04 else "") + ".".join(numbers)
    for mark in ("-", "+"):
        if random.random() < 0.4:
            text += mark + ".".join(_identifier(random) for _ in range(random.randint(1, 3)))
    return text


def _identifier(random: Random) -> str:
    return random.choice(_IDENTIFIERS if random.random() < 0.9 else _ODD_IDENTIFIERS)


def _name(random: Random) -> str:
    length = random.choice((0, 1, 2, 3, 5, 8, 31, 32, 33, 62, 63, 64))
    parts = [_word(random, random.choice((1, 2, 5, length))) for _ in range(random.choice((1, 1, 2, 3, 5)))]
    text = random.choice((".", ".", "/")).join(parts)
    if random.random() < 0.4:
        text += "/" + _word(random, length)
    if random.random() < 0.15:
        place = random.randint(0, len(text))
        text = text[:place] + random.choice(_NAME_ODDS) + text[place:]
    return text


def _word(random: Random, length: int) -> str:
    letters = _LETTERS if random.random() < 0.3 else _LETTERS[:8]
    return "".join(random.choice(letters) for _ in range(length))
