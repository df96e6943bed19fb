import pytest

from dra_driver.devices.simulated.override import Overrides, Unhealthy, parse_overrides
from dra_driver.devices.simulated.profile import read_profile
from dra_driver.errors import InvalidError


def parse(text: str) -> Overrides:
    return parse_overrides(text, "overrides", read_profile("h100x8"))


@pytest.mark.parametrize("text", ["", "# nothing yet", "---\n", "{}"])
def test_an_empty_file_changes_nothing(text: str) -> None:
    assert parse(text) == Overrides()


def test_devices_are_named_by_position_or_name() -> None:
    overrides = parse("unhealthy: {3: {reason: hot}}\nremoved: [5, gpu-0123456789ab]")
    assert overrides.unhealthy == {3: Unhealthy(reason="hot")}
    assert overrides.removed == (5, "gpu-0123456789ab")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("unhealty: {}", "unhealty: unknown field; did you mean 'unhealthy'? (line 1)", id="field"),
        pytest.param(
            "unhealthy: {3: {reason: fell off}}",
            "unhealthy.3.reason: got 'fell off', want a label value such as 'xid-79' (line 1)",
            id="reason",
        ),
        pytest.param("added: -1", "added: got -1, want at least 0 (line 1)", id="negative"),
        pytest.param("added: 200", "added: 208 devices, want at most 120 (line 1)", id="too many"),
        pytest.param("added: [{}]", "added[0]: field 'vendor' is missing (line 1)", id="group"),
        pytest.param(
            "added:\n- {vendor: amd, type: gpu, model: M, slots: [{address: '0000:1b:00.0'}]}",
            "added[0].slots[0].address: '0000:1b:00.0' is taken already (line 2)",
            id="slot",
        ),
    ],
)
def test_mistakes_are_told_with_their_place(text: str, problem: str) -> None:
    with pytest.raises(InvalidError) as caught:
        parse(text)
    assert str(caught.value.errors[0]) == problem
