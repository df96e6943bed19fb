"""Named allocation problems of any size, each with many states of what is allocated already.

The states of a family differ, so that nobody can remember an answer from one to the next.
"""

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dra_driver.api.codec import decode, encode
from dra_driver.api.core_v1 import Node
from dra_driver.api.meta_v1 import ObjectMeta
from dra_driver.api.resource_v1 import Device, DeviceClass, ResourceClaim, ResourceSlice
from tests.support.allocation import DRIVER, NODE, a_claim, a_class, a_holder, a_request, a_slice, a_subrequest

Claims: TypeAlias = tuple[ResourceClaim, ...]
Raw: TypeAlias = dict[str, Any]

DRIVER_SELECTOR = f'device.driver == "{DRIVER}"'
DOMAIN = 8
GPU_SLOTS = (4, 2, 1, 1)
_MODEL = f'device.attributes["{DRIVER}"].model == '
_MEMORY = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'
_PROFILE = f'device.attributes["{DRIVER}"].slots == '


@dataclass(frozen=True, slots=True)
class Family:
    """One problem: `claims` are to be allocated together, over `devices` devices, in each of `states`."""

    name: str
    devices: int
    slices: tuple[ResourceSlice, ...]
    claims: Claims
    states: tuple[Claims, ...]
    classes: tuple[DeviceClass, ...]

    @property
    def node(self) -> Node:
        """The node that it is about."""
        return Node(metadata=ObjectMeta(name=NODE))

    def question(self, state: Claims, **fields: Any) -> Raw:
        """Put it in the referee's words."""
        parts = {
            "node": self.node,
            "classes": self.classes,
            "slices": self.slices,
            "claims": self.claims,
            "allocated": state,
        }
        return {"op": "allocate"} | {name: json.loads(encode(part)) for name, part in parts.items()} | fields


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes families; `states` of each. With `is_plain` the class has no selector, as hardly any has."""

    states: int
    is_plain: bool = False

    def make(
        self,
        name: str,
        devices: Sequence[Raw],
        claims: Iterable[ResourceClaim],
        held: Callable[[random.Random], Iterable[ResourceClaim]] = lambda _: (),
        **spec: Any,
    ) -> Family:
        """Make a family; `held` gives what is allocated in a state, `spec` are fields of the slices in API form."""
        numbered = [{"name": f"dev-{index}"} | device for index, device in enumerate(devices)]
        counters = [a_slice(name="counters", of=2, **spec)] if spec else []
        slices = (a_slice(*(decode(json.dumps(each), Device) for each in numbered), of=1 + len(counters)), *counters)
        source = random.Random(name + str(len(devices)))  # noqa: S311 - the same problems in every run
        states = tuple((*held(source), a_holder(f"elsewhere-{number}", pool="other")) for number in range(self.states))
        classes = (a_class("any", *(() if self.is_plain else (DRIVER_SELECTOR,))),)
        return Family(name, len(devices), slices, tuple(claims), states, classes)

    def feasible(self, count: int) -> list[Family]:
        """Give the families with a solution, over `count` devices."""
        gpus = [_gpu(index) for index in range(count)]
        some = _hold_some(count // 4, range(count))
        late = [_gpu(index, "H100" if index >= count * 7 // 8 else "A100") for index in range(count)]
        pairs = [_gpu(index) | {"attributes": _attributes(numa=index // 2)} for index in range(count)]
        size = max(4, count // 8)
        grouped = [{"attributes": _attributes(numa=index // size)} for index in range(count)]
        domains = [{"attributes": _attributes(domain=f"d{index // DOMAIN}")} for index in range(count)]
        shareable = [_gpu(index) | {"allowMultipleAllocations": True} for index in range(count)]
        listed = [a_subrequest("b200", _MODEL + '"B200"'), a_subrequest("h100", _MODEL + '"H100"', count=2)]
        return [
            self.make("single", gpus, [a_claim(a_request())], some),
            self.make("many", gpus, [a_claim(a_request(count=min(count // 2, 32)))], some),
            self.make(
                "by selector",
                late,
                [a_claim(a_request("main", _MODEL + '"H100" && ' + _MEMORY))],
                _hold_some(count // 4, range(count * 7 // 8)),
            ),
            self.make(
                "match",
                grouped,
                [a_claim(a_request(count=4), constraints=[{"matchAttribute": f"{DRIVER}/numa"}])],
                _hold_some(count // 8, range(count - size)),
            ),
            self.make(
                "distinct",
                pairs,
                [a_claim(a_request(count=4), constraints=[{"distinctAttribute": f"{DRIVER}/numa"}])],
                _hold_some(count // 4, range(0, count, 2)),
            ),
            self.make("shares", shareable, [_share_claim("10Gi", 2)], _share_some(count)),
            self.make(
                "counters",
                partitions(count // 4),
                [a_claim(a_request("main", _PROFILE + "4"))],
                _hold_some(max(1, count // 8), [i for i in range(count - 4) if i % 4], fallback=[2]),
                sharedCounters=counter_sets(count // 4),
            ),
            self.make("priority list", gpus, [a_claim({"name": "main", "firstAvailable": listed})], some),
            self.make("eight of a domain", domains, [_domain_claim(8)], _hold_domains(count // DOMAIN)),
            self.make("several claims", gpus, [a_claim(a_request(), name=f"claim-{n}") for n in range(4)], some),
        ]

    def infeasible(self) -> list[Family]:
        """Give the families without a solution."""
        families = [
            self.make(f"{count + 1} of {count}", _gpus(count), [a_claim(a_request(count=count + 1))])
            for count in (8, 16, 24, 31)
        ]
        halves = [a_claim(a_request(count=16), name="a"), a_claim(a_request(count=17), name="b")]
        families.append(self.make("16 + 17 of 32", _gpus(32), halves))
        families.append(
            self.make("8 + 9 of 16", _gpus(16), [a_claim(a_request("a", count=8), a_request("b", count=9))])
        )
        for count in (16, 32):
            singles = [a_request(f"r{number}") for number in range(6)]
            impossible = a_request("last", _MODEL + '"B200"')
            families.append(
                self.make("six and an impossible one", _gpus(count), [a_claim(*singles, impossible)], _hold_one(count))
            )
        for count in (32, 128):
            domains = [{"attributes": _attributes(domain=f"d{index // DOMAIN}")} for index in range(count)]
            families.append(self.make("nine of a domain of eight", domains, [_domain_claim(9)], _hold_one(count)))
        for count, wanted in ((64, 3), (128, 5)):
            groups = [{"attributes": _attributes(numa=index // (wanted - 1))} for index in range(count)]
            claim = a_claim(a_request(count=wanted), constraints=[{"matchAttribute": f"{DRIVER}/numa"}])
            families.append(self.make(f"{wanted} alike, groups of {wanted - 1}", groups, [claim], _hold_one(count)))
        families += [
            self.make(
                "counters just short",
                partitions(gpu_count),
                [a_claim(a_request("main", _PROFILE + "4", count=gpu_count))],
                _hold_some(1, [4 * gpu + 1 for gpu in range(gpu_count)]),
                sharedCounters=counter_sets(gpu_count, slots=5),
            )
            for gpu_count in (4, 8, 16)
        ]
        families += [
            self.make(
                "capacity just short",
                [_gpu(index) | {"allowMultipleAllocations": True} for index in range(count)],
                [_share_claim("30Gi", 2 * count)],
                _share_one(count),
            )
            for count in (2, 4, 8)
        ]
        return families


def partitions(count: int) -> list[Raw]:
    """Give the partitions of `count` GPUs: one of four slots, one of two and two of one."""
    return [
        {
            "attributes": _attributes(slots=slots),
            "consumesCounters": [{"counterSet": f"gpu-{gpu}", "counters": {"slots": {"value": str(slots)}}}],
        }
        for gpu in range(count)
        for slots in GPU_SLOTS
    ]


def counter_sets(count: int, slots: int = 7) -> list[Raw]:
    """Give the counter sets of `count` GPUs."""
    return [{"name": f"gpu-{gpu}", "counters": {"slots": {"value": str(slots)}}} for gpu in range(count)]


def _gpus(count: int) -> list[Raw]:
    return [_gpu(index) for index in range(count)]


def _gpu(index: int, model: str = "H100") -> Raw:
    return {
        "attributes": _attributes(model=model, uuid=f"GPU-{index:08x}", numa=index // 4),
        "capacity": {"memory": {"value": "80Gi"}},
    }


def _attributes(**values: str | int) -> Raw:
    return {name: {"string" if isinstance(value, str) else "int": value} for name, value in values.items()}


def _domain_claim(count: int) -> ResourceClaim:
    return a_claim(a_request(count=count), constraints=[{"matchAttribute": f"{DRIVER}/domain"}])


def _share_claim(memory: str, count: int) -> ResourceClaim:
    return a_claim(
        *(a_request(f"r{number}", capacity={"requests": {"memory": memory}}) for number in range(count)),
    )


def _hold_some(
    count: int, indexes: Iterable[int], fallback: Sequence[int] = ()
) -> Callable[[random.Random], Iterable[ResourceClaim]]:
    choices = list(indexes)
    if len(choices) < count:
        choices, count = list(fallback), len(fallback)
    return lambda source: [a_holder(f"dev-{index}") for index in sorted(source.sample(choices, count))]


def _hold_one(count: int) -> Callable[[random.Random], Iterable[ResourceClaim]]:
    return _hold_some(1, range(count))


def _hold_domains(count: int) -> Callable[[random.Random], Iterable[ResourceClaim]]:
    def hold(source: random.Random) -> Iterable[ResourceClaim]:
        for domain in source.sample(range(count - 1), count // 2):
            yield from (a_holder(f"dev-{domain * DOMAIN + place}") for place in range(DOMAIN))

    return hold


def _share_some(count: int) -> Callable[[random.Random], Iterable[ResourceClaim]]:
    """Let random devices have 5Gi left, and others 45Gi."""

    def hold(source: random.Random) -> Iterable[ResourceClaim]:
        for number, index in enumerate(source.sample(range(count), count // 2)):
            yield _a_share(index, number, ("75Gi", "35Gi")[number % 2])

    return hold


def _share_one(count: int) -> Callable[[random.Random], Iterable[ResourceClaim]]:
    """Let a random device have 50Gi left, which is one share of 30Gi and not two."""
    return lambda source: [_a_share(source.randrange(count), 0, "30Gi")]


def _a_share(index: int, number: int, memory: str) -> ResourceClaim:
    share_id = f"00000000-0000-4000-8000-{number:012x}"
    return a_holder(f"dev-{index}", shareID=share_id, consumedCapacity={"memory": memory})


def salted(objects: Mapping[str, DeviceClass] | Claims, salt: int) -> Any:
    """Give the same with expressions that nobody has compiled yet: with blanks before them."""
    kind: Any = dict[str, DeviceClass] if isinstance(objects, Mapping) else tuple[ResourceClaim, ...]
    return decode(encode(objects).replace(b'"expression":"', b'"expression":"' + b" " * salt), kind)
