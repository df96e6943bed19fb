from pathlib import Path

import pytest

from cdi import (
    ContainerEdits,
    Duplicate,
    Fault,
    IntelRdt,
    Spec,
    SpecFile,
    StoreError,
    UnresolvableError,
    build_inventory,
)
from tests.support.cdi_spec import a_device, a_spec


def env(*entries: str) -> ContainerEdits:
    return ContainerEdits(env=entries)


def a_file(name: str, spec: Spec | None = None, precedence: int = 0) -> SpecFile:
    return SpecFile(Path(f"/{precedence}/{name}"), precedence, spec or a_spec())


GPU = "vendor.com/gpu=gpu-0"


def test_the_edits_of_a_spec_come_once_before_its_first_device() -> None:
    gpus = a_spec(a_device("a", env("A=")), a_device("b", env("B=")), edits=env("GPUS="))
    nets = a_spec(a_device("c", env("C=")), kind="vendor.com/net", edits=env("NETS="))
    inventory = build_inventory([a_file("gpus.json", gpus), a_file("nets.json", nets)])
    resolution = inventory.resolve(["vendor.com/gpu=b", "vendor.com/net=c", "vendor.com/gpu=a"])
    assert resolution.edits.env == ("GPUS=", "B=", "NETS=", "C=", "A=")
    assert [definition.qualified_name for definition in resolution.devices] == [
        "vendor.com/gpu=b",
        "vendor.com/net=c",
        "vendor.com/gpu=a",
    ]
    assert resolution.devices[0].device.container_edits.env == ("B=",)
    assert resolution.devices[0].file.path == Path("/0/gpus.json")


def test_the_last_resctrl_wins() -> None:
    devices = [a_device(name, ContainerEdits(intel_rdt=IntelRdt(clos_id=name))) for name in ("a", "b")]
    inventory = build_inventory([a_file("x.json", a_spec(*devices))])
    edits = inventory.resolve(["vendor.com/gpu=b", "vendor.com/gpu=a"]).edits
    assert edits.intel_rdt == IntelRdt(clos_id="a")


def test_resolving_nothing_gives_nothing() -> None:
    assert build_inventory([]).resolve([]).edits == ContainerEdits()


@pytest.mark.parametrize("turned", [False, True], ids=["in order", "turned"])
def test_a_later_directory_wins_and_the_duplicate_is_reported(*, turned: bool) -> None:
    low = a_file("x.json", a_spec(a_device("gpu-0", env("LOW=")), edits=env("LOW_SPEC=")), 0)
    high = a_file("a.json", a_spec(a_device("gpu-0", env("HIGH="))), 1)
    inventory = build_inventory([high, low] if turned else [low, high])
    assert inventory.resolve([GPU]).edits.env == ("HIGH=",)
    assert inventory.duplicates == (Duplicate(GPU, (low.path, high.path), high.path),)


def test_two_files_of_one_directory_conflict_over_a_device_and_only_over_that() -> None:
    one = a_file("one.json", a_spec(a_device("gpu-0"), a_device("gpu-1")))
    two = a_file("two.json", a_spec(a_device("gpu-0"), a_device("gpu-2")))
    inventory = build_inventory([one, two])
    assert inventory.missing([GPU, "vendor.com/gpu=gpu-1", "vendor.com/gpu=gpu-2"]) == (GPU,)
    assert inventory.duplicates == (Duplicate(GPU, (one.path, two.path), None),)


def test_a_conflict_stays_one_though_a_later_directory_defines_the_device() -> None:
    files = [a_file("one.json"), a_file("two.json"), a_file("three.json", precedence=1)]
    assert build_inventory(files).missing([GPU]) == (GPU,)


def test_the_same_name_in_two_kinds_is_two_devices() -> None:
    inventory = build_inventory([a_file("one.json"), a_file("two.json", a_spec(kind="vendor.com/net"))])
    assert tuple(inventory.devices) == (GPU, "vendor.com/net=gpu-0")
    assert inventory.duplicates == ()


def test_missing_names_come_once_in_the_order_given() -> None:
    inventory = build_inventory([a_file("one.json")])
    assert inventory.missing(["b", GPU, "a", "b"]) == ("b", "a")


def test_all_names_that_cannot_be_resolved_are_in_one_error_each_with_its_reason() -> None:
    spec = a_spec(a_device("gpu-0"), a_device("twice"))
    files = [a_file("one.json", spec), a_file("two.json", a_spec(a_device("twice")))]
    fault = Fault(Path("/0/bad.json"), StoreError("/0/bad.json: no"))
    with pytest.raises(UnresolvableError) as caught:
        build_inventory(files, [fault]).resolve(
            [GPU, "vendor.com/gpu=gpu-o", "vendor.com/gpu", "vendor.com/gpu=twice", "x/y=z"]
        )
    assert caught.value.reasons == {
        "vendor.com/gpu=gpu-o": "not defined by any spec (/0/bad.json cannot be used); "
        "did you mean 'vendor.com/gpu=gpu-0'?",
        "vendor.com/gpu": "no '=', want vendor/class=device",
        "vendor.com/gpu=twice": "defined by /0/one.json and by /0/two.json, want it in one file of a directory",
        "x/y=z": "not defined by any spec (/0/bad.json cannot be used)",
    }
    assert "device 'vendor.com/gpu': no '=', want vendor/class=device; device" in str(caught.value)
