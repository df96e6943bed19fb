"""A node's disk and what is seen on it from outside: files alone, read without the code under test."""

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from kubeletplugin.setting import BackendName, Settings, SimulatedSettings
from tests.crash.durability import Survivors
from tests.crash.journal import Journal, write_survivors
from tests.support.builder import DRIVER, NODE

_RANDOM = re.compile(r"[0-9a-f]{16}(?=\.tmp)")

State: TypeAlias = frozenset[tuple[str, bytes | None]]

PROFILE = """
description: two devices that are shared and one that is partitioned
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
class View:
    """What there is: records by UID, CDI specs by UID, shim files by `<uid>/<name>`, partitions, and what is no use."""

    records: dict[str, dict[str, Any]]
    specs: dict[str, bytes]
    shims: dict[str, bytes]
    partitions: frozenset[str]
    leftovers: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is there that a claim or a dead process may have left."""
        return not (self.records or self.specs or self.shims or self.partitions or self.leftovers)

    @property
    def artifacts(self) -> tuple[dict[str, bytes], dict[str, bytes], frozenset[str]]:
        """Everything but the records."""
        return self.specs, self.shims, self.partitions


class Node:
    """A node's folders, as the kubelet and the container runtime have them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.disk = folder / "disk"
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
        )

    @property
    def partitions_dir(self) -> Path:
        """Where the simulated hardware remembers its partitions."""
        return self.settings.plugin_dir / "simulated" / "partitions"

    def reset(self) -> None:
        """Make it a node on which no plugin ever ran."""
        shutil.rmtree(self.disk, ignore_errors=True)
        self.settings.registry_dir.mkdir(parents=True)
        self.overrides.write_text("", encoding="utf-8")
        self.settings.boot_id_path.write_text("first-boot", encoding="utf-8")
        self.journal.begin()

    def reboot(self, boot_id: str = "second-boot") -> None:
        """Lose what a boot takes: CDI specs, device nodes, partitions, and the kernel's name of the boot."""
        self.settings.boot_id_path.write_text(boot_id, encoding="utf-8")
        for folder in self._passing:
            shutil.rmtree(folder, ignore_errors=True)
        self.journal.begin()

    @property
    def _passing(self) -> tuple[Path, ...]:
        """The folders that no boot outlive."""
        return self.settings.cdi_dir, self.disk / "dev", self.partitions_dir

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
        """Keep what is on the disk, to be put back as often as wanted. Sockets and device nodes are no state."""
        shutil.rmtree(self._saved, ignore_errors=True)
        shutil.copytree(self.disk, self._saved, ignore=_no_files)
        shutil.copy(self.journal.path, self._saved_journal)

    def restore(self) -> None:
        """Put back what was kept."""
        shutil.rmtree(self.disk)
        shutil.copytree(self._saved, self.disk)
        shutil.copy(self._saved_journal, self.journal.path)
        self.settings.boot_id_path.write_text("first-boot", encoding="utf-8")

    def state(self) -> State:
        """Return what is on the disk, see `find_state`."""
        return find_state(
            {self._short(path): path.read_bytes() if path.is_file() else None for path in self.disk.rglob("*")}
        )

    def look(self) -> View:
        """Return what is there now."""
        settings = self.settings
        prefix = f"{DRIVER}-claim_"
        files = [path for path in self.disk.rglob("*") if path.is_file()]
        folders = [path for path in settings.shim_dir.glob("*") if path.is_dir() and not any(path.iterdir())]
        records = sorted(settings.claims_dir.glob("*.json"))
        return View(
            records={path.stem: _decode(path) for path in records},
            specs={
                path.stem.removeprefix(prefix): path.read_bytes()
                for path in files
                if path.parent == settings.cdi_dir and path.name.startswith(prefix)
            },
            shims={
                str(path.relative_to(settings.shim_dir)): path.read_bytes()
                for path in files
                if path.is_relative_to(settings.shim_dir) and path.name[0] != "."
            },
            partitions=frozenset(
                path.stem for path in files if path.parent == self.partitions_dir and path.name[0] != "."
            ),
            leftovers=tuple(sorted(map(self._short, (*filter(_is_leftover, files), *folders)))),
        )

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


def _is_leftover(path: Path) -> bool:
    return (path.parent.name != "info" and path.name.endswith((".partial", ".tmp"))) or ".corrupt" in path.name


def _decode(path: Path) -> dict[str, Any]:
    try:
        claim: dict[str, Any] = json.loads(path.read_bytes())["claim"]
    except ValueError:
        return {"state": "unreadable"}
    return claim
