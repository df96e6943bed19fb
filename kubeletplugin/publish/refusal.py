"""Which devices of a slice an API server refused, read from the field paths of its answer."""

import re
from collections.abc import Iterator

from dra_driver.api.resource_v1 import ResourceSlice
from kubeletplugin.publish.layout import Refusals

_FIELD = re.compile(r"spec\.(devices|sharedCounters)\[(\d+)\]")
_LONGEST_PROBLEM = 300


def parse_refusals(item: ResourceSlice, answer: str) -> Refusals:
    """Return the devices and counter sets of `item` that the answer names, each with the part that is about it.

    `spec.devices[1].attributes[model]: Invalid value: …` names the second device.
    """
    devices: dict[str, str] = {}
    counter_sets: dict[str, str] = {}
    for kind, index, problem in _named(answer):
        found, names = (devices, item.spec.devices) if kind == "devices" else (counter_sets, item.spec.shared_counters)
        if index < len(names):
            found.setdefault(names[index].name, problem)
    return Refusals(devices=devices, counter_sets=counter_sets)


def join_refusals(first: Refusals, second: Refusals) -> Refusals:
    """Return what either of them names."""
    return Refusals(
        devices={**second.devices, **first.devices},
        counter_sets={**second.counter_sets, **first.counter_sets},
    )


def _named(answer: str) -> Iterator[tuple[str, int, str]]:
    matches = list(_FIELD.finditer(answer))
    ends = [*(match.start() for match in matches), len(answer)][1:]
    for match, end in zip(matches, ends, strict=True):
        problem = answer[match.start() : end].strip(" ,;[]")
        yield match[1], int(match[2]), f"the API server refuses it: {problem[:_LONGEST_PROBLEM]}"
