"""The plugin's unix sockets and the lock that makes it the only one that uses them."""

import asyncio
import contextlib
import fcntl
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import grpc.aio

from dra_driver.errors import SettingError, StateError, explain_os_error
from dra_driver.file import ensure_directory

LOCK_FILE = "plugin.lock"


def require_registry(directory: Path) -> None:
    """Raise SettingError unless the kubelet's plugin registry is there.

    It is never made here: where it is missing no kubelet would look.
    """
    if not directory.is_dir():
        raise SettingError(f"{directory}: no such directory, want --kubelet-dir to be the kubelet's --root-dir")


@contextlib.contextmanager
def hold_plugin_directory(directory: Path) -> Iterator[None]:
    """Make this process the only plugin of the directory, until it ends, however it ends.

    Raises SettingError, naming the process that has it, if another one runs.
    """
    lock, wanted = directory / LOCK_FILE, "want a writable directory below --kubelet-dir"
    try:
        ensure_directory(directory, mode=0o750)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except StateError as error:
        raise SettingError(f"{error}, {wanted}") from error
    except OSError as error:
        raise SettingError(f"{lock}: {explain_os_error(error)}, {wanted}") from error
    try:
        _lock(descriptor, directory)
        with contextlib.suppress(
            OSError
        ):  # a full disk: the lock holds all the same, it only does not tell whose it is
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, directory: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = _read_holder(descriptor)
        raise SettingError(f"{directory}: in use by another plugin, process {holder}") from error


def _read_holder(descriptor: int) -> str:
    try:
        text = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
    except OSError:
        text = ""
    return text if text.isdecimal() else "unknown"


async def serve_socket(path: Path, handlers: Iterable[grpc.GenericRpcHandler]) -> grpc.aio.Server:
    """Start a gRPC server on a unix socket, in place of one that a killed process left behind.

    The caller holds the plugin directory, so whatever is at `path` is nobody's. Raises SettingError.
    """
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(tuple(handlers))
    try:
        await asyncio.to_thread(path.unlink, missing_ok=True)
        server.add_insecure_port(f"unix://{path}")
        await server.start()
    except (OSError, RuntimeError) as error:
        reason = explain_os_error(error) if isinstance(error, OSError) else str(error)
        raise SettingError(f"{path}: {reason}, want a writable directory for the socket") from error
    return server
