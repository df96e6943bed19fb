"""The names of a plugin's sockets: those of a plugin that is alone, and those of each Pod where two may run. Pure."""

import hashlib
import re
from pathlib import Path

from dra_driver.api.name import quote

SOCKET_PATH_LIMIT = 107
"""Bytes of a unix socket's path on Linux, without the final zero."""

_POD_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}")
_SERVICE = re.compile(rf"dra(?:-(?:{_POD_UID.pattern}|[0-9a-f]{{8}}))?\.sock")


def validate_pod_uid(text: str) -> tuple[str, ...]:
    """Say what is wrong with a Pod's UID: a UUID, or 32 hex digits if the kubelet has it from a file. "" is no Pod."""
    return () if not text or _POD_UID.fullmatch(text) else (f"{quote(text)} is no UID, want the Pod's metadata.uid",)


def build_service_socket(directory: Path, pod_uid: str) -> Path:
    """Name the socket that the kubelet calls, in the driver's own directory, shortened where it must be."""
    path = directory / (f"dra-{pod_uid}.sock" if pod_uid else "dra.sock")
    return path if not pod_uid or _fits(path) else directory / f"dra-{_digest(pod_uid, 8)}.sock"


def build_registration_socket(directory: Path, driver: str, pod_uid: str) -> Path:
    """Name the socket that the kubelet finds, in the directory that it watches, shortened where it must be."""
    if not pod_uid:
        return directory / f"{driver}-reg.sock"
    path = directory / f"{driver}-{pod_uid}-reg.sock"
    return path if _fits(path) else directory / f"{_digest(driver, 12)}-{pod_uid}-reg.sock"


def is_service_socket(name: str) -> bool:
    """Whether a file of the driver's directory is named as the service of one of its plugins."""
    return _SERVICE.fullmatch(name) is not None


def is_registration_socket(name: str, driver: str) -> bool:
    """Whether a file of the kubelet's directory is named as one by which a plugin of this driver is found."""
    if name == f"{driver}-reg.sock":
        return True
    prefix, uid = name.removesuffix("-reg.sock"), ""
    for owner in (driver, _digest(driver, 12)):
        if name.endswith("-reg.sock") and prefix.startswith(f"{owner}-"):
            uid = prefix.removeprefix(f"{owner}-")
    return _POD_UID.fullmatch(uid) is not None


def _fits(path: Path) -> bool:
    return len(str(path).encode()) <= SOCKET_PATH_LIMIT


def _digest(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]
