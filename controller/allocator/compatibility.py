"""Compatibility groups: which devices may draw from one counter set together (KEP-5963)."""

from typing import TypeAlias

Groups: TypeAlias = frozenset[str]
"""What the devices of a counter set have in common. Empty: they name no groups; None: there is no device yet."""


def admit(common: Groups | None, groups: Groups) -> Groups | None:
    """Give what is common once a device with `groups` has joined, None if it may not.

    Devices without groups go only with others without.
    """
    if common is None:
        return groups
    if not common or not groups:
        return common if not common and not groups else None
    return common & groups or None
