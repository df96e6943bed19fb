"""The Go program that answers with Kubernetes' own code, built once into the cache of test programs.

`python -m tests.referee.upstream` builds it if need be and prints its path.
"""

import hashlib
import sys
from pathlib import Path

from tests.cluster.program import Module, build
from tests.referee.process import Referee

SOURCE = Path(__file__).parents[1] / "upstream"


class _OwnModule(Module):
    """A module whose source is in this repository, so that the source is part of the build's name."""

    @property
    def folder(self) -> Path:
        return SOURCE

    def digest(self) -> str:
        sha = hashlib.sha256(Module.digest(self).encode())
        for path in sorted(self.folder.glob("*.go")):
            sha.update(hashlib.sha256(path.read_bytes()).digest())
        return sha.hexdigest()[:16]


UPSTREAM = _OwnModule("upstream", (("upstream", "."),))


def program() -> Path:
    """Return the program, building it if need be (a minute or two on two cores; needs Go)."""
    return build(UPSTREAM) / "upstream"


def start() -> Referee:
    """Return a referee that answers with upstream's code."""
    return Referee([program()])


if __name__ == "__main__":
    sys.stdout.write(f"{program()}\n")
