from pathlib import Path

import pytest

import cdi
from dra_driver.api.config_v1alpha1 import Policy
from kubeletplugin.prepare.record import ClaimRef, Consumed, PreparedDevice
from kubeletplugin.prepare.spec import Names, build_spec, read_claim, render_shim_config

NAMES = Names("accel.dra-driver.io")
CLAIM = ClaimRef("default", "claim-1", "uid-1")


def edits(device: PreparedDevice) -> cdi.ContainerEdits:
    return cdi.ContainerEdits(device_nodes=(cdi.DeviceNode(path=f"/dev/{device.device}"),))


def build(*devices: PreparedDevice) -> cdi.Spec:
    return build_spec(CLAIM, devices, names=NAMES, edits=edits, shim_dir=Path("/state/shim/uid-1"))


def a_share(share_id: str) -> PreparedDevice:
    return PreparedDevice(
        request="r", pool="n", device="gpu-1", share_id=share_id, consumed=Consumed(memory=1), shim_policy=Policy.FORCE
    )


def test_a_claims_names_follow_from_driver_claim_device_and_share() -> None:
    share = a_share("share-1")
    assert NAMES.kind == "accel.dra-driver.io/claim"
    assert NAMES.spec("uid-1") == "accel.dra-driver.io-claim_uid-1"
    assert NAMES.qualified("uid-1", share) == "accel.dra-driver.io/claim=uid-1-gpu-1-share-1"


def test_two_shares_of_one_device_are_two_cdi_devices() -> None:
    spec = build(a_share("share-1"), a_share("share-2"))
    assert [device.name for device in spec.devices] == ["uid-1-gpu-1-share-1", "uid-1-gpu-1-share-2"]
    paths = {mount.container_path for device in spec.devices for mount in device.container_edits.mounts}
    assert paths == {f"/etc/dra-driver/shim.d/uid-1-gpu-1-share-{number}" for number in (1, 2)}


def test_a_shim_config_is_mounted_read_only_beside_what_the_device_needs() -> None:
    (device,) = build(a_share("share-1")).devices
    (mount,) = device.container_edits.mounts
    assert mount.host_path == "/state/shim/uid-1/uid-1-gpu-1-share-1"
    assert "ro" in mount.options
    assert [node.path for node in device.container_edits.device_nodes] == ["/dev/gpu-1"]


def test_a_whole_device_has_no_shim_config() -> None:
    (device,) = build(PreparedDevice(request="r", pool="n", device="gpu-1")).devices
    assert device.container_edits.mounts == ()


def test_a_device_that_is_allocated_twice_by_admin_access_is_one_cdi_device() -> None:
    twice = [PreparedDevice(request=name, pool="n", device="gpu-1", admin_access=True) for name in ("a", "b")]
    assert len(build(*twice).devices) == 1


def test_what_all_devices_have_in_common_stands_once() -> None:
    library = cdi.Mount(host_path="/lib/libx.so", container_path="/lib/libx.so")
    hook = cdi.Hook(hook_name="createContainer", path="/bin/hook")

    def joined(device: PreparedDevice) -> cdi.ContainerEdits:
        own = cdi.Mount(host_path="/state/own", container_path=f"/own/{device.device}")
        return cdi.merge_edits(edits(device), cdi.ContainerEdits(mounts=(own, library), hooks=(hook,)))

    several = [PreparedDevice(request="r", pool="n", device=f"gpu-{number}") for number in range(3)]
    spec = build_spec(CLAIM, several, names=NAMES, edits=joined, shim_dir=Path("/state/shim/uid-1"))
    assert spec.container_edits == cdi.ContainerEdits(mounts=(library,), hooks=(hook,))
    assert [[mount.container_path for mount in each.container_edits.mounts] for each in spec.devices] == [
        [f"/own/gpu-{number}"] for number in range(3)
    ]
    assert cdi.validate_spec(spec) == ()


def test_a_device_is_not_left_without_edits() -> None:
    mount = cdi.ContainerEdits(mounts=(cdi.Mount(host_path="/a", container_path="/a"),))
    several = [PreparedDevice(request="r", pool="n", device=f"gpu-{number}") for number in range(2)]
    spec = build_spec(CLAIM, several, names=NAMES, edits=lambda _: mount, shim_dir=Path("/state/shim/uid-1"))
    assert [device.container_edits for device in spec.devices] == [mount, mount]


def test_the_spec_is_valid_in_the_version_that_it_declares() -> None:
    spec = build(a_share("share-1"), PreparedDevice(request="r", pool="n", device="gpu-2"))
    assert cdi.validate_spec(spec) == ()


def test_the_shim_reads_memory_in_bytes_and_cores_in_percent() -> None:
    text = render_shim_config("uid-1", "GPU-3a2b", Consumed(memory=8 << 30, cores=30, slots=1), Policy.FORCE)
    assert text == "shim 1\nclaim uid-1\ndevice GPU-3a2b memory=8589934592 cores=30 policy=force\n"


def test_a_share_without_a_compute_limit_says_so() -> None:
    for cores in (1, 100):
        text = render_shim_config("uid-1", "GPU-1", Consumed(memory=5, cores=cores, slots=1), Policy.BURST)
        assert text.endswith("device GPU-1 memory=5 cores=- policy=burst\n")


def test_a_spec_tells_which_claim_it_is_of() -> None:
    spec = build(PreparedDevice(request="r", pool="n", device="gpu-1"))
    assert spec.annotations == {"dra-driver.io/claim": "default/claim-1"}
    assert read_claim(spec, "uid-1") == CLAIM


@pytest.mark.parametrize("text", [None, "", "claim-1", "/claim-1", "default/"])
def test_a_spec_that_does_not_tell_it_is_of_an_unknown_claim(text: str | None) -> None:
    annotations = {} if text is None else {"dra-driver.io/claim": text}
    spec = cdi.Spec(cdi_version="0.6.0", kind=NAMES.kind, annotations=annotations, devices=())
    assert read_claim(spec, "uid-1") is None
