"""How much of a capacity a request takes."""

from typing import Any

import msgspec
import pytest

from controller.allocator.capacity import AmountError, Demand, plan_demand
from dra_driver.api.codec import decode
from dra_driver.api.quantity import Quantity
from dra_driver.api.resource_v1 import DeviceCapacity

RANGE = {"default": "40Gi", "validRange": {"min": "10Gi", "max": "30Gi", "step": "5Gi"}}
VALUES = {"default": "10", "validValues": ["10", "20"]}
STEPS = {"default": "1", "validRange": {"min": "0", "step": "3"}}
HALVES = {"default": "500m", "validRange": {"min": "500m", "step": "500m"}}
MAX = str(2**63 - 1)


def plan(requested: str | None, value: str, policy: dict[str, Any] | None = None, *, fractional: bool = False) -> str:
    """Give what is consumed as text, or "no"."""
    capacity = {"value": value} | ({"requestPolicy": policy} if policy else {})
    entry = decode(msgspec.json.encode(capacity), DeviceCapacity)
    requests = {} if requested is None else {"amount": Quantity.parse(requested)}
    demand = plan_demand(requests, {"amount": entry}, fractional=fractional)
    return str(demand.quantities["amount"]) if isinstance(demand, Demand) else "no"


@pytest.mark.parametrize(
    ("requested", "value", "policy", "consumed"),
    [
        pytest.param(None, "40Gi", None, "40Gi", id="nothing asked, no policy: all"),
        pytest.param(None, "40Gi", RANGE, "40Gi", id="nothing asked: the default, whatever the range says"),
        pytest.param("7", "40", None, "7", id="no policy: as is"),
        pytest.param("41", "40", None, "no", id="more than there is"),
        pytest.param("1Gi", "40Gi", RANGE, "10Gi", id="below the range: its minimum"),
        pytest.param("11Gi", "40Gi", RANGE, "15Gi", id="rounded up to the next step"),
        pytest.param("31Gi", "40Gi", RANGE, "no", id="above the range"),
        pytest.param("11", "40", VALUES, "20", id="next valid value"),
        pytest.param("21", "40", VALUES, "no", id="above the last valid value"),
        pytest.param("3500m", "40", STEPS, "6", id="rounded up to whole units before steps"),
        pytest.param("7", "40", {"default": "1"}, "7", id="a policy with a default only: as is"),
    ],
)
def test_requests_are_rounded_up(requested: str | None, value: str, policy: dict[str, Any], consumed: str) -> None:
    assert plan(requested, value, policy) == consumed


def test_a_capacity_that_the_device_lacks_is_a_mismatch() -> None:
    assert plan_demand({"other": Quantity.of_int(1)}, {}, fractional=False) == "has no capacity 'other'"


@pytest.mark.parametrize(
    ("requested", "policy"),
    [
        pytest.param("-1", None, id="negative"),
        pytest.param(str(2**63), STEPS, id="beyond 64 bits"),
        pytest.param(MAX, STEPS | {"validRange": {"min": "0", "step": "4"}}, id="beyond 64 bits when rounded up"),
    ],
)
def test_an_amount_that_no_device_could_give_is_an_error(requested: str, policy: dict[str, Any] | None) -> None:
    with pytest.raises(AmountError):
        plan(requested, "40", policy)


def test_fractional_ranges_count_in_thousandths() -> None:
    assert plan("700m", "40", HALVES, fractional=True) == "1"
    assert plan("1100m", "40", HALVES, fractional=True) == "1500m"
    with pytest.raises(AmountError):
        plan("700100u", "40", HALVES, fractional=True)
