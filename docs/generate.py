"""Writes the reference page from the code: `python -m docs.generate`. A test tells when it is stale."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import typer
from prometheus_client import CollectorRegistry, Metric

from controller import cli as controller_cli
from controller import decision
from controller.allocator import reason
from controller.metric import Metrics as ControllerMetrics
from dra_driver.api.config_v1alpha1 import API_VERSION, KIND, DeviceConfig, Interval, Strategy, default_device_config
from dra_driver.devices.attribute import ATTRIBUTES
from dra_driver.devices.simulated import profile_names, read_profile
from kubeletplugin import cli
from kubeletplugin.metric import Metrics
from kubeletplugin.publish.metric import PublishMetrics

PAGE = Path(__file__).parent / "reference.md"

OVERRIDES = """\
unhealthy:
  3: {reason: xid-79, message: fell off the bus}  # tainted; both words are optional
removed: [5]
added: 2  # more devices like the profile's last ones, or a list of groups as in a profile
partitions:
  0: [{profile: 3g.40gb, start: 4}]  # as if an administrator had made it: never removed by the driver
"""
"""An example that has every field, for the profile `a100x8`."""

_LABEL_VALUES_MAX = 8
"""Of a label with more values the table gives the name only."""


def render_reference() -> str:
    """Render the whole page."""
    sections = (
        "# Reference\n\nThis page is generated from the code by `make docs`.\n",
        _attributes(),
        _capacities(),
        _device_config(),
        _flags("dra-kubeletplugin", cli.app),
        _flags("dra-controller", controller_cli.app),
        _metrics(),
        _codes(),
        _profiles(),
        _overrides(),
    )
    return "\n".join(sections)


def _attributes() -> str:
    rows = [(f"`{each.name}`", each.type.value, each.meaning, f"`{each.example}`") for each in ATTRIBUTES]
    text = (
        "## Attributes of a device\n\n"
        'Names without a domain are of the driver\'s: in CEL, `device.attributes["accel.dra-driver.io"].model`.\n'
        "What is not known of a device is absent.\n\n"
    )
    return text + _table(("attribute", "type", "meaning", "example"), rows)


def _capacities() -> str:
    rows = [
        ("`memory`", "bytes, in steps of 1Mi", "all of it", "below the device's memory: a share"),
        ("`cores`", "percent, 0 to 100", "1", "1: no compute limit; 2 to 99: a limit; 100: nobody else"),
        ("`slots`", "0 to `--slots`", "1", "how many sharers the claim counts as"),
    ]
    text = (
        "## Capacities of a device that can be shared\n\n"
        "0 is for claims with admin access only. A partition has plain `memory`.\n\n"
    )
    return text + _table(("capacity", "range", "without a request", "meaning"), rows)


def _device_config() -> str:
    default = default_device_config(DeviceConfig())
    strategies = ", ".join(f"`{each}`" for each in Strategy)
    intervals = ", ".join(f"`{each}`" for each in Interval)
    rows = [
        ("`apiVersion`", f"`{API_VERSION}`", "required"),
        ("`kind`", f"`{KIND}`", "required"),
        ("`sharing.strategy`", f"{strategies}: demands it ([what they do](operation.md#sharing-strategies))",
         "the device's own"),
        ("`sharing.policy`", "with `Shim`. `Force`: always limited; `Burst`: only while somebody else uses the device",
         f"`{default.policy}`"),
        ("`sharing.timeSlicing.interval`", f"with `TimeSlicing`. Length of a turn: {intervals}",
         f"`{Interval.DEFAULT}`"),
        ("`sharing.mps.defaultActiveThreadPercentage`", "with `MPS`. The most threads of a share: percent, 1 to 100",
         "no limit"),
        ("`sharing.mps.defaultPinnedDeviceMemoryLimit`", "with `MPS`. The most memory of a share, such as `8Gi`",
         "no limit"),
    ]  # fmt: skip
    text = (
        "## Opaque config\n\n"
        "`parameters` of a class or claim, decoded strictly.\n"
        "Configs are laid over each other field by field: the class's first, then the claim's.\n\n"
    )
    return text + _table(("field", "value", "default"), rows)


def _flags(name_of_command: str, app: typer.Typer) -> str:
    command = typer.main.get_command(app)
    rows = []
    for parameter in command.params:
        name = max(parameter.opts, key=len)
        variable = f"`DRA_DRIVER_{name.removeprefix('--').replace('-', '_').upper()}`"
        if name in ("--version", "--install-completion", "--show-completion"):
            continue
        default = "required" if parameter.required else _default(parameter.default)
        rows.append((f"`{name}`", variable, default, getattr(parameter, "help", "") or ""))
    return f"## Flags of {name_of_command}\n\n" + _table(("flag", "environment", "default", "meaning"), rows)


def _default(value: object) -> str:
    return f"`{value}`" if value not in (None, "", False, ()) else ""


def _metrics() -> str:
    registry = CollectorRegistry()
    Metrics(registry).set_health({"": True})  # a series, so that its label is known
    PublishMetrics(registry)
    ControllerMetrics(registry)
    rows = []
    for family in sorted(registry.collect(), key=lambda family: family.name):
        suffix = "_total" if family.type == "counter" else ""
        rows.append((f"`{family.name}{suffix}`", family.type, _render_labels(family), family.documentation))
    text = "## Metrics\n\nServed by each process at `/metrics`; `/healthz` and `/readyz` are for probes.\n\n"
    return text + _table(("metric", "type", "labels", "meaning"), rows)


def _render_labels(family: Metric) -> str:
    """Name the labels, each with its values where those are few; all series exist from the start."""
    values: dict[str, dict[str, None]] = {}
    for sample in family.samples:
        for label in sample.labels.keys() - {"le"}:
            values.setdefault(label, {})[sample.labels[label]] = None
    return "; ".join(
        f"{label}: {', '.join(known)}" if "" not in known and len(known) <= _LABEL_VALUES_MAX else label
        for label, known in sorted(values.items())
    )


def _codes() -> str:
    waiting = (
        "## Why a Pod waits\n\n"
        "The label `reason` of `dra_controller_refusals_total`; the Event on Pod and claim says more.\n\n"
    )
    reasons = (
        "## Why a claim does not fit\n\n"
        "Codes of the tree that `explain` of `controller.allocator` gives: claim, request, node, device.\n\n"
    )
    header = ("code", "meaning")
    return "\n".join(
        text + _table(header, ((f"`{code}`", meaning) for code, meaning in meanings.items()))
        for text, meanings in ((waiting, decision.MEANINGS), (reasons, reason.MEANINGS))
    )


def _profiles() -> str:
    rows = [(f"`{name}`", read_profile(name).description) for name in profile_names()]
    text = (
        "## Simulated profiles\n\n"
        "A profile of your own is a YAML file in the form of [these](../dra_driver/devices/simulated/profiles); "
        "a name with a `/`, or that ends in `.yaml` or `.yml`, is read as a path.\n\n"
    )
    return text + _table(("profile", "devices"), rows)


def _overrides() -> str:
    text = (
        "## Simulated overrides\n\n"
        "A YAML file that changes simulated devices while the plugin runs: `--simulated-overrides`, or "
        "`simulated.overrides` of the chart.\n"
        "Every field may be left out.\n"
        "A device goes by its position in the profile, from 0, or by its name.\n\n"
    )
    return f"{text}```yaml\n{OVERRIDES}```\n"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(render_reference(), encoding="utf-8")
