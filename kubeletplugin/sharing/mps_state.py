"""How MPS daemons are, and what happened to them since somebody looked last. Pure.

A daemon that ends takes the work of its clients along. One that the kubelet starts again at once never seems to be
away, so each run of a daemon is told from the next.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

DOWN: Final = "MpsDaemonDown"
RESTARTED: Final = "MpsDaemonRestarted"

_GONE: Final = "its Pod is gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonState:
    """How a daemon is. `run` tells this run of it from others; `problem` is None if clients can connect."""

    run: str
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class DaemonChange:
    """What happened to the daemon of a device: a reason for programs, a message for people."""

    device: str
    reason: str
    message: str


class DaemonHistory:
    """Remembers the daemons that are in use. Not to be used by two threads at once."""

    def __init__(self) -> None:
        self._runs: dict[str, str] = {}
        self._problems: dict[str, str] = {}

    @property
    def problems(self) -> Mapping[str, str]:
        """Why nobody can use the daemons that are down, by device."""
        return self._problems

    def note(
        self, found: Mapping[str, DaemonState | None], unseen: Collection[str] = frozenset()
    ) -> tuple[DaemonChange, ...]:
        """Take note of how the daemons are that claims use, by device; None is one that is gone.

        Of those `unseen`, what was known still holds. Returns what is to be told: nothing is known of a daemon that is
        seen for the first time, so it is only told of if it is down.
        """
        before = self._problems
        kept = {device: problem for device, problem in before.items() if device in unseen}
        self._problems = _explain(found) | kept
        changes = []
        for device, state in sorted(found.items()):
            problem = self._problems.get(device)
            if problem is not None:
                if device not in before:
                    changes.append(DaemonChange(device, DOWN, f"the MPS daemon of device {device} is down: {problem}"))
            elif state is not None:
                if device in before or self._runs.get(device, state.run) != state.run:
                    text = f"the MPS daemon of device {device} was started again, want its clients to start again, too"
                    changes.append(DaemonChange(device, RESTARTED, text))
                self._runs[device] = state.run
        self._runs = {device: run for device, run in self._runs.items() if device in found or device in unseen}
        return tuple(changes)


def _explain(found: Mapping[str, DaemonState | None]) -> dict[str, str]:
    problems = {device: _GONE if state is None else state.problem for device, state in found.items()}
    return {device: problem for device, problem in problems.items() if problem is not None}
