"""Fields of a feature gate that is off are dropped from what is written, unless the object has them already.

What a real API server does before validation, without a word to the client. Values are changed in place.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from sandbox.api_server.kind import Object

Gates = Mapping[str, bool]
_Part = dict[str, Any]
_Places = Callable[[Object], Iterator[tuple[_Part, tuple[str, ...]]]]
"""Yields the parts of an object that hold fields of a gate, with the names of the fields."""


def drop_slice_fields(value: Object, old: Object | None, gates: Gates) -> None:
    """Drop from a slice."""
    _drop(value, old, gates, _SLICE)


def drop_claim_fields(spec: _Part, old: _Part | None, gates: Gates) -> None:
    """Drop from the spec of a claim."""
    _drop(spec, old, gates, _CLAIM)


def drop_status_fields(value: Object, old: Object, gates: Gates) -> None:
    """Drop from the status of a claim. It also counts as use that the spec has fields of the gate."""
    for gate, places in _STATUS.items():
        spec_uses = gate in _CLAIM and _is_used(_CLAIM[gate], old["spec"])
        if not gates[gate] and not spec_uses and not _is_used(places, old):
            _remove(places, value)


def drop_deallocated(value: Object, old: Object) -> None:
    """Drop the status of devices that the claim had and has no more."""
    status = value.get("status") or {}
    gone = _allocated(old) - _allocated(value)
    kept = [device for device in status.get("devices", ()) if _key(device) not in gone]
    if kept:
        status["devices"] = kept
    else:
        status.pop("devices", None)


def _drop(value: Object, old: Object | None, gates: Gates, table: Mapping[str, _Places]) -> None:
    for gate, places in table.items():
        if not gates[gate] and not (old is not None and _is_used(places, old)):
            _remove(places, value)


def _is_used(places: _Places, value: Object) -> bool:
    return any(name in part for part, names in places(value) for name in names)


def _remove(places: _Places, value: Object) -> None:
    for part, names in places(value):
        for name in names:
            part.pop(name, None)


def _devices(value: Object) -> list[_Part]:
    return value["spec"].get("devices") or []


def _of_devices(*names: str) -> _Places:
    return lambda value: ((device, names) for device in _devices(value))


def _of_spec(*names: str) -> _Places:
    return lambda value: iter([(value["spec"], names)])


def _partitions(value: Object) -> Iterator[tuple[_Part, tuple[str, ...]]]:
    yield value["spec"], ("sharedCounters", "perDeviceNodeSelection")
    yield from ((device, ("consumesCounters", "nodeName", "nodeSelector", "allNodes")) for device in _devices(value))


def _capacities(value: Object) -> Iterator[tuple[_Part, tuple[str, ...]]]:
    for device in _devices(value):
        yield device, ("allowMultipleAllocations",)
        yield from ((capacity, ("requestPolicy",)) for capacity in (device.get("capacity") or {}).values())


def _groups(value: Object) -> Iterator[tuple[_Part, tuple[str, ...]]]:
    for device in _devices(value):
        yield from ((each, ("compatibilityGroups",)) for each in device.get("consumesCounters") or ())


def _lists(value: Object) -> Iterator[tuple[_Part, tuple[str, ...]]]:
    for device in _devices(value):
        attributes = (device.get("attributes") or {}).values()
        yield from ((attribute, ("ints", "bools", "strings", "versions")) for attribute in attributes)


_SLICE: Final[Mapping[str, _Places]] = {
    "DRADeviceTaints": _of_devices("taints"),
    "DRAPartitionableDevices": _partitions,
    "DRADeviceBindingConditions": _of_devices("bindingConditions", "bindingFailureConditions", "bindsToNode"),
    "DRAConsumableCapacity": _capacities,
    "DRADeviceCompatibilityGroups": _groups,
    "DRANodeAllocatableResources": _of_devices("nodeAllocatableResources"),
    "DRAListTypeAttributes": _lists,
    "DRAPartitionableDevicesType": _of_spec("partitionTypeAttribute"),
    "DRAOptionalNodeOperations": _of_spec("skipNodeOperations"),
}


def request_bodies(spec: _Part) -> Iterator[_Part]:
    """Yield the parts of a claim's spec that say what is wanted: of requests, and of subrequests."""
    for request in (spec.get("devices") or {}).get("requests") or ():
        if isinstance(exactly := request.get("exactly"), dict):
            yield exactly
        yield from request.get("firstAvailable") or ()


def _of_bodies(*names: str) -> _Places:
    return lambda spec: ((body, names) for body in request_bodies(spec))


def _consumable(spec: _Part) -> Iterator[tuple[_Part, tuple[str, ...]]]:
    constraints = (spec.get("devices") or {}).get("constraints") or ()
    yield from ((constraint, ("distinctAttribute",)) for constraint in constraints)
    yield from ((body, ("capacity",)) for body in request_bodies(spec))


_CLAIM: Final[Mapping[str, _Places]] = {
    "DRADeviceTaints": _of_bodies("tolerations"),
    "DRAConsumableCapacity": _consumable,
    "DRADerivedAttributes": _of_bodies("derivedAttributes"),
}


def _results(value: Object) -> list[_Part]:
    allocation = (value.get("status") or {}).get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or []


def _of_results(*names: str) -> _Places:
    return lambda value: ((result, names) for result in _results(value))


def _shares(value: Object) -> Iterator[tuple[_Part, tuple[str, ...]]]:
    yield from ((result, ("shareID", "consumedCapacity")) for result in _results(value))
    yield from ((device, ("shareID",)) for device in (value.get("status") or {}).get("devices") or ())


_STATUS: Final[Mapping[str, _Places]] = {
    "DRAConsumableCapacity": _shares,
    "DRADeviceBindingConditions": _of_results("bindingConditions", "bindingFailureConditions"),
    "DRAOptionalNodeOperations": _of_results("skipNodeOperations"),
}


def _allocated(value: Object) -> set[tuple[Any, ...]]:
    return {_key(result) for result in _results(value)}


def _key(device: _Part) -> tuple[Any, ...]:
    return tuple(device.get(name) for name in ("driver", "pool", "device", "shareID"))
