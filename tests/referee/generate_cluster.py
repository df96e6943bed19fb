"""Random histories of a cluster: objects that come, change and go, and questions in between.

Some reach every feature; in others a few kinds of claims contend for a few devices, so that what was refused fits
later.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any

from controller.allocator import Policy
from tests.referee.generate_allocation import DEFAULT_GATES, GATES, allocate_question
from tests.referee.generate_device import DRIVERS
from tests.referee.process import Question

_NODES = ("node-a", "node-b", "node-c", "node-d")
_STEPS = (8, 16, 30)
_TIGHT = 0.5
_ELSEWHERE = 0.2
_SKIPPING = 0.4
_SHARED = 0.4
_OTHER = 0.5
_KEPT = 0.4
_POLICIES = (*(str(Policy.FIRST_FIT),) * 10, *map(str, Policy), None)


def _plain_claim(index: int, **exactly: Any) -> dict[str, Any]:
    request = {"name": "r0", "exactly": {"deviceClassName": f"class-{index}", "allocationMode": "ExactCount"} | exactly}
    return {"metadata": {"name": "plain", "namespace": "default"}, "spec": {"devices": {"requests": [request]}}}


_CLASSES = [
    {"metadata": {"name": ""}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}
    for expression in ("true", "false", f'device.attributes["{DRIVERS[0]}"].?model.orValue("") == "A"')
]
# Claims that often fit.
_PLAIN = (
    [_plain_claim(0, count=1)],
    [_plain_claim(1, count=2), _plain_claim(0, count=1)],
    [_plain_claim(2, count=1, capacity={"requests": {"memory": "5Gi"}})],
)


def cluster_question(random: Random) -> Question:
    """Draw a history: `events` in order, for a cluster with these `features`."""
    drawn = [allocate_question(random) for _ in range(4)]
    if is_tight := random.random() < _TIGHT:
        features = dict.fromkeys(random.choice((DEFAULT_GATES, GATES)), True)
        drawn[0] = {**drawn[0], "slices": list(_tight_slices(random)), "allocated": [], "features": features}
    history = _History(random, drawn, is_tight)
    return {"op": "cluster", "features": drawn[0]["features"], "events": list(history.draw(random.choice(_STEPS)))}


def _tight_slices(random: Random) -> Iterator[dict[str, Any]]:
    """Yield a slice for each node, with a few devices that are like those of other nodes."""
    for node in (*_NODES, *_NODES[:1]):
        where: dict[str, Any] = {"nodeName": node}
        if random.random() < _ELSEWHERE:
            values = random.choice((["a"], ["b"], ["a", "b"]))
            term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": values}]}
            where = {"nodeSelector": {"nodeSelectorTerms": [term]}}
        name = f"{node}-{random.randrange(3)}"
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        devices = [_tight_device(random, number) for number in range(random.randint(1, 3))]
        spec = {"driver": "gpu.example.com", "pool": pool, "devices": devices} | where
        if random.random() < _SKIPPING:
            spec["skipNodeOperations"] = ["*"]
        yield {"metadata": {"name": name}, "spec": spec}


def _tight_device(random: Random, number: int) -> dict[str, Any]:
    device: dict[str, Any] = {"name": f"dev-{number}", "attributes": {"model": {"string": random.choice("AAB")}}}
    if random.random() < _SHARED:
        policy = {"default": "20Gi", "validRange": {"min": "0", "step": "1Gi"}}
        device["capacity"] = {"memory": {"value": "20Gi", "requestPolicy": policy}}
        device["allowMultipleAllocations"] = True
    return device


@dataclass(slots=True)
class _History:
    """What there is so far, by kind and name, and where more comes from."""

    random: Random
    drawn: list[Question]
    is_tight: bool
    slices: dict[str, dict[str, Any]] = field(default_factory=dict)
    shapes: list[list[dict[str, Any]]] = field(default_factory=list)
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    holders: list[str] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    asked: int = 0
    shape: list[dict[str, Any]] = field(default_factory=list)
    last: dict[str, Any] = field(default_factory=dict)

    def draw(self, steps: int) -> Iterator[dict[str, Any]]:
        """Yield the objects that there are at first, and then what happens."""
        shapes = [*(question["claims"] for question in self.drawn), *_PLAIN]
        self.shapes = self.random.sample(_PLAIN, 2) if self.is_tight else self.random.sample(shapes, 4)
        for index in range(3):
            found = _CLASSES[:1] if self.is_tight else self._all("classes")
            yield self._set("class", _named(self.random.choice(found), f"class-{index}"))
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
            *(self._change_slices,) * 4,
            *(self._change_claims,) * 6,
            *(self._release,) * (8 if self.is_tight else 2),
            *(self._change_nodes,) * (4 if self.is_tight else 2),
            *(self._change_classes,) * (4 if self.is_tight else 2),
            self._change_rules,
        )
        for _ in range(self.random.choice((0, 1, 1, 2, 3))):
            yield from self.random.choice(changes)()

    def _change_nodes(self) -> Iterator[dict[str, Any]]:
        name = self.random.choice(_NODES)
        if self.random.random() < 0.15:
            self.nodes.pop(name, None)
            yield {"do": "remove", "kind": "node", "name": name}
        elif name in self.nodes and self.random.random() < 0.6:
            node = self.nodes[name]
            labels, declares = node["metadata"]["labels"], not node["status"]["declaredFeatures"]
            yield self._set_node(name, labels, declares=declares)
        else:
            yield self._node(name)

    def _change_classes(self) -> Iterator[dict[str, Any]]:
        name = f"class-{self.random.randrange(3)}"
        if self.random.random() < 0.1:
            yield {"do": "remove", "kind": "class", "name": name}
        else:
            yield self._set("class", _named(self._class(), name))

    def _class(self) -> dict[str, Any]:
        return self.random.choice(_CLASSES if self.is_tight else [*self._all("classes"), *_CLASSES])

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
        elif roll < 0.85:
            spec["skipNodeOperations"] = [] if spec.get("skipNodeOperations") else ["*"]
        elif roll < 0.93 and "nodeName" in spec:
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

    def _release(self) -> Iterator[dict[str, Any]]:
        """Take back what some question may have been given."""
        number = self.random.randint(1, max(1, self.asked))
        yield {"do": "remove", "kind": "claim", "name": f"default/ask-{number}-{self.random.randrange(2)}"}

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
        return self._set_node(name, labels, declares=self.random.random() < 0.7)

    def _set_node(self, name: str, labels: dict[str, str], *, declares: bool) -> dict[str, Any]:
        declared = ["DRAOptionalNodeOperations"] if declares else []
        self.nodes[name] = {"metadata": {"name": name, "labels": labels}, "status": {"declaredFeatures": declared}}
        return self._set("node", self.nodes[name])

    def _ask(self) -> Iterator[dict[str, Any]]:
        """Ask something, or the same as last time, since something may have changed."""
        if not self.last or self.random.random() < _OTHER:
            self.shape = self.random.choice(self.shapes)
            self.last = self._question()
        self.asked += 1
        claims = [_named(claim, f"ask-{self.asked}-{index}") for index, claim in enumerate(self.shape)]
        yield {**self.last, "claims": claims, "commit": self.random.random() < _KEPT}

    def _question(self) -> dict[str, Any]:
        policy = self.random.choice(_POLICIES)
        roll = self.random.random()
        if roll < 0.4:
            return {"do": "allocate", "node": self.random.choice(_NODES), "policy": policy}
        nodes = self.random.sample(_NODES, self.random.randint(1, 4))
        return {"do": "place" if roll < 0.95 else "explain", "nodes": nodes, "policy": policy}


def _named(object_: dict[str, Any], name: str) -> dict[str, Any]:
    return {**object_, "metadata": {**object_["metadata"], "name": name}}
