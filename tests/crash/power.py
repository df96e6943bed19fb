"""Power cuts: the page cache dies with the process, and only what was synced is sure to be there after the boot."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from tests.crash.bench import Bench
from tests.crash.durability import Cut, Disk, Entry, Survivors
from tests.crash.effect import Moment, Point
from tests.crash.invariant import check_empty, check_settled
from tests.crash.node import Node, find_state
from tests.crash.recovery import Recovery, Trial, find_problems, restart, retry, unprepare
from tests.crash.row import Row
from tests.crash.scenario import Scenario
from tests.crash.session import started
from tests.crash.start import STARTS, Start

SEEDS: Final = 2
"""How many random cuts there are of a moment, beside the two extremes."""

AFTER_CUT: Final = "boot-after-cut"


@dataclass(frozen=True, slots=True)
class PowerCut:
    """What a power cut left for the boot that follows. `where` is for people."""

    where: str
    survivors: Survivors


def find_cuts(node: Node, journal: list[Entry], moments: range) -> Iterator[PowerCut]:
    """Yield what a power cut may leave at moments of a journal: before an entry of it, or after the last one."""
    for number in moments:
        where = _explain(journal, number)
        disk = Disk(journal[:number])
        for how, seed in ((Cut.NOTHING, ""), (Cut.NAMES, ""), *((Cut.SOME, str(each)) for each in range(SEEDS))):
            found = disk.cut(how, seed=f"{where} {seed}")
            survivors = {name: content for name, content in found.items() if node.stays(name)}
            yield PowerCut(f"{where}, {how}{seed and f' (seed {seed})'}", survivors)


def trust(trial: Trial) -> Iterator[str]:
    """The kubelet was answered before the cut, and does not ask again: what it was told is true."""
    ref = trial.scenario.ref
    with started(trial.node) as session:
        view = trial.node.look()
        if trial.operation == "unprepare":
            yield from check_empty(view)
        else:
            yield from check_settled(view)
            if view.records.get(ref.uid, {}).get("state") != "completed":
                yield "what the kubelet was told is prepared is not known any more"
            elif view.artifacts != trial.clean.view.artifacts:
                yield "other files than where nobody died"
        yield from trial.finish(session, trial.operation)


ASKED: Final[dict[str, Recovery]] = {"retry": retry, "unprepare": unprepare, "restart": restart}
ANSWERED: Final[dict[str, Recovery]] = {"trust": trust}


class PowerCuts:
    """The power cuts of one operation of one scenario. A disk that was tried is not tried again.

    To prepare, the first start of a plugin on the node is a part.
    """

    def __init__(self, bench: Bench, scenario: Scenario, operation: str) -> None:
        self.row = Row(f"power cut, {operation}", scenario.name)
        self._bench = bench
        self._scenario = scenario
        self._operation = operation
        self._known: set[object] = set()

    def run(self) -> Row:
        """Cut the power at each moment, and once the kubelet was answered at last where a process or a sync failed."""
        clean = self._bench.read_clean(self._scenario)
        trial = Trial(self._bench.node, self._scenario, self._operation, clean)
        journal, since = self._record()
        self.row.points = len(journal) + 1 - since
        self._try(trial, journal, range(since, len(journal)), ASKED)
        self._try_answered(trial, journal)
        killed = set()
        for number in range(since, len(journal)):
            left = Disk(journal[:number]).cut(Cut.ALL)
            if (state := find_state(left)) not in killed:
                killed.add(state)
                before = f"killed {_explain(journal, number)}, answered by the next process, "
                self._try_answered(trial, self._answer(left, journal[:number], before), before)
        for effect, refused in self._refuse():
            self._try_answered(trial, refused, f"syncs refused from {effect} on, then answered, ")
        self.row.states = len(self._known)
        return self.row

    def _refuse(self) -> Iterator[tuple[str, list[Entry]]]:
        """Let the syncs from one on go wrong, ask once more, and yield what was done to the disk until the answer.

        What it still has in memory is no excuse to tell the kubelet of what is not on the disk.
        """
        ref = self._scenario.ref
        with self._bench.begun(self._scenario, self._operation) as session:
            effects = session.record(self._operation, ref)
        for number, effect in enumerate(effects):
            if effect.startswith("fsync "):
                with self._bench.begun(self._scenario, self._operation) as session:
                    session.begin(self._operation, ref, Point(number, Moment.REFUSED))
                    if isinstance(session.child.hear(), dict):
                        again = session.call(self._operation, ref)
                        self._check_done(again, f"syncs refused from {effect} on, then asked again, ")
                    yield effect, self._bench.node.journal.read()

    def _record(self) -> tuple[list[Entry], int]:
        """Return what is done to the disk where nobody dies, and where in that begins what is tried."""
        journal = self._bench.node.journal
        self._bench.reset()
        since = len(journal.read())
        with self._bench.begun(self._scenario, self._operation) as session:
            if self._operation == "unprepare":
                since = len(journal.read())
            session.call(self._operation, self._scenario.ref)
            return journal.read(), since

    def _answer(self, disk: Survivors, journal: list[Entry], where: str) -> list[Entry]:
        """Let the next process do what one has not that was killed, and return what was done to the disk by both."""
        node = self._bench.node
        node.lay(disk)
        node.journal.replace(journal)
        with started(node) as session:
            self._check_done(session.call(self._operation, self._scenario.ref), where)
        return node.journal.read()

    def _check_done(self, answer: Any, where: str) -> None:
        if isinstance(answer, dict):
            self.row.problems.append(f"{self.row.operation} {self.row.subject}, {where}answered {answer['error']!r}")

    def _try_answered(self, trial: Trial, journal: list[Entry], before: str = "") -> None:
        self._try(trial, journal, range(len(journal), len(journal) + 1), ANSWERED, before)

    def _try(
        self, trial: Trial, journal: list[Entry], moments: range, recoveries: dict[str, Recovery], before: str = ""
    ) -> None:
        for cut in find_cuts(trial.node, journal, moments):
            if (state := (recoveries is ANSWERED, find_state(cut.survivors))) in self._known:
                continue
            self._known.add(state)
            for name, recovery in recoveries.items():
                trial.node.lay(cut.survivors, boot_id=AFTER_CUT)
                trial.node.journal.begin()
                self.row.trials += 1
                where = f"{self.row.operation} {self.row.subject}, {before}{cut.where}, then {name}"
                self.row.problems += (f"{where}: {problem}" for problem in find_problems(trial, recovery))


def _explain(journal: list[Entry], number: int) -> str:
    if number == len(journal):
        return "after the last effect"
    return f"before {journal[number].action} {journal[number].path} (#{number})"


def run_start(bench: Bench) -> Row:
    """Cut the power once more, while a plugin starts after a boot and sets up the claims that there are."""
    row, node, start = Row("power cut, start", "after a reboot"), bench.node, Start(bench, STARTS["after a reboot"])
    node.reboot()
    node.save()
    since = len(node.journal.read())
    with started(node):
        journal = node.journal.read()
    node.restore()
    node.reboot(AFTER_CUT)
    clean = start.read_clean()
    row.points = len(journal) + 1 - since
    known = set()
    for cut in find_cuts(node, journal, range(since, len(journal) + 1)):
        if (state := find_state(cut.survivors)) in known:
            continue
        known.add(state)
        node.lay(cut.survivors, boot_id=AFTER_CUT)
        node.journal.begin()
        row.trials += 1
        where = f"{row.operation} {row.subject}, {cut.where}"
        row.problems += (f"{where}: {problem}" for problem in start.recover(clean))
    row.states = len(known)
    return row
