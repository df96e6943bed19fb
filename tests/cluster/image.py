"""OCI image archives made without an image builder, so that a node needs no registry.

`busybox_image` and `pause_image` hold Debian's static busybox. `product_image` holds what runs the tests: this
interpreter and the shared libraries it needs at their own paths, the product's dependencies as they are installed here,
and the product's packages as they stand in the working tree. Equal trees make equal archives.
"""

import hashlib
import importlib.metadata
import io
import json
import os
import platform
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement

from tests.cluster.program import cache_dir

PROJECT = Path(__file__).parents[2]
BUSYBOX = "test.local/busybox:1"
PAUSE = "test.local/pause:1"

_HOME = PurePosixPath("/opt/dra-driver")
_MEDIA = "application/vnd.oci.image"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_NOT_SHIPPED = re.compile(
    r"(^|/)(__pycache__|site-packages|test|tests|idlelib|tkinter|turtledemo|ensurepip|lib2to3|config-[^/]*|_tkinter[^/]*|_test[^/]*)(/|$)"
)


def busybox_image(folder: Path) -> Path:
    return _busybox_archive(folder, BUSYBOX, ("/bin/sh",))


def pause_image(folder: Path) -> Path:
    return _busybox_archive(folder, PAUSE, ("/bin/sleep", "2147483647"))


def product_image(folder: Path, reference: str) -> Path:
    """Make an image whose entry point is `dra-kubeletplugin`. The layer below the product's own code is cached."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    layers = (_runtime_layer(project["project"]["dependencies"]), _product_layer(folder, project))
    environment = {"PATH": f"{_HOME}/bin", "PYTHONPATH": str(_HOME), "PYTHONDONTWRITEBYTECODE": "1"}
    return _write_archive(folder, reference, layers, (f"{_HOME}/bin/dra-kubeletplugin",), environment)


class Layer:
    """A tar that is the same whenever its entries are: sorted, owned by root, without times."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[tarfile.TarInfo, Path | bytes | None]] = {}

    def add_folder(self, path: PurePosixPath, mode: int = 0o755) -> None:
        self._add(path, tarfile.DIRTYPE, mode, None)

    def add_link(self, path: PurePosixPath, target: str) -> None:
        self._add(path, tarfile.SYMTYPE, 0o777, None).linkname = target

    def add_bytes(self, path: PurePosixPath, content: bytes, mode: int = 0o644) -> None:
        self._add(path, tarfile.REGTYPE, mode, content).size = len(content)

    def add_file(self, path: PurePosixPath, source: Path) -> None:
        """Add a copy of a file; one that its owner may execute, everybody may."""
        status = source.stat()
        self._add(path, tarfile.REGTYPE, 0o755 if status.st_mode & 0o100 else 0o644, source).size = status.st_size

    def add_python(self, path: PurePosixPath, source: Path) -> None:
        """Add a file of a Python package, and beside a module its byte code, which is never checked nor made again.

        Byte code is not always the same for the same module, so it is for layers that are kept.
        """
        self.add_file(path, source)
        if source.suffix != ".py":
            return
        with tempfile.NamedTemporaryFile(suffix=".pyc") as compiled:
            mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
            if py_compile.compile(
                str(source), compiled.name, str(path), quiet=2, doraise=False, invalidation_mode=mode
            ):
                name = f"{path.stem}.{sys.implementation.cache_tag}.pyc"
                self.add_bytes(path.parent / "__pycache__" / name, Path(compiled.name).read_bytes())

    def write(self, target: Path) -> Path:
        for path in [PurePosixPath(name) for name in self._entries]:
            for parent in path.parents:
                if parent.name and str(parent) not in self._entries:
                    self.add_folder(PurePosixPath("/") / parent)
        partial = target.with_name(f".{target.name}.{os.getpid()}")
        with tarfile.open(partial, "w") as tar:
            for _, (info, content) in sorted(self._entries.items()):
                match content:
                    case None:
                        tar.addfile(info)
                    case bytes():
                        tar.addfile(info, io.BytesIO(content))
                    case Path():
                        with content.open("rb") as file:
                            tar.addfile(info, file)
        return partial.rename(target)

    def _add(self, path: PurePosixPath, kind: bytes, mode: int, content: Path | bytes | None) -> tarfile.TarInfo:
        info = tarfile.TarInfo(str(path.relative_to("/")))
        info.type, info.mode = kind, mode
        self._entries[info.name] = (info, content)
        return info


def _busybox_archive(folder: Path, reference: str, command: tuple[str, ...]) -> Path:
    busybox = shutil.which("busybox")
    if busybox is None:
        raise FileNotFoundError("busybox: not on the PATH, want Debian's package busybox-static")
    layer, root = Layer(), PurePosixPath("/")
    for name in ("bin", "dev", "etc", "proc", "sys", "var/run"):
        layer.add_folder(root / name)
    layer.add_folder(root / "tmp", 0o1777)
    layer.add_file(root / "bin/busybox", Path(busybox))
    applets = subprocess.run((busybox, "--list"), check=True, capture_output=True, text=True).stdout.split()
    for applet in set(applets) - {"busybox"}:
        layer.add_link(root / "bin" / applet, "busybox")
    file = layer.write(folder / f"{_file_name(reference)}.layer")
    archive = _write_archive(folder, reference, (file,), command, {"PATH": "/bin"})
    file.unlink()
    return archive


def _product_layer(folder: Path, project: Mapping[str, Mapping[str, object]]) -> Path:
    layer = Layer()
    metadata, hatch = project["project"], project["tool"]["hatch"]
    for package in hatch["build"]["targets"]["wheel"]["packages"]:  # type: ignore[index]
        for source in _files(PROJECT / package):
            layer.add_file(_HOME / source.relative_to(PROJECT).as_posix(), source)
    name = str(metadata["name"])
    head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {metadata['version']}\n"
    info = _HOME / f"{name.replace('-', '_')}-{metadata['version']}.dist-info"
    layer.add_bytes(info / "METADATA", head.encode())
    for script, target in metadata["scripts"].items():  # type: ignore[attr-defined]
        module, _, function = target.partition(":")
        text = f"#!{_interpreter()}\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n"
        layer.add_bytes(_HOME / "bin" / script, text.encode(), 0o755)
    return layer.write(folder / "product.layer")


def _runtime_layer(dependencies: Iterable[str]) -> Path:
    """Give the layer of the interpreter, its standard library, the dependencies, and their shared libraries."""
    distributions = sorted(_closure(dependencies), key=lambda found: found.metadata["Name"])
    versions = [f"{found.metadata['Name']}=={found.version}" for found in distributions]
    key = "\n".join((Path(__file__).read_text(), sys.version, str(_interpreter()), *versions))
    target = cache_dir().parent / "images" / f"runtime-{hashlib.sha256(key.encode()).hexdigest()[:16]}.layer"
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    layer = Layer()
    layer.add_folder(PurePosixPath("/tmp"), 0o1777)
    layer.add_bytes(PurePosixPath("/etc/passwd"), b"root:x:0:0::/:/bin/false\n")
    layer.add_file(PurePosixPath(_interpreter()), _interpreter())
    binaries = [_interpreter()]
    standard = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")}
    shipped = [(source, PurePosixPath(source)) for folder in sorted(standard) for source in _files(folder)]
    shipped += [
        (Path(str(file.locate())), _HOME / file.as_posix())
        for found in distributions
        for file in found.files or ()
        if ".." not in file.parts and "__pycache__" not in file.parts
    ]
    for source, path in shipped:
        layer.add_python(path, source)
        if source.suffix == ".so" or ".so." in source.name:
            binaries.append(source)
    for library in _libraries(binaries):
        layer.add_file(PurePosixPath(library), library)
    return layer.write(target)


def _interpreter() -> Path:
    return Path(sys.executable).resolve()


def _files(folder: Path) -> Iterator[Path]:
    for source in sorted(folder.rglob("*")):
        if source.is_file() and not _NOT_SHIPPED.search(source.relative_to(folder).as_posix()):
            yield source


def _closure(requirements: Iterable[str]) -> Iterator[importlib.metadata.Distribution]:
    """Find the installed distributions that satisfy the requirements, and those that they require in turn."""
    seen: set[str] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        wanted = waiting.pop()
        if wanted.name in seen:
            continue
        seen.add(wanted.name)
        found = importlib.metadata.distribution(wanted.name)
        yield found
        for requirement in map(Requirement, found.requires or ()):
            extras = wanted.extras or {""}
            if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(requirement)


def _libraries(binaries: list[Path]) -> list[Path]:
    """Find the shared libraries that the dynamic loader takes for the binaries, itself included."""
    done = subprocess.run(("ldd", *binaries), capture_output=True, text=True, check=False)
    found = re.findall(r"^\s+(?:\S+ => )?(/\S+) \(0x", done.stdout, re.MULTILINE)
    return sorted({Path(path) for path in found})


def _write_archive(
    folder: Path, reference: str, layers: tuple[Path, ...], command: tuple[str, ...], environment: Mapping[str, str]
) -> Path:
    archive = Layer()
    blobs = PurePosixPath("/blobs/sha256")

    def add_json(kind: str, content: Mapping[str, object]) -> dict[str, object]:
        data = json.dumps(content, sort_keys=True).encode()
        digest = hashlib.sha256(data).hexdigest()
        archive.add_bytes(blobs / digest, data)
        return {"mediaType": f"{_MEDIA}.{kind}+json", "digest": f"sha256:{digest}", "size": len(data)}

    digests = []
    for layer in layers:
        with layer.open("rb") as file:
            digests.append(hashlib.file_digest(file, "sha256").hexdigest())
        archive.add_file(blobs / digests[-1], layer)
    config = add_json("config.v1", {
        "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": {"Entrypoint": command, "Env": [f"{name}={value}" for name, value in environment.items()]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
    })  # fmt: skip
    manifest = add_json("manifest.v1", {
        "schemaVersion": 2,
        "mediaType": f"{_MEDIA}.manifest.v1+json",
        "config": config,
        "layers": [
            {"mediaType": f"{_MEDIA}.layer.v1.tar", "digest": f"sha256:{digest}", "size": layer.stat().st_size}
            for digest, layer in zip(digests, layers, strict=True)
        ],
    })  # fmt: skip
    manifest["annotations"] = {"io.containerd.image.name": reference}
    index = {"schemaVersion": 2, "mediaType": f"{_MEDIA}.index.v1+json", "manifests": [manifest]}
    archive.add_bytes(PurePosixPath("/oci-layout"), b'{"imageLayoutVersion":"1.0.0"}')
    archive.add_bytes(PurePosixPath("/index.json"), json.dumps(index, sort_keys=True).encode())
    return archive.write(folder / f"{_file_name(reference)}.tar")


def _file_name(reference: str) -> str:
    return re.sub(r"[^\w.-]", "-", reference)
