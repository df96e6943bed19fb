import math
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_driver.errors import SettingError
from kubeletplugin import cli
from kubeletplugin.setting import BackendName, Settings, SimulatedSettings, validate_settings

RANGES = {
    "--slots": (1, 10_000),
    "--discovery-interval": (0.01, 86_400),
    "--recovery-hold": (0, 31_536_000),
    "--ignore-xids": (1, 99_999),
}


def settings(**changes: Any) -> Settings:
    simulated = SimulatedSettings(profile="a100x8")
    return Settings(node_name="node-a", backends=(BackendName.SIMULATED,), simulated=simulated, **changes)


def numeric_flags() -> dict[str, str]:
    """The flags that take numbers, and the settings that they become."""
    known = {field.name for field in fields(Settings)}
    return {
        f"--{name.replace('_', '-')}": f"{name}_s" if f"{name}_s" in known else name
        for name, kind in get_type_hints(cli.run).items()
        if kind in (int, float, list[int] | None, list[float] | None)
    }


def test_every_flag_that_takes_a_number_has_a_range() -> None:
    assert set(numeric_flags()) == set(RANGES)


NUMBERS = st.one_of(
    st.floats(), st.integers(), st.sampled_from([math.inf, -math.inf, math.nan, 0, -0.0, 1e308, 10**400, -1, 5e-324])
)


@pytest.mark.parametrize("flag", RANGES)
@given(number=NUMBERS)
def test_a_number_is_in_its_range_or_the_error_says_what_is_wanted(flag: str, number: float) -> None:
    name = numeric_flags()[flag]
    least, most = RANGES[flag]
    if not isinstance(getattr(Settings(node_name="node-a"), name), float):
        number = int(number) if isinstance(number, int) or math.isfinite(number) else 0
    given_settings = settings(**{name: (number,) if name == "ignore_xids" else number})
    if least <= number <= most:
        validate_settings(given_settings)
        return
    with pytest.raises(SettingError) as caught:
        validate_settings(given_settings)
    text = str(caught.value)
    assert text.startswith(f"{flag}: ")
    assert f"{least} to {most}" in text
    assert len(text) < 200


def test_all_numbers_that_are_wrong_are_named_at_once() -> None:
    with pytest.raises(SettingError) as caught:
        validate_settings(
            settings(slots=0, discovery_interval_s=math.nan, recovery_hold_s=math.inf, ignore_xids=(79, -1))
        )
    assert str(caught.value) == (
        "--slots: 0 sharers of one device, want 1 to 10000; "
        "--discovery-interval: nan seconds, want 0.01 to 86400; "
        "--recovery-hold: inf seconds, want 0 to 31536000; "
        "--ignore-xids: -1, want a number of an XID, 1 to 99999"
    )


def test_names_of_what_mps_daemons_are_made_with_are_names() -> None:
    validate_settings(settings(mps_namespace="dra-driver", mps_service_account="mps.example"))
    with pytest.raises(SettingError) as caught:
        validate_settings(settings(mps_namespace="a.b", mps_service_account="-"))
    for flag in ("--mps-namespace: ", "--mps-service-account: "):
        assert flag in str(caught.value)


def test_the_kubelet_is_looked_for_among_the_files_of_the_host() -> None:
    assert settings().host_kubelet_dir == Path("/var/lib/kubelet")
    assert settings(host_root=Path("/host")).host_kubelet_dir == Path("/host/var/lib/kubelet")
