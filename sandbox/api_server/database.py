"""The objects in an SQLite file, so that they outlive the process that is killed at any moment.

Each write is a transaction in the write-ahead log before anybody sees it. What was acknowledged survives the death of
the process; a machine that loses power may lose the last writes, never a part of one.
"""

import sqlite3
from pathlib import Path
from typing import Final

from dra_driver.errors import StateError
from sandbox.api_server.kind import Kind
from sandbox.api_server.store import Key, Store

_FORMAT: Final = 1
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS object (
    kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (kind, namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS revision (only_one INTEGER PRIMARY KEY CHECK (only_one = 1), newest INTEGER NOT NULL);
"""


class Database:
    """A journal of a store. One process at a time has the file. Raises StateError if it cannot be used."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0)
        except sqlite3.Error as error:
            raise self._unusable(error) from error
        try:
            self._prepare()
        except sqlite3.Error as error:
            self._connection.close()
            raise self._unusable(error) from error
        except StateError:
            self._connection.close()
            raise

    def restore(self, store: Store) -> None:
        """Put everything that was kept into an empty store."""
        known = {_name(kind): kind for kind in store}
        try:
            for name, *key, revision, body in self._connection.execute(
                "SELECT kind, namespace, name, revision, body FROM object ORDER BY kind, namespace, name"
            ):
                if name not in known:
                    raise StateError(
                        f"{str(self._path)!r}: holds objects of kind {name!r}, want a file of this version"
                    )
                store.restore(known[name], Key(*key), revision, body)
            newest = self._connection.execute("SELECT newest FROM revision").fetchone()
        except sqlite3.Error as error:
            raise self._unusable(error) from error
        store.resume(newest[0] if newest else 1)

    def write(self, kind: Kind, key: Key, revision: int, body: bytes | None) -> None:
        """Keep a body; None deletes the object. Raises StateError, and then nothing is kept."""
        name = _name(kind)
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            if body is None:
                self._connection.execute("DELETE FROM object WHERE kind=? AND namespace=? AND name=?", (name, *key))
            else:
                self._connection.execute("REPLACE INTO object VALUES (?, ?, ?, ?, ?)", (name, *key, revision, body))
            self._connection.execute("REPLACE INTO revision VALUES (1, ?)", (revision,))
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise self._unusable(error) from error

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _prepare(self) -> None:
        self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        found = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if found not in (0, _FORMAT):
            raise StateError(f"{str(self._path)!r}: has format {found}, want {_FORMAT}")
        self._connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {_FORMAT}; COMMIT;")

    def _unusable(self, error: sqlite3.Error) -> StateError:
        return StateError(f"{str(self._path)!r}: {error}, want a file of a sandbox that no other process has open")


def _name(kind: Kind) -> str:
    return f"{kind.group}/{kind.plural}"
