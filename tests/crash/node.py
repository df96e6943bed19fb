"""A node's disk and Pods, and what is seen of them from outside, without the code under test."""

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from kubeletplugin.setting import BackendName, Settings, SimulatedSettings
from kubeletplugin.sharing.mps_pod import DEVICE_LABEL
from tests.crash.durability import Survivors
from tests.crash.journal import Journal, write_survivors
from tests.support.builder import DRIVER, NODE

_RANDOM = re.compile(r"[0-9a-f]{16}(?=\.tmp)")

State: TypeAlias = frozenset[tuple[str, bytes | None]]

PROFILE = """
description: two GPUs that are shared and one that is partitioned
devices:
  - {count: 2, vendor: nvidia, type: gpu, model: H100, memory: 80Gi, shareEnforcement: shim}
  - vendor: nvidia
    type: gpu
    model: A100
    count: 1
    memory: 80Gi
    shareEnforcement: shim
    partitioning:
      slices: 2
      profiles:
        - {profile: small, size: 1, starts: [0, 1], memory: 40Gi}
        - {profile: wide, size: 2, starts: [0], memory: 80Gi}
"""


@dataclass(frozen=True, slots=True)
class Sharing:
    """What is set of devices that are shared, by their names. A daemon has two `folders`, of pipes and of memory."""

    time_slices: dict[str, bytes]
    exclusive: frozenset[str]
    daemons: tuple[str, ...]
    folders: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class View:
    """What there is: records by UID, CDI specs by UID, partitions, how devices are shared, and what is no use.

    Shim files and device metadata are named by `<uid>/<name>`.
    """

    records: dict[str, dict[str, Any]]
    specs: dict[str, bytes]
    shims: dict[str, bytes]
    metadata: dict[str, bytes]
    partitions: frozenset[str]
    sharing: Sharing
    leftovers: tuple[str, ...]

    @property
    def left(self) -> tuple[str, ...]:
        """The names of all that a claim or a dead process may have left."""
        sharing = self.sharing
        devices = {*self.partitions, *sharing.time_slices, *sharing.exclusive, *sharing.daemons, *sharing.folders}
        return (*self.records, *self.specs, *self.shims, *self.metadata, *sorted(devices), *self.leftovers)

    @property
    def artifacts(self) -> tuple[object, ...]:
        """Everything but the records."""
        return self.specs, self.shims, self.metadata, self.partitions, self.sharing


class Daemons(Protocol):
    """The Pods of MPS daemons, which no disk holds: they are in the API server, and the kubelet runs them."""

    def read(self) -> list[Any]:
        """Return all of them."""
        ...

    def replace(self, pods: list[Any]) -> None:
        """Have these and no others, all of them running."""
        ...


class Node:
    """A node's folders, as the kubelet and the container runtime have them."""

    def __init__(self, folder: Path, daemons: Daemons) -> None:
        self.folder = folder
        self.disk = folder / "disk"
        self._daemons = daemons
        self._saved_daemons: list[Any] = []
        self.journal = Journal(folder / "journal", self.disk)
        self._saved = folder / "saved"
        self._saved_journal = folder / "saved-journal"
        (folder / "profile.yaml").write_text(PROFILE, encoding="utf-8")
        self.overrides = folder / "overrides.yaml"
        self.settings = Settings(
            node_name=NODE,
            kubeconfig=folder / "kubeconfig",
            kubelet_dir=self.disk / "kubelet",
            cdi_dir=self.disk / "cdi",
            backends=(BackendName.SIMULATED,),
            simulated=SimulatedSettings(
                profile=str(folder / "profile.yaml"), overrides=self.overrides, dev_dir=self.disk / "dev"
            ),
            http_address="127.0.0.1:0",
            boot_id_path=folder / "boot_id",
            shm_dir=self.disk / "shm",
        )

    @property
    def hardware_dir(self) -> Path:
        """Where the simulated hardware remembers its partitions and how it is set."""
        return self.settings.plugin_dir / "simulated"

    def reset(self) -> None:
        """Make it a node on which no plugin ever ran."""
        shutil.rmtree(self.disk, ignore_errors=True)
        self.settings.registry_dir.mkdir(parents=True)
        self.overrides.write_text("", encoding="utf-8")
        self.settings.boot_id_path.write_text("first-boot", encoding="utf-8")
        self.journal.begin()

    def reboot(self, boot_id: str = "second-boot") -> None:
        """Lose what a boot takes: CDI specs, device nodes, shared memory, what is set of devices, the boot's name.

        The kubelet starts the node's Pods again.
        """
        self.settings.boot_id_path.write_text(boot_id, encoding="utf-8")
        for folder in self._passing:
            shutil.rmtree(folder, ignore_errors=True)
        self._daemons.replace(self._daemons.read())
        self.journal.begin()

    @property
    def _passing(self) -> tuple[Path, ...]:
        """The folders that no boot outlive."""
        settings, of_hardware = self.settings, ("partitions", "time-slices", "exclusive-process")
        return (
            *(settings.cdi_dir, self.disk / "dev", settings.shm_dir),
            *(self.hardware_dir / name for name in of_hardware),
        )

    def lay(self, survivors: Survivors, *, boot_id: str = "first-boot") -> None:
        """Make this what is on the disk, which is durable if the journal says so."""
        shutil.rmtree(self.disk)
        self.disk.mkdir()
        write_survivors(self.disk, survivors)
        self.settings.boot_id_path.write_text(boot_id, encoding="utf-8")

    def stays(self, name: str) -> bool:
        """Whether a file or folder outlives a boot."""
        return not f"{name}/".startswith(tuple(f"{self._short(path)}/" for path in self._passing))

    def save(self) -> None:
        """Keep what is there, to be put back as often as wanted. Sockets and device nodes are no state."""
        shutil.rmtree(self._saved, ignore_errors=True)
        shutil.copytree(self.disk, self._saved, ignore=_no_files)
        shutil.copy(self.journal.path, self._saved_journal)
        self._saved_daemons = self._daemons.read()

    def restore(self) -> None:
        """Put back what was kept."""
        shutil.rmtree(self.disk)
        shutil.copytree(self._saved, self.disk)
        shutil.copy(self._saved_journal, self.journal.path)
        self.settings.boot_id_path.write_text("first-boot", encoding="utf-8")
        self._daemons.replace(self._saved_daemons)

    def state(self) -> State:
        """Return what is there, see `find_state`."""
        files = {self._short(path): path.read_bytes() if path.is_file() else None for path in self.disk.rglob("*")}
        return find_state(files | {f"Pod {device}": None for device in self._read_daemons()})

    def look(self) -> View:
        """Return what is there now."""
        settings = self.settings
        prefix = f"{DRIVER}-claim_"
        files = [path for path in self.disk.rglob("*") if path.is_file()]
        of_claims = (*settings.shim_dir.glob("*"), *settings.metadata_dir.glob("*"))
        folders = [path for path in of_claims if path.is_dir() and not any(path.iterdir())]
        records = sorted(settings.claims_dir.glob("*.json"))
        return View(
            records={path.stem: _decode(path) for path in records},
            specs={
                path.stem.removeprefix(prefix): path.read_bytes()
                for path in files
                if path.parent == settings.cdi_dir and path.name.startswith(prefix)
            },
            shims=_read_below(settings.shim_dir, files),
            metadata=_read_below(settings.metadata_dir, files),
            partitions=frozenset(self._read_hardware("partitions")),
            sharing=Sharing(
                time_slices=self._read_hardware("time-slices"),
                exclusive=frozenset(self._read_hardware("exclusive-process")),
                daemons=self._read_daemons(),
                folders=self._read_folders(),
            ),
            leftovers=tuple(sorted(map(self._short, (*filter(_is_leftover, files), *folders)))),
        )

    def _read_hardware(self, what: str) -> dict[str, bytes]:
        found = (self.hardware_dir / what).glob("*.json")
        return {path.stem: path.read_bytes() for path in sorted(found) if path.name[0] != "."}

    def _read_daemons(self) -> tuple[str, ...]:
        return tuple(sorted(pod["metadata"]["labels"][DEVICE_LABEL] for pod in self._daemons.read()))

    def _read_folders(self) -> tuple[str, ...]:
        folders = self.settings.mps_folders
        return tuple(sorted(path.name for where in (folders.pipes, folders.memory) for path in where.glob("*")))

    def _short(self, path: Path) -> str:
        return str(path.relative_to(self.disk))


def find_state(files: Survivors) -> State:
    """Return all that matters of files and folders: two disks with equal states have the same future.

    What is another in each run does not matter: a part of the names of temporary files, and who had a lock.
    """
    return frozenset(
        (_RANDOM.sub("", name), b"" if name.endswith("/.lock") else content) for name, content in files.items()
    )


def _no_files(folder: str, names: list[str]) -> list[str]:
    paths = {name: Path(folder, name) for name in names}
    return [name for name, path in paths.items() if not (path.is_file() or path.is_dir())]


def _read_below(folder: Path, files: list[Path]) -> dict[str, bytes]:
    found = (path for path in files if path.is_relative_to(folder) and path.name[0] != ".")
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def _is_leftover(path: Path) -> bool:
    return (path.parent.name != "info" and path.name.endswith((".partial", ".tmp"))) or ".corrupt" in path.name


def _decode(path: Path) -> dict[str, Any]:
    try:
        claim: dict[str, Any] = json.loads(path.read_bytes())["claim"]
    except ValueError:
        return {"state": "unreadable"}
    return claim
