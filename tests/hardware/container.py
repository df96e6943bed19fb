"""A container with nothing in it but a C library and what a CDI spec puts there, run by the machine's own runtime."""

import json
import re
import shutil
import subprocess
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path

from cdi import ContainerEdits


def find_runtime() -> str | None:
    """Return the machine's low-level container runtime."""
    return shutil.which("runc") or shutil.which("crun")


def run_in_container(runtime: str, folder: Path, edits: ContainerEdits, command: Sequence[str], *, like: Path) -> str:
    """Run a command in a new container with these edits, and return what it prints; `folder` is to be empty.

    Of the host the container gets the C library alone, in the files that the program at `like` is linked with.
    """
    root = folder / "rootfs"
    (root / "etc").mkdir(parents=True)
    for path in _read_linked(like):
        copy = root / path.lstrip("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    (folder / "config.json").write_text(json.dumps(_render_config(edits, command)))
    name = f"dra-driver-test-{uuid.uuid4()}"
    done = subprocess.run(
        (runtime, "run", "--bundle", folder, name), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def _read_linked(program: Path) -> Iterable[str]:
    """The C library's files that a program needs, and its loader."""
    text = subprocess.run(("ldd", program), check=True, capture_output=True, text=True).stdout
    return sorted(set(re.findall(r"(/\S+)", text)))


def _render_config(edits: ContainerEdits, command: Sequence[str]) -> dict[str, object]:
    """What a container runtime makes of edits, in the form of the OCI."""
    proc = {"destination": "/proc", "type": "proc", "source": "proc"}
    dev = {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]}
    mounts = [
        {
            "destination": mount.container_path,
            "source": mount.host_path,
            "type": mount.type or "none",
            "options": list(mount.options),
        }
        for mount in edits.mounts
    ]
    allowed = [
        {"allow": True, "type": node.type, "major": node.major, "minor": node.minor, "access": node.permissions}
        for node in edits.device_nodes
    ]
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": list(command),
            "env": ["PATH=/usr/bin:/bin", *edits.env],
            "cwd": "/",
        },
        "root": {"path": "rootfs"},
        "mounts": [proc, dev, *mounts],
        "hooks": {
            "createContainer": [
                {"path": hook.path, "args": list(hook.args), "env": list(hook.env)} for hook in edits.hooks
            ]
        },
        "linux": {
            "namespaces": [{"type": kind} for kind in ("mount", "pid", "ipc", "uts", "network")],
            "devices": [
                {
                    "path": node.path,
                    "type": node.type,
                    "major": node.major,
                    "minor": node.minor,
                    "fileMode": node.file_mode,
                }
                for node in edits.device_nodes
            ],
            "resources": {"devices": [{"allow": False, "access": "rwm"}, *allowed]},
        },
    }
