"""What may come after a death. Each recovery takes a trial whose first process is dead, or stopped, and goes on."""

import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.crash.invariant import check_empty, check_settled
from tests.crash.node import Node, View
from tests.crash.scenario import Scenario
from tests.crash.session import Session, started

STOPPED_S = 0.02
"""How long a second process gets while the first one is stopped; what it has not done then, it waits for."""


@dataclass(frozen=True, slots=True)
class Clean:
    """How it looks where nobody dies: what the kubelet is told, and what is there then."""

    answer: Any
    view: View


@dataclass(frozen=True, slots=True)
class Trial:
    """One death: `operation` of a scenario's claim, in the process `first`, if that is only stopped."""

    node: Node
    scenario: Scenario
    operation: str
    clean: Clean
    first: Session | None = None

    def check_answer(self, operation: str, answer: Any) -> Iterator[str]:
        """Yield what is wrong with an answer, and with what is there after it."""
        view = self.node.look()
        yield from check_settled(view)
        if operation == "unprepare":
            if answer is not None:
                yield f"unprepare: {answer['error']}"
            yield from check_empty(view)
            return
        if answer != self.clean.answer:
            yield f"prepare is answered {answer!r}, want {self.clean.answer!r}"
        elif view.artifacts != self.clean.view.artifacts:
            yield "prepare leaves other files than where nobody died"

    def finish(self, session: Session, operation: str) -> Iterator[str]:
        """Go on until nothing is prepared: the rival gets in when it may, and not before."""
        if operation == "prepare":
            yield from self._check_rival(session, is_free=not self.scenario.is_held_up)
            yield from self.check_answer("unprepare", session.call("unprepare", self.scenario.ref))
        yield from self._check_rival(session, is_free=True)
        yield from check_empty(self.node.look())

    def _check_rival(self, session: Session, *, is_free: bool) -> Iterator[str]:
        answer = session.call("prepare", self.scenario.rival_ref)
        if is_free and isinstance(answer, dict):
            yield f"a device is held without a claim: {answer['error']}"
        elif not is_free and not isinstance(answer, dict):
            yield "a device is given to two claims"
        elif not is_free and f"default/{self.scenario.ref.name}" not in answer["error"]:
            yield f"the holder is not named: {answer['error']}"
        if (answer := session.call("unprepare", self.scenario.rival_ref)) is not None:
            yield f"rival: {answer['error']}"


Recovery = Callable[[Trial], Iterator[str]]


def find_problems(trial: Trial, recovery: Recovery) -> list[str]:
    """Return what a recovery finds; a trial that cannot go on is a problem of its own."""
    found: list[str] = []
    try:
        found.extend(recovery(trial))
    except Exception as error:  # noqa: BLE001 - whatever it is
        found.append(f"{type(error).__name__}: {error}")
    return found


def retry(trial: Trial) -> Iterator[str]:
    """The kubelet asks the next process for the same."""
    with started(trial.node) as session:
        yield from trial.check_answer(trial.operation, session.call(trial.operation, trial.scenario.ref))
        yield from trial.check_answer(trial.operation, session.call(trial.operation, trial.scenario.ref))
        yield from trial.finish(session, trial.operation)


def unprepare(trial: Trial) -> Iterator[str]:
    """The Pod is gone."""
    with started(trial.node) as session:
        yield from trial.check_answer("unprepare", session.call("unprepare", trial.scenario.ref))
        yield from trial.finish(session, "unprepare")


def restart(trial: Trial) -> Iterator[str]:
    """The next process starts, and is killed; the one after it prepares."""
    with started(trial.node):
        yield from check_settled(trial.node.look())
    with started(trial.node) as session:
        yield from trial.check_answer("prepare", session.call("prepare", trial.scenario.ref))
        yield from trial.finish(session, "prepare")


def reboot(trial: Trial) -> Iterator[str]:
    """The node boots: CDI specs, device nodes and partitions are gone, and the kubelet prepares anew."""
    trial.node.reboot()
    with started(trial.node) as session:
        yield from check_settled(trial.node.look())
        yield from trial.check_answer("prepare", session.call("prepare", trial.scenario.ref))
        yield from trial.finish(session, "prepare")


def reboot_unprepare(trial: Trial) -> Iterator[str]:
    """The node boots, and the Pod is gone."""
    trial.node.reboot()
    with started(trial.node) as session:
        yield from trial.check_answer("unprepare", session.call("unprepare", trial.scenario.ref))
        yield from trial.finish(session, "unprepare")


DEAD: dict[str, Recovery] = {
    "retry": retry,
    "unprepare": unprepare,
    "restart": restart,
    "reboot": reboot,
    "reboot, unprepare": reboot_unprepare,
}
"""Recoveries from a process that was killed."""


def _take_over(trial: Trial, operation: str, then: int) -> Iterator[str]:
    first, second = trial.first, Session(trial.node)
    assert first is not None
    try:
        second.child.tell("start")
        second.begin(operation, trial.scenario.ref)
        second.child.hears(STOPPED_S)
        first.child.send(then)
        if then == signal.SIGCONT:
            first.child.hear()
        else:
            first.child.wait()
        second.child.hear()  # about its start
        yield from trial.check_answer(operation, second.child.hear())
        first.close()
        yield from trial.finish(second, operation)
    finally:
        second.close()


def take_over(trial: Trial) -> Iterator[str]:
    """A second process is asked the same while the first one stands still, which then is killed."""
    yield from _take_over(trial, trial.operation, signal.SIGKILL)


def take_over_resumed(trial: Trial) -> Iterator[str]:
    """The same, but the first one goes on."""
    yield from _take_over(trial, trial.operation, signal.SIGCONT)


def overtaken(trial: Trial) -> Iterator[str]:
    """A second process unprepares while the first one stands still, which goes on after that."""
    yield from _take_over(trial, "unprepare", signal.SIGCONT)


STOPPED: dict[str, Recovery] = {
    "second takes over": take_over,
    "second beside the first": take_over_resumed,
    "unprepared by a second": overtaken,
}
"""What a second process does while the first one is stopped."""
