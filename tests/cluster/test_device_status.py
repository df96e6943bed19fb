"""What `status.devices` of a claim says, written with the rights of the plugin's own account."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.plugin import DRIVER, PluginProcess
from tests.cluster.scenario import (
    Workload,
    a_claim,
    a_pod,
    a_request,
    attributes_of,
    device_of,
    run_plugins,
    write_profile,
)


@pytest.fixture(scope="module", autouse=True)
def plugin(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PluginProcess]:
    profile = write_profile(tmp_path_factory.mktemp("status"), "h100x8", gpus=1)
    with run_plugins(cluster, {"node-a": str(profile)}) as plugins:
        yield plugins["node-a"]


def told(workload: Workload) -> list[dict[str, Any]]:
    return list(workload.claim("held").get("status", {}).get("devices", ()))


def conditions(workload: Workload) -> list[tuple[str, str, str]]:
    return [(each["type"], each["status"], each["reason"]) for entry in told(workload) for each in entry["conditions"]]


def wait_for(workload: Workload, *wanted: tuple[str, str, str]) -> None:
    workload.cluster.wait_for(f"conditions {wanted}", lambda: conditions(workload) == list(wanted))


def test_a_claim_tells_of_its_device_as_long_as_it_has_it(workload: Workload, plugin: PluginProcess) -> None:
    workload.run(a_claim("held", a_request(capacity={"memory": "8Gi"})), a_pod("holder", "held"))
    wait_for(workload, ("Ready", "True", "Prepared"))
    [entry] = told(workload)
    pool, device = device_of(workload.claim("held"))
    assert (entry["driver"], entry["pool"], entry["device"]) == (DRIVER, pool, device)
    assert entry["data"]["uuid"] == attributes_of(plugin, device)["uuid"]
    assert entry["data"]["consumed"]["memory"] == 8 << 30
    plugin.override({"unhealthy": {0: {"reason": "xid-79", "message": "fell off the bus"}}})
    wait_for(workload, ("Ready", "False", "DeviceUnhealthy"))
    assert told(workload)[0]["conditions"][0]["message"] == "xid-79: fell off the bus"
    plugin.override({})
    wait_for(workload, ("Ready", "True", "Prepared"))
    workload.delete("pod", "holder")
    wait_for(workload)


def test_what_others_say_of_a_device_stays(workload: Workload, plugin: PluginProcess) -> None:
    workload.run(a_claim("held", a_request()), a_pod("holder", "held"))
    wait_for(workload, ("Ready", "True", "Prepared"))
    added = {"op": "add", "path": "/status/devices/0/networkData", "value": {"interfaceName": "eth1"}}
    command = ("patch", "resourceclaim", "held", "--subresource=status", "--type=json", "--patch", json.dumps([added]))
    workload.cluster.kubectl(*command)
    plugin.override({"unhealthy": {0: {"reason": "xid-79", "message": "fell off the bus"}}})
    wait_for(workload, ("Ready", "False", "DeviceUnhealthy"))
    assert told(workload)[0]["networkData"] == {"interfaceName": "eth1"}
    plugin.override({})
