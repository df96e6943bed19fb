"""Which taints a Pod tolerates."""

import pytest

from controller.placement.toleration import tolerates, untolerated_taint
from dra_driver.api.core_v1 import Taint, Toleration

TAINT = Taint(key="speed", value="7", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        pytest.param(Toleration(key="speed", value="7"), True, id="equal by default"),
        pytest.param(Toleration(key="speed", operator="Equal", value="7", effect="NoSchedule"), True, id="equal"),
        pytest.param(Toleration(key="speed", operator="Equal", value="8"), False, id="other value"),
        pytest.param(Toleration(key="speed", operator="Exists"), True, id="exists"),
        pytest.param(Toleration(key="other", operator="Exists"), False, id="other key"),
        pytest.param(Toleration(operator="Exists"), True, id="any key"),
        pytest.param(Toleration(operator="Exists", effect="NoExecute"), False, id="other effect"),
        pytest.param(Toleration(key="speed", operator="Gt", value="6"), True, id="more than"),
        pytest.param(Toleration(key="speed", operator="Gt", value="7"), False, id="not more than"),
        pytest.param(Toleration(key="speed", operator="Lt", value="8"), True, id="less than"),
        pytest.param(Toleration(key="speed", operator="Lt", value="-8"), False, id="not less than"),
        pytest.param(Toleration(key="speed", operator="Gt", value="06"), False, id="no decimal integer"),
        pytest.param(Toleration(key="speed", operator="Lt", value="9" * 19), False, id="beyond 64 bits"),
        pytest.param(Toleration(key="speed", operator="Near", value="7"), False, id="unknown operator"),
    ],
)
def test_a_toleration_covers_a_taint_as_in_kubernetes(toleration: Toleration, expected: bool) -> None:
    assert tolerates(toleration, TAINT) is expected


def test_a_value_that_is_no_number_is_not_compared() -> None:
    taint = Taint(key="speed", value="fast", effect="NoSchedule")
    assert not tolerates(Toleration(key="speed", operator="Gt", value="1"), taint)


def test_each_taint_needs_a_toleration() -> None:
    other = Taint(key="other", effect="NoExecute")
    tolerations = (Toleration(key="speed", operator="Exists"),)
    assert untolerated_taint((TAINT, other), tolerations) == other
    assert untolerated_taint((TAINT, other), (*tolerations, Toleration(key="other", operator="Exists"))) is None
