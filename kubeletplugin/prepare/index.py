"""The claim records in memory, by claim and by device, so that looking for holders costs the same with many claims."""

import threading
from collections.abc import Iterable

from kubeletplugin.prepare.record import ClaimRecord


class RecordIndex:
    """Records by claim UID and by whole device; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: dict[str, ClaimRecord] = {}
        self._holders: dict[str, dict[str, ClaimRecord]] = {}

    def __contains__(self, uid: object) -> bool:
        """Whether there is a record of that claim."""
        return uid in self._records

    def __len__(self) -> int:
        """How many records there are."""
        return len(self._records)

    def find(self, uid: str) -> ClaimRecord | None:
        """Return the record of a claim."""
        return self._records.get(uid)

    def find_holders(self, wholes: Iterable[str]) -> tuple[ClaimRecord, ...]:
        """Return the records that have one of these whole devices, each once."""
        with self._lock:
            found = {uid: record for whole in wholes for uid, record in self._holders.get(whole, {}).items()}
        return tuple(found.values())

    def list(self) -> tuple[ClaimRecord, ...]:
        """Return all records, in the order in which they were put here first."""
        with self._lock:
            return tuple(self._records.values())

    def put(self, record: ClaimRecord) -> None:
        """Add a record, or replace that of its claim."""
        with self._lock:
            self._drop_holder(record.uid)
            self._add(record)

    def remove(self, uid: str) -> None:
        """Drop the record of a claim, if there is one."""
        with self._lock:
            self._drop_holder(uid)
            self._records.pop(uid, None)

    def replace(self, records: Iterable[ClaimRecord]) -> None:
        """Have these records and no others."""
        with self._lock:
            self._records.clear()
            self._holders.clear()
            for record in records:
                self._add(record)

    def _add(self, record: ClaimRecord) -> None:
        self._records[record.uid] = record
        for device in record.devices:
            self._holders.setdefault(device.whole_device, {})[record.uid] = record

    def _drop_holder(self, uid: str) -> None:
        if (record := self._records.get(uid)) is None:
            return
        for whole in {device.whole_device for device in record.devices}:
            holders = self._holders[whole]
            del holders[uid]
            if not holders:
                del self._holders[whole]
