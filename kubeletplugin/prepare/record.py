"""What is remembered of a claim while it is prepared: one record a claim, the truth about what this node holds."""

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec

from dra_driver.api import codec
from dra_driver.api.config_v1alpha1 import Interval, Policy, Strategy
from dra_driver.errors import InvalidError, StateError

VERSION = 1
"""Raised when a driver that does not know the new content would do harm with it; fields may be added without."""

_NAMES: Final = re.compile(rb'"namespace":"(?P<namespace>[a-z0-9-]{1,63})","name":"(?P<name>[a-z0-9.-]{1,253})"')


_UID: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")


class NewerRecordError(StateError):
    """A record was written by a driver that is newer than this one."""


@dataclass(frozen=True, slots=True)
class ClaimRef:
    """A claim as the kubelet names it. The UID alone identifies it; the name may be used again by another."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class ClaimState(StrEnum):
    """How far a claim has come. A started claim holds its devices as a completed one does."""

    STARTED = "started"
    COMPLETED = "completed"


class Consumed(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a share takes of its device: memory in bytes, cores in percent, slots."""

    memory: int = 0
    cores: int = 0
    slots: int = 0


class MpsLimits(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a client of a device's MPS daemon may have: bytes of its memory, percent of its threads. None: no limit."""

    memory: int | None = None
    thread_percentage: int | None = None


class PreparedDevice(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One allocation result of a claim, as it is prepared.

    `request` is the result's, with a subrequest. `parent` is the whole device of a partition.
    `consumed` is absent for a device that is held exclusively.
    `shim_policy` is set only for a share that the shim limits.
    `strategy` is how the device is shared while this is prepared; absent for what has no part in that (a device that is
    held exclusively, a partition, admin access) and in old records. `interval` goes with TimeSlicing, `mps` with MPS.
    """

    request: str
    pool: str
    device: str
    parent: str | None = None
    share_id: str | None = None
    admin_access: bool = False
    consumed: Consumed | None = None
    shim_policy: Policy | None = None
    strategy: Strategy | None = None
    interval: Interval | None = None
    mps: MpsLimits | None = None

    def __str__(self) -> str:
        return f"{self.pool}/{self.device}"

    @property
    def whole_device(self) -> str:
        """The name of the whole device that this is, or is a partition of."""
        return self.parent or self.device

    @property
    def sharing(self) -> Strategy | None:
        """How the device is shared, also as records without `strategy` tell: what the shim limits, it shares."""
        return self.strategy or (Strategy.SHIM if self.shim_policy is not None else None)


class ClaimRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A claim that is prepared, or was started to be.

    `pod_claim_name` is what its Pod calls a claim that was made from a template.
    `boot_id` is that of the kernel under which its devices and files were last set up; absent in old records.
    """

    namespace: str
    name: str
    uid: str
    state: ClaimState
    devices: tuple[PreparedDevice, ...] = ()
    pod_claim_name: str | None = None
    boot_id: str | None = None

    @property
    def ref(self) -> ClaimRef:
        """The claim that this is the record of."""
        return ClaimRef(self.namespace, self.name, self.uid)


class _Version(msgspec.Struct, frozen=True, kw_only=True):
    """What can be read of a file of any version."""

    version: int


class _Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """The file's outer form. The checksum covers the bytes of `claim` as they stand, not what they decode to."""

    version: int
    checksum: str
    claim: msgspec.Raw


def encode_record(record: ClaimRecord) -> bytes:
    """Return the bytes of a record's file: equal records give equal bytes."""
    claim = codec.encode(record)
    return msgspec.json.encode(_Envelope(version=VERSION, checksum=_checksum(claim), claim=msgspec.Raw(claim)))


def decode_record(data: bytes) -> ClaimRecord:
    """Read a record's file; unknown fields are ignored.

    Raises NewerRecordError, whatever else the file holds, or StateError that says what is wrong with it.
    """
    try:
        version = msgspec.json.decode(data, type=_Version).version
        if version > VERSION:
            raise NewerRecordError(f"version {version} is newer than this driver, want at most {VERSION}")
        envelope = msgspec.json.decode(data, type=_Envelope)
    except (msgspec.DecodeError, RecursionError) as error:
        raise StateError(f"not a claim record: {error}") from error
    claim = bytes(envelope.claim)
    if _checksum(claim) != envelope.checksum:
        raise StateError("checksum does not match the content")
    try:
        return codec.decode(claim, ClaimRecord)
    except InvalidError as error:
        raise StateError(f"not a claim record: {error}") from error


def is_claim_uid(text: str) -> bool:
    """Whether a claim can have this UID: what is named otherwise beside the files of claims is somebody else's."""
    return _UID.fullmatch(text) is not None


def read_ref(data: bytes, uid: str) -> ClaimRef | None:
    """Return which name a damaged record gives its claim, if it can be made out. It may be wrong."""
    found = _NAMES.search(data)
    return ClaimRef(found["namespace"].decode(), found["name"].decode(), uid) if found is not None else None


def _checksum(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
