"""The opaque configuration of classes and claims: kind `DeviceConfig` of `resource.dra-driver.io/v1alpha1`.

    apiVersion: resource.dra-driver.io/v1alpha1
    kind: DeviceConfig
    sharing:
      strategy: Shim      # or TimeSlicing, MPS, None: demands it; left out, the device's own is taken
      policy: Force       # Shim: or Burst
      timeSlicing:
        interval: Default # or Short, Medium, Long
      mps:
        defaultActiveThreadPercentage: 50
        defaultPinnedDeviceMemoryLimit: 8Gi

A class and a claim may each set a part: configurations are merged field by field, the claim's win,
and what nobody set gets its default last. What is set for another strategy than the one at work has no effect, so that
one claim fits nodes of several strategies; beside a strategy that the same configuration demands it is a mistake.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal, TypeVar

import msgspec

from dra_driver.api.meta_v1 import Wire, constant
from dra_driver.api.name import quote
from dra_driver.api.quantity import Quantity
from dra_driver.errors import FieldError, InvalidError
from dra_driver.suggestion import explain_meant

API_VERSION: Final = "resource.dra-driver.io/v1alpha1"
KIND: Final = "DeviceConfig"
SIZE_MAX: Final = 10 * 1024

FULL_PERCENTAGE: Final = 100
_MEMORY_LIMIT_MIN: Final = 1 << 20
_MEMORY_LIMIT_MAX: Final = 2**63 - 1


class Strategy(StrEnum):
    """How the shares of a device get along: a device has one at a time.

    The shim in the container holds a share to its limits; the device gives its shares turns, which limits nothing;
    a control daemon (MPS) lets them compute at once, each with its part; or nothing at all. All are accounted.
    """

    SHIM = "Shim"
    TIME_SLICING = "TimeSlicing"
    MPS = "MPS"
    NONE = "None"


class Interval(StrEnum):
    """How long a turn is: the device's own choice, or one of the three lengths that NVIDIA's driver knows."""

    DEFAULT = "Default"
    SHORT = "Short"
    MEDIUM = "Medium"
    LONG = "Long"


class Policy(StrEnum):
    """When the shim limits compute: always, or only while somebody else uses the device."""

    FORCE = "Force"
    BURST = "Burst"


class TimeSlicing(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the strategy TimeSlicing works. None: not said."""

    interval: Interval | None = None


class Mps(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the strategy MPS leaves a share at most, besides what was allocated: percent and bytes. None: not said."""

    default_active_thread_percentage: int | None = None
    default_pinned_device_memory_limit: Quantity | None = None


class Sharing(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a share of a device is held to what was allocated. None: not said."""

    strategy: Strategy | None = None
    policy: Policy | None = None
    time_slicing: TimeSlicing = msgspec.field(default_factory=TimeSlicing)
    mps: Mps = msgspec.field(default_factory=Mps)


class DeviceConfig(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a class or a claim says about its devices."""

    api_version: Literal["resource.dra-driver.io/v1alpha1"] = constant(API_VERSION)
    kind: Literal["DeviceConfig"] = constant(KIND)
    sharing: Sharing = msgspec.field(default_factory=Sharing)


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveConfig:
    """What holds in the end. `strategy` and `interval` are what is demanded, None what is left to the device.

    Limits of MPS are in percent and bytes, None is none.
    """

    strategy: Strategy | None = None
    policy: Policy = Policy.FORCE
    interval: Interval | None = None
    thread_percentage: int | None = None
    memory_limit: int | None = None


_THREADS: Final = "defaultActiveThreadPercentage"
_MEMORY: Final = "defaultPinnedDeviceMemoryLimit"
_OWNERS: Final = {"timeSlicing": Strategy.TIME_SLICING, "mps": Strategy.MPS}
"""The strategy that a field is for."""


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
    sharing = _read_sharing(reader, fields["sharing"], f"{path}.sharing") if "sharing" in fields else Sharing()
    if reader.errors:
        raise InvalidError(KIND, reader.errors)
    return DeviceConfig(sharing=sharing)


def _read_sharing(reader: "_Reader", value: object, path: str) -> Sharing:
    given = reader.read_object(value, path, ("strategy", "policy", "timeSlicing", "mps"))
    strategy = reader.read_choice(given, "strategy", path, Strategy)
    policy = reader.read_choice(given, "policy", path, Policy)
    time_slicing, mps = TimeSlicing(), Mps()
    if "timeSlicing" in given:
        where = f"{path}.timeSlicing"
        inner = reader.read_object(given["timeSlicing"], where, ("interval",))
        time_slicing = TimeSlicing(interval=reader.read_choice(inner, "interval", where, Interval))
    if "mps" in given:
        where = f"{path}.mps"
        inner = reader.read_object(given["mps"], where, (_THREADS, _MEMORY))
        mps = Mps(
            default_active_thread_percentage=reader.read_percentage(inner, _THREADS, where),
            default_pinned_device_memory_limit=reader.read_memory(inner, _MEMORY, where),
        )
    for field, owner in _OWNERS.items():
        if field in given and strategy not in (None, owner):
            problem = f"is for strategy {owner.value!r}, want no strategy, that one, or no {field}"
            reader.errors.append(FieldError(f"{path}.{field}", problem))
    return Sharing(strategy=strategy, policy=policy, time_slicing=time_slicing, mps=mps)


def merge_device_configs(configs: Sequence[DeviceConfig]) -> DeviceConfig:
    """Lay configurations over each other, field by field: the last one that sets a field wins.

    Order is that of `status.allocation.devices.config`: those of the class come before those of the claim.
    """
    merged = Sharing()
    for config in configs:
        later = config.sharing
        threads = later.mps.default_active_thread_percentage
        memory = later.mps.default_pinned_device_memory_limit
        merged = Sharing(
            strategy=later.strategy or merged.strategy,
            policy=later.policy or merged.policy,
            time_slicing=TimeSlicing(interval=later.time_slicing.interval or merged.time_slicing.interval),
            mps=Mps(
                default_active_thread_percentage=threads or merged.mps.default_active_thread_percentage,
                default_pinned_device_memory_limit=memory or merged.mps.default_pinned_device_memory_limit,
            ),
        )
    return DeviceConfig(sharing=merged)


def default_device_config(config: DeviceConfig) -> EffectiveConfig:
    """Fill in what nobody set: the device's own strategy; the shim, if it is that, limits always."""
    sharing = config.sharing
    memory = sharing.mps.default_pinned_device_memory_limit
    return EffectiveConfig(
        strategy=sharing.strategy,
        policy=sharing.policy or Policy.FORCE,
        interval=sharing.time_slicing.interval,
        thread_percentage=sharing.mps.default_active_thread_percentage,
        memory_limit=memory.value() if memory is not None else None,
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

    def read_percentage(self, fields: Mapping[str, object], name: str, path: str) -> int | None:
        if name not in fields:
            return None
        value = fields[name]
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= FULL_PERCENTAGE:
            return value
        whole = isinstance(value, int) and not isinstance(value, bool)
        found = quote(str(value)) if whole else _type_name(value)
        self.errors.append(FieldError(f"{path}.{name}", f"is {found}, want a whole number from 1 to {FULL_PERCENTAGE}"))
        return None

    def read_memory(self, fields: Mapping[str, object], name: str, path: str) -> Quantity | None:
        if name not in fields:
            return None
        value = fields[name]
        problem = f"is {quote(value) if isinstance(value, str) else _type_name(value)}, want a quantity such as '8Gi'"
        if isinstance(value, str):
            try:
                quantity = Quantity.parse(value)
            except ValueError:
                pass
            else:
                if _MEMORY_LIMIT_MIN <= quantity.value() <= _MEMORY_LIMIT_MAX:
                    return quantity
                problem = f"is {quote(value)}, want at least 1Mi and less than 8Ei"
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
