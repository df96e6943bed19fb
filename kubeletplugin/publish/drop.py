"""Fields that an API server did not keep: found by comparing what was sent with what came back.

An API server whose feature gate is off drops the gate's fields without a word, so that a device which was published
as one of several partitions would come back as a device of its own.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from dra_driver.api.resource_v1 import ResourceSlice
from kubeletplugin.publish.feature import GATE_OF_FIELD, Features, Gate

_SET_BY_SERVER = frozenset({"timeAdded"})


@dataclass(frozen=True, slots=True)
class DroppedField:
    """A field that did not come back as it was sent. `path` has `[*]` for any index or key; `gate` is None if unknown.

    >>> str(DroppedField("spec.devices[*].taints", Gate.DEVICE_TAINTS))
    'spec.devices[*].taints (feature gate DRADeviceTaints)'
    """

    path: str
    gate: Gate | None

    def __str__(self) -> str:
        return f"{self.path} (feature gate {self.gate})" if self.gate else self.path


def diff_kept(sent: ResourceSlice, kept: ResourceSlice) -> tuple[DroppedField, ...]:
    """Return the fields of `sent.spec` that `kept.spec` lacks or has otherwise, each once, sorted.

    Metadata, `timeAdded`, fields that were not sent and the way in which a quantity is written do not count.
    """
    return tuple(sorted(set(_diff("spec", None, sent.spec, kept.spec)), key=lambda field: field.path))


def reduce_features(features: Features, dropped: Iterable[DroppedField]) -> Features:
    """Return the features that are left where these fields are dropped."""
    for field in dropped:
        if field.gate is not None:
            features = features.without(field.gate)
    return features


def _diff(path: str, gate: Gate | None, sent: object, kept: object) -> Iterator[DroppedField]:
    if sent is None or sent in ((), {}) or sent == kept:
        return
    match sent:
        case msgspec.Struct() if isinstance(kept, type(sent)):
            for field, name in zip(sent.__struct_fields__, sent.__struct_encode_fields__, strict=True):
                if name not in _SET_BY_SERVER:
                    values = getattr(sent, field), getattr(kept, field)
                    yield from _diff(f"{path}.{name}", GATE_OF_FIELD.get(name, gate), *values)
        case dict() if isinstance(kept, dict) and kept:
            for key, value in sent.items():
                yield from _diff(f"{path}[*]", gate, value, kept.get(key))
        case tuple() if isinstance(kept, tuple) and kept:
            for position, value in enumerate(sent):
                yield from _diff(f"{path}[*]", gate, value, kept[position] if position < len(kept) else None)
        case _:
            yield DroppedField(path, gate)
