import pytest

from dra_driver.api.name import validate_label_value
from dra_driver.devices.nvidia.xid import explain_xid


@pytest.mark.parametrize("xid", [13, 31, 43, 45, 68, 109])
def test_what_nvidia_s_own_drivers_pass_over_is_passed_over(xid: int) -> None:
    assert explain_xid(xid) is None


@pytest.mark.parametrize("xid", [63, 94, 154])
def test_what_the_library_counts_is_left_to_it(xid: int) -> None:
    assert explain_xid(xid) is None


@pytest.mark.parametrize("xid", [46, 48, 62, 64, 74, 79, 95, 110, 119, 120, 136, 140, 143, 155, 156, 158])
def test_what_only_a_reset_mends_makes_a_gpu_unwell(xid: int) -> None:
    health = explain_xid(xid)
    assert health is not None
    assert health.reason == f"xid-{xid}"
    assert not validate_label_value(health.reason)
    assert "error of the GPU or its driver" not in health.message


def test_a_number_that_nobody_knows_makes_a_gpu_unwell() -> None:
    health = explain_xid(9999)
    assert health is not None
    assert health.message == "XID 9999: error of the GPU or its driver"


def test_what_an_operator_wants_ignored_leaves_a_gpu_well() -> None:
    assert explain_xid(48, ignored=frozenset({48})) is None
    assert explain_xid(79, ignored=frozenset({48})) is not None
