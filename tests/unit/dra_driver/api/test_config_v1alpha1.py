from typing import Any

import pytest

from dra_driver.api.codec import decode, encode
from dra_driver.api.config_v1alpha1 import (
    DeviceConfig,
    EffectiveConfig,
    Interval,
    Policy,
    Sharing,
    Strategy,
    default_device_config,
    merge_device_configs,
    parse_device_config,
)
from dra_driver.errors import InvalidError

HEAD = {"apiVersion": "resource.dra-driver.io/v1alpha1", "kind": "DeviceConfig"}
THREADS, MEMORY = "defaultActiveThreadPercentage", "defaultPinnedDeviceMemoryLimit"
THREADS_PATH, MEMORY_PATH = f"mps.{THREADS}", f"mps.{MEMORY}"
ANY = "want 'Shim', 'TimeSlicing', 'MPS' or 'None'"
FIELDS = "want 'strategy', 'policy', 'timeSlicing' or 'mps'"


def problems(parameters: object) -> list[str]:
    with pytest.raises(InvalidError) as caught:
        parse_device_config(parameters)
    return [str(error) for error in caught.value.errors]


@pytest.mark.parametrize(
    ("sharing", "expected"),
    [
        (None, Sharing()),
        ({}, Sharing()),
        ({"strategy": "Shim"}, Sharing(strategy=Strategy.SHIM)),
        ({"strategy": "None", "policy": "Burst"}, Sharing(strategy=Strategy.NONE, policy=Policy.BURST)),
        ({"policy": "Force"}, Sharing(policy=Policy.FORCE)),
    ],
    ids=["nothing", "empty", "strategy", "both", "policy"],
)
def test_what_a_user_wrote_is_read(sharing: dict[str, str] | None, expected: Sharing) -> None:
    parameters: dict[str, Any] = dict(HEAD) if sharing is None else {**HEAD, "sharing": sharing}
    assert parse_device_config(parameters) == DeviceConfig(sharing=expected)


@pytest.mark.parametrize(
    ("sharing", "problem"),
    [
        (
            {"strategy": "Shmi"},
            f"parameters.sharing.strategy: unknown strategy 'Shmi', {ANY}; did you mean 'Shim'?",
        ),
        (
            {"strategy": "shim"},
            f"parameters.sharing.strategy: unknown strategy 'shim', {ANY}; did you mean 'Shim'?",
        ),
        (
            {"strategy": "Queue"},
            f"parameters.sharing.strategy: unknown strategy 'Queue', {ANY}",
        ),
        ({"strategy": None}, f"parameters.sharing.strategy: is null, {ANY}"),
        ({"policy": True}, "parameters.sharing.policy: is a bool, want 'Force' or 'Burst'"),
        ({"policy": ["Force"]}, "parameters.sharing.policy: is a list, want 'Force' or 'Burst'"),
        (
            {"stategy": "Shim"},
            f"parameters.sharing.stategy: unknown field, {FIELDS}; did you mean 'strategy'?",
        ),
        (
            {"a/b\n": 1},
            f"parameters.sharing['a/b\\n']: unknown field, {FIELDS}",
        ),
        ("Shim", "parameters.sharing: is a string, want an object"),
        (None, "parameters.sharing: is null, want an object"),
        (1.5, "parameters.sharing: is a number, want an object"),
    ],
    ids=["typo", "case", "other", "null", "bool", "list", "field", "odd field", "string", "null object", "number"],
)
def test_a_mistake_is_named_with_what_was_meant(sharing: object, problem: str) -> None:
    assert problems({**HEAD, "sharing": sharing}) == [problem]


def test_every_mistake_is_named() -> None:
    parameters = {"kind": "Config", "sharng": {}, "sharing": {"strategy": "x", "policy": "y"}}
    assert [problem.partition(": ")[0] for problem in problems(parameters)] == [
        "parameters.sharng",
        "parameters.apiVersion",
        "parameters.kind",
        "parameters.sharing.strategy",
        "parameters.sharing.policy",
    ]


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        ({"kind": "DeviceConfig"}, "parameters.apiVersion: is missing, want 'resource.dra-driver.io/v1alpha1'"),
        (
            {**HEAD, "apiVersion": "resource.dra-driver.io/v1"},
            "parameters.apiVersion: 'resource.dra-driver.io/v1' is not known, want 'resource.dra-driver.io/v1alpha1'",
        ),
        ({**HEAD, "kind": {}}, "parameters.kind: an object is not known, want 'DeviceConfig'"),
    ],
    ids=["missing", "version", "type"],
)
def test_another_kind_or_version_is_refused(head: dict[str, Any], problem: str) -> None:
    assert problems(head) == [problem]


def nested(depth: int) -> object:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ([], "parameters: is a list, want an object"),
        (None, "parameters: is null, want an object"),
        ({**HEAD, "x": "y" * 10240}, "parameters: has 10317 bytes, want at most 10240"),
        ({**HEAD, "x": nested(100_000)}, "parameters: is nested too deeply, want an object as documented"),
    ],
    ids=["list", "null", "large", "deep"],
)
def test_hostile_parameters_are_refused_before_their_fields_are_looked_at(parameters: object, problem: str) -> None:
    assert problems(parameters) == [problem]


def test_messages_stay_short_whatever_the_user_wrote() -> None:
    found = problems({**HEAD, "k" * 4000: 1, "sharing": {"strategy": "s" * 4000}})
    assert len(found) == 2
    assert all(len(problem) < 300 for problem in found)


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        ([], (None, Policy.FORCE)),
        ([Sharing(policy=Policy.BURST)], (None, Policy.BURST)),
        ([Sharing(strategy=Strategy.NONE), Sharing(policy=Policy.BURST)], (Strategy.NONE, Policy.BURST)),
        ([Sharing(policy=Policy.BURST), Sharing(policy=Policy.FORCE)], (None, Policy.FORCE)),
        ([Sharing(strategy=Strategy.NONE), Sharing(strategy=Strategy.SHIM)], (Strategy.SHIM, Policy.FORCE)),
        ([Sharing(strategy=Strategy.NONE), Sharing()], (Strategy.NONE, Policy.FORCE)),
    ],
    ids=["nothing", "one", "fields of both", "later wins", "later wins with a default", "empty changes nothing"],
)
def test_the_claim_goes_over_the_class_and_defaults_come_last(
    configs: list[Sharing], expected: tuple[Strategy | None, Policy]
) -> None:
    merged = merge_device_configs([DeviceConfig(sharing=sharing) for sharing in configs])
    assert default_device_config(merged) == EffectiveConfig(strategy=expected[0], policy=expected[1])


def test_a_config_is_written_as_it_is_read() -> None:
    config = DeviceConfig(sharing=Sharing(strategy=Strategy.NONE))
    assert decode(encode(config), DeviceConfig) == config
    assert parse_device_config({**HEAD, "sharing": {"strategy": "None"}}) == config


def test_what_tunes_a_strategy_is_read() -> None:
    config = parse_device_config({**HEAD, "sharing": {"timeSlicing": {"interval": "Short"}, "mps": {MEMORY: "4Gi"}}})
    later = parse_device_config({**HEAD, "sharing": {"strategy": "MPS", "mps": {THREADS: 40}}})
    assert default_device_config(merge_device_configs([config, later])) == EffectiveConfig(
        strategy=Strategy.MPS, interval=Interval.SHORT, thread_percentage=40, memory_limit=4 << 30
    )
    assert decode(encode(config), DeviceConfig) == config


@pytest.mark.parametrize(
    ("sharing", "problem"),
    [
        (
            {"timeSlicing": {"interval": "short"}},
            "timeSlicing.interval: unknown interval 'short', want 'Default', 'Short', 'Medium' or 'Long'",
        ),
        ({"timeSlicing": {"intervall": "Long"}}, "timeSlicing.intervall: unknown field, want 'interval'"),
        ({"mps": {"defaultActiveThreadPercentage": 0}}, f"{THREADS_PATH}: is '0', want a whole number from 1 to 100"),
        ({"mps": {"defaultActiveThreadPercentage": 1.5}}, f"{THREADS_PATH}: is a number, want a whole number from 1"),
        ({"mps": {"defaultActiveThreadPercentage": True}}, f"{THREADS_PATH}: is a bool, want a whole number from 1"),
        ({"mps": {"defaultPinnedDeviceMemoryLimit": "8GB"}}, f"{MEMORY_PATH}: is '8GB', want a quantity such as '8Gi'"),
        ({"mps": {"defaultPinnedDeviceMemoryLimit": "1k"}}, f"{MEMORY_PATH}: is '1k', want at least 1Mi"),
        ({"mps": {"defaultPinnedDeviceMemoryLimit": "-1Gi"}}, f"{MEMORY_PATH}: is '-1Gi', want at least 1Mi"),
        ({"mps": {"defaultPinnedDeviceMemoryLimit": 8}}, f"{MEMORY_PATH}: is a number, want a quantity such as '8Gi'"),
        ({"mps": []}, "mps: is a list, want an object"),
        ({"strategy": "Shim", "mps": {}}, "mps: is for strategy 'MPS', want no strategy, that one, or no mps"),
    ],
    ids=[
        "case",
        "field",
        "no threads",
        "float",
        "bool",
        "unit",
        "little memory",
        "negative",
        "number",
        "list",
        "for another strategy",
    ],
)
def test_mistakes_in_what_tunes_a_strategy_are_named(sharing: dict[str, Any], problem: str) -> None:
    [found] = problems({**HEAD, "sharing": sharing})
    assert found.startswith(f"parameters.sharing.{problem}")
