"""What people write who come from another language, and what to write instead."""

from typing import Final

_CONDITIONAL: Final = "want condition ? value : other"
_OPERATORS: Final = {"and": "&&", "or": "||", "not": "!", "is": "==", "like": ".matches(…)", "mod": "%"}
_NAMES: Final = {"True": "true", "False": "false", "None": "null", "nil": "null", "TRUE": "true", "FALSE": "false"}
_FUNCTIONS: Final = {
    **dict.fromkeys(("length", "len", "count"), "size"),
    **dict.fromkeys(("toLower", "toLowerCase", "lower"), "lowerAscii"),
    **dict.fromkeys(("toUpper", "toUpperCase", "upper"), "upperAscii"),
    **dict.fromkeys(("strip", "trimSpace"), "trim"),
    **dict.fromkeys(("any", "some"), "exists"),
    **dict.fromkeys(("every", "forall"), "all"),
    **dict.fromkeys(("hasPrefix", "startswith"), "startsWith"),
    **dict.fromkeys(("hasSuffix", "endswith"), "endsWith"),
    **dict.fromkeys(("match", "regex", "matchesRegex"), "matches"),
    **dict.fromkeys(("str", "toString"), "string"),
    **dict.fromkeys(("Quantity", "resource"), "quantity"),
}
_MACROS: Final = {
    **dict.fromkeys(("all", "exists", "exists_one", "filter", "map"), "list.{}(x, expression with x)"),
    **dict.fromkeys(("existsOne", "transformList", "transformMap"), "list.{}(index, x, expression with both)"),
    "has": "has(device.attributes[…].name)",
}
_UNITS: Final = frozenset(
    ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "k", "K", "M", "G", "T", "P", "E", "m", "GB", "MB", "GiB")
)
_QUOTES: Final = frozenset("\u201c\u201d\u201e\u2018\u2019\xab\xbb")


def advise_word(word: str, before: str) -> str:
    """Say what to write instead of a word that stands where an operator does. `before` is what stands before it."""
    if word in _OPERATORS:
        return f"want {_OPERATORS[word]!r}"
    if word in ("if", "then", "else"):
        return _CONDITIONAL
    if word in _UNITS and before.isdigit():
        return f'write quantity("{before}{word}")'
    return ""


def advise_pair(one: str, other: str) -> str:
    """Say what to write instead of two words that stand side by side."""
    return "want '!='" if (one, other) == ("<", ">") else ""


def advise_name(name: str) -> str:
    """Say what to write instead of a name that is unknown."""
    if name in _NAMES:
        return f"did you mean {_NAMES[name]!r}?"
    return f'if it is a text, write "{name}"'


def advise_function(name: str) -> str:
    """Say what to write instead of a function that is unknown; nothing if that is not known."""
    if name in _FUNCTIONS:
        return f"did you mean {_FUNCTIONS[name]!r}?"
    return f"want {_MACROS[name].format(name)}" if name in _MACROS else ""


def explain_character(text: str, offset: int) -> tuple[str, str]:
    """Say of a character that begins no word what was found, and what to write."""
    character = text[offset]
    if character in "\"'":
        return (
            "string without an end, or with an unknown escape",
            "want a closing quote and escapes such as '\\n'; a pattern is best written raw, as in r'\\d+'",
        )
    if text[offset : offset + 2] == "=>":
        return "'=>'", "want a comma: list.all(x, expression with x)"
    if character in _QUOTES:
        return f"{character!r}", "want a straight quote, \" or '"
    return f"{character!r}", _CHARACTERS.get(character, "which begins nothing in an expression")


_CHARACTERS: Final = {
    "=": "want '=='",
    "&": "want '&&'",
    "|": "want '||'",
    "#": "want '//' before a comment",
    ";": "want a single expression, without an end mark",
}
