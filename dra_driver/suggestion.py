"""What somebody probably meant who misspelt a word."""

import difflib
from collections.abc import Iterable
from typing import Final

_WORD_MAX: Final = 64  # comparing takes long for long words, and nobody means a short one by them


def explain_meant(word: str, known: Iterable[str]) -> str:
    """Say `; did you mean 'model'?`, or nothing if no known word is near. Case does not matter."""
    by_lower = {each.lower(): each for each in known}
    close = difflib.get_close_matches(word[:_WORD_MAX].lower(), by_lower, n=1)
    return f"; did you mean {by_lower[close[0]]!r}?" if close else ""
