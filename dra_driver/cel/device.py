"""A device, as expressions see it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from dra_driver.api.resource_v1 import DeviceAttribute, DeviceCapacity
from dra_driver.api.semver import parse_semver
from dra_driver.cel import environment
from dra_driver.cel.value import DeviceMap, Value

_NO_ATTRIBUTES: Final[Mapping[str, DeviceAttribute]] = {}
_NO_CAPACITY: Final[Mapping[str, DeviceCapacity]] = {}

Domains = dict[str, dict[str, Value]]

# A fleet has many devices and few versions.
_parse_version = lru_cache(1024)(parse_semver)


@dataclass(frozen=True, slots=True)
class View:
    """A device's values by domain and name.

    `slots` is what an evaluation begins with. `problem` says why the device has no values. `is_plain` says that it
    has, and that no part is larger than the API allows, so that the estimate of an expression bounds what it costs.
    """

    attributes: Domains
    capacity: Domains
    root: DeviceMap
    slots: list[Value]
    problem: str
    is_plain: bool


@dataclass(slots=True)
class DeviceInput:
    """A device to evaluate expressions for. Keep it to evaluate several: its values are converted once.

    Names without a domain are of the driver's. `name` is for messages only.
    """

    driver: str
    attributes: Mapping[str, DeviceAttribute] = field(default_factory=lambda: _NO_ATTRIBUTES)
    capacity: Mapping[str, DeviceCapacity] = field(default_factory=lambda: _NO_CAPACITY)
    allow_multiple_allocations: bool = False
    name: str = ""
    _view: View | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def view(self) -> View:
        """The values."""
        view = self._view
        if view is None:
            view = self._view = build_view(self)
        return view


def build_view(device: DeviceInput) -> View:
    """Convert a device's values."""
    attributes: Domains = {}
    capacity: Domains = {}
    problem = ""
    bounded = len(device.driver) <= environment.MAX_DRIVER
    bounded = bounded and len(device.attributes) + len(device.capacity) <= environment.MAX_ENTRIES
    for key, attribute in device.attributes.items():
        domain, name = split_name(key, device.driver)
        try:
            value = convert_attribute(attribute)
        except ValueError as error:
            problem = problem or f"attribute {key!r}: {error}"
            continue
        bounded = bounded and _is_bounded(domain, name, value)
        attributes.setdefault(domain, {})[name] = value
    for key, amount in device.capacity.items():
        domain, name = split_name(key, device.driver)
        bounded = bounded and _is_bounded(domain, name, None)
        capacity.setdefault(domain, {})[name] = amount.value
    root = _build_root(device, attributes, capacity)
    return View(attributes, capacity, root, [root, attributes, capacity], problem, bounded and not problem)


def _build_root(device: DeviceInput, attributes: Domains, capacity: Domains) -> DeviceMap:
    return DeviceMap(
        {
            "driver": device.driver,
            "allowMultipleAllocations": bool(device.allow_multiple_allocations),
            "attributes": _build_domains(attributes),
            "capacity": _build_domains(capacity),
        }
    )


def _build_domains(domains: Domains) -> DeviceMap:
    return DeviceMap({domain: DeviceMap(values) for domain, values in domains.items()}, default=True)


def split_name(name: str, driver: str) -> tuple[str, str]:
    """Split a qualified name into domain and identifier."""
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


def convert_attribute(attribute: DeviceAttribute) -> Value:
    """Give an attribute's value. Raises ValueError."""
    for values in (attribute.ints, attribute.bools, attribute.strings):
        if values:
            return tuple(values)
    if attribute.versions:
        return tuple(map(_parse_version, attribute.versions))
    for value in (attribute.int, attribute.bool, attribute.string):
        if value is not None:
            return value
    if attribute.version is not None:
        return _parse_version(attribute.version)
    raise ValueError("no value, want one of int, bool, string, version or a list")


def _is_bounded(domain: str, name: str, value: Value) -> bool:
    if len(domain) > environment.MAX_DOMAIN or len(name) > environment.MAX_ID:
        return False
    if type(value) is str:
        return len(value) <= environment.MAX_VALUE
    if type(value) is tuple:
        return len(value) <= environment.MAX_VALUE and all(
            type(each) is not str or len(each) <= environment.MAX_VALUE for each in value
        )
    return True
