"""What allocations use of devices, counted anew from the objects alone and without the allocator's help."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

from kubernetes.utils.quantity import parse_quantity

Manifest = dict[str, Any]
DeviceKey = tuple[str, str, str]


def explain_overuse(slices: Iterable[Manifest], claims: Iterable[Manifest]) -> list[str]:
    """Say what is used beyond what there is: devices given twice, shares and counters beyond their sum."""
    found = list(slices)
    devices = {_key(part["spec"], each["name"]): each for part in found for each in part["spec"].get("devices", ())}
    counters = {
        (part["spec"]["driver"], part["spec"]["pool"]["name"], each["name"]): each["counters"]
        for part in found
        for each in part["spec"].get("sharedCounters", ())
    }
    holders: dict[DeviceKey, list[tuple[str, Manifest]]] = defaultdict(list)
    for claim in claims:
        name = f"{claim['metadata']['namespace']}/{claim['metadata']['name']}"
        for result in _results(claim):
            holders[result["driver"], result["pool"], result["device"]].append((name, result))
    problems = [text for key, held in holders.items() for text in _explain_device(key, devices.get(key), held)]
    return problems + list(_explain_counters(devices, counters, holders))


def _key(spec: Manifest, device: str) -> DeviceKey:
    return spec["driver"], spec["pool"]["name"], device


def _results(claim: Manifest) -> Iterator[Manifest]:
    allocation = claim.get("status", {}).get("allocation", {})
    for result in allocation.get("devices", {}).get("results", ()):
        if not result.get("adminAccess"):
            yield result


def _explain_device(key: DeviceKey, device: Manifest | None, held: list[tuple[str, Manifest]]) -> Iterator[str]:
    place = "/".join(key[1:])
    names = sorted(name for name, _ in held)
    if device is None:
        yield f"device {place}: held by {names}, and not published"
        return
    if len(held) > 1 and not all("shareID" in result for _, result in held):
        yield f"device {place}: held whole and by others: {names}"
    shares = Counter(result["shareID"] for _, result in held if "shareID" in result)
    if any(count > 1 for count in shares.values()):
        yield f"device {place}: one share ID held twice: {names}"
    used: dict[str, Fraction] = defaultdict(Fraction)
    for _, result in held:
        for name, amount in result.get("consumedCapacity", {}).items():
            used[name] += Fraction(parse_quantity(amount))
    for name, amount in used.items():
        there = Fraction(parse_quantity(device["capacity"][name]["value"]))
        if amount > there:
            yield f"device {place}: {amount} of {there} {name} held by {names}"


def _explain_counters(
    devices: dict[DeviceKey, Manifest],
    counters: dict[DeviceKey, Manifest],
    holders: dict[DeviceKey, list[tuple[str, Manifest]]],
) -> Iterator[str]:
    used: dict[tuple[DeviceKey, str], Fraction] = defaultdict(Fraction)
    for key in holders:
        for consumption in devices.get(key, {}).get("consumesCounters", ()):
            for name, amount in consumption["counters"].items():
                used[(*key[:2], consumption["counterSet"]), name] += Fraction(parse_quantity(amount["value"]))
    for (set_, name), amount in used.items():
        there = Fraction(parse_quantity(counters[set_][name]["value"]))
        if amount > there:
            yield f"counter set {'/'.join(set_[1:])}: {amount} of {there} {name} used"
