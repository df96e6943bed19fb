"""Recorded requests to an API server, and what of the answers must be alike wherever they are sent."""

import http.client
import json
import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_AGE = re.compile(r"\d+s")
_DROPPED = ("resourceVersion", "managedFields", "selfLink")
_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
"""Admission gives it to new nodes; the sandbox has nobody who would take it away."""


@dataclass(frozen=True, slots=True)
class Step:
    """A request. In path and body `@name` stands for what an answer before had: see `Conversation`."""

    method: str
    path: str
    body: Any = None
    content_type: str = "application/json"
    accept: str = ""
    keeps: str = ""
    """A name under which the version and UID of the object in the answer are remembered too."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What is compared: the status, reason and causes of a refusal, or else the object."""

    code: int
    reason: str = ""
    causes: tuple[tuple[str, str], ...] = ()
    body: Any = None
    raw: Any = field(default=None, compare=False)


@dataclass(slots=True)
class Conversation:
    """Sends steps to one server, one after the other.

    `@rv` and `@uid` are version and UID of the last object in an answer, `@token` is where the last list goes on; with
    `keeps="x"`, `@x.rv` and `@x.uid` are those of that step.
    """

    host: str
    port: int
    token: str
    ca: str
    memory: dict[str, str] = field(default_factory=dict)

    def run(self, steps: list[Step]) -> list[Answer]:
        context = ssl.create_default_context(cadata=self.ca)
        connection = http.client.HTTPSConnection(self.host, self.port, context=context, timeout=30)
        try:
            return [self._send(connection, step) for step in steps]
        finally:
            connection.close()

    def _send(self, connection: http.client.HTTPSConnection, step: Step) -> Answer:
        raw = step.body if isinstance(step.body, str) or step.body is None else json.dumps(step.body)
        headers = {"Authorization": f"Bearer {self.token}", "Accept": step.accept or "application/json"}
        if raw is not None:
            headers["Content-Type"] = step.content_type
        connection.request(step.method, self._fill(step.path), self._fill(raw or "") or None, headers)
        response = connection.getresponse()
        content = response.read().decode()
        if "watch=" in step.path and response.status == 200:
            return Answer(200, body=[_normalize(json.loads(line)) for line in content.splitlines()], raw=content)
        value = json.loads(content) if content.startswith("{") else content
        self._remember(step, value)
        return _answer(response.status, value)

    def _fill(self, text: str) -> str:
        for name in sorted(self.memory, key=len, reverse=True):
            text = text.replace(f"@{name}", self.memory[name])
        return text

    def _remember(self, step: Step, value: Any) -> None:
        metadata = value.get("metadata", {}) if isinstance(value, dict) else {}
        if metadata.get("continue"):
            self.memory["token"] = metadata["continue"]
        for name, key in (("rv", "resourceVersion"), ("uid", "uid"), ("name", "name")):
            if metadata.get(key):
                self.memory[name] = metadata[key]
                if step.keeps:
                    self.memory[f"{step.keeps}.{name}"] = metadata[key]


def _answer(code: int, value: Any) -> Answer:
    if not isinstance(value, dict):
        return Answer(code, body=value, raw=value)
    if value.get("kind") == "Status" and value.get("status") == "Failure":
        causes = (value.get("details") or {}).get("causes") or ()
        found = sorted({(cause.get("field", ""), cause.get("reason", "")) for cause in causes})
        return Answer(code, value.get("reason", ""), tuple(found), raw=value)
    return Answer(code, body=_normalize(value), raw=value)


def _normalize(value: Any) -> Any:
    """Leave out what no two servers have alike, and bring the rest into one order."""
    if isinstance(value, dict):
        generated = value.get("generateName")
        normal = {name: _normalize(part) for name, part in value.items() if name not in _DROPPED}
        if generated and "name" in value:
            normal["name"] = f"{generated}<suffix>"
        if "continue" in normal:
            normal["continue"] = "<token>"
        if "columnDefinitions" in normal:
            normal["columnDefinitions"] = [{**column, "description": ""} for column in normal["columnDefinitions"]]
        if _NOT_READY in (normal.get("taints") or ()):
            normal["taints"] = [taint for taint in normal["taints"] if taint != _NOT_READY]
            normal = {key: part for key, part in normal.items() if key != "taints" or part}
        return normal
    if isinstance(value, list):
        return [_normalize(item) for item in value]
    if isinstance(value, str):
        return "<age>" if _AGE.fullmatch(value) else _UID.sub("<uid>", _TIME.sub("<time>", value))
    return value


def differences(path: str, ours: Any, theirs: Any) -> Iterator[str]:
    """Tell where two answers differ: first ours, then theirs."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in sorted({*ours, *theirs}):
            yield from differences(f"{path}.{name}", ours.get(name, "<none>"), theirs.get(name, "<none>"))
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(f"{path}[{index}]", one, other)
    elif ours != theirs:
        yield f"{path}: sandbox {ours!r}, real {theirs!r}"
