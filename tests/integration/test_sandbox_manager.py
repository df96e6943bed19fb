"""The control plane of the sandbox while its API server falters."""

from pathlib import Path

from sandbox.manager.manager import Manager
from tests.support.api_fault import Fault
from tests.support.api_server import TestApiServer
from tests.support.kube import a_client, running
from tests.support.sandbox import a_pod
from tests.support.wait import until


async def test_a_refusal_that_cannot_be_told_is_told_later(server: TestApiServer, tmp_path: Path) -> None:
    fault = server.inject(Fault("status", path="/pods/waits/status", method="PATCH", times=2))
    async with a_client(server, tmp_path) as client, running(Manager(client).run()):
        server.put("pods", a_pod("waits", "absent", node=""))
        await until(lambda: server.all("pods")[0].get("status", {}).get("conditions"))
    assert fault.times == 0
    [condition] = server.all("pods")[0]["status"]["conditions"]
    assert condition["message"] == "claim default/absent: does not exist yet"
