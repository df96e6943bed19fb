"""Semantic versions (semver.org 2.0.0), and making them from what vendors' drivers report.

One attribute that is not a semantic version makes the API server refuse the whole slice.
"""

import re
from dataclasses import dataclass
from typing import Final

from dra_driver.api.name import quote

SEMVER_MAX: Final = 64
_UINT64_MAX: Final = 2**64 - 1

_NUMBER: Final = r"(?:0|[1-9][0-9]*)"
_PRERELEASE: Final = rf"(?:{_NUMBER}|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD: Final = r"[0-9a-zA-Z-]+"
_SEMVER: Final = re.compile(
    rf"(?P<major>{_NUMBER})\.(?P<minor>{_NUMBER})\.(?P<patch>{_NUMBER})"
    rf"(?:-(?P<prerelease>{_PRERELEASE}(?:\.{_PRERELEASE})*))?"
    rf"(?:\+(?P<build>{_BUILD}(?:\.{_BUILD})*))?"
)
_NUMBERS: Final = re.compile(r"[vV]?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?(?:\.[0-9]+)*")
# Vendors write 24.1.rc3 and 8.0.0.alpha002 for what comes before the release.
_PRERELEASE_WORD: Final = re.compile(
    r"[-._ ]?((?:rc|alpha|beta|pre|preview|dev)(?:[-.]?[0-9]+)?)(?![0-9a-zA-Z])", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Semver:
    """A semantic version. Equality looks at all of it; `compare_semver` at what decides precedence."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[str, ...] = ()
    build: tuple[str, ...] = ()

    def __str__(self) -> str:
        prerelease = "-" + ".".join(self.prerelease) if self.prerelease else ""
        build = "+" + ".".join(self.build) if self.build else ""
        return f"{self.major}.{self.minor}.{self.patch}{prerelease}{build}"


def parse_semver(text: str) -> Semver:
    """Parse `text`. Raises ValueError; numbers beyond 64 bits are refused, since selectors fail on them."""
    match = _SEMVER.fullmatch(text)
    if match is None:
        raise ValueError(f"{quote(text)} is not a semantic version, want one like '1.2.3'")
    prerelease = tuple(match["prerelease"].split(".")) if match["prerelease"] else ()
    build = tuple(match["build"].split(".")) if match["build"] else ()
    numbers = [match["major"], match["minor"], match["patch"], *filter(_is_number, prerelease)]
    if any(_exceeds_uint64(number) for number in numbers):
        raise ValueError(f"{quote(text)} has a number beyond 64 bits, want at most {_UINT64_MAX}")
    return Semver(int(match["major"]), int(match["minor"]), int(match["patch"]), prerelease, build)


def validate_semver(text: str) -> tuple[str, ...]:
    """Check a version attribute: semver 2.0.0 of at most 64 bytes."""
    if len(text) > SEMVER_MAX:
        return (f"{quote(text)} has {len(text)} characters, want at most {SEMVER_MAX}",)
    try:
        parse_semver(text)
    except ValueError as error:
        return (str(error),)
    return ()


def compare_semver(left: Semver, right: Semver) -> int:
    """Give -1, 0 or 1 by precedence (semver.org, section 11); build metadata does not count."""
    left_key, right_key = _precedence(left), _precedence(right)
    return (left_key > right_key) - (left_key < right_key)


def mend_semver(text: str) -> str | None:
    """Make a semantic version of what a vendor's driver reports; None if it does not begin with a number.

    A valid one stays as it is. Otherwise: leading zeros go, missing parts are 0, parts after the third go,
    a word for a pre-release stays, all else goes: `550.127.08` to `550.127.8`, `24.1.rc3` to `24.1.0-rc3`.
    """
    text = text.strip()
    if not validate_semver(text):
        return text
    match = _NUMBERS.match(text)
    if match is None:
        return None
    core = ".".join(part.lstrip("0") or "0" for part in match.groups("0"))
    candidates = [core]
    if word := _PRERELEASE_WORD.match(text, match.end()):
        candidates.insert(0, f"{core}-{word[1]}")
    return next((candidate for candidate in candidates if not validate_semver(candidate)), None)


def _is_number(identifier: str) -> bool:
    return identifier.isascii() and identifier.isdigit()


def _exceeds_uint64(number: str) -> bool:
    return len(number) > len(str(_UINT64_MAX)) or int(number) > _UINT64_MAX


def _precedence(version: Semver) -> tuple[object, ...]:
    """Give a sort key: a version without pre-release comes after those with one, numbers come before words."""
    identifiers = tuple((0, int(part), "") if _is_number(part) else (1, 0, part) for part in version.prerelease)
    return (version.major, version.minor, version.patch, not version.prerelease, identifiers)
