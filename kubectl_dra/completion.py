"""The command `kubectl_complete-dra`, by which kubectl completes `kubectl dra …`.

kubectl calls it with the words after `dra`, the last of which is being typed, and reads candidates, one a line, and
then `:4`: no files (kubectl, "Extend kubectl with plugins"; cobra's ShellCompDirectiveNoFileComp).
"""

import contextlib
import os
import shlex
import sys
from typing import Final

from kubectl_dra.cli import app

_NO_FILES: Final = ":4"
_PROGRAM: Final = "kubectl-dra"


def main() -> None:
    """Write the candidates for the words of the command line."""
    words = [_PROGRAM, *(sys.argv[1:] or [""])]
    os.environ["_KUBECTL_DRA_COMPLETE"] = "complete_bash"
    os.environ["COMP_WORDS"] = shlex.join(words[:-1]) + " " + words[-1]
    os.environ["COMP_CWORD"] = str(len(words) - 1)
    with contextlib.suppress(SystemExit):
        app(prog_name=_PROGRAM)
    sys.stdout.write(f"{_NO_FILES}\n")
