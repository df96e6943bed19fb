"""Put random questions to upstream and to us, and print each kind of disagreement as a minimal question.

`python -m tests.referee.fuzz --problems 20000 --seed 1 [--op cel …] [--report FOLDER]`
"""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random

from tests.referee import generate_cel, generate_text, history, ours, shrink, upstream
from tests.referee.agreement import find_differences
from tests.referee.certificate import certifying_question
from tests.referee.exhaustive import Verdict, try_everything
from tests.referee.generate_allocation import allocate_question
from tests.referee.generate_cluster import cluster_question
from tests.referee.process import Answer, Question, Referee

Drawn = tuple[Question, Callable[[Question, shrink.Disagrees], Question]]
# How many questions of one kind are shrunk.
_SHRUNK = 25
_AGAIN = 40
# Of the questions within histories every seventh is put to upstream, too.
_SAMPLED = 7
OPERATIONS = (*ours.OPERATIONS, "cluster")
# Upstream's searches take microseconds or, if they explode, forever; those get a second chance.
_TIMEOUT_MS = 1000
_SECOND_TIMEOUT_MS = 20_000
_WORD = re.compile(r"[A-Za-z_]+")


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A question that we answer otherwise than upstream."""

    op: str
    kind: str
    question: Question
    theirs: Answer
    ours: Answer


@dataclass(slots=True)
class Tally:
    """What came out: how many questions of each operation, how many without verdict, which disagreements."""

    asked: Counter[str] = field(default_factory=Counter)
    unsettled: Counter[str] = field(default_factory=Counter)
    disagreements: Counter[tuple[str, str]] = field(default_factory=Counter)
    smallest: dict[tuple[str, ...], Disagreement] = field(default_factory=dict)


class Comparison:
    """Two referees who answer the same questions."""

    def __init__(self, theirs: Referee, ours: Referee) -> None:
        self._theirs = theirs
        self._ours = ours
        self.checks: Counter[str] = Counter()

    def compare(self, question: Question) -> tuple[tuple[str, ...], Answer, Answer]:
        """Ask both at once; give the kinds of difference and the answers."""
        self._theirs.begin(question)
        self._ours.begin(question)
        theirs, ours = self._theirs.finish(), self._ours.finish()
        if theirs.get("errorClass") == "timeout" and not ours.get("fit") and not ours.get("undecided"):
            theirs = self._theirs.ask({**question, "timeoutMs": _SECOND_TIMEOUT_MS})
        kinds = find_differences(question, theirs, ours)
        if not kinds and question["op"] == "allocate" and is_without_verdict(theirs):
            kinds = self._verify(question, ours)
        return kinds, theirs, ours

    def _verify(self, question: Question, ours: Answer) -> tuple[str, ...]:
        """Check an answer where upstream has none: what fits by asking for no more, and a refusal by trying all."""
        if ours.get("fit"):
            certificate = self._theirs.ask(certifying_question(question, ours))
            if is_without_verdict(certificate):
                self.checks["allocations that upstream could not check"] += 1
            elif not certificate.get("fit"):
                return ("fit, upstream cannot use these devices",)
            else:
                self.checks["allocations checked by upstream"] += 1
        elif not ours.get("undecided") and "error" not in ours:
            verdict = try_everything(question)
            if verdict is Verdict.FITS:
                return ("refused, there is an allocation",)
            is_proven = verdict is Verdict.DOES_NOT_FIT
            self.checks[f"refusals {'proven by trying all' if is_proven else 'with too much to try'}"] += 1
        return ()

    def is_settled(self, question: Question, theirs: Answer) -> bool:
        """Tell whether upstream gives the same answer each time it is asked; otherwise it has no verdict."""
        if is_without_verdict(theirs):
            return True
        return not any(find_differences(question, theirs, self._theirs.ask(question)) for _ in range(_AGAIN))

    def disagrees(self, kind: str) -> shrink.Disagrees:
        """Tell of smaller questions whether they disagree in the same way."""

        def is_so(question: Question) -> bool:
            kinds, theirs, _ = self.compare(question)
            return kind in kinds and self.is_settled(question, theirs)

        return is_so


class ClusterComparison(Comparison):
    """Holds a cluster that is kept up to date against one that is looked at anew, and now and then against upstream."""

    def compare(self, question: Question) -> tuple[tuple[str, ...], Answer, Answer]:
        """Play a history; give the kinds of difference, and the last questions and answers that differ."""
        kinds: list[str] = []
        theirs: Answer = {}
        own: Answer = {}
        try:
            for number, finding in enumerate(history.play(question)):
                kinds += finding.kinds
                if finding.asked is not None and number % _SAMPLED == 0:
                    found, *answers = super().compare(finding.asked)
                    if found and super().is_settled(finding.asked, answers[0]):
                        kinds += (f"upstream: {kind}" for kind in found)
                        theirs, own = answers
        except history.BadEventError as error:
            return (), {"badQuestion": str(error)}, {"badQuestion": str(error)}
        except Exception as error:  # noqa: BLE001 - a defect is an answer
            kinds.append(f"panic: {type(error).__name__}")
            own = {"panic": f"{type(error).__name__}: {error}"}
        return tuple(dict.fromkeys(kinds)), theirs, own

    def is_settled(self, question: Question, theirs: Answer) -> bool:
        """Tell that what was found counts: upstream was asked again where it differed."""
        del question, theirs
        return True


def is_without_verdict(theirs: Answer) -> bool:
    """Tell whether upstream panicked, hung or ran into its time limit."""
    return "panic" in theirs or theirs.get("errorClass") == "timeout"


def draw(op: str, random: Random) -> Drawn:
    """Draw a question, with what shrinks it."""
    if op == "cel":
        tree, question = generate_cel.cel_problem(random)
        return question, lambda question, disagrees: shrink.shrink_expression(question, tree, disagrees)
    drawers = {
        "allocate": _allocate_question,
        "cluster": cluster_question,
        "quantity": generate_text.quantity_question,
        "semver": generate_text.semver_question,
        "name": generate_text.name_question,
    }
    return drawers[op](random), shrink.shrink_question


def _allocate_question(random: Random) -> Question:
    return {**allocate_question(random), "timeoutMs": _TIMEOUT_MS}


def fuzz(comparison: Comparison, op: str, count: int, seed: int) -> Tally:
    """Compare the answers to `count` questions."""
    random, tally = Random(f"{op} {seed}"), Tally()
    for _ in range(count):
        question, shrinker = draw(op, random)
        kinds, theirs, _ = comparison.compare(question)
        tally.asked[op] += 1
        if is_without_verdict(theirs):
            tally.unsettled[op] += 1
        elif kinds and not comparison.is_settled(question, theirs):
            tally.unsettled[op] += 1
            kinds = tuple(kind for kind in kinds if kind.startswith("ours:"))
        for kind in kinds:
            key = (op, kind)
            tally.disagreements[key] += 1
            if tally.disagreements[key] <= _SHRUNK:
                small = shrinker(question, comparison.disagrees(kind))
                _keep_smallest(tally, Disagreement(op, kind, small, *comparison.compare(small)[1:]))
    return tally


def _keep_smallest(tally: Tally, found: Disagreement) -> None:
    """Keep the smallest question of a kind; of selectors that of each set of words, since one kind has many causes."""
    key = (found.op, found.kind, *sorted(set(_WORD.findall(found.question.get("expr", "")))))
    known = tally.smallest.get(key)
    if known is None or _size(found) < _size(known):
        tally.smallest[key] = found


def _size(found: Disagreement) -> int:
    return len(json.dumps(found.question))


def describe(tally: Tally) -> Iterator[str]:
    """Say in lines what came out, the smallest disagreements first."""
    for op, asked in tally.asked.items():
        different = sum(count for (its_op, _), count in tally.disagreements.items() if its_op == op)
        yield f"{op}: {asked} questions, {tally.unsettled[op]} without verdict, {different} disagreements"
    for found in sorted(tally.smallest.values(), key=_size):
        yield f"{found.op}: {found.kind} (of {tally.disagreements[found.op, found.kind]} such)"
        for name, value in (("question", found.question), ("upstream", found.theirs), ("ours", found.ours)):
            yield f"  {name}: {json.dumps(value, ensure_ascii=False)}"


def write_report(tally: Tally, op: str, folder: Path) -> None:
    """Write the minimal questions of an operation to `<op>.jsonl` in `folder`, the smallest first."""
    lines = [
        {"count": tally.disagreements[op, found.kind], **asdict(found)}
        for found in sorted(tally.smallest.values(), key=_size)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{op}.jsonl").write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines))


def main() -> int:
    """Run the comparison; the exit status is 1 if there are disagreements."""
    parser = argparse.ArgumentParser(prog="python -m tests.referee.fuzz", description=__doc__)
    parser.add_argument("--problems", type=int, default=1000, help="questions of each operation, default 1000")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--op", action="append", choices=OPERATIONS, help="default: all")
    parser.add_argument("--report", type=Path, help="a folder to write minimal disagreements to")
    options = parser.parse_args()
    is_fine = True
    with upstream.start() as theirs, ours.start() as own:
        for op in options.op or OPERATIONS:
            comparison = (ClusterComparison if op == "cluster" else Comparison)(theirs, own)
            tally = fuzz(comparison, op, options.problems, options.seed)
            sys.stdout.write("".join(f"{line}\n" for line in describe(tally)))
            sys.stdout.flush()
            if options.report:
                write_report(tally, op, options.report)
            for text, number in sorted(comparison.checks.items()):
                sys.stdout.write(f"{op}: without upstream's verdict: {number} {text}\n")
            is_fine = is_fine and not tally.disagreements
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
