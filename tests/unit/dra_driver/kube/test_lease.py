import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_driver.errors import LeadershipLostError
from tests.support.candidate import Candidate, Server
from tests.support.virtual_time import now, run_virtually

_Test = Callable[..., Coroutine[Any, Any, None]]


def virtual(test: _Test) -> Callable[..., None]:
    """Run a test in virtual time."""

    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        run_virtually(test(*args, **kwargs))

    return run


@asynccontextmanager
async def campaign(*candidates: Candidate) -> AsyncIterator[None]:
    """Let candidates run until the block ends."""
    tasks = [asyncio.create_task(candidate.run()) for candidate in candidates]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task


def two(server: Server, **options: Any) -> tuple[Candidate, Candidate]:
    return Candidate(server, "a", random.Random(1), **options), Candidate(server, "b", random.Random(2), **options)


async def until(condition: Callable[[], object], within_s: float) -> float:
    """Wait for a condition and return the seconds that it took."""
    started = now()
    while not condition():
        assert now() - started < within_s
        await asyncio.sleep(0.05)
    return now() - started


def leaders(*candidates: Candidate) -> list[str]:
    return [candidate.name for candidate in candidates if candidate.leads]


@virtual
async def test_one_of_two_leads_and_goes_on_leading() -> None:
    a, b = two(Server())
    async with campaign(a, b):
        await until(lambda: leaders(a, b), 1)
        first = leaders(a, b)
        for _ in range(1000):
            await asyncio.sleep(0.5)
            assert leaders(a, b) == first
    assert a.server.reigns == 1


@virtual
async def test_a_leader_makes_one_request_a_renewal() -> None:
    a = Candidate(Server(), "a", random.Random(1))
    async with campaign(a):
        await until(lambda: a.leads, 1)
        before = a.requests
        await asyncio.sleep(100)
        assert 45 <= a.requests - before <= 50


@virtual
async def test_another_leads_within_seconds_of_an_orderly_end() -> None:
    a, b = two(Server())
    async with campaign(a):
        await until(lambda: a.leads, 1)
        async with campaign(b):
            await asyncio.sleep(20)
            assert leaders(a, b) == ["a"]
    async with campaign(b):
        assert await until(lambda: b.leads, 10) < 1
    assert a.server.get().spec.holder_identity is None


@virtual
async def test_the_lease_is_released_after_what_was_led_has_ended() -> None:
    a, b = two(Server())
    a.ending_s = 40.0
    task = asyncio.create_task(a.run())
    await until(lambda: a.leads, 1)
    async with campaign(b):
        task.cancel()
        while not task.done():
            assert not (a.leads and b.leads)
            await asyncio.sleep(0.1)
        assert task.cancelled()
        await until(lambda: b.leads, 5)


@virtual
async def test_another_leads_after_the_lease_of_one_that_vanished_is_over() -> None:
    a, b = two(Server())
    async with campaign(a, b):
        await until(lambda: leaders(a, b), 1)
        [gone], [other] = [x for x in (a, b) if x.leads], [x for x in (a, b) if not x.leads]
        gone.freeze()
        gone.hangs = True
        assert 12 < await until(lambda: other.leads, 30) < 21
        transitions = a.server.get().spec.lease_transitions
        assert transitions == 1


@pytest.mark.parametrize("fault", ["hangs", "refused", "loses_answers"])
@virtual
async def test_a_leader_without_an_api_server_has_ended_before_its_lease_is_over(fault: str) -> None:
    a, b = two(Server())
    a.ending_s = 4.0
    async with campaign(a):
        await until(lambda: a.leads, 1)
        await asyncio.sleep(5.1)
        setattr(a, fault, True)
        async with campaign(b):
            assert 7 < await until(lambda: not a.election.is_leading, 30) < 11 + (fault == "loses_answers") * 10
            await until(lambda: b.leads, 30)
            assert not a.leads


@virtual
async def test_a_renewal_counts_from_before_it_was_sent() -> None:
    a = Candidate(Server(), "a", random.Random(1))
    async with campaign(a):
        await until(lambda: a.leads, 1)
        a.latency_s = 2.2
        version = a.server.version
        await until(lambda: a.server.version > version, 10)
        sent_at = now() - a.latency_s
        await asyncio.sleep(a.latency_s)
        a.hangs = True
        await until(lambda: not a.leads, 20)
        assert 9.5 < now() - sent_at < 10.1


@virtual
async def test_a_short_absence_of_the_api_server_changes_nothing() -> None:
    a = Candidate(Server(), "a", random.Random(1))
    async with campaign(a):
        await until(lambda: a.leads, 1)
        for fault in ("hangs", "refused", "loses_answers"):
            setattr(a, fault, True)
            await asyncio.sleep(5)
            setattr(a, fault, False)
            await asyncio.sleep(20)
            assert a.leads
    assert a.server.reigns == 1


@virtual
async def test_a_renewal_whose_answer_was_lost_is_no_lost_race() -> None:
    a, b = two(Server())
    async with campaign(a):
        await until(lambda: a.leads, 1)
        async with campaign(b):
            a.loses_answers = True
            await asyncio.sleep(3)
            a.loses_answers = False
            await asyncio.sleep(30)
            assert leaders(a, b) == ["a"]


@virtual
async def test_one_that_was_asleep_writes_nothing_before_it_has_looked() -> None:
    server = Server()
    a, b = two(server)
    async with campaign(a):
        await until(lambda: a.leads, 1)
        a.freeze()
        async with campaign(b):
            await until(lambda: b.leads, 30)
            a.thaw()
            with pytest.raises(LeadershipLostError):
                a.write(1)
            await until(lambda: not a.leads, 1)
            await asyncio.sleep(30)
            assert leaders(a, b) == ["b"]
    assert server.writes == sorted(server.writes)


@virtual
async def test_one_that_was_asleep_for_a_moment_goes_on() -> None:
    a = Candidate(Server(), "a", random.Random(1))
    async with campaign(a):
        await until(lambda: a.leads, 1)
        a.freeze()
        await asyncio.sleep(5)
        a.thaw()
        a.write(1)
        await asyncio.sleep(30)
    assert a.server.reigns == 1


@virtual
async def test_leadership_that_was_once_denied_is_not_given_back() -> None:
    """Some part of what is led has heard that it is over, so all of it must end."""
    a = Candidate(Server(), "a", random.Random(1))
    async with campaign(a):
        await until(lambda: a.leads, 1)
        a.freeze()
        await asyncio.sleep(12)
        with pytest.raises(LeadershipLostError, match="lease dra-driver/dra-controller: not leading"):
            a.election.confirm()
        a.thaw()
        await until(lambda: a.server.reigns == 2, 10)
        await until(lambda: a.leads, 1)


@virtual
async def test_a_lease_that_is_deleted_is_made_anew_by_its_holder() -> None:
    server = Server()
    a, b = two(server)
    async with campaign(a):
        await until(lambda: a.leads, 1)
        async with campaign(b):
            await asyncio.sleep(5)
            server.delete()
            await asyncio.sleep(30)
            assert leaders(a, b) == ["a"]
    assert server.uids == 2


@virtual
async def test_who_has_seen_a_lease_waits_for_its_end_even_when_it_is_deleted() -> None:
    server = Server()
    a, b = two(server)
    async with campaign(a):
        await until(lambda: a.leads, 1)
        async with campaign(b):
            await until(lambda: b.election.holder == "a", 1)
            a.freeze()
            server.delete()
            assert await until(lambda: b.leads, 30) > 10


@virtual
async def test_a_lease_that_another_took_by_force_is_lost() -> None:
    server = Server()
    a = Candidate(server, "a", random.Random(1))
    async with campaign(a):
        await until(lambda: a.leads, 1)
        lease = server.get()
        server.delete()
        server.create(lease.__class__(metadata=lease.metadata, spec=lease.spec.__class__(
            holder_identity="someone", lease_duration_seconds=60, renew_time="now")))  # fmt: skip
        await until(lambda: not a.leads, 5)
        assert a.election.holder == "someone"


@virtual
async def test_run_ends_when_what_it_leads_has_ended() -> None:
    a = Candidate(Server(), "a", random.Random(1))

    async def lead() -> None:
        await asyncio.sleep(1)

    await a.election.run(lead)
    assert a.server.get().spec.holder_identity is None
    assert not a.election.is_leading


@virtual
async def test_what_goes_wrong_in_what_is_led_is_raised() -> None:
    a = Candidate(Server(), "a", random.Random(1))

    async def lead() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await a.election.run(lead)
    assert a.server.get().spec.holder_identity is None


@virtual
async def test_what_ends_since_leadership_was_lost_is_led_again() -> None:
    a = Candidate(Server(), "a", random.Random(1))
    reigns = 0

    async def lead() -> None:
        nonlocal reigns
        reigns += 1
        if reigns == 1:
            a.freeze()
            await asyncio.sleep(12)
            a.thaw()
            try:
                a.election.confirm()
            except LeadershipLostError as error:
                raise ExceptionGroup("all", [error, LeadershipLostError("two")]) from error

    await a.election.run(lead)
    assert reigns == 2


FAULTS = ("hangs", "refused", "loses_answers", "frozen", "slow", "nothing")


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    rates=st.tuples(*[st.floats(0.92, 1.08)] * 3),
    steps=st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(FAULTS), st.floats(0.01, 40.0)), min_size=1, max_size=25
    ),
)
def test_whatever_happens_no_reign_writes_after_the_next_has_begun(
    seed: int, rates: tuple[float, float, float], steps: list[tuple[int, str, float]]
) -> None:
    async def play() -> None:
        server = Server()
        chance = random.Random(seed)
        candidates = [Candidate(server, f"c{i}", chance, rate=rate) for i, rate in enumerate(rates)]
        async with campaign(*candidates):
            for index, fault, seconds in steps:
                _toggle(candidates[index], fault)
                await asyncio.sleep(seconds)
            for candidate in candidates:
                candidate.hangs = candidate.refused = candidate.loses_answers = False
                candidate.latency_s = 0.01
                candidate.thaw()
            await until(lambda: any(c.election.is_leading for c in candidates), 60)
        assert server.writes == sorted(server.writes)

    run_virtually(play())


def _toggle(candidate: Candidate, fault: str) -> None:
    match fault:
        case "hangs" | "refused" | "loses_answers":
            setattr(candidate, fault, not getattr(candidate, fault))
        case "frozen":
            candidate.thaw() if not candidate._awake.is_set() else candidate.freeze()
        case "slow":
            candidate.latency_s = 3.0 if candidate.latency_s < 1 else 0.01
