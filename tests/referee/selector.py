"""Our answers about selectors."""

import time

from dra_driver.api.codec import decode, encode
from dra_driver.api.resource_v1 import Device
from dra_driver.cel import CompileError, DeviceInput, EvaluationError, Options, Selector, compile_selector
from tests.referee.process import Answer, Question

# What upstream reports where there is no estimate.
_NO_ESTIMATE = 2**64 - 1


def evaluate(question: Question) -> Answer:
    """Answer `cel`."""
    options = Options(
        stored=bool(question.get("stored")),
        lists=bool(question.get("lists")),
        consumable_capacity=not question.get("exclusive"),
    )
    try:
        selector = compile_selector(question["expr"], options=options)
    except CompileError as error:
        return {"maxCost": _NO_ESTIMATE, "compileError": str(error)}
    devices = [_input(question["driver"], device) for device in question.get("devices", ())]
    started = time.perf_counter()
    verdicts = [_evaluate(selector, device) for device in devices]
    took = time.perf_counter() - started
    counted = [_evaluate_with_cost(selector, device) for device in devices]
    for verdict, (same, _) in zip(verdicts, counted, strict=True):
        is_same = (isinstance(verdict, str) and isinstance(same, str)) or verdict == same
        assert is_same, f"{verdict!r} at once, {same!r} where costs are counted"
    return {
        "maxCost": selector.estimated_cost,
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


def _evaluate(selector: Selector, device: DeviceInput) -> bool | str:
    try:
        return selector.evaluate(device)
    except EvaluationError as error:
        return str(error)


def _evaluate_with_cost(selector: Selector, device: DeviceInput) -> tuple[bool | str, int]:
    try:
        return selector.evaluate_with_cost(device)
    except EvaluationError as error:
        return str(error), error.cost
