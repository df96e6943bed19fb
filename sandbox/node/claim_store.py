"""The file in which a kubelet remembers claims, as the real one does, so that nothing stays prepared for ever."""

from pathlib import Path
from typing import Final

from dra_driver.api import codec
from dra_driver.api.meta_v1 import Wire
from dra_driver.errors import InvalidError, StateError, explain_os_error
from dra_driver.file import write_file
from sandbox.node.claim_record import ClaimRecord
from sandbox.node.error import NodeError

FILE: Final = "dra_manager_state"


class _State(Wire, frozen=True, kw_only=True):
    version: str = "sandbox/v1"
    claims: tuple[ClaimRecord, ...] = ()


def read_records(directory: Path) -> tuple[ClaimRecord, ...]:
    """Read what a kubelet remembers; nothing if it never ran. Raises NodeError if it cannot be read."""
    path = directory / FILE
    try:
        return codec.decode(path.read_bytes(), _State).claims
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise NodeError(f"{path}: {explain_os_error(error)}") from error
    except InvalidError as error:
        raise NodeError(f"{path}: {error}, want what a kubelet wrote") from error


def write_records(directory: Path, records: tuple[ClaimRecord, ...]) -> None:
    """Write it, whole or not at all. Raises NodeError."""
    try:
        write_file(directory / FILE, codec.encode(_State(claims=records)) + b"\n")
    except StateError as error:
        raise NodeError(str(error)) from error
