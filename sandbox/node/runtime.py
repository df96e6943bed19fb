"""The container runtime of a simulated node: it resolves CDI ids as a real one does, and stops short of running.

A container that is started is a folder with the `config.json` that runc would have been given.
"""

import contextlib
import json
import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from cdi import CdiError, ContainerEdits, DeviceNode, Resolver
from dra_driver.errors import explain_os_error
from sandbox.node.error import NodeError
from sandbox.node.oci import build_config
from sandbox.node.pod import Container, Pod

CONFIG: Final = "config.json"
_DEFAULT_ARGS: Final = ("/pause",)


class Runtime:
    """Containers below `directory`, a folder a Pod and one in it a container. All methods block."""

    def __init__(self, directory: Path, cdi_dir: Path) -> None:
        self._directory = directory
        self._resolver = Resolver([cdi_dir])

    def config_path(self, pod_uid: str, container: str) -> Path:
        """Return where a container's config is, once it is started."""
        return self._directory / pod_uid / container / CONFIG

    def is_started(self, pod_uid: str, container: str) -> bool:
        """Tell whether a container is there."""
        return self.config_path(pod_uid, container).is_file()

    def start(self, pod: Pod, container: Container, cdi_ids: Sequence[str]) -> None:
        """Start a container with these devices. Raises NodeError if one of them cannot be resolved."""
        try:
            edits = self._resolver.resolve(cdi_ids).edits
        except CdiError as error:
            raise NodeError(f"container {container.name}: {error}") from error
        config = build_config(
            hostname=pod.metadata.name,
            args=[*container.command, *container.args] or _DEFAULT_ARGS,
            env={variable.name: variable.value for variable in container.env},
            annotations={
                "io.kubernetes.cri.container-name": container.name,
                "io.kubernetes.cri.image-name": container.image,
                "io.kubernetes.cri.sandbox-name": pod.metadata.name,
                "io.kubernetes.cri.sandbox-namespace": pod.metadata.namespace,
                "io.kubernetes.cri.sandbox-uid": pod.metadata.uid,
            },
            edits=_complete(edits),
        )
        path = self.config_path(pod.metadata.uid, container.name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(".partial")
            partial.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
            partial.replace(path)
        except OSError as error:
            raise NodeError(f"{path}: {explain_os_error(error)}") from error

    def stop(self, pod_uid: str) -> None:
        """Stop the containers of a Pod. That it has none is success."""
        shutil.rmtree(self._directory / pod_uid, ignore_errors=True)

    def pods(self) -> frozenset[str]:
        """Return the UIDs of Pods that have containers."""
        with contextlib.suppress(FileNotFoundError):
            return frozenset(path.name for path in self._directory.iterdir())
        return frozenset()


def _complete(edits: ContainerEdits) -> ContainerEdits:
    """Take from the host what the device nodes of the edits leave open."""
    return msgspec.structs.replace(edits, device_nodes=tuple(map(_complete_node, edits.device_nodes)))


def _complete_node(node: DeviceNode) -> DeviceNode:
    if node.type and (node.major or node.minor or node.type == "p"):
        return node
    path = Path(node.host_path or node.path)
    try:
        status = path.stat()
    except OSError as error:
        raise NodeError(f"device node {path}: {explain_os_error(error)}") from error
    kinds = {stat.S_IFCHR: "c", stat.S_IFBLK: "b", stat.S_IFIFO: "p"}
    kind = kinds.get(stat.S_IFMT(status.st_mode))
    if kind is None:
        raise NodeError(f"device node {path}: not a device, want a character or block device or a FIFO")
    return msgspec.structs.replace(node, type=kind, major=os.major(status.st_rdev), minor=os.minor(status.st_rdev))
