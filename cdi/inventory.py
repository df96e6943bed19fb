"""Which devices the spec files of a node define, and what the runtime does for a container that asks for some.

Directories have an order. A device in a later one takes the place of a device of the same name in an earlier one. Two
files of one directory that define the same device conflict, and then the runtime resolves that name nowhere, not even
in a later directory. This is the behaviour of the reference library, which the specification leaves open.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from cdi.errors import CdiError, UnresolvableError
from cdi.name import validate_qualified_name
from cdi.spec import ContainerEdits, Device, Spec, merge_edits


@dataclass(frozen=True, slots=True)
class SpecFile:
    """A spec and where it comes from; a higher `precedence` wins."""

    path: Path
    precedence: int
    spec: Spec


@dataclass(frozen=True, slots=True)
class Fault:
    """A file or directory that is left out, and why."""

    path: Path
    error: CdiError


@dataclass(frozen=True, slots=True)
class Definition:
    """A device as one file defines it."""

    qualified_name: str
    file: SpecFile
    device: Device


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A name that several files define, in order of precedence. `winner` is None if it is unresolvable."""

    qualified_name: str
    paths: tuple[Path, ...]
    winner: Path | None


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a container gets that asks for `devices`, in the order asked for."""

    devices: tuple[Definition, ...]

    @property
    def edits(self) -> ContainerEdits:
        """All edits in the order of the runtime: those of a spec once, before its first device."""
        parts: list[ContainerEdits] = []
        seen: set[Path] = set()
        for definition in self.devices:
            if definition.file.path not in seen:
                seen.add(definition.file.path)
                parts.append(definition.file.spec.container_edits)
            parts.append(definition.device.container_edits)
        return merge_edits(*parts)


@dataclass(frozen=True, slots=True)
class Inventory:
    """All devices that can be resolved, by qualified name, and all that stands in the way of others."""

    devices: Mapping[str, Definition]
    duplicates: tuple[Duplicate, ...]
    faults: tuple[Fault, ...]

    def resolve(self, names: Iterable[str]) -> Resolution:
        """Find devices by their qualified names. Raises UnresolvableError with every name that cannot be found."""
        wanted = tuple(names)
        if missing := self.missing(wanted):
            raise UnresolvableError({name: self._explain(name) for name in missing})
        return Resolution(tuple(self.devices[name] for name in wanted))

    def missing(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the names that cannot be resolved, each once, in the order given."""
        return tuple(name for name in dict.fromkeys(names) if name not in self.devices)

    def _explain(self, name: str) -> str:
        if problems := validate_qualified_name(name):
            return "; ".join(problems)
        for duplicate in self.duplicates:
            if duplicate.qualified_name == name:
                return f"defined by {' and by '.join(map(str, duplicate.paths))}, want it in one file of a directory"
        close = get_close_matches(name, self.devices, n=1, cutoff=0.8)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        left_out = f" ({', '.join(str(fault.path) for fault in self.faults)} cannot be used)" if self.faults else ""
        return f"not defined by any spec{left_out}{hint}"


def build_inventory(files: Sequence[SpecFile], faults: Sequence[Fault] = ()) -> Inventory:
    """Decide which file defines each device."""
    definitions: dict[str, list[Definition]] = defaultdict(list)
    for file in sorted(files, key=lambda file: (file.precedence, file.path)):
        for device in file.spec.devices:
            name = f"{file.spec.kind}={device.name}"
            definitions[name].append(Definition(name, file, device))
    duplicates = tuple(
        Duplicate(name, tuple(definition.file.path for definition in found), _winner(found))
        for name, found in sorted(definitions.items())
        if len(found) > 1
    )
    unresolvable = {duplicate.qualified_name for duplicate in duplicates if duplicate.winner is None}
    devices = {name: found[-1] for name, found in sorted(definitions.items()) if name not in unresolvable}
    return Inventory(devices, duplicates, tuple(faults))


def _winner(found: Sequence[Definition]) -> Path | None:
    precedences = [definition.file.precedence for definition in found]
    if len(set(precedences)) < len(precedences):
        return None
    return found[-1].file.path
