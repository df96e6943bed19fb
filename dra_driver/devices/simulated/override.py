"""What happens to a simulated node while it runs: a YAML file that tests and operators edit.

unhealthy: {3: {reason: xid-79, message: fell off the bus}}   # by position in the profile, or by device name
removed: [5]
added: 2                                                       # more of the profile's last group, or a list of groups
partitions: {0: [{profile: 3g.40gb, start: 4}]}                # an administrator's, never removed by the driver
"""

from collections.abc import Iterator

import msgspec

from dra_driver.api.name import validate_label_value
from dra_driver.devices.simulated.document import Path, Problem, Written, decode_document, parse_document
from dra_driver.devices.simulated.profile import DeviceGroup, Profile, validate_groups


class Unhealthy(Written, frozen=True, kw_only=True):
    """Why a device is unwell."""

    reason: str = "simulated"
    message: str = "made unhealthy by the overrides file"


class MadePartition(Written, frozen=True, kw_only=True):
    """A partition that an administrator made."""

    profile: str
    start: int


class Overrides(Written, frozen=True, kw_only=True):
    """Changes to a node. Devices are named by position in the profile (0 is the first) or by device name."""

    unhealthy: dict[int | str, Unhealthy] = msgspec.field(default_factory=dict)
    removed: tuple[int | str, ...] = ()
    added: int | tuple[DeviceGroup, ...] = ()
    partitions: dict[int | str, tuple[MadePartition, ...]] = msgspec.field(default_factory=dict)

    def groups(self, profile: Profile) -> tuple[DeviceGroup, ...]:
        """The added devices as groups."""
        match self.added:
            case tuple():
                return self.added
            case int() if self.added > 0 and profile.devices:
                like = profile.devices[-1]
                return (msgspec.structs.replace(like, count=self.added, slots=()),)
            case _:
                return ()


def parse_overrides(text: str, subject: str, profile: Profile) -> Overrides:
    """Read overrides; an empty file changes nothing. Raises InvalidError with everything that is wrong."""
    document = parse_document(text, subject)
    if document.value is None:
        return Overrides()
    overrides = decode_document(document, Overrides)
    problems = list(_validate(overrides, profile))
    if problems:
        raise document.build_error(problems)
    return overrides


def _validate(overrides: Overrides, profile: Profile) -> Iterator[Problem]:
    for device, unhealthy in overrides.unhealthy.items():
        path: Path = ("unhealthy", str(device), "reason")
        if not unhealthy.reason or validate_label_value(unhealthy.reason):
            yield Problem(path, f"got {unhealthy.reason!r}, want a label value such as 'xid-79'")
    if isinstance(overrides.added, int) and overrides.added < 0:
        yield Problem(("added",), f"got {overrides.added}, want at least 0")
    for problem in validate_groups((*profile.devices, *overrides.groups(profile)), ()):
        yield Problem(_added_path(problem.path, len(profile.devices)), problem.text)


def _added_path(path: Path, before: int) -> Path:
    match path:
        case (int() as index, *rest) if index >= before:
            return ("added", index - before, *rest)
        case _:
            return ("added",)
