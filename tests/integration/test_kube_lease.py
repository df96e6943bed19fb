import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dra_driver.errors import LeadershipLostError
from dra_driver.kube.lease import LeaderElection
from dra_driver.kube.resource import EVENTS, NODES
from tests.support.api_fault import Action, Fault
from tests.support.api_server import TestApiServer
from tests.support.kube import a_client, running
from tests.support.lease_candidate import NAME, NAMESPACE, an_event, quick_election
from tests.support.wait import until


class Candidate:
    """A candidate, and whether it leads."""

    def __init__(self, election: LeaderElection) -> None:
        self.election = election
        self.leads = False
        self.reigns = 0

    async def lead(self) -> None:
        self.leads = True
        self.reigns += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.leads = False


@asynccontextmanager
async def a_candidate(server: TestApiServer, folder: Path, identity: str) -> AsyncIterator[Candidate]:
    async with a_client(server, folder, user_agent=identity) as client:
        candidate = Candidate(quick_election(client, identity))
        async with running(candidate.election.run(candidate.lead)):
            yield candidate


async def test_one_leads_and_the_other_follows(server: TestApiServer, tmp_path: Path) -> None:
    async with a_candidate(server, tmp_path, "b") as second:
        async with a_candidate(server, tmp_path, "a") as first:
            await until(lambda: first.leads or second.leads)
            leader, other = (first, second) if first.leads else (second, first)
            await until(lambda: other.election.holder == ("a" if leader is first else "b"))
            assert not other.leads
        await until(lambda: second.leads)
        [lease] = server.all("leases")
        assert lease["spec"]["holderIdentity"] == "b"
        assert lease["spec"]["leaseDurationSeconds"] == 1
    [lease] = server.all("leases")
    assert "holderIdentity" not in lease["spec"]


async def test_a_lease_whose_last_renewal_arrived_without_an_answer_is_released(
    server: TestApiServer, tmp_path: Path
) -> None:
    async with a_candidate(server, tmp_path, "a") as candidate:
        await until(lambda: candidate.leads)
        lost = server.inject(Fault("lose", path=f"leases/{NAME}", method="PUT"))
        before = server.all("leases")
        await until(lambda: not lost.times and server.all("leases") != before)
    [lease] = server.all("leases")
    assert "holderIdentity" not in lease["spec"]


async def test_nothing_else_is_asked_of_the_api_server(server: TestApiServer, tmp_path: Path) -> None:
    async with a_candidate(server, tmp_path, "a") as candidate:
        await until(lambda: candidate.leads)
        await until(lambda: len(server.requests) > 5)
    collection = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
    assert {(request.method, request.path) for request in server.requests} == {
        ("GET", f"{collection}/{NAME}"),
        ("POST", collection),
        ("PUT", f"{collection}/{NAME}"),
    }


async def test_none_leads_while_the_api_server_is_away(server: TestApiServer, tmp_path: Path) -> None:
    async with a_candidate(server, tmp_path, "a") as first, a_candidate(server, tmp_path, "b") as second:
        await until(lambda: first.leads or second.leads)
        await server.stop()
        await until(lambda: not first.leads and not second.leads, within_s=2)
        await server.start()
        await until(lambda: first.leads or second.leads)
        assert not (first.leads and second.leads)


@pytest.mark.parametrize("action", ["lose", "reset", "status"])
@pytest.mark.parametrize("methods", [("POST",), ("PUT",), ("PUT", "GET")], ids="-".join)
async def test_a_spoilt_answer_ends_no_leadership(
    server: TestApiServer, tmp_path: Path, action: Action, methods: tuple[str, ...]
) -> None:
    if methods == ("POST",):
        server.inject(Fault(action, path="leases", method="POST"))
    async with a_candidate(server, tmp_path, "a") as candidate:
        await until(lambda: candidate.leads)
        for method in methods:
            server.inject(Fault(action, path="leases", method=method))
        asked = len(server.requests)
        await until(lambda: len(server.requests) > asked + 5)
        assert candidate.reigns == 1


async def test_what_another_wrote_in_between_is_looked_at(server: TestApiServer, tmp_path: Path) -> None:
    async with a_candidate(server, tmp_path, "a") as candidate:
        await until(lambda: candidate.leads)
        [lease] = server.all("leases")
        server.put("leases", {**lease, "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {"a": "b"}}})
        asked = len(server.requests)
        await until(lambda: len(server.requests) > asked + 5)
        assert candidate.leads
        assert candidate.reigns == 1
        spec = {**lease["spec"], "holderIdentity": "someone", "leaseDurationSeconds": 60}
        server.put("leases", {**lease, "metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": spec})
        await until(lambda: not candidate.leads)
        await until(lambda: candidate.election.holder == "someone")


async def test_a_guarded_client_reads_but_does_not_write_unless_it_leads(server: TestApiServer, tmp_path: Path) -> None:
    server.put("nodes", {"metadata": {"name": "node-a"}})
    async with a_client(server, tmp_path) as client:
        election = quick_election(client, "a")
        guarded = client.guarded(election.confirm)
        assert (await guarded.get(NODES, "node-a")).metadata.name == "node-a"
        with pytest.raises(LeadershipLostError, match="lease dra-driver/dra-controller: not leading"):
            await guarded.create(EVENTS, an_event("a"))
        with pytest.raises(LeadershipLostError):
            await guarded.patch(NODES, "node-a", {"metadata": {"labels": {"a": "b"}}})
        with pytest.raises(LeadershipLostError):
            await guarded.delete(NODES, "node-a")

        async def lead() -> None:
            await guarded.create(EVENTS, an_event("a"))

        await election.run(lead)
        assert len(server.all("events")) == 1
        await client.create(EVENTS, an_event("a"))


async def test_a_process_that_was_stopped_writes_nothing_when_it_goes_on(server: TestApiServer, tmp_path: Path) -> None:
    kubeconfig = server.kubeconfig(tmp_path / "kubeconfig")

    def writers() -> list[str]:
        return [request.headers["User-Agent"] for request in server.requests if request.path.endswith("/events")]

    async def start(identity: str) -> asyncio.subprocess.Process:
        module = ("-m", "tests.support.lease_candidate", str(kubeconfig), identity)
        return await asyncio.create_subprocess_exec(
            sys.executable, *module, cwd=Path(__file__).parents[2], stdout=asyncio.subprocess.DEVNULL
        )

    first = await start("a")
    try:
        await until(lambda: "a" in writers(), within_s=20)
        second = await start("b")
        try:
            first.send_signal(signal.SIGSTOP)
            await until(lambda: "b" in writers(), within_s=20)
            first.send_signal(signal.SIGCONT)
            asked = len(server.requests)
            leases = f"leases/{NAME}"
            await until(
                lambda: any(
                    request.path.endswith(leases) and request.headers["User-Agent"] == "a"
                    for request in server.requests[asked:]
                )
            )
            assert writers() == sorted(writers())
        finally:
            second.kill()
            await second.wait()
    finally:
        first.kill()
        await first.wait()
