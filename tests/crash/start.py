"""A start that dies: on the node are a prepared claim, one that is half prepared, and what no claim has."""

import json
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kubeletplugin.app import read_backends
from tests.crash.bench import Bench
from tests.crash.effect import Point, points
from tests.crash.invariant import check_empty, check_settled
from tests.crash.node import View
from tests.crash.row import Row, describe
from tests.crash.scenario import find_orphan
from tests.crash.session import Session, started

_HALF: Final = "a partition"


@dataclass(frozen=True, slots=True)
class Before:
    """What came before a start: whether the node booted, and the scenario whose claim is prepared."""

    is_boot: bool
    prepared: str = "two shares"


STARTS: Final = {
    "after an update": Before(is_boot=False),
    "after a reboot": Before(is_boot=True),
    "after a reboot, with turns": Before(is_boot=True, prepared="turns and device metadata"),
    "after a reboot, with MPS": Before(is_boot=True, prepared="an MPS share"),
}


@dataclass(frozen=True, slots=True)
class Clean:
    """What is there after a start where nobody dies, and what the kubelet is told of both claims."""

    view: View
    answers: tuple[Any, Any]


class Start:
    """A node as a plugin leaves it that dies, with what older ones have left, and the next start on it."""

    def __init__(self, bench: Bench, before: Before) -> None:
        self._bench = bench
        self._prepared, self._half = (bench.find(name) for name in (before.prepared, _HALF))
        self._lay()

    def read_clean(self) -> Clean:
        """Start, and return what comes of it."""
        with started(self._bench.node) as session:
            view = self._bench.node.look()
            return Clean(view, self._answers(session))

    def recover(self, clean: Clean) -> list[str]:
        """Start after a death, and return what is wrong then, and with what follows until nothing is prepared."""
        found: list[str] = []
        try:
            with started(self._bench.node) as session:
                view = self._bench.node.look()
                found += check_settled(view)
                if (view.records, view.artifacts) != (clean.view.records, clean.view.artifacts):
                    found.append("other claims or files than where nobody died")
                if (answers := self._answers(session)) != clean.answers:
                    found.append(f"prepare is answered {answers!r}, want {clean.answers!r}")
                found += check_settled(self._bench.node.look())
                for ref in (self._prepared.ref, self._half.ref):
                    if (answer := session.call("unprepare", ref)) is not None:
                        found.append(f"unprepare: {answer['error']}")
                found += check_empty(self._bench.node.look())
        except Exception as error:  # noqa: BLE001 - a trial that cannot go on is a problem of its own
            found.append(f"{type(error).__name__}: {error}")
        return found

    def _answers(self, session: Session) -> tuple[Any, Any]:
        return session.call("prepare", self._prepared.ref), session.call("prepare", self._half.ref)

    def _lay(self) -> None:
        bench, prepared, half = self._bench, self._prepared, self._half
        with bench.begun(prepared, "prepare") as session:
            session.call("prepare", prepared.ref)
            effects = session.record("prepare", half.ref)
        written = max(number for number, effect in enumerate(effects) if effect.endswith(".tmp"))
        with bench.begun(prepared, "prepare") as session:
            session.call("prepare", prepared.ref)
            session.kill_at("prepare", half.ref, Point(written))
        settings = bench.node.settings
        (backend,) = read_backends(settings)
        backend.apply_partition(*find_orphan(backend.read_inventory()))
        for path in (
            settings.shim_dir / "uid-orphan" / "share",
            settings.metadata_dir / "uid-orphan" / "main.json",
            settings.claims_dir / ".uid-orphan.json.partial",
        ):
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_bytes(b"orphan")
        bench.server.replace([*bench.server.read(), *self._build_orphan_pods()])
        view = bench.node.look()
        assert {record["state"] for record in view.records.values()} == {"completed", "started"}, view.records
        assert len(view.partitions) == 2, view.partitions
        assert any(Path(name).suffix == ".tmp" for name in view.leftovers), view.leftovers

    def _build_orphan_pods(self) -> list[Any]:
        """The Pods that there are, each once more for a device that no claim has."""
        (backend,) = read_backends(self._bench.node.settings)
        used, idle = (device.name for device in backend.read_inventory().devices[:2])
        pods: list[Any] = json.loads(json.dumps(self._bench.server.read()).replace(used, idle))
        return pods


def run_start(bench: Bench, subject: str) -> Row:
    """Kill a start at every point, and see that the next one comes to the same as one that nobody killed."""
    row, start, is_boot = Row("start", subject), Start(bench, STARTS[subject]), STARTS[subject].is_boot
    bench.node.save()
    effects = _record(bench, is_boot=is_boot)
    every = points(effects)
    row.points = len(every)
    bench.go_back(is_boot=is_boot)
    clean = start.read_clean()
    known = set()
    for point in every:
        bench.go_back(is_boot=is_boot)
        _die(bench, point)
        if (state := bench.node.state()) in known:
            continue
        known.add(state)
        row.trials += 1
        where = describe(effects, point)
        row.problems += (f"start {subject}, {where}: {problem}" for problem in start.recover(clean))
    row.states = len(known)
    return row


def _record(bench: Bench, *, is_boot: bool) -> list[str]:
    bench.go_back(is_boot=is_boot)
    session = Session(bench.node)
    try:
        effects: list[str] = session.child.ask("start", record=True)
        return effects
    finally:
        session.close()


def _die(bench: Bench, point: Point) -> None:
    session = Session(bench.node)
    try:
        session.begin("start", None, point)
        assert session.child.wait() == -signal.SIGKILL
    finally:
        session.close()
