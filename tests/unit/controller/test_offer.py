from controller.offer import Offer
from dra_driver.api.resource_v1 import ResourceSlice
from tests.support.control import DRIVER, TAINT, a_device, a_slice
from tests.support.control_object import read

TAINTED, BARE = "tainted", "bare"


def slice_of(name: str, *devices: str, generation: int = 1, count: int = 1) -> ResourceSlice:
    """Build a slice whose devices have the taint or not."""
    manifests = [
        a_device(f"{name}-{number}", taints=[TAINT] if each == TAINTED else []) for number, each in enumerate(devices)
    ]
    manifest = a_slice("node-a", *manifests, generation=generation, resourceSliceCount=count)
    manifest["metadata"]["name"] = name
    return read(manifest, ResourceSlice)


def names(offer: Offer) -> list[str]:
    return sorted(slice_.metadata.name for slice_ in offer.list({(DRIVER, "node-a"), (DRIVER, "node-b")}))


def test_a_pool_whose_devices_all_have_the_taint_is_offered_without_it() -> None:
    offer = Offer()
    [(name, offered)] = offer.set(slice_of("one", TAINTED, TAINTED))
    assert name == "one"
    assert offered is not None
    assert all(not device.taints for device in offered.spec.devices)


def test_a_pool_is_offered_as_a_whole_or_not_at_all() -> None:
    offer = Offer()
    list(offer.set(slice_of("one", TAINTED, count=2)))
    assert names(offer) == ["one"]
    assert list(offer.set(slice_of("two", BARE, count=2))) == [("one", None)]
    assert names(offer) == []
    list(offer.set(slice_of("two", TAINTED, count=2)))
    assert names(offer) == ["one", "two"]


def test_slices_of_old_generations_do_not_count() -> None:
    offer = Offer()
    list(offer.set(slice_of("old", BARE, generation=1)))
    list(offer.set(slice_of("new", TAINTED, generation=2)))
    assert "new" in names(offer)


def test_slices_of_counters_go_with_the_devices_of_their_pool() -> None:
    offer = Offer()
    assert list(offer.set(slice_of("counters", count=2))) == []
    list(offer.set(slice_of("devices", TAINTED, count=2)))
    assert names(offer) == ["counters", "devices"]


def test_slices_are_listed_of_the_pools_that_are_wanted() -> None:
    offer = Offer()
    list(offer.set(slice_of("one", TAINTED)))
    assert offer.list({(DRIVER, "node-b")}) == ()


def test_a_slice_that_goes_is_not_offered_any_more() -> None:
    offer = Offer()
    list(offer.set(slice_of("one", TAINTED)))
    assert list(offer.remove("one")) == [("one", None)]
    assert list(offer.remove("one")) == []
    assert names(offer) == []


def test_what_has_not_changed_is_not_offered_again() -> None:
    offer = Offer()
    slice_ = slice_of("one", TAINTED)
    list(offer.set(slice_))
    assert list(offer.set(slice_)) == []


def test_a_slice_that_changes_its_pool_leaves_the_old_one() -> None:
    offer = Offer()
    list(offer.set(slice_of("one", TAINTED)))
    list(offer.set(slice_of("two", BARE)))
    moved = a_slice("node-b", a_device("gpu-0", taints=[]))
    moved["metadata"]["name"] = "two"
    list(offer.set(read(moved, ResourceSlice)))
    assert names(offer) == ["one"]
