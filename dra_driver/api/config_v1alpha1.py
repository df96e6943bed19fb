"""The opaque configuration of classes and claims: kind `DeviceConfig` of `resource.dra-driver.io/v1alpha1`.

    apiVersion: resource.dra-driver.io/v1alpha1
    kind: DeviceConfig
    sharing:
      strategy: Shim    # or None
      policy: Force     # or Burst

A class and a claim may each set a part: configurations are merged field by field, the claim's win,
and what nobody set gets its default last.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal, TypeVar

import msgspec

from dra_driver.api.meta_v1 import Wire, constant
from dra_driver.api.name import quote
from dra_driver.errors import FieldError, InvalidError
from dra_driver.suggestion import explain_meant

API_VERSION: Final = "resource.dra-driver.io/v1alpha1"
KIND: Final = "DeviceConfig"
SIZE_MAX: Final = 10 * 1024


class Strategy(StrEnum):
    """Who holds a share to its limits: the shim in the container, or nobody (the share is accounted all the same)."""

    SHIM = "Shim"
    NONE = "None"


class Policy(StrEnum):
    """When the shim limits compute: always, or only while somebody else uses the device."""

    FORCE = "Force"
    BURST = "Burst"


class Sharing(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a share of a device is held to what was allocated. None: not said."""

    strategy: Strategy | None = None
    policy: Policy | None = None


class DeviceConfig(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a class or a claim says about its devices."""

    api_version: Literal["resource.dra-driver.io/v1alpha1"] = constant(API_VERSION)
    kind: Literal["DeviceConfig"] = constant(KIND)
    sharing: Sharing = msgspec.field(default_factory=Sharing)


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveConfig:
    """What holds in the end: every field has a value."""

    strategy: Strategy
    policy: Policy


def parse_device_config(parameters: object, *, path: str = "parameters") -> DeviceConfig:
    """Read the decoded JSON of an opaque configuration, strictly.

    Raises InvalidError with every field error; paths begin with `path`. At most 10 KiB, as in the API.
    """
    if problem := _problem(parameters):
        raise InvalidError(KIND, [FieldError(path, problem)])
    reader = _Reader()
    fields = reader.read_object(parameters, path, ("apiVersion", "kind", "sharing"))
    reader.read_constant(fields, "apiVersion", path, API_VERSION)
    reader.read_constant(fields, "kind", path, KIND)
    sharing = Sharing()
    if "sharing" in fields:
        where = f"{path}.sharing"
        given = reader.read_object(fields["sharing"], where, ("strategy", "policy"))
        sharing = Sharing(
            strategy=reader.read_choice(given, "strategy", where, Strategy),
            policy=reader.read_choice(given, "policy", where, Policy),
        )
    if reader.errors:
        raise InvalidError(KIND, reader.errors)
    return DeviceConfig(sharing=sharing)


def merge_device_configs(configs: Sequence[DeviceConfig]) -> DeviceConfig:
    """Lay configurations over each other, field by field: the last one that sets a field wins.

    Order is that of `status.allocation.devices.config`: those of the class come before those of the claim.
    """
    merged = Sharing()
    for config in configs:
        merged = Sharing(
            strategy=config.sharing.strategy or merged.strategy,
            policy=config.sharing.policy or merged.policy,
        )
    return DeviceConfig(sharing=merged)


def default_device_config(config: DeviceConfig) -> EffectiveConfig:
    """Fill in what nobody set: the shim holds the share to its limits, always."""
    return EffectiveConfig(
        strategy=config.sharing.strategy or Strategy.SHIM,
        policy=config.sharing.policy or Policy.FORCE,
    )


def explain_choice(word: str, choices: Sequence[str]) -> str:
    """Say what is wanted instead of `word`: `want 'Shim' or 'None'; did you mean 'Shim'?`."""
    *head, last = map(repr, choices)
    want = f"want {', '.join(head)} or {last}" if head else f"want {last}"
    return want + explain_meant(word, choices)


_Choice = TypeVar("_Choice", bound=StrEnum)
_PLAIN_KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}")


class _Reader:
    """Reads fields and keeps every error."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []

    def read_object(self, value: object, path: str, known: Sequence[str]) -> Mapping[str, object]:
        if not isinstance(value, dict):
            self.errors.append(FieldError(path, f"is {_type_name(value)}, want an object"))
            return {}
        for key in value:
            if key not in known:
                where = f"{path}.{key}" if _PLAIN_KEY.fullmatch(key) else f"{path}[{quote(key)}]"
                self.errors.append(FieldError(where, f"unknown field, {explain_choice(key, known)}"))
        return value

    def read_constant(self, fields: Mapping[str, object], name: str, path: str, want: str) -> None:
        value = fields.get(name)
        if value != want:
            found = "is missing" if name not in fields else f"{_describe(value)} is not known"
            self.errors.append(FieldError(f"{path}.{name}", f"{found}, want {want!r}"))

    def read_choice(self, fields: Mapping[str, object], name: str, path: str, choices: type[_Choice]) -> _Choice | None:
        if name not in fields:
            return None
        value, known = fields[name], [choice.value for choice in choices]
        if isinstance(value, str) and value in known:
            return choices(value)
        if isinstance(value, str):
            problem = f"unknown {name} {quote(value)}, {explain_choice(value, known)}"
        else:
            problem = f"is {_type_name(value)}, {explain_choice('', known)}"
        self.errors.append(FieldError(f"{path}.{name}", problem))
        return None


def _problem(parameters: object) -> str | None:
    """Say why the fields are not even looked at."""
    if not isinstance(parameters, dict):
        return f"is {_type_name(parameters)}, want an object"
    try:
        size = len(msgspec.json.encode(parameters))
    except RecursionError:
        return "is nested too deeply, want an object as documented"
    return f"has {size} bytes, want at most {SIZE_MAX}" if size > SIZE_MAX else None


def _describe(value: object) -> str:
    return quote(value) if isinstance(value, str) else _type_name(value)


def _type_name(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a bool"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case dict():
            return "an object"
        case _:
            return "a list"
