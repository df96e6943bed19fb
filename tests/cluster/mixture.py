"""Pods with every kind of device, and what must stay as it is while the programs around them come and go."""

from dataclasses import dataclass

from tests.cluster.plugin import PluginProcess
from tests.cluster.scenario import Manifest, View, Workload, a_claim, a_pod, a_request, device_of

WHOLE = a_request("device", "accelerator.dra-driver.io")
SHARE = a_request("device", "accelerator.dra-driver.io", capacity={"memory": "8Gi", "cores": "30"})
PARTITION = a_request("device", "partition.dra-driver.io")

MIXTURE = {"whole": WHOLE, "share-1": SHARE, "share-2": SHARE, "partition": PARTITION}

PROFILE = "a100x8"
"""A profile whose GPUs can be had in all these ways."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a container has: its claim's allocation, and the devices, variables and mounts that it sees for it."""

    allocation: Manifest
    view: View


def run_mixture(workload: Workload) -> dict[str, Held]:
    """Run a Pod with a whole GPU, two that share one, and one with a partition; each has a claim of its own name."""
    run_each(workload, MIXTURE)
    return look_at(workload, *MIXTURE)


def apply_each(workload: Workload, requests: dict[str, Manifest]) -> None:
    """Apply for each name a claim with that request and a Pod with that claim, whose container starts ever again."""
    manifests = ((a_claim(name, request), a_pod(name, name, restart="Always")) for name, request in requests.items())
    workload.apply(*(manifest for pair in manifests for manifest in pair))


def run_each(workload: Workload, requests: dict[str, Manifest]) -> None:
    apply_each(workload, requests)
    for name in requests:
        workload.wait_for_phase(name, "Running")


def look_at(workload: Workload, *pods: str) -> dict[str, Held]:
    return {pod: Held(workload.claim(pod)["status"]["allocation"], workload.see(pod)) for pod in pods}


def container_ids(workload: Workload, *pods: str) -> dict[str, str]:
    """Give the IDs of the Pods' containers: the same ones run on as long as these are the same."""
    return {pod: workload.container_id(pod) for pod in pods}


def assert_each_has_its_own(workload: Workload, *pods: str) -> None:
    """Each Pod sees the device of its claim and no other; but for the two shares, no device is seen by two Pods."""
    devices = {pod: device_of(workload.claim(pod))[1] for pod in pods}
    assert {pod: workload.see(pod).given for pod in pods} == {pod: {device} for pod, device in devices.items()}
    exclusive = [device for pod, device in devices.items() if pod != "share-2"]
    assert len(set(exclusive)) == len(exclusive)


def published(plugin: PluginProcess) -> list[Manifest]:
    """Give what the node's slices say, without what changes whenever they are written."""
    specs = [found["spec"] for found in plugin.slices()]
    return [{name: value for name, value in spec.items() if name != "pool"} for spec in specs]


def is_complete(plugin: PluginProcess) -> bool:
    """Whether all slices of the pool are there, of one generation."""
    pools = [found["spec"]["pool"] for found in plugin.slices()]
    return len({pool["generation"] for pool in pools}) == 1 and len(pools) == pools[0]["resourceSliceCount"]
