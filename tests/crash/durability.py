"""What a disk holds once the power went and came back: what was synced, and of the rest whatever was written by chance.

Pure: a journal of what a process did goes in, the files that are there afterwards come out.

Assumed of the file system is what a portable program may assume:

- The content of a file is durable as of its last fsync or fdatasync, and not before (POSIX, fsync).
- An entry of a directory, made, removed or renamed, is durable once that directory was synced: "Calling fsync() does
  not necessarily ensure that the entry in the directory containing the file has also reached disk. For that an
  explicit fsync() on a file descriptor for the directory is also needed." (Linux, fsync(2)).
  So a new directory is durable once the one above it was synced, whatever was synced below.
- Nothing else has an order: file systems differ in which changes they write early, late or not at all (Pillai et al.,
  "All File Systems Are Not Created Equal", OSDI 2014).
- A single change of a directory, a rename within it too, happens whole or not at all. Journalling and copy-on-write
  file systems keep that over a power cut; ext2 does not, and no program that renames files is safe on it.
"""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath
from typing import TypeAlias

import msgspec

Survivors: TypeAlias = dict[str, bytes | None]
"""Content by path; None for a directory. Parents come before what is in them."""


class Action(StrEnum):
    """What was done to a path."""

    CREATE = "create"
    MKDIR = "mkdir"
    WRITE = "write"
    REMOVE = "remove"
    RENAME = "rename"
    SYNC = "sync"


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One act that was done. `more` is the new path of a rename, or all that a file holds after a write, as latin-1.

    A file or directory that no entry tells of, as one that was linked, is not there after a cut.
    """

    action: Action
    path: str
    more: str = ""


class Cut(StrEnum):
    """What comes of all that was not synced."""

    NOTHING = "nothing survives that was not synced"
    NAMES = "names survive, content does not"
    SOME = "some survives"
    ALL = "all survives"


@dataclass(eq=False, slots=True)
class _File:
    content: bytes = b""
    synced: bytes = b""

    def sync(self) -> None:
        self.synced = self.content


@dataclass(eq=False, slots=True)
class _Change:
    """One change of the entries of a directory."""

    removed: str | None = None
    name: str = ""
    added: "_Inode | None" = None

    def apply(self, entries: "_Entries") -> None:
        if self.removed is not None:
            entries.pop(self.removed, None)
        if self.added is not None:
            entries[self.name] = self.added


@dataclass(eq=False, slots=True)
class _Directory:
    entries: "_Entries" = field(default_factory=dict)
    synced: "_Entries" = field(default_factory=dict)
    pending: list[_Change] = field(default_factory=list)

    def change(self, change: _Change) -> None:
        change.apply(self.entries)
        self.pending.append(change)

    def sync(self) -> None:
        self.synced = dict(self.entries)
        self.pending.clear()


_Inode: TypeAlias = _File | _Directory
_Entries: TypeAlias = dict[str, _Inode]


class Disk:
    """A disk as a journal tells of it, from an empty one on."""

    def __init__(self, journal: Iterable[Entry]) -> None:
        self._root = _Directory()
        for entry in journal:
            self._apply(entry)

    def cut(self, how: Cut, *, seed: str = "") -> Survivors:
        """Return what is there when the power comes back.

        `seed` decides for `Cut.SOME`: of the changes of each directory any subset, of the content of each file the old,
        nothing, a half or all.
        """
        chance = random.Random(seed)
        return {
            path: _cut_content(inode, how, chance) if isinstance(inode, _File) else None
            for path, inode in _walk(self._root, "", lambda directory: _cut_entries(directory, how, chance))
        }

    def _apply(self, entry: Entry) -> None:
        above, name = self._find_parent(entry.path)
        match entry.action:
            case Action.CREATE | Action.MKDIR:
                if above is not None and name not in above.entries:
                    above.change(_Change(name=name, added=_Directory() if entry.action is Action.MKDIR else _File()))
            case Action.WRITE:
                if isinstance(file := self._find(entry.path), _File):
                    file.content = entry.more.encode("latin-1")
            case Action.REMOVE:
                if above is not None:
                    above.change(_Change(name))
            case Action.RENAME:
                self._rename(entry)
            case Action.SYNC:
                if (inode := self._find(entry.path)) is not None:
                    inode.sync()

    def _rename(self, entry: Entry) -> None:
        (above, old), (target, new) = self._find_parent(entry.path), self._find_parent(entry.more)
        moved = above.entries.get(old) if above is not None else None
        if above is None or target is None or moved is None:
            return
        if above is target:
            above.change(_Change(old, new, moved))
        else:
            above.change(_Change(old))
            target.change(_Change(None, new, moved))

    def _find_parent(self, path: str) -> tuple[_Directory | None, str]:
        inode = self._find(str(PurePosixPath(path).parent))
        return inode if isinstance(inode, _Directory) else None, PurePosixPath(path).name

    def _find(self, path: str) -> _Inode | None:
        inode: _Inode | None = self._root
        for part in PurePosixPath(path).parts:
            inode = inode.entries.get(part) if isinstance(inode, _Directory) else None
        return inode


def _cut_content(file: _File, how: Cut, chance: random.Random) -> bytes:
    now, synced = file.content, file.synced
    if now == synced:
        return now
    match how:
        case Cut.NOTHING:
            return synced
        case Cut.NAMES:
            return b""
        case Cut.SOME:
            return chance.choice((synced, b"", now[: len(now) // 2], now))
        case Cut.ALL:
            return now


def _cut_entries(directory: _Directory, how: Cut, chance: random.Random) -> _Entries:
    if how in (Cut.NAMES, Cut.ALL):
        return directory.entries
    entries = dict(directory.synced)
    for change in directory.pending:
        if how is Cut.SOME and chance.choice((False, True)):
            change.apply(entries)
    return entries


def _walk(
    directory: _Directory, above: str, read_entries: Callable[[_Directory], _Entries]
) -> Iterator[tuple[str, _Inode]]:
    for name, inode in read_entries(directory).items():
        path = f"{above}{name}"
        yield path, inode
        if isinstance(inode, _Directory):
            yield from _walk(inode, f"{path}/", read_entries)
