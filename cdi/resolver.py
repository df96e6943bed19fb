"""Reads the spec files of a node, the way a container runtime does."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from cdi.codec import decode_spec
from cdi.errors import CdiError, StoreError
from cdi.inventory import Fault, Inventory, Resolution, SpecFile, build_inventory

DEFAULT_DIRECTORIES: Final = (Path("/etc/cdi"), Path("/var/run/cdi"))
"""Where runtimes look unless they are told otherwise: static specs first, then generated ones, which win."""

EXTENSIONS: Final = (".json", ".yaml")
"""What makes a file a spec; `.yml` does not."""


class Resolver:
    """Answers what the spec files in some directories, the most important last, say at this moment.

    Every call reads the files anew, as specs come and go with claims. All methods block.
    """

    def __init__(self, directories: Sequence[Path] = DEFAULT_DIRECTORIES) -> None:
        self.directories = tuple(directories)

    def read_inventory(self) -> Inventory:
        """Read all specs. What cannot be read is among the faults and hides nothing else; this raises nothing."""
        files: list[SpecFile] = []
        faults: list[Fault] = []
        for precedence, directory in enumerate(self.directories):
            for path in _read_paths(directory, faults):
                try:
                    files.append(SpecFile(path, precedence, decode_spec(path.read_bytes(), str(path))))
                except CdiError as error:
                    faults.append(Fault(path, error))
                except OSError as error:
                    if (
                        not isinstance(error, FileNotFoundError) or path.is_symlink()
                    ):  # else removed since it was listed
                        faults.append(Fault(path, _store_error(path, error)))
        return build_inventory(files, faults)

    def resolve(self, names: Iterable[str]) -> Resolution:
        """Find devices by their qualified names. Raises UnresolvableError with every name that cannot be found."""
        return self.read_inventory().resolve(names)

    def missing(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the names that cannot be resolved, each once, in the order given."""
        return self.read_inventory().missing(names)


def _read_paths(directory: Path, faults: list[Fault]) -> list[Path]:
    try:
        return sorted(path for path in directory.iterdir() if _is_spec_file(path))
    except FileNotFoundError:
        return []
    except OSError as error:
        faults.append(Fault(directory, _store_error(directory, error)))
        return []


def _is_spec_file(path: Path) -> bool:
    return path.name.endswith(EXTENSIONS) and (path.is_file() or path.is_symlink())


def _store_error(path: Path, error: OSError) -> StoreError:
    reason = (error.strerror or str(error)).lower()
    return StoreError(f"{path}: {reason}, want a readable spec", errno=error.errno or 0)
