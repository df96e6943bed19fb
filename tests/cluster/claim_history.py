"""Every state that the claims of a cluster were in, as the API server tells it to anyone who watches."""

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cluster.cluster import Cluster
from tests.cluster.process import Process
from tests.cluster.usage import explain_overuse

Manifest = dict[str, Any]


class ClaimHistory:
    """A watch that is recorded from `record_claims` on."""

    def __init__(self, cluster: Cluster, process: Process) -> None:
        self._cluster = cluster
        self._process = process

    def states(self) -> Iterator[dict[str, Manifest]]:
        """Yield all claims by namespace and name, after every change so far."""
        self.wait_for_the_present()
        claims: dict[str, Manifest] = {}
        for kind, claim in read_events(self._process.log):
            metadata = claim["metadata"]
            key = f"{metadata['namespace']}/{metadata['name']}"
            if kind == "DELETED":
                claims.pop(key, None)
            else:
                claims[key] = claim
            yield claims

    def assert_no_device_was_given_twice(self) -> int:
        """Look at every state for what is used beyond what there is, and return how many states there were."""
        slices = self._cluster.list("resourceslices")
        count = 0
        for claims in self.states():
            count += 1
            assert not (found := explain_overuse(slices, claims.values())), found
        return count

    def wait_for_the_present(self) -> None:
        """Make a change, and wait until it is told: that a claim is there, and then that it is gone."""
        name = f"mark-{secrets.token_hex(4)}"
        spec = {"devices": {"requests": [{"name": "none", "exactly": {"deviceClassName": "none"}}]}}
        claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}, "spec": spec}
        self._cluster.apply(claim)
        self._cluster.wait_for("the claims' history to begin", lambda: self._is_told(name, "ADDED"))
        self._cluster.delete("resourceclaim", name)
        self._cluster.wait_for("the claims' history to be told", lambda: self._is_told(name, "DELETED"))

    def _is_told(self, name: str, what: str) -> bool:
        events = read_events(self._process.log)
        return any(kind == what and claim["metadata"]["name"] == name for kind, claim in events)


@contextmanager
def record_claims(cluster: Cluster) -> Iterator[ClaimHistory]:
    """Watch all claims for as long as the block lasts."""
    name = f"claim-history-{secrets.token_hex(4)}"
    flags = ("--all-namespaces", "--watch", "--output-watch-events", "--output=json")
    process = cluster.start_kubectl(name, "get", "resourceclaims", *flags)
    try:
        history = ClaimHistory(cluster, process)
        history.wait_for_the_present()
        yield history
    finally:
        process.stop()


def read_events(log: Path) -> Iterator[tuple[str, Manifest]]:
    """Read the kinds and objects of all events that are written completely."""
    decoder = json.JSONDecoder()
    text = log.read_text(encoding="utf-8")
    position = text.find("{")
    while position >= 0:
        try:
            event, end = decoder.raw_decode(text, position)
        except ValueError:
            return
        yield event["type"], event["object"]
        position = text.find("{", end)
