import pytest
from msgspec.structs import replace

from dra_driver.api.coordination_v1 import Lease, LeaseSpec
from dra_driver.api.meta_v1 import ObjectMeta
from dra_driver.errors import SettingError
from dra_driver.kube.leadership import Sighting, Terms, find_holder, plan_bid, plan_release, plan_sighting

META = ObjectMeta(namespace="dra-driver", name="dra-controller")
TERMS = Terms()


def a_lease(holder: str | None = "a", **spec: object) -> Lease:
    fields = {"lease_duration_seconds": 15, "renew_time": "r1", "acquire_time": "a1", "lease_transitions": 3} | spec
    return Lease(
        metadata=replace(META, uid="u", resource_version="7"),
        spec=LeaseSpec(holder_identity=holder, **fields),  # type: ignore[arg-type]
    )


def test_a_lease_counts_from_when_it_was_seen_to_change() -> None:
    first = plan_sighting(None, a_lease(), 100.0)
    same = plan_sighting(first, a_lease(), 110.0)
    assert (find_holder(same, 114.9), find_holder(same, 115.0)) == ("a", "")
    renewed = plan_sighting(same, a_lease(renew_time="r2"), 112.0)
    assert (find_holder(renewed, 126.9), find_holder(renewed, 127.0)) == ("a", "")


def test_a_renew_time_of_a_clock_that_is_wrong_does_not_matter() -> None:
    sighting = plan_sighting(None, a_lease(renew_time="2199-01-01T00:00:00.000000Z"), 0.0)
    assert find_holder(sighting, 15.0) == ""


def test_a_change_beside_the_spec_renews_nothing() -> None:
    first = plan_sighting(None, a_lease(), 0.0)
    touched = replace(a_lease(), metadata=replace(META, uid="u", resource_version="8", labels={"touched": "yes"}))
    later = plan_sighting(first, touched, 10.0)
    assert later.lease.metadata.resource_version == "8"
    assert find_holder(later, 15.0) == ""


def test_a_lease_that_was_made_anew_counts_anew() -> None:
    first = plan_sighting(None, a_lease(), 0.0)
    anew = replace(a_lease(), metadata=replace(META, uid="other"))
    assert find_holder(plan_sighting(first, anew, 10.0), 20.0) == "a"


@pytest.mark.parametrize("holder", [None, ""])
def test_a_lease_without_a_holder_is_free_at_once(holder: str | None) -> None:
    assert find_holder(Sighting(a_lease(holder), 0.0), 0.0) == ""


def test_a_lease_without_a_duration_is_over() -> None:
    assert find_holder(Sighting(a_lease(lease_duration_seconds=None), 0.0), 0.0) == ""


def test_a_new_lease_has_never_changed_hands() -> None:
    bid = plan_bid(None, META, "a", TERMS, "now")
    assert bid.metadata == META
    assert bid.spec == LeaseSpec(
        holder_identity="a", lease_duration_seconds=15, acquire_time="now", renew_time="now", lease_transitions=0
    )


def test_a_renewal_changes_nothing_but_its_time() -> None:
    bid = plan_bid(a_lease(), META, "a", TERMS, "now")
    assert bid == a_lease(renew_time="now")


@pytest.mark.parametrize("holder", [None, "b"])
def test_a_lease_that_changes_hands_counts_it(holder: str | None) -> None:
    bid = plan_bid(a_lease(holder), META, "a", TERMS, "now")
    assert bid == a_lease("a", renew_time="now", acquire_time="now", lease_transitions=4)


def test_a_bid_keeps_what_others_wrote() -> None:
    bid = plan_bid(a_lease("b", preferred_holder="c"), META, "a", TERMS, "now")
    assert bid.spec.preferred_holder == "c"
    assert bid.metadata.resource_version == "7"


def test_a_released_lease_keeps_how_often_it_changed_hands() -> None:
    released = plan_release(a_lease(), "now")
    assert released == a_lease(None, lease_duration_seconds=1, renew_time="now", acquire_time="now")


def test_a_lease_has_whole_seconds_and_never_too_few() -> None:
    assert Terms(lease_duration_s=1.2, renew_deadline_s=1.0, retry_period_s=0.1).lease_seconds == 2


def test_candidates_do_not_come_all_at_once() -> None:
    assert [TERMS.delay_s(0.0), TERMS.delay_s(0.5)] == pytest.approx([2.0, 3.2])


@pytest.mark.parametrize(
    "terms",
    [
        {"lease_duration_s": 10.0},
        {"renew_deadline_s": 2.4},
        {"retry_period_s": 0.0},
        {"lease_duration_s": float("nan")},
        {"lease_duration_s": float("inf")},
    ],
)
def test_times_that_leave_no_room_are_refused(terms: dict[str, float]) -> None:
    with pytest.raises(SettingError, match=r"^leader election: lease duration .* want 86400 >= lease duration"):
        Terms(**terms)
