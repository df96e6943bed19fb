"""Our answers about selectors."""

import time
from typing import Any

from dra_driver.api.codec import decode, encode
from dra_driver.api.resource_v1 import Device
from dra_driver.api.semver import Semver
from dra_driver.cel import (
    CompileError,
    DerivedAttribute,
    DeviceInput,
    EvaluationError,
    Options,
    Selector,
    compile_attribute,
    compile_selector,
)
from tests.referee.process import Answer, Question

Verdict = bool | str | dict[str, Any]
_FIELDS: dict[type, str] = {bool: "bool", int: "int", str: "string", Semver: "version"}

# What upstream reports where there is no estimate.
_NO_ESTIMATE = 2**64 - 1


def evaluate(question: Question) -> Answer:
    """Answer `cel`."""
    options = Options(
        stored=bool(question.get("stored")),
        lists=bool(question.get("lists")),
        consumable_capacity=not question.get("exclusive"),
    )
    compile_ = compile_attribute if question.get("derived") else compile_selector
    try:
        program = compile_(question["expr"], options=options)
    except CompileError as error:
        return {"maxCost": _NO_ESTIMATE, "compileError": str(error)}
    devices = [_input(question["driver"], device) for device in question.get("devices", ())]
    started = time.perf_counter()
    verdicts = [_evaluate(program, device) for device in devices]
    took = time.perf_counter() - started
    counted = [_evaluate_with_cost(program, device) for device in devices]
    for verdict, (same, _) in zip(verdicts, counted, strict=True):
        is_same = (isinstance(verdict, str) and isinstance(same, str)) or verdict == same
        assert is_same, f"{verdict!r} at once, {same!r} where costs are counted"
    return {
        "maxCost": program.estimated_cost,
        "verdicts": verdicts,
        "costs": [cost for _, cost in counted],
        "us": took * 1e6,
    }


def _input(driver: str, raw: object) -> DeviceInput:
    device = decode(encode(raw), Device)
    return DeviceInput(
        driver=driver,
        attributes=device.attributes,
        capacity=device.capacity,
        allow_multiple_allocations=bool(device.allow_multiple_allocations),
    )


def _evaluate(program: Selector | DerivedAttribute, device: DeviceInput) -> Verdict:
    try:
        return program.evaluate(device) if isinstance(program, Selector) else _attribute(program.evaluate(device))
    except EvaluationError as error:
        return str(error)


def _evaluate_with_cost(program: Selector | DerivedAttribute, device: DeviceInput) -> tuple[Verdict, int]:
    try:
        if isinstance(program, Selector):
            return program.evaluate_with_cost(device)
        cost = program.value_with_cost(device)[1]
    except EvaluationError as error:
        return str(error), error.cost
    return _evaluate(program, device), cost


def _attribute(value: object) -> dict[str, Any]:
    """Give a value as an attribute in the API's form; upstream leaves out an empty list."""
    if isinstance(value, tuple):
        kind = _FIELDS[type(value[0])] + "s" if value else ""
        return {kind: [_plain(item) for item in value]} if value else {}
    return {_FIELDS[type(value)]: _plain(value)}


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Semver) else value
