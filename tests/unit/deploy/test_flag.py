"""The chart starts the plugin and the controller with flags that they have."""

import json
import re

import pytest
import typer.main

from controller import cli as controller_cli
from controller.allocator import Policy
from controller.allocator.feature import GATES
from dra_driver.devices.simulated import profile_names
from dra_driver.log import LogFormat, LogLevel
from kubeletplugin.cli import app
from kubeletplugin.setting import HOLD_MAX_S, INTERVAL_MAX_S, INTERVAL_MIN_S, SLOTS_MAX, XID_MAX
from tests.support.manifest import CHART

DAEMONSET = (CHART / "templates" / "daemonset.yaml").read_text("utf-8")
SCHEMA = json.loads((CHART / "values.schema.json").read_text("utf-8"))
PARAMETERS = typer.main.get_command(app).params
NOT_FOR_PODS = {"--kubeconfig", "--version", "--install-completion", "--show-completion"}


def test_the_daemonset_gives_each_flag_that_the_plugin_has() -> None:
    known = {option for parameter in PARAMETERS for option in parameter.opts}
    opposites = {option for parameter in PARAMETERS for option in parameter.secondary_opts}
    given = set(re.findall(r"^ +- (--[a-z-]+)", DAEMONSET, re.MULTILINE))
    assert given - opposites == known - NOT_FOR_PODS


def test_the_deployment_gives_each_flag_that_is_not_for_special_clusters() -> None:
    parameters = typer.main.get_command(controller_cli.app).params
    known = {option for parameter in parameters for option in parameter.opts}
    deployment = (CHART / "templates" / "controller-deployment.yaml").read_text("utf-8")
    given = set(re.findall(r"^ +- (--[a-z-]+)", deployment, re.MULTILINE))
    special = {"--leader-elect", "--lease-duration", "--renew-deadline", "--retry-period"}
    assert given == known - NOT_FOR_PODS - special


def test_policies_of_the_chart_are_those_that_the_controller_knows() -> None:
    known = [policy.value for policy in Policy]
    classes = SCHEMA["properties"]["controller"]["properties"]["classes"]["items"]["properties"]
    assert SCHEMA["definitions"]["policy"]["enum"] == known
    assert classes["policy"]["enum"] == ["", *known]


def test_feature_gates_of_the_chart_are_those_that_the_controller_knows() -> None:
    assert SCHEMA["properties"]["controller"]["properties"]["featureGates"]["propertyNames"]["enum"] == sorted(GATES)


@pytest.mark.parametrize("name", ["level", "format"])
def test_settings_of_the_log_are_words_that_the_plugin_knows(name: str) -> None:
    known = set({"level": LogLevel, "format": LogFormat}[name])
    assert set(SCHEMA["properties"]["log"]["properties"][name]["enum"]) <= known


def test_a_simulated_profile_is_a_built_in_one_or_ones_own() -> None:
    assert SCHEMA["properties"]["simulated"]["properties"]["profile"]["enum"] == [*profile_names(), "custom"]


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [
        (("slots",), 1, SLOTS_MAX),
        (("discoveryIntervalSeconds",), INTERVAL_MIN_S, INTERVAL_MAX_S),
        (("recoveryHoldSeconds",), 0, HOLD_MAX_S),
        (("nvidia", "properties", "ignoreXids", "items"), 1, XID_MAX),
    ],
    ids=str,
)
def test_numbers_of_the_chart_are_those_that_the_plugin_takes(value: tuple[str, ...], least: float, most: int) -> None:
    number = SCHEMA["properties"]
    for part in value:
        number = number[part]
    assert (number["minimum"], number["maximum"]) == (least, most)
