"""The plugin's unix sockets: opened, and removed where a dead plugin left its own behind."""

import asyncio
import errno
import socket
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import grpc.aio

from dra_driver.errors import SettingError, StateError, explain_os_error
from dra_driver.file import clear_place


def require_registry(directory: Path) -> None:
    """Raise SettingError unless the kubelet's plugin registry is there.

    It is never made here: where it is missing no kubelet would look.
    """
    if not directory.is_dir():
        raise SettingError(f"{directory}: no such directory, want --kubelet-dir to be the kubelet's --root-dir")


def remove_dead_sockets(directory: Path, is_ours: Callable[[str], bool]) -> tuple[Path, ...]:
    """Remove the sockets of that kind that nobody listens on, and return them.

    The kubelet would call them for ever. The caller sees to it that no plugin is about to listen on one.
    What cannot be looked at or removed stays: it is in nobody's way but the kubelet's.
    """
    return tuple(_remove_dead(directory, is_ours))


def _remove_dead(directory: Path, is_ours: Callable[[str], bool]) -> Iterator[Path]:
    for path in sorted(directory.iterdir()):
        try:
            if is_ours(path.name) and _is_dead(path):
                path.unlink()
                yield path
        except OSError:
            continue


def _is_dead(path: Path) -> bool:
    if not stat.S_ISSOCK(path.lstat().st_mode):
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.settimeout(0)  # a full queue of callers means that somebody listens
        return caller.connect_ex(str(path)) == errno.ECONNREFUSED


async def serve_socket(path: Path, handlers: Iterable[grpc.GenericRpcHandler]) -> grpc.aio.Server:
    """Start a gRPC server on a unix socket, in place of one that a killed process left behind.

    The caller is the only one with this name, so whatever is at `path` is nobody's. Raises SettingError.
    """
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(tuple(handlers))
    try:
        await asyncio.to_thread(clear_place, path)
        await asyncio.to_thread(path.unlink, missing_ok=True)
        server.add_insecure_port(f"unix:{path}")  # with slashes gRPC takes two bytes less than Linux
        await server.start()
    except StateError as error:
        raise SettingError(str(error)) from error
    except (OSError, RuntimeError) as error:
        reason = explain_os_error(error) if isinstance(error, OSError) else str(error)
        raise SettingError(f"{path}: {reason}, want a writable directory for the socket") from error
    return server
