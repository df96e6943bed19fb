"""What operators say of single devices by a flag that is given once a device: `<name, UUID or serial>=<word>`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, TypeVar

from dra_driver.devices.model import Device
from dra_driver.errors import SettingError
from dra_driver.suggestion import explain_meant

_WordT = TypeVar("_WordT", bound=StrEnum)

_LISTED_MAX: Final = 8
"""So many devices of a node are named to somebody who named none of them."""


def parse_overrides(texts: Iterable[str], words: type[_WordT], *, flag: str, kind: str) -> dict[str, _WordT]:
    """Read what `flag` says: a word of that kind ("mode") for each device, as `<device name, UUID or serial>=<word>`.

    Raises SettingError that names everything that is wrong; the same device may be named twice if it says the same.
    """
    known = {each.value: each for each in words}
    devices: dict[str, _WordT] = {}
    problems: list[str] = []
    for text in texts:
        device, _, value = text.rpartition("=")
        word = known.get(value)
        if not device or "=" in device:
            problems.append(f"{text!r}: want <device name, UUID or serial>=<{kind}>")
        elif word is None:
            wanted = " or ".join(map(repr, known))
            problems.append(f"{text!r}: unknown {kind} {value!r}, want {wanted}{explain_meant(value, known)}")
        elif devices.setdefault(device, word) is not word:
            problems.append(f"{text!r}: {device!r} is {devices[device]} already, want one {kind} a device")
    if problems:
        raise SettingError("; ".join(f"{flag}: {problem}" for problem in problems))
    return devices


def find_override(device: Device, overrides: Mapping[str, _WordT]) -> _WordT | None:
    """Return what is said of a device; its name counts before its UUID, that before its serial number."""
    return next((overrides[key] for key in _keys(device) if key in overrides), None)


def explain_overrides(overrides: Mapping[str, _WordT], devices: Sequence[Device], *, flag: str) -> Iterator[str]:
    """Say which overrides come to nothing: those for devices that are not there, and those that another goes over."""
    for key, word in overrides.items():
        device = next((device for device in devices if key in _keys(device)), None)
        if device is None:
            known = [each for device in devices for each in _keys(device)]
            yield f"{flag}: {key!r}: no device of this node, want {_list(devices)}{explain_meant(key, known)}"
        elif (first := next(each for each in _keys(device) if each in overrides)) != key:
            yield f"{flag}: '{key}={word}': has no effect, since '{first}={overrides[first]}' is of the same device"


def _keys(device: Device) -> tuple[str, ...]:
    return tuple(key for key in (device.name, device.uuid, device.serial) if key is not None)


def _list(devices: Sequence[Device]) -> str:
    names = [f"{device.name} ({device.uuid})" if device.uuid else device.name for device in devices[:_LISTED_MAX]]
    more = f" or one of {len(devices) - _LISTED_MAX} more" if len(devices) > _LISTED_MAX else ""
    return f"{' or '.join(names)}{more}"
