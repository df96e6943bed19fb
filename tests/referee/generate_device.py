"""Random pools of devices for allocation problems."""

from dataclasses import dataclass, field
from random import Random
from typing import Any

NODE = "node-a"
DRIVERS = ("gpu.example.com", "nic.example.com")

_PER_DEVICE = "perDeviceNodeSelection"


@dataclass(slots=True)
class Pool:
    """A pool as slices, and its devices as (driver, pool, device)."""

    slices: list[dict[str, Any]] = field(default_factory=list)
    devices: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Style:
    """What the devices of a pool have in common."""

    driver: str
    name: str
    where: dict[str, Any]
    is_shareable: bool
    has_counters: bool
    has_groups: bool
    has_lists: bool
    is_uniform: bool


def draw_pools(random: Random, gates: frozenset[str]) -> list[Pool]:
    """Draw the pools of a cluster; most devices are for the node."""
    return [_pool(random, _style(random, index, gates)) for index in range(random.choice((1, 1, 1, 2, 2, 3)))]


def _style(random: Random, index: int, gates: frozenset[str]) -> _Style:
    has_counters = random.random() < 0.3
    return _Style(
        driver=random.choice((*(DRIVERS[0],) * 5, DRIVERS[1])),
        name=f"pool-{random.randrange(9)}{index}",
        where=_where(random, gates),
        is_shareable=random.random() < 0.4,
        has_counters=has_counters,
        has_groups=has_counters and random.random() < (0.4 if "CompatibilityGroups" in gates else 0.05),
        has_lists=random.random() < (0.4 if "ListTypeAttributes" in gates else 0.03),
        is_uniform=random.random() < 0.3,
    )


def _where(random: Random, gates: frozenset[str]) -> dict[str, Any]:
    roll = random.random()
    if roll < 0.6:
        return {"nodeName": NODE}
    if roll < 0.7:
        return {"allNodes": True}
    if roll < 0.8:
        return {"nodeSelector": _node_selector(random)}
    if roll < 0.93 or "PartitionableDevices" not in gates:
        return {_PER_DEVICE: True}
    return {"nodeName": "node-b"}


def _node_selector(random: Random) -> dict[str, Any]:
    expressions = [
        {"key": "zone", "operator": "In", "values": random.choice((["a"], ["a", "b"], ["b", "a"], ["b"]))},
        {"key": "size", "operator": random.choice(("Gt", "Lt")), "values": [random.choice(("5", "7", "9"))]},
        {"key": "zone", "operator": random.choice(("Exists", "DoesNotExist"))},
        {"key": "other", "operator": "NotIn", "values": ["x"]},
    ]
    term: dict[str, Any] = {"matchExpressions": random.sample(expressions, random.randint(1, 2))}
    if random.random() < 0.2:
        term["matchFields"] = [{"key": "metadata.name", "operator": "In", "values": [NODE]}]
    return {"nodeSelectorTerms": [term]}


def _pool(random: Random, style: _Style) -> Pool:
    pool = Pool()
    count = random.choice((1, 1, 1, 2, 2, 3))
    number = 0
    for _ in range(count):
        devices = []
        for _ in range(random.choice((0, 1, 2, 3, 4, 6, 8))):
            devices.append(_device(random, style, number))
            number += 1
        pool.slices.append(_slice(random, style, {"devices": devices}))
        pool.devices += [(style.driver, style.name, device) for device in devices]
    if style.has_counters:
        pool.slices.append(_slice(random, style, {"sharedCounters": _counter_sets(random)}))
    _number(random, pool)
    if random.random() < 0.04 and pool.devices:
        pool.devices[-1][2]["name"] = pool.devices[0][2]["name"]
    return pool


def _number(random: Random, pool: Pool) -> None:
    """Give generation and count; some pools are half published."""
    total = len(pool.slices)
    if random.random() < 0.04:
        total += random.choice((-1, 1))
    for slice_ in pool.slices:
        slice_["spec"]["pool"] |= {"generation": 2, "resourceSliceCount": max(1, total)}
    if random.random() < 0.05:
        random.choice(pool.slices)["spec"]["pool"]["generation"] = random.choice((1, 3))


def _slice(random: Random, style: _Style, content: dict[str, Any]) -> dict[str, Any]:
    where = style.where
    if where.get("nodeName") == NODE and random.random() < 0.05:
        where = {"nodeName": "node-b"}
    spec = {"driver": style.driver, "pool": {"name": style.name}} | where | content
    if random.random() < 0.04:
        spec["skipNodeOperations"] = random.choice((["*"], ["NodePrepareResources", "NodeUnprepareResources"]))
    return {"metadata": {"name": f"slice-{random.randrange(10**6)}-{style.name}"}, "spec": spec}


def _counter_sets(random: Random) -> list[dict[str, Any]]:
    sets = [
        {"name": name, "counters": {"memory": {"value": f"{random.choice((20, 40, 40))}Gi"}, "units": {"value": "7"}}}
        for name in ("set-0", "set-1")
    ]
    roll = random.random()
    if roll < 0.02:
        sets[1]["name"] = "set-0"
    elif roll < 0.04:
        sets.pop()
    return sets


def _device(random: Random, style: _Style, number: int) -> dict[str, Any]:
    device: dict[str, Any] = {"name": f"dev-{number}", "attributes": _attributes(random, style, number)}
    if random.random() < 0.7:
        device["capacity"] = _capacity(random, style)
    if style.is_shareable and (style.is_uniform or random.random() < 0.8):
        device["allowMultipleAllocations"] = True
    if style.has_counters and random.random() < 0.9:
        device["consumesCounters"] = _consumption(random, style)
    if random.random() < 0.08:
        device["taints"] = [_taint(random) for _ in range(random.randint(1, 2))]
    if random.random() < 0.03:
        device |= {"bindingConditions": ["Attached"], "bindingFailureConditions": ["Failed"]}
    if random.random() < 0.03:
        device["bindsToNode"] = True
    if style.where.get(_PER_DEVICE):
        device |= random.choice(
            ({"nodeName": NODE}, {"nodeName": "node-b"}, {"allNodes": True}, {"nodeSelector": _node_selector(random)})
        )
    return device


def _attributes(random: Random, style: _Style, number: int) -> dict[str, Any]:
    index = 0 if style.is_uniform else number
    attributes: dict[str, Any] = {"index": {"int": index}}
    if random.random() < 0.9:
        attributes["model"] = {"string": "A" if style.is_uniform else random.choice("AAB")}
    if random.random() < 0.8:
        attributes["numa"] = {"int": random.choice((0, 0, 1))}
    if random.random() < 0.5:
        attributes["flag"] = {"bool": random.random() < 0.5}
    if random.random() < 0.5:
        attributes["version"] = {"version": random.choice(("1.0.0", "1.0.0+a", "2.1.0-rc.1"))}
    if style.has_lists and random.random() < 0.8:
        attributes["links"] = {"ints": sorted(random.sample(range(4), random.randint(1, 2)))}
    elif random.random() < 0.3:
        attributes["links"] = {"int": random.randrange(3)}
    if random.random() < 0.1:
        attributes[f"{DRIVERS[0]}/model"] = attributes.pop("model", {"string": "A"})
    if random.random() < 0.003:
        attributes["broken"] = random.choice(({}, {"version": "1.x"}))
    return attributes


def _capacity(random: Random, style: _Style) -> dict[str, Any]:
    capacity: dict[str, Any] = {"memory": {"value": random.choice(("20Gi", "40Gi", "40Gi"))}}
    if random.random() < 0.5:
        capacity["cores"] = {"value": "100"}
    if style.is_shareable:
        for name, entry in capacity.items():
            if random.random() < 0.75:
                entry["requestPolicy"] = _policy(random, name)
    return capacity


def _policy(random: Random, name: str) -> dict[str, Any]:
    if name == "cores":
        return random.choice(
            (
                {"default": "1", "validRange": {"min": "0", "max": "100", "step": "1"}},
                {"default": "50", "validValues": ["25", "50", "100"]},
                {"default": "12500m", "validRange": {"min": "12500m", "step": "12500m"}},
                {"default": "10"},
                {"default": "0.5", "validRange": {"min": "0.5", "max": "99.5", "step": "0.25"}},
            )
        )
    return random.choice(
        (
            {"default": "20Gi", "validRange": {"min": "0", "max": "20Gi", "step": "1Mi"}},
            {"default": "5Gi", "validRange": {"min": "5Gi", "step": "5Gi"}},
            {"default": "10Gi", "validValues": ["5Gi", "10Gi", "20Gi"]},
            {"default": "1Gi", "validRange": {"min": "1Gi"}},
            {"default": "8Gi"},
        )
    )


def _consumption(random: Random, style: _Style) -> list[dict[str, Any]]:
    amount = random.choice((5, 10, 10, 20, 40))
    entry: dict[str, Any] = {
        "counterSet": random.choice(("set-0", "set-0", "set-1")) if random.random() < 0.99 else "set-9",
        "counters": {"memory": {"value": f"{amount}Gi"}},
    }
    if random.random() < 0.5:
        entry["counters"]["units"] = {"value": str(random.choice((1, 2, 3)))}
    if style.has_groups and random.random() < 0.8:
        entry["compatibilityGroups"] = random.sample(("x", "y", "z"), random.randint(1, 2))
    entries = [entry]
    if random.random() < 0.1 and entry["counterSet"] == "set-0":
        entries.append({"counterSet": "set-1", "counters": {"units": {"value": "1"}}})
    return entries


def _taint(random: Random) -> dict[str, Any]:
    taint = {"key": random.choice(("hot", "cold")), "effect": random.choice(("None", "NoSchedule", "NoExecute"))}
    return taint | ({"value": random.choice(("x", "y"))} if random.random() < 0.5 else {})
