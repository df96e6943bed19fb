"""matchAttribute and distinctAttribute while devices are added and taken away again.

Both are monotonic: what a set of devices violates, every larger set violates.
"""

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from dra_driver.api.resource_v1 import DeviceAttribute

Value: TypeAlias = tuple[str, object]
"""Type of an attribute, and its value; a frozenset where lists are on."""

UNCOMPARABLE: Final[Value] = ("", None)
"""A list while lists are off, or no value at all: may only be the first of its set."""


def attribute_value(attribute: DeviceAttribute | None, *, lists: bool) -> Value | None:
    """Give what constraints compare, None where a device without the attribute stands."""
    if attribute is None:
        return None
    if not lists:
        return _scalar(attribute) or UNCOMPARABLE
    for type_, values in (
        ("int", attribute.ints),
        ("bool", attribute.bools),
        ("string", attribute.strings),
        ("version", attribute.versions),
    ):
        if values:
            return (type_, frozenset(values))
    scalar = _scalar(attribute)
    return None if scalar is None else (scalar[0], frozenset((scalar[1],)))


def _scalar(attribute: DeviceAttribute) -> Value | None:
    if attribute.string is not None:
        return ("string", attribute.string)
    if attribute.int is not None:
        return ("int", attribute.int)
    if attribute.bool is not None:
        return ("bool", attribute.bool)
    if attribute.version is not None:
        return ("version", attribute.version)
    return None


@dataclass(slots=True, eq=False)
class Constraint:
    """One constraint of a claim, with the values of the devices that it holds now.

    Of matchAttribute `values` holds what is common so far, one entry a device; of distinctAttribute each value.
    """

    index: int
    attribute: str
    is_match: bool
    requests: frozenset[str]
    lists: bool
    values: list[Value] = field(default_factory=list)

    def covers(self, request: str, subrequest: str) -> bool:
        """Tell whether it is about the request; a subrequest is covered by its own and by its parent's name."""
        if not self.requests or request in self.requests:
            return True
        return bool(subrequest) and f"{request}/{subrequest}" in self.requests

    def add(self, value: Value | None) -> bool:
        """Add a device, unless it violates the constraint."""
        if value is None:
            return False
        kept = self._narrow(value) if self.is_match else self._distinguish(value)
        if kept is None:
            return False
        self.values.append(kept)
        return True

    def remove(self) -> None:
        """Take away the device that was added last."""
        self.values.pop()

    def _narrow(self, value: Value) -> Value | None:
        if not self.values:
            return value
        common = self.values[-1]
        if value is UNCOMPARABLE or common[0] != value[0]:
            return None
        if not self.lists:
            return common if common[1] == value[1] else None
        both = common[1] & value[1]  # type: ignore[operator]
        return (value[0], both) if both else None

    def _distinguish(self, value: Value) -> Value | None:
        if value is UNCOMPARABLE:
            return None if self.values else value
        if not self.lists:
            return None if value in self.values else value
        for type_, held in self.values:
            if type_ == value[0] and held & value[1]:  # type: ignore[operator]
                return None
        return value
