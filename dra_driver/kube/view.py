"""What a cache knows: objects as the watch tells them, and our own writes before the watch has told of them.

Resource versions of one kind are numbers that grow with every write (Kubernetes 1.35 promises it, etcd always did).
The watch delivers in that order, so whatever it has passed is settled, and an own write beyond it is newer than what it
tells. An own write is protected for a while only: a server restored from a backup counts from an older number.
Versions that are no numbers are not compared, and then the watch is right.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic

from dra_driver.kube.resource import KubernetesObject, ObjectKey, T, key_of

_PROTECTED_S = 60.0

Keys = frozenset[ObjectKey]
_NONE: Keys = frozenset()


@dataclass(frozen=True, slots=True)
class _Write:
    version: int
    until: float


class View(Generic[T]):
    """Objects by key. Methods that change it return the keys whose object changed; `now` is monotonic seconds."""

    def __init__(self) -> None:
        self._objects: dict[ObjectKey, T] = {}
        self._seen = 0
        self._written: dict[ObjectKey, _Write] = {}
        self._deleted: dict[str, float] = {}

    @property
    def objects(self) -> Mapping[ObjectKey, T]:
        """All objects."""
        return self._objects

    def has_seen(self, version: str) -> bool:
        """Tell whether the watch has passed a resource version; what is no number counts as passed."""
        return parse_version(version) <= self._seen

    def replace(self, values: Iterable[T], version: str, now: float) -> Keys:
        """Take over a list as of `version`, apart from own writes and deletions that are newer than it."""
        self._seen = parse_version(version)
        listed = {key_of(value): value for value in values if not self._is_deleted(value, now)}
        for key, write in self._written.items():
            if write.version > self._seen and now < write.until:
                listed[key] = self._objects[key]
        uids = {value.metadata.uid for value in listed.values()}
        changed = {key for key in listed.keys() | self._objects.keys() if not _same(listed, self._objects, key)}
        self._objects = listed
        self._written = {key: write for key, write in self._written.items() if write.version > self._seen}
        self._deleted = {uid: until for uid, until in self._deleted.items() if now < until and uid not in uids}
        return frozenset(changed)

    def apply(self, value: T, now: float) -> Keys:
        """Take over an object from the watch."""
        key = key_of(value)
        is_stale = self._is_stale(key, value, now) or self._is_deleted(value, now)
        self._see(value)
        if is_stale:
            return _NONE
        self._objects[key] = value
        self._written.pop(key, None)
        return frozenset((key,))

    def delete(self, value: T, now: float) -> Keys:
        """Take over a deletion from the watch."""
        key = key_of(value)
        self._deleted.pop(value.metadata.uid, None)
        is_stale = self._is_stale(key, value, now)
        self._see(value)
        if is_stale or key not in self._objects:
            return _NONE
        del self._objects[key]
        self._written.pop(key, None)
        return frozenset((key,))

    def record_write(self, value: T, now: float) -> Keys:
        """Take over what an own create, update or patch returned, unless the watch has passed it."""
        key, version = key_of(value), parse_version(value.metadata.resource_version)
        if version and version <= self._seen:
            return _NONE
        current = self._objects.get(key)
        if current is not None and parse_version(current.metadata.resource_version) > version > 0:
            return _NONE
        self._objects[key] = value
        if version:
            self._written[key] = _Write(version, now + _PROTECTED_S)
        return frozenset((key,))

    def record_delete(self, value: T, now: float) -> Keys:
        """Forget an object that we deleted; what the watch still tells of this UID from before is ignored."""
        key = key_of(value)
        current = self._objects.get(key)
        if current is None or current.metadata.uid != value.metadata.uid:
            return _NONE
        del self._objects[key]
        self._written.pop(key, None)
        self._deleted[value.metadata.uid] = now + _PROTECTED_S
        return frozenset((key,))

    def _see(self, value: T) -> None:
        self._seen = max(self._seen, parse_version(value.metadata.resource_version))

    def _is_stale(self, key: ObjectKey, value: T, now: float) -> bool:
        write = self._written.get(key)
        version = parse_version(value.metadata.resource_version)
        return write is not None and now < write.until and 0 < version < write.version

    def _is_deleted(self, value: T, now: float) -> bool:
        """Whether we deleted it, and the server does not say that finalizers hold it."""
        return value.metadata.deletion_timestamp is None and now < self._deleted.get(value.metadata.uid, now)


def parse_version(version: str) -> int:
    """Return a resource version as a number that grows with every write of the kind, 0 if it is none."""
    return int(version) if version.isascii() and version.isdecimal() else 0


def _same(
    left: Mapping[ObjectKey, KubernetesObject], right: Mapping[ObjectKey, KubernetesObject], key: ObjectKey
) -> bool:
    one, other = left.get(key), right.get(key)
    if one is None or other is None:
        return one is other
    return (one.metadata.uid, one.metadata.resource_version) == (other.metadata.uid, other.metadata.resource_version)
