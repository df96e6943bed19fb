"""Builders for allocation problems, and selectors that are Python functions."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import msgspec

from controller.allocator import (
    Allocated,
    Answer,
    CompileFailureError,
    EvaluationFailureError,
    Problem,
    SelectorCache,
    allocate,
)
from controller.allocator.candidate import Candidate
from dra_driver.api.codec import decode
from dra_driver.api.core_v1 import Node
from dra_driver.api.meta_v1 import ObjectMeta
from dra_driver.api.quantity import Quantity
from dra_driver.api.resource_v1 import (
    Device,
    DeviceAttribute,
    DeviceClass,
    ResourceClaim,
    ResourceSlice,
)

DRIVER = "gpu.example.com"
NODE = "node-a"


class FakeCompiler:
    """Compiles what it was given; `calls` counts evaluations by expression."""

    def __init__(self, functions: Mapping[str, Callable[[Candidate], Any]] | None = None) -> None:
        self.functions = dict(functions or {})
        self.calls: dict[str, int] = {}

    def compile_selector(self, expression: str) -> "FakeExpression":
        return self._compile(expression)

    def compile_attribute(self, expression: str) -> "FakeExpression":
        return self._compile(expression)

    def _compile(self, expression: str) -> "FakeExpression":
        if expression not in self.functions:
            raise CompileFailureError(f"{expression}: does not compile")
        return FakeExpression(self, expression)


class FakeExpression:
    """A compiled expression."""

    def __init__(self, compiler: FakeCompiler, expression: str) -> None:
        self._compiler = compiler
        self._expression = expression

    def key(self, candidate: Candidate) -> str:
        return str(candidate.device.attributes)

    def describe(self, _: Candidate) -> str:
        return ""

    def evaluate(self, candidate: Candidate) -> Any:
        calls = self._compiler.calls
        calls[self._expression] = calls.get(self._expression, 0) + 1
        try:
            return self._compiler.functions[self._expression](candidate)
        except KeyError as error:
            raise EvaluationFailureError(f"no such key: {error}") from error


def an_attribute(value: Any) -> DeviceAttribute:
    """A bool, int, string, or a list of ints."""
    if isinstance(value, bool):
        return DeviceAttribute(bool=value)
    if isinstance(value, int):
        return DeviceAttribute(int=value)
    return DeviceAttribute(ints=tuple(value)) if isinstance(value, (list, tuple)) else DeviceAttribute(string=value)


def a_device(name: str, fields: Mapping[str, Any] | None = None, **attributes: Any) -> Device:
    """A device with attributes; `fields` are further fields in API form."""
    device = decode(_json({"name": name} | dict(fields or {})), Device)
    return msgspec.structs.replace(device, attributes={key: an_attribute(value) for key, value in attributes.items()})


def a_slice(
    *devices: Device, pool: str = "pool", name: str = "", generation: int = 1, of: int = 1, **spec: Any
) -> ResourceSlice:
    """The only slice of a pool of this node, unless told otherwise; `of` is resourceSliceCount, `spec` in API form."""
    fields: dict[str, Any] = {
        "driver": DRIVER,
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": of},
    }
    if not {"nodeSelector", "allNodes", "perDeviceNodeSelection"}.intersection(spec):
        fields["nodeName"] = NODE
    slice_ = decode(_json({"metadata": {"name": name or f"slice-{pool}"}, "spec": fields | spec}), ResourceSlice)
    return msgspec.structs.replace(slice_, spec=msgspec.structs.replace(slice_.spec, devices=devices))


def devices_of(count_: int, **attributes: Any) -> tuple[Device, ...]:
    """Devices that are alike."""
    return tuple(a_device(f"dev-{index}", **attributes) for index in range(count_))


def a_request(name: str = "main", *selectors: str, count: int = 1, **fields: Any) -> dict[str, Any]:
    """A request of the class `any`, in API form; `fields` are those of `exactly`."""
    exactly = {"deviceClassName": "any", "allocationMode": "ExactCount", "count": count, "selectors": _cel(selectors)}
    if fields.get("allocationMode") == "All":
        del exactly["count"]
    return {"name": name, "exactly": exactly | fields}


def a_subrequest(name: str, *selectors: str, count: int = 1, **fields: Any) -> dict[str, Any]:
    """An entry of firstAvailable, in API form."""
    return {"name": name, **a_request(name, *selectors, count=count, **fields)["exactly"]}


def a_claim(*requests: Mapping[str, Any], name: str = "claim", **devices: Any) -> ResourceClaim:
    """A claim that is to be allocated; `devices` are further fields of spec.devices, in API form."""
    spec = {"devices": {"requests": list(requests)} | devices}
    return decode(_json({"metadata": {"name": name, "namespace": "default"}, "spec": spec}), ResourceClaim)


def a_holder(device: str, *, pool: str = "pool", **fields: Any) -> ResourceClaim:
    """A claim that holds a device."""
    result = {"request": "main", "driver": DRIVER, "pool": pool, "device": device} | fields
    status = {"allocation": {"devices": {"results": [result]}}}
    return decode(_json({"metadata": {"name": f"holds-{device}"}, "status": status}), ResourceClaim)


def a_class(name: str = "any", *selectors: str, **spec: Any) -> DeviceClass:
    """A class."""
    return decode(_json({"metadata": {"name": name}, "spec": {"selectors": _cel(selectors)} | spec}), DeviceClass)


def a_problem(
    claims: ResourceClaim | Sequence[ResourceClaim],
    slices: ResourceSlice | Sequence[ResourceSlice],
    **fields: Any,
) -> Problem:
    """A problem on node `node-a`, which has the label `zone=a`; share IDs count up."""
    numbers = count()
    values: dict[str, Any] = {
        "node": Node(metadata=ObjectMeta(name=NODE, labels={"zone": "a"})),
        "claims": [claims] if isinstance(claims, ResourceClaim) else claims,
        "slices": [slices] if isinstance(slices, ResourceSlice) else slices,
        "classes": {"any": a_class()},
        "new_share_id": lambda: f"share-{next(numbers)}",
    }
    return Problem(**(values | fields))


def solve(problem: Problem, **functions: Callable[[Candidate], Any]) -> Answer:
    """Allocate, with selectors that are named after `functions`."""
    return allocate(problem, SelectorCache(FakeCompiler(functions)))


def chosen(answer: Answer) -> list[str]:
    """Give `request=device` of an allocation, in order; a share of a device ends in its share ID's number."""
    assert isinstance(answer, Allocated), answer
    return [
        f"{result.request}={result.device}" for allocation in answer.results for result in allocation.devices.results
    ]


def quantities(**texts: str) -> dict[str, Quantity]:
    """Quantities by name."""
    return {name: Quantity.parse(text) for name, text in texts.items()}


def _cel(selectors: Sequence[str]) -> list[dict[str, Any]]:
    return [{"cel": {"expression": selector}} for selector in selectors]


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value)
