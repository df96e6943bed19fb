"""The OCI config: what edits become, as the reference implementation of CDI applies them."""

from typing import Any

import pytest

from cdi import ContainerEdits, DeviceNode, Hook, IntelRdt, LinuxNetDevice, Mount
from sandbox.node.oci import build_config

ENV = {"VISIBLE": "all", "KEPT": "1"}


def config(**edits: Any) -> dict[str, Any]:
    return build_config(hostname="pod", args=["run"], env=ENV, annotations={"a": "b"}, edits=ContainerEdits(**edits))


def test_a_container_without_devices_may_use_none() -> None:
    plain = config()
    assert plain["process"]["args"] == ["run"]
    assert plain["hostname"] == "pod"
    assert plain["annotations"] == {"a": "b"}
    assert plain["linux"]["devices"] == []
    assert plain["linux"]["resources"]["devices"] == [{"allow": False, "access": "rwm"}]
    assert "hooks" not in plain


def test_a_variable_of_a_device_takes_the_place_of_the_containers() -> None:
    env = config(env=("VISIBLE=gpu-0", "ADDED=2"))["process"]["env"]
    assert [entry for entry in env if not entry.startswith("PATH=")] == ["VISIBLE=gpu-0", "KEPT=1", "ADDED=2"]


@pytest.mark.parametrize(
    ("permissions", "access"), [("", "rwm"), ("rw", "rw"), ("none", None)], ids=["all", "some", "none"]
)
def test_a_device_node_is_made_and_its_use_allowed(permissions: str, access: str | None) -> None:
    node = DeviceNode(path="/dev/gpu0", type="c", major=240, minor=7, file_mode=0o666, permissions=permissions)
    linux = config(device_nodes=(node,))["linux"]
    assert linux["devices"] == [{"path": "/dev/gpu0", "type": "c", "major": 240, "minor": 7, "fileMode": 0o666}]
    rule = {"allow": True, "type": "c", "major": 240, "minor": 7, "access": access}
    assert linux["resources"]["devices"][1:] == ([rule] if access else [])


def test_the_same_device_node_of_two_devices_is_one() -> None:
    node = DeviceNode(path="/dev/ctl", type="c", major=240, minor=1)
    assert len(config(device_nodes=(node, node))["linux"]["devices"]) == 1


def test_mounts_are_ordered_by_depth_and_one_at_the_same_place_replaces() -> None:
    deep = Mount(host_path="/h/deep", container_path="/etc/driver/deep", options=("ro",), type="bind")
    folder = Mount(host_path="/h/folder", container_path="/etc/driver")
    own_proc = Mount(host_path="/h/proc", container_path="/proc")
    mounts = config(mounts=(deep, folder, own_proc))["mounts"]
    places = [mount["destination"] for mount in mounts]
    assert places.index("/etc/driver") < places.index("/etc/driver/deep")
    assert [mount["source"] for mount in mounts if mount["destination"] == "/proc"] == ["/h/proc"]
    assert mounts[-1] == {"destination": "/etc/driver/deep", "type": "bind", "source": "/h/deep", "options": ["ro"]}


def test_hooks_gids_networks_and_cache_control_have_their_places() -> None:
    built = config(
        hooks=(Hook(hook_name="createContainer", path="/bin/hook", args=("hook", "x"), timeout=5),),
        additional_gids=(0, 44),
        net_devices=(LinuxNetDevice(host_interface_name="eth9", name="rdma0"),),
        intel_rdt=IntelRdt(clos_id="fast"),
    )
    assert built["hooks"] == {"createContainer": [{"path": "/bin/hook", "args": ["hook", "x"], "timeout": 5}]}
    assert built["process"]["user"]["additionalGids"] == [44]
    assert built["linux"]["netDevices"] == {"eth9": {"name": "rdma0"}}
    assert built["linux"]["intelRdt"] == {"closID": "fast"}
