"""The real kubectl works on the sandbox's API server. No cluster is needed for it, only the program."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.api_server import ApiServer
from tests.cluster.program import KUBERNETES, build

_EXAMPLES = Path(__file__).parents[2] / "deploy" / "examples"


@dataclass
class Kubectl:
    """Runs kubectl on one server."""

    program: Path
    folder: Path
    server: ApiServer

    async def __call__(self, *arguments: str, stdin: Any = None, fails: bool = False) -> str:
        process = await self.start(*arguments)
        text = "" if stdin is None else stdin if isinstance(stdin, str) else json.dumps(stdin)
        out, err = await asyncio.wait_for(process.communicate(text.encode()), 30)
        assert bool(process.returncode) is fails, (arguments, out.decode(), err.decode())
        return (err if fails else out).decode()

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        options = ("--kubeconfig", self.folder / "kubeconfig", "--cache-dir", self.folder / "cache")
        return await asyncio.create_subprocess_exec(
            self.program, *options, *arguments, stdin=pipe, stdout=pipe, stderr=pipe
        )


@pytest.fixture
async def kubectl(tmp_path: Path) -> AsyncIterator[Kubectl]:
    folder = await asyncio.to_thread(build, KUBERNETES)
    async with ApiServer() as server:
        server.kubeconfig(tmp_path / "kubeconfig")
        yield Kubectl(folder / "kubectl", tmp_path, server)


def a_claim(name: str = "c", **metadata: Any) -> dict[str, Any]:
    # With its defaults: what the server adds in a list counts for kubectl as a change.
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}]
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name, **metadata}}
    return head | {"spec": {"devices": {"requests": requests}}}


async def test_it_finds_the_kinds_and_the_version(kubectl: Kubectl) -> None:
    assert "Server Version: v1.37" in await kubectl("version")
    names = (await kubectl("api-resources", "-o", "name")).split()
    assert {"pods", "nodes", "resourceclaims.resource.k8s.io", "leases.coordination.k8s.io"} <= set(names)
    assert "default" in await kubectl("get", "ns", "-o", "name")


async def test_it_creates_shows_replaces_and_deletes(kubectl: Kubectl) -> None:
    assert "created" in await kubectl("create", "-f", "-", stdin=a_claim())
    assert (await kubectl("get", "resourceclaims")).split()[:6] == ["NAME", "STATE", "AGE", "c", "pending", "0s"]
    assert "Allocation Mode:    ExactCount" in await kubectl("describe", "resourceclaim", "c")
    assert "replaced" in await kubectl("replace", "-f", "-", stdin=a_claim(labels={"a": "b"}))
    assert (await kubectl("get", "resourceclaims", "-l", "a=b", "-o", "name")).strip().endswith("/c")
    assert "NotFound" in await kubectl("get", "resourceclaim", "none", fails=True)
    assert "AlreadyExists" in await kubectl("create", "-f", "-", stdin=a_claim(), fails=True)
    assert "deleted" in await kubectl("delete", "resourceclaim", "c")


async def test_it_applies_again_and_again(kubectl: Kubectl) -> None:
    for how in ((), ("--validate=false",)):
        await kubectl("apply", *how, "-f", "-", stdin=a_claim())
    assert "unchanged" in await kubectl("apply", "-f", "-", stdin=a_claim())
    assert "configured" in await kubectl("apply", "-f", "-", stdin=a_claim(labels={"a": "b"}))
    assert "unchanged" in await kubectl("apply", "-f", "-", stdin=a_claim(labels={"a": "b"}))
    await kubectl("apply", "-f", "-", stdin=a_claim())
    assert "labels" not in json.loads(await kubectl("get", "resourceclaim", "c", "-o", "json"))["metadata"]
    for _ in range(2):
        await kubectl("apply", "--server-side", "-f", "-", stdin=a_claim("s"))
    wrong = a_claim("d") | {"specs": 1}
    assert 'unknown field "specs"' in await kubectl("apply", "-f", "-", stdin=wrong, fails=True)


@pytest.mark.parametrize("example", sorted(path.parent.name for path in _EXAMPLES.glob("*/manifest.yaml")))
async def test_it_applies_the_examples(kubectl: Kubectl, example: str) -> None:
    known = {kind.kind for kind in kubectl.server.api.kinds}
    text = await asyncio.to_thread((_EXAMPLES / example / "manifest.yaml").read_text)
    manifests = [each for each in yaml.safe_load_all(text) if each and each["kind"] in known]
    assert manifests
    await kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(manifests))
    await kubectl("delete", "--ignore-not-found", "-f", "-", stdin=yaml.safe_dump_all(manifests))


async def test_it_labels_annotates_and_patches(kubectl: Kubectl) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    await kubectl("create", "-f", "-", stdin=pod | {"spec": {"containers": [{"name": "main", "image": "busybox:1"}]}})
    await kubectl("label", "pod", "p", "a=b")
    await kubectl("label", "pod", "p", "a=c", "--overwrite")
    await kubectl("annotate", "pod", "p", "x=y")
    image = {"spec": {"containers": [{"name": "main", "image": "busybox:2"}]}}
    await kubectl("patch", "pod", "p", "-p", json.dumps(image))
    await kubectl("patch", "pod", "p", "--type=merge", "-p", '{"metadata":{"labels":{"m":"1"}}}')
    await kubectl("patch", "pod", "p", "--type=json", "-p", '[{"op":"remove","path":"/metadata/annotations"}]')
    ready = '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}'
    await kubectl("patch", "pod", "p", "--subresource=status", "--type=merge", "-p", ready)
    found = json.loads(await kubectl("get", "pod", "p", "-o", "json"))
    assert found["metadata"]["labels"] == {"a": "c", "m": "1"}
    assert "annotations" not in found["metadata"]
    assert found["spec"]["containers"][0]["image"] == "busybox:2"
    assert "busybox:2" in await kubectl("describe", "pod", "p")
    await kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=10s")


async def test_it_watches(kubectl: Kubectl) -> None:
    process = await kubectl.start("get", "resourceclaims", "--watch", "--no-headers", "--output-watch-events")
    assert process.stdout is not None
    try:
        await kubectl("create", "-f", "-", stdin=a_claim())
        assert (await process.stdout.readline()).split()[:3] == [b"ADDED", b"c", b"pending"]
        await kubectl("delete", "resourceclaim", "c")
        assert (await process.stdout.readline()).split()[:2] == [b"DELETED", b"c"]
    finally:
        process.kill()
        await process.wait()


async def test_it_cordons_and_taints_nodes(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
    await kubectl("cordon", "n")
    await kubectl("taint", "node", "n", "a=b:NoSchedule")
    assert "SchedulingDisabled" in await kubectl("get", "node", "n")
    await kubectl("uncordon", "n")
    await kubectl("taint", "node", "n", "a-")
    assert json.loads(await kubectl("get", "node", "n", "-o", "json"))["spec"] == {}
    assert "Taints:             <none>" in await kubectl("describe", "node", "n")


async def test_it_makes_what_it_has_commands_for(kubectl: Kubectl) -> None:
    await kubectl("create", "namespace", "ns")
    await kubectl("create", "configmap", "m", "--from-literal=a=b", "-n", "ns")
    await kubectl("create", "serviceaccount", "s", "-n", "ns")
    assert json.loads(await kubectl("get", "configmap", "m", "-n", "ns", "-o", "json"))["data"] == {"a": "b"}
    await kubectl("run", "p", "--image=busybox:1")
    bound = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    await kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
    await kubectl("create", "--raw", "/api/v1/namespaces/default/pods/p/binding", "-f", "-", stdin=bound)
    await kubectl("drain", "n", "--force", "--grace-period=0")
    assert await kubectl("get", "pods", "-o", "name") == ""


async def test_it_says_what_is_wrong(kubectl: Kubectl) -> None:
    claim = a_claim()
    claim["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = [{"cel": {"expression": "device.nothing"}}]
    problem = await kubectl("create", "-f", "-", stdin=claim, fails=True)
    assert 'The ResourceClaim "c" is invalid: spec.devices.requests[0].exactly.selectors[0].cel.expression' in problem


async def test_it_deletes_a_namespace_and_lists_everything(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})
    await kubectl("create", "-n", "ns", "-f", "-", stdin=a_claim())
    assert "ns" in await kubectl("get", "resourceclaims", "--all-namespaces")
    await kubectl("delete", "namespace", "ns", "--timeout=10s")
    assert "No resources" not in await kubectl("get", "all,resourceclaims,events", "-A")


async def test_it_deletes_many_and_dry_runs(kubectl: Kubectl) -> None:
    for name in "abc":
        await kubectl("create", "-f", "-", stdin=a_claim(name))
    await kubectl("delete", "resourceclaims", "--all", "--dry-run=server")
    assert len((await kubectl("get", "resourceclaims", "-o", "name")).split()) == 3
    assert len((await kubectl("get", "resourceclaims", "-o", "name", "--chunk-size=1")).split()) == 3
    await kubectl("delete", "resourceclaims", "--all")
    assert (await kubectl("get", "resourceclaims", "-o", "name")) == ""
