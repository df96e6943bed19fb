"""The objects of a server and their recent history, in memory; a journal keeps them beyond the process.

A write is: a new resource version, the journal, the object, and every watch that is open told. Nothing in between
can be seen, since all of it happens in one step of the event loop.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, NamedTuple, Protocol

import msgspec

from sandbox.api_server.kind import Kind, Object
from sandbox.api_server.refusal import expired, too_large_version

_HISTORY: Final = 10_000
_HISTORY_BYTES: Final = 2**26
"""How many changes of a kind are kept at most, for watches that resume and lists that go on; half of it at least."""


class Key(NamedTuple):
    """Namespace (empty for kinds without) and name."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """An object at one version. `body` is its JSON without kind and apiVersion: `{"metadata":…}`, encoded once."""

    key: Key
    revision: int
    value: Object
    body: bytes


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """What happened at one revision: the object before (None: it is new) and after (or as it was deleted)."""

    revision: int
    previous: Stored | None
    current: Stored
    deleted: bool = False


Listener = Callable[[Change], None]


class Journal(Protocol):
    """Keeps what is written. It is called before a write is seen by anybody, and what it refuses did not happen."""

    def write(self, kind: Kind, key: Key, revision: int, body: bytes | None) -> None:
        """Keep a body; None deletes the object."""
        ...


@dataclass(slots=True)
class _Shelf:
    """The objects of one kind, sorted by key, their changes, and who wants to know."""

    objects: dict[Key, Stored] = field(default_factory=dict)
    is_sorted: bool = True
    changes: list[Change] = field(default_factory=list)
    changes_bytes: int = 0
    forgotten: int = 0
    listeners: list[Listener] = field(default_factory=list)


class Store:
    """All objects. `revision` is the newest resource version."""

    def __init__(self, kinds: Iterable[Kind], *, journal: Journal | None = None, history: int = _HISTORY) -> None:
        self.revision = 1
        self._shelves = {kind: _Shelf() for kind in kinds}
        self._journal = journal
        self._history = history
        self._encoder = msgspec.json.Encoder()

    def restore(self, kind: Kind, key: Key, revision: int, body: bytes) -> None:
        """Put back what a journal kept. There is no history before it."""
        self._shelves[kind].objects[key] = Stored(key, revision, msgspec.json.decode(body), body)
        self._shelves[kind].is_sorted = False

    def resume(self, revision: int) -> None:
        """Go on after `revision`, without a history."""
        self.revision = max(self.revision, revision)
        self.compact()

    def get(self, kind: Kind, key: Key) -> Stored | None:
        """Give the object, if there is one."""
        return self._shelves[kind].objects.get(key)

    def all(self, kind: Kind, namespace: str = "") -> list[Stored]:
        """Give the objects of a kind, sorted by key."""
        found: Iterable[Stored] = self._sorted(kind).values()
        return [each for each in found if each.key.namespace == namespace] if namespace else list(found)

    def all_at(self, kind: Kind, revision: int, namespace: str = "") -> list[Stored]:
        """Give the objects as they were at `revision`. Raises Refusal (410) if that is forgotten."""
        self.check_revision(kind, revision)
        if revision >= self.revision:
            return self.all(kind, namespace)
        then = dict(self._shelves[kind].objects)
        for change in reversed(self._since(kind, revision)):
            if change.previous is not None:
                then[change.current.key] = change.previous
            else:
                then.pop(change.current.key, None)
        return [then[key] for key in sorted(then) if namespace in ("", key.namespace)]

    def is_empty(self, namespace: str, kinds: Iterable[Kind]) -> bool:
        """Tell whether a namespace has no objects of the kinds."""
        return not any(key.namespace == namespace for kind in kinds for key in self._shelves[kind].objects)

    def write(self, kind: Kind, key: Key, value: Object) -> Stored:
        """Keep a new or changed object: `value` with the next resource version; it belongs to the store from now on."""
        revision = self.revision + 1
        value["metadata"]["resourceVersion"] = str(revision)
        body = self._encoder.encode(value)
        if self._journal is not None:
            self._journal.write(kind, key, revision, body)
        shelf = self._shelves[kind]
        stored = Stored(key, revision, value, body)
        previous = shelf.objects.get(key)
        shelf.objects[key] = stored
        shelf.is_sorted = shelf.is_sorted and previous is not None
        self._record(shelf, Change(revision, previous, stored))
        return stored

    def delete(self, kind: Kind, key: Key) -> Stored:
        """Remove an object that is there; give its last state, with the version of the deletion."""
        shelf = self._shelves[kind]
        previous = shelf.objects[key]
        revision = self.revision + 1
        metadata = previous.value["metadata"] | {"resourceVersion": str(revision)}
        value = previous.value | {"metadata": metadata}
        if self._journal is not None:
            self._journal.write(kind, key, revision, None)
        del shelf.objects[key]
        stored = Stored(key, revision, value, self._encoder.encode(value))
        self._record(shelf, Change(revision, previous, stored, deleted=True))
        return stored

    def check_revision(self, kind: Kind, revision: int) -> None:
        """Raise Refusal if what happened since `revision` is forgotten (410), or if it is of the future."""
        if revision > self.revision:
            raise too_large_version(revision, self.revision)
        oldest = self._shelves[kind].forgotten
        if revision < oldest:
            raise expired(f"too old resource version: {revision} ({oldest})")

    def since(self, kind: Kind, revision: int) -> list[Change]:
        """Give what happened after `revision`. Raises Refusal (410) if that is forgotten."""
        self.check_revision(kind, revision)
        return self._since(kind, revision)

    def compact(self) -> None:
        """Forget the history: no watch resumes from before now, and no list goes on that began before."""
        for shelf in self._shelves.values():
            shelf.changes.clear()
            shelf.changes_bytes = 0
            shelf.forgotten = self.revision

    def listen(self, kind: Kind, listener: Listener) -> None:
        """Call `listener` for each change from now on."""
        self._shelves[kind].listeners.append(listener)

    def forget(self, kind: Kind, listener: Listener) -> None:
        """Call it no more."""
        self._shelves[kind].listeners.remove(listener)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._shelves)

    def _sorted(self, kind: Kind) -> dict[Key, Stored]:
        shelf = self._shelves[kind]
        if not shelf.is_sorted:
            shelf.objects = dict(sorted(shelf.objects.items()))
            shelf.is_sorted = True
        return shelf.objects

    def _since(self, kind: Kind, revision: int) -> list[Change]:
        changes = self._shelves[kind].changes
        return changes[bisect_right(changes, revision, key=attrgetter("revision")) :]

    def _record(self, shelf: _Shelf, change: Change) -> None:
        self.revision = change.revision
        shelf.changes.append(change)
        shelf.changes_bytes += len(change.current.body)
        if len(shelf.changes) > self._history or shelf.changes_bytes > _HISTORY_BYTES:
            half = (len(shelf.changes) + 1) // 2
            shelf.forgotten = shelf.changes[half - 1].revision
            del shelf.changes[:half]
            shelf.changes_bytes = sum(len(kept.current.body) for kept in shelf.changes)
        for listener in tuple(shelf.listeners):
            listener(change)
