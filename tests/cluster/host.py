"""What the machine of the tests lends to one cluster."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.cgroup import CgroupTree
from tests.cluster.process import Processes


@dataclass(frozen=True, slots=True)
class Host:
    """A folder, a cgroup, and the paths of the programs by name. `processes` are those that run in the cluster."""

    folder: Path
    cgroup: CgroupTree
    programs: Mapping[str, Path]
    processes: Processes
