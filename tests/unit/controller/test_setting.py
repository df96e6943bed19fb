from typing import Any

import pytest

from controller.allocator import Features
from controller.setting import Settings, read_features, validate_settings
from dra_driver.errors import SettingError


def test_defaults_with_an_identity_are_sound() -> None:
    validate_settings(Settings(identity="one"))


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"identity": ""}, "--identity: empty, want a name"),
        ({"http_address": "8080"}, "--http-address: '8080' is not an address"),
        ({"lease_namespace": "Not_A_Name"}, "--lease-namespace: "),
        ({"lease_name": ""}, "--lease-name: "),
        ({"lease_duration_s": 5.0}, "lease duration 5 s, renew deadline 10 s"),
        ({"retry_period_s": 0.0}, "retry period 0 s"),
    ],
    ids=str,
)
def test_a_setting_that_cannot_be_used_is_named(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(SettingError) as caught:
        validate_settings(Settings(**({"identity": "one"} | fields)))
    assert text in str(caught.value)


def test_all_that_cannot_be_used_is_named_at_once() -> None:
    with pytest.raises(SettingError, match=r"--lease-name.*--identity.*renew deadline.*--http-address"):
        validate_settings(Settings(identity="", lease_name="", lease_duration_s=1.0, http_address=""))


def test_gates_are_set_on_top_of_the_defaults() -> None:
    assert read_features([]) == Features()
    features = read_features(["DRAConsumableCapacity=false,DRAListTypeAttributes=true", "DRADeviceTaints=true"])
    assert (features.consumable_capacity, features.list_type_attributes, features.device_taints) == (False, True, True)


@pytest.mark.parametrize("text", ["DRADeviceTaint=true", "DRADeviceTaints", "DRADeviceTaints=yes", "=true"])
def test_a_gate_that_cannot_be_set_is_named(text: str) -> None:
    with pytest.raises(SettingError, match=r"^--feature-gates: .*, want "):
        read_features([text])
