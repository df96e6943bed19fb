"""Upstream's own test cases of its allocators, put to ours.

The cases are internal to upstream's module, and nothing of them is kept here: a copy of the module in a folder of its
own gets one file more (`tests/upstream/replay`), which writes down what each case asks and what upstream answers.

`python -m tests.referee.replay` prints how many agree, by implementation, and what does not.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from controller.allocator import CelCompiler, SelectorCache
from controller.allocator.allocation import allocate_from, known_pools
from controller.allocator.state import AllocatedState
from dra_driver.api.quantity import Quantity
from tests.cluster.program import cache_dir
from tests.referee.agreement import find_differences
from tests.referee.allocation import read_problem, time_answer
from tests.referee.process import Answer, Question

SOURCE: Final = Path(__file__).parents[1] / "upstream" / "replay"
_MODULE: Final = "k8s.io/dynamic-resource-allocation"
_PACKAGE: Final = "structured/internal/replay"
_RUN: Final = "=== RUN   TestReplay/"
_MARK: Final = "@replay "
# What marks the errors of a class; the allocators have texts, not types.
_MARKS: Final = (
    ("compile", ": CEL compile error: "),
    ("compile", "compile derived attribute "),
    ("runtime", ": CEL runtime error: "),
    ("runtime", "evaluate derived attribute "),
    ("limit", " exceeds the claim limit of "),
    ("limit", " is too large"),
    ("incomplete", " is currently being updated"),
    ("invalid", " is currently invalid"),
    ("invalid", "invalid resource pools were encountered"),
)


@dataclass(frozen=True, slots=True)
class Case:
    """A case of upstream's as one implementation ran it."""

    channel: str
    name: str
    question: Question
    answer: Answer
    is_lossy: bool
    """Whether the question cannot be written as JSON by upstream's code, so that it is another one here."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A case that we answer otherwise."""

    case: Case
    kinds: tuple[str, ...]
    ours: Answer


def program() -> Path:
    """Return the program that runs the cases, building it if need be (two minutes on two cores; needs Go)."""
    sources = [SOURCE / name for name in ("go.mod", "go.sum", "replay_test.go")]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    target = cache_dir() / f"replay-{digest}" / "replay.test"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            _build(Path(folder), target)
    return target


def _build(folder: Path, target: Path) -> None:
    """Compile inside a copy of the module; the copy goes with `folder`."""
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod"}
    listed = ("go", "mod", "download", "-json", f"{_MODULE}@{_version()}")
    downloaded = subprocess.run(listed, cwd=SOURCE, env=environment, check=True, stdout=subprocess.PIPE)
    module = folder / "module"
    shutil.copytree(json.loads(downloaded.stdout)["Dir"], module, copy_function=shutil.copyfile)
    for path in (module, *module.rglob("*/")):
        path.chmod(0o755)
    (module / _PACKAGE).mkdir()
    shutil.copy(SOURCE / "replay_test.go", module / _PACKAGE)
    (folder / "go.mod").write_text(f"{(SOURCE / 'go.mod').read_text()}\nreplace {_MODULE} => {module}\n")
    shutil.copy(SOURCE / "go.sum", folder)
    compiled = folder / "replay.test"
    command = ("go", "test", "-c", "-trimpath", "-tags", "replay", "-modfile", folder / "go.mod", "-o", compiled)
    subprocess.run((*command, f"{_MODULE}/{_PACKAGE}"), cwd=SOURCE, env=environment, check=True)
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.move(compiled, partial)
    partial.rename(target)


def _version() -> str:
    lines = (line.split() for line in (SOURCE / "go.mod").read_text().splitlines())
    return next(words[1] for words in lines if words[:1] == [_MODULE])


def run_cases() -> list[Case]:
    """Run all cases. Raises CalledProcessError if upstream fails its own."""
    with tempfile.TemporaryDirectory() as folder:
        command = (program(), "-test.v")
        ended = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    return list(read_cases(ended.stdout))


def read_cases(output: str) -> Iterator[Case]:
    """Read what the program printed."""
    channel = name = ""
    for line in output.splitlines():
        if line.startswith(_RUN):
            channel, _, name = line.removeprefix(_RUN).partition("/")
        elif line.startswith(_MARK):
            record = json.loads(line.removeprefix(_MARK))
            _complete(record["question"])
            answer = record["answer"] | _classify(record["answer"])
            yield Case(channel, name, {"op": "allocate", **record["question"]}, answer, record["lossy"])


def _complete(question: dict[str, Any]) -> None:
    """Fill in what every object of an API server has, and some cases leave out."""
    for slice_ in question["slices"] or ():
        devices = slice_["spec"].get("devices", ())
        consumptions = [entry for device in devices for entry in device.get("consumesCounters", ())]
        for entry in (*consumptions, *slice_["spec"].get("sharedCounters", ())):
            entry.setdefault("counters", {})


def _classify(answer: Answer) -> Answer:
    if "error" not in answer:
        return {}
    return {"errorClass": next((class_ for class_, mark in _MARKS if mark in answer["error"]), "other")}


def find_difference(case: Case) -> Difference | None:
    """Answer a case; give what is different."""
    problem, state = read_problem(case.question), _read_state(case.question)
    selectors = SelectorCache(CelCompiler())
    own, _ = time_answer(lambda: allocate_from(problem, known_pools(problem), state, selectors))
    kinds = find_differences(case.question, case.answer, own)
    if kinds == ("result",) and _has_no_order(case):
        kinds = ()
    return Difference(case, kinds, own) if kinds else None


def _has_no_order(case: Case) -> bool:
    """Tell whether upstream may answer otherwise next time: its stable allocator walks pools in random order."""
    return case.channel == "stable" and len({slice_["spec"]["pool"]["name"] for slice_ in case.question["slices"]}) > 1


def _read_state(question: Question) -> AllocatedState:
    """Read upstream's form of what is allocated, where sums do not tell whose they are."""
    given: dict[str, Any] = question["state"]
    state = AllocatedState(bool(question["features"]["ConsumableCapacity"]))
    state.whole.update(tuple(device) for device in given["whole"] or ())
    state.shares.update(tuple(device) for device in given["shares"] or ())
    for entry in given["consumed"] or ():
        device = tuple(entry["device"])
        amounts = {name: Quantity.parse(text).nanos for name, text in entry["capacity"].items()}
        state.shares[device] = max(1, state.shares[device])
        state.consumed[device] = Counter({name: amount for name, amount in amounts.items() if amount})
    return state


def main() -> int:
    """Run the comparison; the exit status is 1 if there are differences."""
    asked, differing, lossy = Counter[str](), Counter[str](), Counter[str]()
    for case in run_cases():
        if case.is_lossy:
            lossy[case.channel] += 1
            continue
        asked[case.channel] += 1
        difference = find_difference(case)
        if difference is not None:
            differing[case.channel] += 1
            sys.stdout.write(f"{case.channel}/{case.name}: {', '.join(difference.kinds)}\n")
            for name, value in (("question", case.question), ("upstream", case.answer), ("ours", difference.ours)):
                sys.stdout.write(f"  {name}: {json.dumps(value, ensure_ascii=False)}\n")
    for channel, count in sorted(asked.items()):
        agreeing = count - differing[channel]
        sys.stdout.write(f"{channel}: {agreeing} of {count} agree, {lossy[channel]} cannot be put\n")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
