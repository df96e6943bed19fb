import pytest

from dra_driver.devices.model import DeviceName, Health
from kubeletplugin.health.verdict import (
    GONE,
    HoldPolicy,
    Memory,
    Verdicts,
    find_ruled_out,
    restore_verdicts,
    weigh_health,
)

DEVICE = DeviceName("gpu-0")
ILL = Health(reason="ecc-uncorrected", message="3 memory errors")
XID = Health(reason="xid-79", message="fell off the bus")
POLICY = HoldPolicy(first_s=10, limit_s=80)


class Watch:
    """A device that is looked at again and again."""

    def __init__(self, verdicts: Verdicts | None = None) -> None:
        self.verdicts = verdicts or Verdicts()
        self.damped = 0

    def see(self, now_s: float, *healths: Health | None) -> Health | None:
        """Look at the device at a time; without a health it is not there. Return the verdict."""
        seen = [(DEVICE, health) for health in healths]
        self.verdicts = weigh_health(self.verdicts, seen, now_s=now_s, policy=POLICY)
        self.damped += self.verdicts.damped
        return self.verdicts.health_of(DEVICE)

    def restart(self, now_s: float, *, rebooted: bool = False) -> None:
        self.verdicts = restore_verdicts(self.verdicts.memories, rebooted=rebooted, now_s=now_s)


def test_a_device_is_ill_at_once_and_well_only_after_it_stayed_well() -> None:
    watch = Watch()
    assert watch.see(0, None) is None
    assert watch.see(1, ILL) == ILL
    assert watch.see(2, None) == ILL
    assert watch.see(11.9, None) == ILL
    assert watch.see(12, None) is None


def test_a_device_that_falls_ill_while_it_is_held_starts_over_for_twice_the_time() -> None:
    watch = Watch()
    watch.see(0, ILL)
    watch.see(1, None)
    assert watch.see(9, ILL) == ILL
    assert watch.see(10, None) == ILL
    assert watch.see(29.9, None) == ILL
    assert watch.see(30, None) is None
    assert watch.damped == 3


def test_a_device_that_falls_ill_soon_after_it_recovered_is_held_longer() -> None:
    watch = Watch()
    watch.see(0, ILL)
    watch.see(1, None)
    assert watch.see(11, None) is None
    watch.see(20, ILL)
    watch.see(21, None)
    assert watch.see(40.9, None) == ILL
    assert watch.see(41, None) is None


def test_the_hold_time_has_a_limit() -> None:
    assert [POLICY.hold_s(count) for count in (1, 2, 3, 4, 5, 10_000)] == [10, 20, 40, 80, 80, 80]


def test_a_device_that_stayed_well_for_the_limit_is_forgotten() -> None:
    watch = Watch()
    watch.see(0, ILL)
    watch.see(1, None)
    watch.see(80.9, None)
    assert watch.verdicts.memories
    watch.see(81, None)
    assert not watch.verdicts.memories


def test_the_last_reason_is_told() -> None:
    watch = Watch()
    watch.see(0, ILL)
    assert watch.see(1, XID) == XID
    assert watch.see(2, None) == XID


def test_a_device_that_vanished_has_to_stay_when_it_is_back() -> None:
    watch = Watch()
    watch.see(0, None)
    watch.see(1)
    assert watch.see(2, None) == GONE
    assert watch.see(12, None) is None


def test_a_device_that_vanished_while_it_was_ill_keeps_its_reason() -> None:
    watch = Watch()
    watch.see(0, ILL)
    watch.see(1)
    assert watch.see(2, None) == ILL
    assert watch.see(12, None) is None


def test_a_restart_does_not_shorten_the_hold() -> None:
    watch = Watch()
    watch.see(0, ILL)
    watch.see(5, None)
    watch.restart(9)
    assert watch.see(14.9, None) == ILL
    assert watch.see(15, None) is None


@pytest.mark.parametrize("since_s", [1000.0, 2.0])
def test_times_from_before_a_reboot_mean_nothing(since_s: float) -> None:
    memory = Memory(health=ILL, well_since_s=since_s)
    watch = Watch(restore_verdicts({DEVICE: memory}, rebooted=True, now_s=5))
    assert watch.see(14.9, None) == ILL
    assert watch.see(15, None) is None


def test_devices_that_were_gone_before_a_reboot_are_forgotten() -> None:
    assert not restore_verdicts({DEVICE: Memory(health=GONE)}, rebooted=True, now_s=0).memories
    assert restore_verdicts({DEVICE: Memory(health=GONE)}, rebooted=False, now_s=0).memories


def test_verdicts_that_stand_are_ruled_out_by_their_reason() -> None:
    other = DeviceName("gpu-1")
    memories = {
        DEVICE: Memory(health=XID),
        other: Memory(health=ILL),
        DeviceName("gpu-2"): Memory(health=XID, is_ill=False),
    }
    assert find_ruled_out(memories, {"xid-79"}) == {DEVICE: XID}
