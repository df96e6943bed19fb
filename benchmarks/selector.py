"""How long a compiled selector takes on a device, against cel-go and cel-python in the same run.

Every engine evaluates over the same devices, in turns, and the best turn counts. *kept* is a device that was seen
before, as the allocator has it; *new* is one whose values are converted first, as cel-go's time has it.
"""

import argparse
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import celpy
from celpy.adapter import json_to_cel
from celpy.celparser import CELParseError
from celpy.evaluation import CELEvalError

from benchmarks.report import geometric_mean, measure_us, quiet, render_table
from dra_driver.api.codec import decode, encode
from dra_driver.api.quantity import Quantity
from dra_driver.api.resource_v1 import Device
from dra_driver.api.semver import parse_semver
from dra_driver.cel import DeviceInput, compile_selector
from tests.referee import upstream
from tests.referee.process import Referee

NAMED = 'device.attributes["d"].model == "H100" && device.capacity["d"].memory.compareTo(quantity("40Gi")) >= 0'
EXPRESSIONS = (
    NAMED,
    'device.driver == "d"',
    'device.attributes["d"].model in ["H100", "H200"]',
    'has(device.attributes["d"].model) && device.attributes["d"].model.startsWith("H")',
    'device.attributes["d"].?family.orValue("none") == "hopper"',
    'device.attributes["d"].version.isGreaterThan(semver("1.2.3"))',
    'device.attributes["d"].model.matches("^H[0-9]+$")',
    '["A100", "H100"].exists(m, m == device.attributes["d"].model)',
)
GOAL_US = 3
DEVICES = 64


@dataclass(frozen=True, slots=True)
class Timing:
    """Microseconds a device; None where cel-python does not know the expression."""

    expression: str
    kept: float
    new: float
    cel_go: float
    cel_python: float | None


def measure(expression: str, referee: Referee, turns: int) -> Timing:
    """Let all engines take turns over the same devices."""
    raw = a_fleet(DEVICES)
    devices = [_input(device) for device in raw]
    evaluate = compile_selector(expression).evaluate
    program = _compile_python(expression)
    activations = [{"device": _activation(device)} for device in raw]
    verdicts = [evaluate(device) for device in devices]
    question = {"op": "cel", "expr": expression, "driver": "d", "devices": raw * 8, "stored": True}
    if (theirs := referee.ask(question)["verdicts"]) != verdicts * 8:
        raise RuntimeError(f"{expression}: cel-go does not agree: {theirs[:DEVICES]}, {verdicts}")
    times: dict[str, list[float]] = {"kept": [], "new": [], "go": [], "python": []}
    with quiet():
        for _ in range(turns):
            times["kept"].append(measure_us(lambda: [evaluate(device) for device in devices]))
            fresh = [_input(device) for device in raw]
            times["new"].append(measure_us(lambda: [evaluate(device) for device in fresh]))  # noqa: B023 - called at once
            times["go"].append(referee.ask(question)["us"] / 8)
            if program is not None:
                times["python"].append(measure_us(lambda: [program(each) for each in activations]))
    best = {name: min(values) / DEVICES for name, values in times.items() if values}
    return Timing(expression, best["kept"], best["new"], best["go"], best.get("python"))


def a_fleet(count: int) -> list[dict[str, Any]]:
    """Devices in the API's form; half of them are H100, and half of these have memory enough."""
    return [
        {
            "name": f"gpu-{index}",
            "attributes": {
                "model": {"string": ("A100", "H100")[index % 2]},
                "family": {"string": ("ampere", "hopper")[index % 2]},
                "uuid": {"string": f"GPU-{index:08x}"},
                "numa": {"int": index % 8},
                "version": {"version": f"1.{index % 4}.0"},
            },
            "capacity": {"memory": {"value": ("20Gi", "80Gi")[index // 2 % 2]}, "cores": {"value": "132"}},
        }
        for index in range(count)
    ]


def _input(raw: Mapping[str, Any]) -> DeviceInput:
    device = decode(encode(raw), Device)
    return DeviceInput("d", device.attributes, device.capacity)


def _compile_python(expression: str) -> Callable[[Mapping[str, Any]], object] | None:
    """Compile with cel-python, which is lent the functions of Kubernetes; None if that does not do.

    Its compiled programs take no such functions, so an expression may be left to its interpreter.
    """
    functions: dict[str, Callable[..., Any]] = {
        "quantity": lambda text: Quantity.parse(str(text)),
        "compareTo": lambda left, right: celpy.celtypes.IntType((left > right) - (left < right)),
        "semver": lambda text: parse_semver(str(text)),
        "isGreaterThan": lambda left, right: celpy.celtypes.BoolType(left > right),
    }
    ours = compile_selector(expression)
    raw = a_fleet(DEVICES)
    for runner, lent in ((celpy.CompiledRunner, None), (celpy.InterpretedRunner, functions)):
        env = celpy.Environment(runner_class=runner)
        try:
            program = env.program(env.compile(expression), functions=lent)
            verdicts = [bool(program.evaluate({"device": _activation(device)})) for device in raw]
        except (CELParseError, CELEvalError, AttributeError, TypeError, ValueError):
            continue
        if verdicts == [ours.evaluate(_input(device)) for device in raw]:
            return program.evaluate
    return None


def _activation(raw: Mapping[str, Any]) -> Any:
    """Give the device as cel-python has it."""
    device: Any = json_to_cel({"driver": "d", "attributes": {"d": {}}, "capacity": {"d": {}}})
    for name, attribute in raw["attributes"].items():
        ((kind, value),) = attribute.items()
        device["attributes"]["d"][celpy.celtypes.StringType(name)] = (
            parse_semver(value) if kind == "version" else json_to_cel(value)
        )
    for name, capacity in raw["capacity"].items():
        device["capacity"]["d"][celpy.celtypes.StringType(name)] = Quantity.parse(capacity["value"])
    return device


def render_report(timings: Sequence[Timing]) -> str:
    """Render microseconds a device, and how many times faster a kept device is."""
    rows = [
        (
            timing.expression,
            timing.kept,
            timing.new,
            timing.cel_go,
            timing.cel_go / timing.kept,
            timing.cel_python if timing.cel_python is not None else "cannot",
            timing.cel_python / timing.kept if timing.cel_python is not None else None,
        )
        for timing in timings
    ]
    titles = ("expression", "kept us", "new us", "cel-go us", "x", "cel-python us", "x")
    mean = geometric_mean([timing.cel_go / timing.kept for timing in timings])
    table = render_table(titles, rows)
    goal = "met" if timings[0].kept <= GOAL_US else "missed"
    return (
        f"{table}geometric mean against cel-go: {mean:.2f} times faster\n"
        f"first expression: {timings[0].kept:.2f} us, goal {GOAL_US} us: {goal}\n"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.selector", description=__doc__)
    parser.add_argument("--turns", type=int, default=60, help="turns of each engine (default: 60)")
    parser.add_argument("--quick", action="store_true", help="five turns")
    options = parser.parse_args()
    # It logs each function that it does not know.
    logging.getLogger("celpy").addHandler(logging.NullHandler())
    with upstream.start() as referee:
        turns = 5 if options.quick else options.turns
        timings = [measure(expression, referee, turns) for expression in EXPRESSIONS]
    sys.stdout.write(render_report(timings))


if __name__ == "__main__":
    main()
