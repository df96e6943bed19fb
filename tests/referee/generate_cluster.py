"""Random histories of a cluster: objects that come, change and go, and questions in between."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any

from controller.allocator import Policy
from tests.referee.generate_allocation import allocate_question
from tests.referee.process import Question

_NODES = ("node-a", "node-b", "node-c", "node-d")
_STEPS = (8, 16, 30)
_POLICIES = (*(str(Policy.FIRST_FIT),) * 4, *map(str, Policy), None)


def _plain_claim(index: int, **exactly: Any) -> dict[str, Any]:
    request = {"name": "r0", "exactly": {"deviceClassName": f"class-{index}", "allocationMode": "ExactCount"} | exactly}
    return {"metadata": {"name": "plain", "namespace": "default"}, "spec": {"devices": {"requests": [request]}}}


# Claims that often fit.
_PLAIN = (
    [_plain_claim(0, count=1)],
    [_plain_claim(1, count=2), _plain_claim(0, count=1)],
    [_plain_claim(2, count=1, capacity={"requests": {"memory": "5Gi"}})],
)


def cluster_question(random: Random) -> Question:
    """Draw a history: `events` in order, for a cluster with these `features`."""
    drawn = [allocate_question(random)]
    drawn += [allocate_question(random) for _ in range(3)]
    history = _History(random, drawn)
    return {"op": "cluster", "features": drawn[0]["features"], "events": list(history.draw(random.choice(_STEPS)))}


@dataclass(slots=True)
class _History:
    """What there is so far, by kind and name, and where more comes from."""

    random: Random
    drawn: list[Question]
    slices: dict[str, dict[str, Any]] = field(default_factory=dict)
    shapes: list[list[dict[str, Any]]] = field(default_factory=list)
    holders: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    asked: int = 0

    def draw(self, steps: int) -> Iterator[dict[str, Any]]:
        """Yield the objects that there are at first, and then what happens."""
        self.shapes = [*(question["claims"] for question in self.drawn), *_PLAIN]
        for index in range(3):
            yield self._set("class", _named(self.random.choice(self._all("classes")), f"class-{index}"))
        for name in _NODES[: self.random.randint(1, 4)]:
            yield self._node(name)
        for slice_ in self.drawn[0]["slices"]:
            yield self._slice(slice_, slice_["metadata"]["name"])
        for holder in self.drawn[0]["allocated"]:
            yield self._hold(holder)
        for _ in range(steps):
            yield from self._change()
            yield from self._ask()

    def _all(self, part: str) -> list[dict[str, Any]]:
        return [found for question in self.drawn for found in question[part]]

    def _set(self, kind: str, object_: dict[str, Any]) -> dict[str, Any]:
        return {"do": "set", "kind": kind, "object": object_}

    def _change(self) -> Iterator[dict[str, Any]]:
        changes = (
            *(self._change_slices,) * 5,
            *(self._change_claims,) * 6,
            self._change_nodes,
            self._change_classes,
            self._change_rules,
        )
        for _ in range(self.random.choice((0, 1, 1, 2, 3))):
            yield from self.random.choice(changes)()

    def _change_nodes(self) -> Iterator[dict[str, Any]]:
        name = self.random.choice(_NODES)
        if self.random.random() < 0.2:
            yield {"do": "remove", "kind": "node", "name": name}
        else:
            yield self._node(name)

    def _change_classes(self) -> Iterator[dict[str, Any]]:
        name = f"class-{self.random.randrange(3)}"
        if self.random.random() < 0.1:
            yield {"do": "remove", "kind": "class", "name": name}
        else:
            yield self._set("class", _named(self.random.choice(self._all("classes")), name))

    def _change_slices(self) -> Iterator[dict[str, Any]]:
        roll = self.random.random()
        if self.slices and roll < 0.2:
            name = self.random.choice(sorted(self.slices))
            del self.slices[name]
            yield {"do": "remove", "kind": "slice", "name": name}
        elif self.slices and roll < 0.8:
            yield self._edit_slice(self.random.choice(sorted(self.slices)))
        else:
            slices = self.random.choice(self.drawn)["slices"]
            pool = self.random.choice(slices)["spec"]["pool"]["name"] if slices else ""
            for slice_ in slices:
                if slice_["spec"]["pool"]["name"] == pool:
                    yield self._slice(slice_, slice_["metadata"]["name"])

    def _edit_slice(self, name: str) -> dict[str, Any]:
        """Change a slice a little: its devices, its generation, or for which nodes it is."""
        slice_ = deepcopy(self.slices[name])
        spec = slice_["spec"]
        other = self.random.choice([*self._all("slices"), slice_])
        roll = self.random.random()
        if roll < 0.3 and spec.get("devices"):
            device = self.random.choice(spec["devices"])
            if not device.pop("taints", None):
                device["taints"] = [{"key": "hot", "effect": self.random.choice(("NoSchedule", "NoExecute"))}]
        elif roll < 0.5 and spec.get("devices") and other["spec"].get("devices"):
            index = self.random.randrange(len(spec["devices"]))
            own = spec["devices"][index]["name"]
            spec["devices"][index] = deepcopy(self.random.choice(other["spec"]["devices"])) | {"name": own}
        elif roll < 0.65 and spec.get("devices"):
            self.random.shuffle(spec["devices"])
        elif roll < 0.8:
            spec["pool"]["generation"] += self.random.choice((-1, 1))
        elif roll < 0.9 and "nodeName" in spec:
            spec["nodeName"] = self.random.choice(_NODES)
        elif spec.get("devices"):
            spec["devices"].pop()
        self.slices[name] = slice_
        return self._set("slice", slice_)

    def _slice(self, slice_: dict[str, Any], name: str) -> dict[str, Any]:
        if "nodeName" in slice_["spec"] and self.random.random() < 0.6:
            slice_ = deepcopy(slice_)
            slice_["spec"]["nodeName"] = self.random.choice(_NODES)
        self.slices[name] = slice_
        return self._set("slice", slice_)

    def _change_claims(self) -> Iterator[dict[str, Any]]:
        roll = self.random.random()
        if self.holders and roll < 0.5:
            name = self.holders.pop(self.random.randrange(len(self.holders)))
            if self.random.random() < 0.3:
                yield self._set("claim", {"metadata": {"name": name, "namespace": "default"}})
            else:
                yield {"do": "remove", "kind": "claim", "name": f"default/{name}"}
        elif found := self._all("allocated"):
            yield self._hold(self.random.choice(found))

    def _hold(self, holder: dict[str, Any]) -> dict[str, Any]:
        name = f"held-{self.random.randrange(12)}"
        self.holders.append(name)
        return self._set("claim", _named(holder, name))

    def _change_rules(self) -> Iterator[dict[str, Any]]:
        if self.rules and self.random.random() < 0.6:
            yield {"do": "remove", "kind": "rule", "name": self.rules.pop()}
            return
        name = f"rule-{self.random.randrange(3)}"
        self.rules.append(name)
        slice_ = self.random.choice([*self.slices.values(), None])
        selector: dict[str, Any] = {}
        if slice_ is not None:
            selector = {"driver": slice_["spec"]["driver"], "pool": slice_["spec"]["pool"]["name"]}
            if slice_["spec"].get("devices") and self.random.random() < 0.7:
                selector["device"] = self.random.choice(slice_["spec"]["devices"])["name"]
        taint = {"key": self.random.choice(("hot", "cold")), "effect": "NoSchedule"}
        yield self._set("rule", {"metadata": {"name": name}, "spec": {"deviceSelector": selector, "taint": taint}})

    def _node(self, name: str) -> dict[str, Any]:
        labels = {"zone": self.random.choice(("a", "a", "b")), "size": self.random.choice(("7", "5"))}
        node: dict[str, Any] = {"metadata": {"name": name, "labels": labels}}
        if self.random.random() < 0.7:
            node["status"] = {"declaredFeatures": ["DRAOptionalNodeOperations"]}
        return self._set("node", node)

    def _ask(self) -> Iterator[dict[str, Any]]:
        self.asked += 1
        claims = [
            _named(claim, f"ask-{self.asked}-{index}") for index, claim in enumerate(self.random.choice(self.shapes))
        ]
        event: dict[str, Any] = {
            "claims": claims,
            "policy": self.random.choice(_POLICIES),
            "commit": self.random.random() < 0.5,
        }
        roll = self.random.random()
        if roll < 0.45:
            yield {"do": "allocate", "node": self.random.choice(_NODES)} | event
        else:
            nodes = self.random.sample(_NODES, self.random.randint(1, 4))
            yield {"do": "place" if roll < 0.95 else "explain", "nodes": nodes} | event


def _named(object_: dict[str, Any], name: str) -> dict[str, Any]:
    return {**object_, "metadata": {**object_["metadata"], "name": name}}
