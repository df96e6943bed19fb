"""What the process does while it leads: it decides about one Pod after the other, and writes beside that."""

import asyncio
import random
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, assert_never

import structlog

from controller.decider import Decider, Steps
from controller.decision import Code, Decision, Leave, Place, Refuse, TakeBack
from controller.effort import Effort, Hint
from controller.metric import Metrics, Result
from controller.ownership import is_gated
from controller.past import Pasts
from controller.pod_claim import is_pending
from controller.pod_writer import PodWriter
from controller.queue import Queue
from controller.state import Effect, Flight, State
from controller.sweeper import Sweeper
from controller.teller import Teller
from controller.writer import GivenUpError
from dra_driver.api.core_v1 import Pod
from dra_driver.api.resource_v1 import ResourceClaim
from dra_driver.errors import ApiConflictError, ApiError, ApiNotFoundError, LeadershipLostError
from dra_driver.kube.resource import ObjectKey, key_of

log = structlog.get_logger(__name__)

_WRITERS: Final = 32
_BREATH_S: Final = 0.005
_RESTART_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Timing:
    """How patient the leader is, in seconds.

    A node is avoided for `avoid_s` after kube-scheduler refused it. What the API server refuses for good is tried
    again after `refused_s`. Writes under way have `grace_s` to end when leadership does. `unknown_s` after a request
    without an answer it cannot arrive any more. An allocation whose Pods are all gone is left to Kubernetes for
    `orphan_s`; it is looked for every `look_s`. A part of a Pod's allocations is taken back once it has been as it is
    for `settle_s`. After a conflict a Pod waits for up to `conflict_s`.
    """

    avoid_s: float = 60.0
    refused_s: float = 30.0
    grace_s: float = 3.0
    unknown_s: float = 75.0
    orphan_s: float = 30.0
    look_s: float = 10.0
    conflict_s: float = 0.2
    settle_s: float = 2.0


@dataclass(slots=True, eq=False)
class Leader:
    """Decides and writes. `notice` is told of every change, whoever leads."""

    state: State
    decider: Decider
    writer: PodWriter
    teller: Teller
    metrics: Metrics
    timing: Timing = field(default_factory=Timing)
    monotonic: Callable[[], float] = time.monotonic
    queue: Queue = field(default_factory=Queue)
    pasts: Pasts = field(default_factory=Pasts)
    effort: Effort = field(init=False)
    _is_leading: bool = False
    _is_ending: bool = False
    _writes: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.effort = Effort(self.state, self.decider.policy, self.decider.budget, self.queue.add)

    @property
    def is_leading(self) -> bool:
        """Whether it decides."""
        return self._is_leading

    def notice(self, effect: Effect) -> None:
        """Hear what a change may mean."""
        if not self._is_leading:
            self.state.forget_changes()
            return
        for key in effect.pods:
            pod = self.state.pods.get(key)
            if pod is None or not is_pending(pod):
                self._forget(key)
            elif pod.spec.resource_claims:
                self.queue.add(key)
        if effect.may_help:
            self.queue.retry_refused()

    async def run(self) -> None:
        """Decide until cancelled. Writes under way may end before this does."""
        self._is_leading, self._is_ending = True, False
        self.metrics.leader.set(1)
        try:
            async with asyncio.TaskGroup() as tasks:
                try:
                    self._add_all()
                    for work in (self._sweep().run, self.teller.run, self.effort.run):
                        tasks.create_task(_keep_on(work))
                    while True:
                        await self._decide(await self.queue.next(), tasks)
                except asyncio.CancelledError:
                    self._is_ending = True
                    if self._writes:
                        await asyncio.wait(self._writes, timeout=self.timing.grace_s)
                    raise
        finally:
            self._is_leading = False
            self.metrics.leader.set(0)
            self.queue.clear()
            self.teller.clear_all()
            self.pasts.clear()
            self.effort.clear()

    def _sweep(self) -> Sweeper:
        look_s, orphan_s = self.timing.look_s, self.timing.orphan_s
        return Sweeper(self.state, self.decider, self.writer, self.teller, look_s, orphan_s, self.monotonic)

    def _add_all(self) -> None:
        """Start with all Pods, the oldest first."""
        pods = [pod for pod in self.state.pods.values() if pod.spec.resource_claims and is_pending(pod)]
        for pod in sorted(pods, key=lambda pod: (pod.metadata.creation_timestamp or "", key_of(pod))):
            self.queue.add(key_of(pod))

    async def _decide(self, key: ObjectKey, tasks: asyncio.TaskGroup) -> None:
        """Decide about one Pod, and start to write what was decided."""
        while len(self._writes) >= _WRITERS:
            await asyncio.wait(self._writes, return_when=asyncio.FIRST_COMPLETED)
        pod = self.state.pods.get(key)
        if pod is None:
            # It may have gone while it was decided, and what came of that was noted afterwards.
            self._forget(key)
            self.queue.done(key)
            return
        started = self.monotonic()
        hint = self.effort.hints.pop(key, None)
        decision = await self._find_decision(pod, hint)
        # From here to what `choose` counts nothing else may run: the answer is true of the state as it is now.
        result = _result_of(decision)
        self.metrics.decisions.labels(result).inc()
        self.metrics.decision_seconds.labels(result).observe(self.monotonic() - started)
        self._act(key, pod, decision, tasks)

    async def _find_decision(self, pod: Pod, hint: Hint | None) -> Decision:
        """Decide; a fault that one Pod brings to light does not keep the others waiting."""
        try:
            return await _run_steps(self.decider.decide(pod, avoided=self._find_avoided(pod), hint=hint))
        except Exception as error:
            log.exception("decision failed", pod=str(key_of(pod)))
            self.queue.add_later(key_of(pod), self.timing.refused_s)
            return Refuse(Code.FAILED, f"the controller cannot decide: {type(error).__name__}, see its log")

    def _act(self, key: ObjectKey, pod: Pod, decision: Decision, tasks: asyncio.TaskGroup) -> None:
        """Start to do what was decided."""
        match decision:
            case Leave():
                self.teller.clear(key)
                self.queue.done(key)
            case Refuse():
                self._refuse(pod, decision)
                self.queue.done(key, refused=True)
                if self._find_avoided(pod):
                    self.queue.add_later(key, self.timing.avoid_s)
            case Place() if self._is_being_written(decision):
                # By another Pod that shares a claim; what becomes of it is seen on the claim.
                self.queue.done(key, refused=True)
            case Place() if self._is_current(pod, decision):
                self.teller.clear(key)
                self.state.choose(pod, decision.node, decision.allocations)
                self.state.promise(decision.promises)
                self._start(tasks, key, self._write(key, pod, decision))
            case Place():
                self.queue.done(key)
                self.queue.add(key)
            case TakeBack():
                self._refuse(pod, decision.because)
                if self.pasts.unchanged_s(pod, decision.claims, self.monotonic()) >= self.timing.settle_s:
                    self._start(tasks, key, self._take_back(key, pod, decision.claims))
                else:
                    self.queue.done(key, refused=True)
                    self.queue.add_later(key, self.timing.settle_s)
            case _:
                assert_never(decision)

    def _start(self, tasks: asyncio.TaskGroup, key: ObjectKey, coroutine: Coroutine[Any, Any, None]) -> None:
        self.queue.write(key)
        task = tasks.create_task(coroutine)
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)

    def _refuse(self, pod: Pod, refusal: Refuse) -> None:
        self.metrics.refusals.labels(refusal.code).inc()
        self.teller.refuse(pod, refusal)
        if refusal.code is Code.UNDECIDED:
            self.effort.add(pod, refusal)
        log.debug("pod refused", pod=str(key_of(pod)), code=refusal.code, reason=refusal.text)

    def _is_being_written(self, place: Place) -> bool:
        """Tell whether a claim is being allocated already, or may still be by a request without an answer."""
        flights = (self.state.flights.get(key_of(claim)) for claim, _ in place.allocations)
        return any(flight is not None and flight.is_own for flight in flights)

    def _is_current(self, pod: Pod, place: Place) -> bool:
        """Tell whether what was decided about is still what is there."""
        claims = (*(claim for claim, _ in (*place.allocations, *place.promises)), *place.reservations)
        return self.state.pods.get(key_of(pod)) is pod and all(
            self.state.claims.get(key_of(claim)) is claim for claim in claims
        )

    async def _write(self, key: ObjectKey, pod: Pod, place: Place) -> None:
        """Write what was decided about a Pod; whatever happens, what is not written does not count any more."""
        flying = {key_of(claim) for claim, _ in place.allocations}
        is_written = False
        try:
            await self.writer.write_claims(pod, place, flying, self._wanted(pod))
            await self.writer.let_go(pod, self._wanted(pod))
            is_written = True
        except (GivenUpError, LeadershipLostError) as error:
            log.info("pod given up", pod=str(key), error=str(error))
        except (ApiConflictError, ApiNotFoundError) as error:
            log.info("pod changed meanwhile", pod=str(key), error=str(error))
            self.pasts.place(pod, "")
            self.queue.add_later(key, self.timing.conflict_s * random.random())  # noqa: S311 - no secret
        except ApiError as error:
            log.error("pod not written", pod=str(key), error=str(error))  # noqa: TRY400 - it says all there is
            self.teller.warn(pod, "AllocationFailed", str(error))
            self.queue.add_later(key, self.timing.refused_s)
        finally:
            self.metrics.writes.labels("success" if is_written else "error").inc()
            self._land(pod, place, flying, is_written=is_written)
            self.queue.done(key)
        if is_written:
            self._tell_written(pod, place)

    def _land(self, pod: Pod, place: Place, flying: set[ObjectKey], *, is_written: bool) -> None:
        """Believe what the watch tells, but for what may still arrive: its devices are kept until it cannot."""
        self.state.land(flying)
        keys = {key_of(claim) for claim, _ in place.allocations} - flying
        late = {key: flight for key, flight in self.state.flights.items() if key in keys}
        if late:
            asyncio.get_running_loop().call_later(self.timing.unknown_s, self._land_late, late)
        if not is_written:
            self.state.land([key_of(claim) for claim, _ in place.promises])
            self.state.forget_choice(pod)
            self.queue.retry_refused()

    def _land_late(self, flights: Mapping[ObjectKey, Flight]) -> None:
        """Believe what the watch tells, but where the claim was decided about anew meanwhile."""
        self.state.land([key for key, flight in flights.items() if self.state.flights.get(key) is flight])
        self.queue.retry_refused()

    async def _take_back(self, key: ObjectKey, pod: Pod, claims: tuple[ResourceClaim, ...]) -> None:
        """Take back what a Pod cannot use, so that others can; then it is decided anew."""
        try:
            await self.writer.take_back(claims, self._wanted(pod))
        except (GivenUpError, LeadershipLostError) as error:
            log.info("pod given up", pod=str(key), error=str(error))
        except ApiError as error:
            log.warning("allocation not taken back", pod=str(key), error=str(error))
            self.queue.add_later(key, self.timing.conflict_s)
        else:
            log.info("allocation taken back", pod=str(key), claims=[str(key_of(claim)) for claim in claims])
            self.queue.add_later(key, 0.0)
        finally:
            self.queue.done(key)

    def _wanted(self, pod: Pod) -> Callable[[], bool]:
        """Give what tells whether the Pod still needs what is being written for it."""

        def is_wanted() -> bool:
            current = self.state.pods.get(key_of(pod))
            return (
                not self._is_ending
                and current is not None
                and current.metadata.uid == pod.metadata.uid
                and is_pending(current)
            )

        return is_wanted

    def _find_avoided(self, pod: Pod) -> frozenset[str]:
        now = self.monotonic()
        if self.decider.has_unallocated(pod):
            refused = self.pasts.note_refusal(pod, now + self.timing.avoid_s)
            if refused:
                log.info("kube-scheduler took an allocation back", pod=str(key_of(pod)), node=refused)
        return self.pasts.find_avoided(pod, now)

    def _tell_written(self, pod: Pod, place: Place) -> None:
        if place.node and self._wanted(pod)():
            self.pasts.place(pod, place.node)
        waited_s = _age_s(pod)
        if is_gated(pod):
            self.metrics.allocation_seconds.observe(waited_s)
        log.info(
            "pod allocated",
            pod=str(key_of(pod)),
            pod_uid=pod.metadata.uid,
            node=place.node,
            claims=[str(key_of(claim)) for claim, _ in place.allocations],
            waited_s=round(waited_s, 3),
        )

    def _forget(self, key: ObjectKey) -> None:
        self.teller.clear(key)
        self.queue.forget(key)
        self.pasts.forget(key)
        self.effort.forget(key)


async def _keep_on(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run what goes on in the background; a fault that one object brings to light does not keep others waiting."""
    while True:
        try:
            await work()
        except Exception:
            log.exception("background work failed", work=work.__qualname__)
            await asyncio.sleep(_RESTART_S)


async def _run_steps(steps: Steps) -> Decision:
    """Go through the steps of a decision, and let others run in between."""
    started = time.perf_counter()
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            decision: Decision = stop.value
            return decision
        if time.perf_counter() - started > _BREATH_S:
            await asyncio.sleep(0)
            started = time.perf_counter()


def _result_of(decision: Decision) -> Result:
    match decision:
        case Place():
            return Result.PLACED
        case TakeBack():
            return Result.TAKEN_BACK
        case Refuse():
            return Result.UNDECIDED if decision.code is Code.UNDECIDED else Result.REFUSED
        case Leave():
            return Result.LEFT
        case _:
            assert_never(decision)


def _age_s(pod: Pod) -> float:
    created = pod.metadata.creation_timestamp
    if created is None:
        return 0.0
    try:
        born = datetime.fromisoformat(created)
    except ValueError:
        return 0.0
    return max(0.0, (datetime.now(UTC) - born).total_seconds())
