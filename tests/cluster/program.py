"""The programs of a real Kubernetes, built once from pinned Go modules into a cache outside the repository.

`python -m tests.cluster.program` builds what is missing (12 minutes cold on two cores) and prints the folders.
"""

import argparse
import fcntl
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MODULES = Path(__file__).parent / "programs"
KUBERNETES_VERSION = "v1.37.2"

_VERSION_PACKAGE = "k8s.io/component-base/version"
_KUBERNETES_VARIABLES = " ".join(
    f"-X {_VERSION_PACKAGE}.{name}={value}"
    for name, value in (("gitVersion", KUBERNETES_VERSION), ("gitMajor", "1"), ("gitMinor", "37"))
)


@dataclass(frozen=True, slots=True)
class Module:
    """A Go module below `programs/` whose `tool` packages are built; `packages` pairs a program with its package."""

    name: str
    packages: tuple[tuple[str, str], ...]
    tags: str = ""
    variables: str = ""

    @property
    def folder(self) -> Path:
        return MODULES / self.name

    @property
    def ldflags(self) -> str:
        return f"-s -w {self.variables}".strip()

    def digest(self) -> str:
        """Name the build: what goes into it, and nothing of the machine that makes it."""
        sha = hashlib.sha256()
        for part in (
            (self.folder / "go.mod").read_bytes(),
            (self.folder / "go.sum").read_bytes(),
            self.tags.encode(),
            self.ldflags.encode(),
        ):
            sha.update(len(part).to_bytes(8, "big") + part)
        return sha.hexdigest()[:16]


KUBERNETES = Module(
    "kubernetes",
    tuple(
        (name, f"k8s.io/kubernetes/cmd/{name}")
        for name in ("kube-apiserver", "kube-scheduler", "kube-controller-manager", "kubelet", "kubectl")
    ),
    variables=_KUBERNETES_VARIABLES,
)
CONTAINERD = Module(
    "containerd",
    tuple(
        (name, f"github.com/containerd/containerd/v2/cmd/{name}")
        for name in ("containerd", "containerd-shim-runc-v2", "ctr")
    ),
    tags="no_btrfs no_zfs no_devmapper",
)
ETCD = Module("etcd", (("etcd", "go.etcd.io/etcd/server/v3"),))
HELM = Module("helm", (("helm", "helm.sh/helm/v4/cmd/helm"),))
ALL = (KUBERNETES, CONTAINERD, ETCD, HELM)
KWOK = Module("kwok", (("kwok", "sigs.k8s.io/kwok/cmd/kwok"),))  # for benchmarks alone


def cache_dir() -> Path:
    """Where programs are kept: `DRA_DRIVER_TEST_CACHE`, else below the user's cache directory."""
    if explicit := os.environ.get("DRA_DRIVER_TEST_CACHE"):
        return Path(explicit)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dra-driver" / "programs"


def build(module: Module) -> Path:
    """Return the folder with the module's programs, building those that are missing.

    Two builds at once wait for each other; a killed build leaves nothing that looks like a program.
    """
    folder = cache_dir() / f"{module.name}-{module.digest()}"
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / ".lock"):
        for name, package in module.packages:
            if not (folder / name).exists():
                _build_program(module, package, folder / name)
    return folder


def _build_program(module: Module, package: str, target: Path) -> None:
    started = time.monotonic()
    partial = target.with_name(f".{target.name}.partial")
    tags = ("-tags", module.tags) if module.tags else ()
    subprocess.run(
        ("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", module.ldflags, *tags, "-o", partial, package),
        cwd=module.folder,
        env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"},
        check=True,
    )
    partial.rename(target)
    sys.stderr.write(f"built {target.name} in {time.monotonic() - started:.0f} s\n")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main() -> None:
    """Build the modules that are named, by default all."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.program", description=__doc__)
    parser.add_argument("modules", nargs="*", help=f"any of {', '.join(module.name for module in ALL)}; default: all")
    wanted = parser.parse_args().modules or [module.name for module in ALL]
    known = {module.name: module for module in (*ALL, KWOK)}
    if unknown := [name for name in wanted if name not in known]:
        parser.error(f"unknown module {unknown[0]!r}, want {', '.join(known)}")
    for name in wanted:
        sys.stdout.write(f"{build(known[name])}\n")


if __name__ == "__main__":
    main()
