"""Random allocation problems that reach every feature, alone and combined, with many near-misses."""

from random import Random
from typing import Any

from tests.referee.generate_device import DRIVERS, NODE, Pool, draw_pools
from tests.referee.process import Question

GATES = (
    "AdminAccess",
    "CompatibilityGroups",
    "ConsumableCapacity",
    "DerivedAttributes",
    "DeviceBindingAndStatus",
    "DeviceTaints",
    "FractionalCapacityRange",
    "ListTypeAttributes",
    "OptionalNodeOperations",
    "PartitionableDevices",
    "PrioritizedList",
)
DEFAULT_GATES = (
    "AdminAccess",
    "ConsumableCapacity",
    "DeviceBindingAndStatus",
    "DeviceTaints",
    "PartitionableDevices",
    "PrioritizedList",
)

_GPU, _NIC = DRIVERS
# What nearly every device answers, what some fail on, and what never compiles.
_SELECTORS = (
    f'device.driver == "{_GPU}"',
    f'device.driver == "{_NIC}"',
    f'device.attributes["{_GPU}"].model == "A"',
    f'device.attributes["{_GPU}"].?model.orValue("") == "A"',
    f'device.attributes["{_GPU}"].index < 3',
    f'device.attributes["{_GPU}"].?numa.orValue(9) == 1',
    f'"{_GPU}" in device.attributes && device.attributes["{_GPU}"].index > 1',
    f'device.capacity["{_GPU}"].memory.compareTo(quantity("20Gi")) >= 0',
    "device.allowMultipleAllocations",
    "!device.allowMultipleAllocations",
    *("true",) * 12,
    "false",
)
_BROKEN = (
    f'device.attributes["{_GPU}"].missing == 1',
    f'device.attributes["{_GPU}"].model > 1',
    "device.atributes",
    "1",
    "device.driver",
)
_DERIVED = (
    f'device.attributes["{_GPU}"].?model.orValue("none")',
    f'device.attributes["{_GPU}"].?index.orValue(0) / 2',
    f'device.attributes["{_GPU}"].?numa.orValue(0) == 0',
    "device.driver",
    f'[device.attributes["{_GPU}"].?index.orValue(0)]',
    f'device.attributes["{_GPU}"].missing',
    "device.atributes",
)
_CONSTRAINED = (*("model", "index", "numa") * 4, "flag", "version", "links", "links", "nothing")
_AMOUNTS = ("0", "1", "5Gi", "10Gi", "20Gi", "30Gi", "1500m", "0.5", "2500M", "-1", "10000000000000000000")


def allocate_question(random: Random) -> Question:
    """Draw a problem."""
    gates = _draw_gates(random)
    pools = draw_pools(random, gates)
    classes = [_class(random, index) for index in range(random.randint(1, 3))]
    claims = [_claim(random, index, len(classes), gates) for index in range(random.choice((1, 1, 1, 1, 2, 2, 3)))]
    slices = [slice_ for pool in pools for slice_ in pool.slices]
    random.shuffle(slices)
    return {
        "op": "allocate",
        "node": _node(random),
        "classes": classes,
        "slices": slices,
        "claims": claims,
        "allocated": _allocated(random, pools),
        "features": dict.fromkeys(gates, True),
        "timeoutMs": 1000,
    }


def _draw_gates(random: Random) -> frozenset[str]:
    roll = random.random()
    if roll < 0.45:
        return frozenset(DEFAULT_GATES)
    if roll < 0.75:
        return frozenset(GATES)
    if roll < 0.9:
        return frozenset(gate for gate in GATES if random.random() < 0.8)
    return frozenset(gate for gate in DEFAULT_GATES if random.random() < 0.8)


def _node(random: Random) -> dict[str, Any]:
    node: dict[str, Any] = {"metadata": {"name": NODE, "labels": {"zone": "a", "size": "7"}}}
    if random.random() < 0.7:
        node["status"] = {"declaredFeatures": ["DRAOptionalNodeOperations"]}
    return node


def _selectors(random: Random, *, broken: float) -> list[dict[str, Any]]:
    count = random.choice((0, 0, 0, 1, 1, 2))
    return [
        {"cel": {"expression": random.choice(_BROKEN if random.random() < broken else _SELECTORS)}}
        for _ in range(count)
    ]


def _class(random: Random, index: int) -> dict[str, Any]:
    spec: dict[str, Any] = {"selectors": _selectors(random, broken=0.01)}
    if random.random() < 0.3:
        spec["config"] = [_config(random, index) for _ in range(random.randint(1, 2))]
    return {"metadata": {"name": f"class-{index}"}, "spec": spec}


def _config(random: Random, number: int) -> dict[str, Any]:
    return {"opaque": {"driver": random.choice(DRIVERS), "parameters": {"kind": "Any", "number": number}}}


def _claim(random: Random, index: int, classes: int, gates: frozenset[str]) -> dict[str, Any]:
    requests = [_request(random, number, classes, gates) for number in range(random.choice((1, 1, 2, 2, 3)))]
    devices: dict[str, Any] = {"requests": requests}
    names = [name for request in requests for name in _names(request)]
    if random.random() < 0.4:
        devices["constraints"] = [_constraint(random, names) for _ in range(random.choice((1, 1, 2)))]
    if random.random() < 0.2:
        devices["config"] = [_config(random, 10 + number) | _some(random, names) for number in range(2)]
    return {
        "metadata": {"name": f"claim-{index}", "namespace": "default", "uid": f"uid-{index}"},
        "spec": {"devices": devices},
    }


def _names(request: dict[str, Any]) -> list[str]:
    return [request["name"], *(f"{request['name']}/{sub['name']}" for sub in request.get("firstAvailable", ()))]


def _some(random: Random, names: list[str]) -> dict[str, Any]:
    if random.random() < 0.4:
        return {}
    return {"requests": random.sample(names, random.randint(1, min(3, len(names))))}


def _constraint(random: Random, names: list[str]) -> dict[str, Any]:
    attribute = f"{random.choice((*(_GPU,) * 7, _NIC))}/{random.choice(_CONSTRAINED)}"
    kind = "matchAttribute" if random.random() < 0.6 else "distinctAttribute"
    if random.random() < 0.01:
        return _some(random, names)
    return {kind: attribute} | _some(random, names)


def _request(random: Random, number: int, classes: int, gates: frozenset[str]) -> dict[str, Any]:
    request: dict[str, Any] = {"name": f"r{number}"}
    if random.random() < (0.25 if "PrioritizedList" in gates else 0.02):
        request["firstAvailable"] = [
            {"name": f"s{index}"} | _exact(random, classes, gates) for index in range(random.randint(1, 3))
        ]
        return request
    exactly = _exact(random, classes, gates)
    if random.random() < (0.1 if "AdminAccess" in gates else 0.02):
        exactly["adminAccess"] = random.random() < 0.8
    return request | {"exactly": exactly}


def _exact(random: Random, classes: int, gates: frozenset[str]) -> dict[str, Any]:
    name = f"class-{random.randrange(classes)}" if random.random() < 0.99 else "unknown"
    exact: dict[str, Any] = {"deviceClassName": name, "selectors": _selectors(random, broken=0.03)}
    if random.random() < 0.12:
        exact["allocationMode"] = "All"
    else:
        exact |= {"allocationMode": "ExactCount", "count": _count(random)}
    if random.random() < 0.3:
        exact["tolerations"] = [_toleration(random) for _ in range(random.randint(1, 2))]
    if random.random() < (0.4 if "ConsumableCapacity" in gates else 0.01):
        exact["capacity"] = {"requests": _amounts(random)}
    if random.random() < (0.25 if "DerivedAttributes" in gates else 0.01):
        exact["derivedAttributes"] = [
            {
                "name": f"{_GPU}/{random.choice(_CONSTRAINED)}",
                "expression": random.choice(_DERIVED[:-2] if random.random() < 0.9 else _DERIVED),
            }
        ]
    return exact


def _count(random: Random) -> int:
    if random.random() < 0.02:
        return random.choice((0, 31, 32, 33, 2**40))
    return random.choice((1, 1, 1, 1, 1, 2, 2, 3, 4))


def _toleration(random: Random) -> dict[str, Any]:
    toleration: dict[str, Any] = {}
    if random.random() < 0.8:
        toleration["key"] = random.choice(("hot", "cold"))
    if random.random() < 0.7:
        toleration["operator"] = random.choice(("Equal", "Exists", "Exists"))
    if random.random() < 0.3:
        toleration["value"] = random.choice(("x", "y"))
    if random.random() < 0.4:
        toleration["effect"] = random.choice(("NoSchedule", "NoExecute"))
    return toleration


def _amounts(random: Random) -> dict[str, str]:
    amounts = {}
    if random.random() < 0.8:
        amounts["memory"] = random.choice(_AMOUNTS[:-2] if random.random() < 0.97 else _AMOUNTS)
    if random.random() < 0.3:
        amounts["cores"] = random.choice(("0", "1", "30", "50", "60", "100", "12.5"))
    if random.random() < 0.03:
        amounts["unknown"] = "1"
    return amounts


def _allocated(random: Random, pools: list[Pool]) -> list[dict[str, Any]]:
    devices = [device for pool in pools for device in pool.devices]
    if not devices or random.random() < 0.4:
        return []
    chosen = random.sample(devices, random.randint(1, max(1, len(devices) // 3)))
    results = [result for device in chosen for result in _held(random, *device)]
    return [
        {
            "metadata": {"name": f"held-{index}", "namespace": "default", "uid": f"held-{index}"},
            "status": {"allocation": {"devices": {"results": [result]}}},
        }
        for index, result in enumerate(results)
    ]


def _held(random: Random, driver: str, pool: str, device: dict[str, Any]) -> list[dict[str, Any]]:
    result = {"request": "r", "driver": driver, "pool": pool, "device": device["name"]}
    if random.random() < 0.1:
        return [result | {"adminAccess": True}]
    is_shared = device.get("allowMultipleAllocations", False)
    if random.random() < 0.03:
        is_shared = not is_shared
    if not is_shared:
        return [result]
    return [
        result | {"shareID": f"00000000-0000-4000-8000-00000000000{index}"} | _held_capacity(random, device)
        for index in range(random.randint(1, 2))
    ]


def _held_capacity(random: Random, device: dict[str, Any]) -> dict[str, Any]:
    capacity = device.get("capacity")
    if not capacity or random.random() < 0.1:
        return {}
    amounts = {"memory": ("0", "5Gi", "10Gi", "20Gi"), "cores": ("0", "1", "30", "50")}
    return {"consumedCapacity": {name: random.choice(amounts[name]) for name in capacity}}
