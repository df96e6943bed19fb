"""The words of an expression.

The grammar is cel-python's with what Kubernetes accepts besides: back-quoted fields, raw and triple-quoted
strings of both kinds, all escapes of the language and nothing else. Every pattern runs in linear time.
"""

import re
from dataclasses import dataclass
from typing import Final

_ESCAPE: Final = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_TRIPLE: Final = rf'"""(?:[^\\]|{_ESCAPE})*?"""' + "|" + rf"'''(?:[^\\]|{_ESCAPE})*?'''"
_SINGLE: Final = rf'"(?:[^\\"\n\r]|{_ESCAPE})*"' + "|" + rf"'(?:[^\\'\n\r]|{_ESCAPE})*'"
_RAW: Final = r'[rR](?:"""(?s:.)*?"""|' + r"'''(?s:.)*?'''|" + r'"[^"\n\r]*"|' + r"'[^'\n\r]*')"
_STRING: Final = f"{_RAW}|{_TRIPLE}|{_SINGLE}"
_EXPONENT: Final = r"[eE][+-]?[0-9]+"

_TOKEN: Final = re.compile(
    "|".join(
        (
            r"(?P<space>(?:[\t \r\n\f]+|//[^\n]*)+)",
            rf"(?P<bytes>[bB](?:{_STRING}))",
            rf"(?P<string>{_STRING})",
            rf"(?P<double>[0-9]+\.[0-9]+(?:{_EXPONENT})?|[0-9]+{_EXPONENT}|\.[0-9]+(?:{_EXPONENT})?)",
            r"(?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])",
            r"(?P<int>0x[0-9a-fA-F]+|[0-9]+)",
            r"(?P<name>[_a-zA-Z][_a-zA-Z0-9]*)",
            r"(?P<quoted>`[a-zA-Z0-9_.\-/ ]+`)",
            r"(?P<operator>==|!=|<=|>=|&&|\|\||[<>\[\]{}().,\-!?:+*/%])",
        )
    )
)
KEYWORDS: Final = frozenset(("in", "true", "false", "null"))
RESERVED: Final = KEYWORDS | {
    *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package"),
    *("namespace", "return", "var", "void", "while"),
}


@dataclass(frozen=True, slots=True)
class Token:
    """A word. `kind` is that of the pattern, or the text itself for operators and keywords; `end` at the end."""

    kind: str
    text: str
    offset: int


class LexicalError(Exception):
    """A character that begins no word. The first argument is its offset."""


def read_tokens(text: str) -> list[Token]:
    """Split an expression into words; blanks and comments go. Raises LexicalError."""
    tokens = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise LexicalError(position)
        kind = match.lastgroup or ""
        if kind != "space":
            word = match[0]
            if kind == "operator" or (kind == "name" and word in KEYWORDS):
                kind = word
            tokens.append(Token(kind, word, position))
        position = match.end()
    tokens.append(Token("end", "", len(text)))
    return tokens
