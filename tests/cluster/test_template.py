"""Claims from templates with several requests, configs of class and claim, and requests with alternatives."""

from collections.abc import Iterator
from copy import deepcopy

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.plugin import DRIVER, PluginProcess
from tests.cluster.scenario import (
    Manifest,
    Workload,
    a_claim_template,
    a_config,
    a_pod,
    a_request,
    an_alternative,
    attributes_of,
    results,
    run_plugins,
)

BURST = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "burst.test.local"},
    "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}], "config": [a_config("Burst")]},
}
MODEL = 'device.attributes["accel.dra-driver.io"].?model.orValue("") == "{}"'


@pytest.fixture(scope="module", autouse=True)
def plugin(cluster: Cluster) -> Iterator[PluginProcess]:
    """There are H100, L40S and Ascend 910B3 on node-b."""
    with run_plugins(cluster, {"node-b": "mixed"}) as plugins:
        yield plugins["node-b"]


def a_pod_of_two(name: str, template: str, requests: tuple[str, str]) -> Manifest:
    """A Pod whose containers, named after the requests, each get the devices of one request."""
    pod = a_pod(name, template=template)
    [container] = pod["spec"]["containers"]
    pod["spec"]["containers"] = []
    for request in requests:
        own = deepcopy(container)
        own.update(name=request, resources={"claims": [{"name": template, "request": request}]})
        pod["spec"]["containers"].append(own)
    return pod


def test_each_container_sees_its_request_with_the_claims_config_over_the_class(
    workload: Workload, plugin: PluginProcess
) -> None:
    requests = [a_request(name, "burst.test.local", capacity={"memory": "8Gi"}) for name in ("plain", "strict")]
    strict = {"requests": ["strict"], **a_config("Force")}
    workload.run(
        BURST,
        a_claim_template("both", *requests, config=[strict]),
        a_pod_of_two("both", "both", ("plain", "strict")),
    )
    claim = workload.claim_of("both")
    uid = claim["metadata"]["uid"]
    devices = {result["request"]: result["device"] for result in results(claim)}
    assert set(devices) == {"plain", "strict"}
    for request, policy in (("plain", "burst"), ("strict", "force")):
        identity = attributes_of(plugin, devices[request])["uuid"]
        assert workload.shims("both", container=request) == [
            f"shim 1\nclaim {uid}\ndevice {identity} memory=8589934592 cores=- policy={policy}\n"
        ]


def test_every_replica_has_a_claim_of_its_own_that_goes_with_it(workload: Workload, plugin: PluginProcess) -> None:
    workload.run(a_claim_template("one"), a_pod("first", template="one"), a_pod("second", template="one"))
    first, second = (workload.claim_of(pod) for pod in ("first", "second"))
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    assert results(first)[0]["device"] != results(second)[0]["device"]
    workload.delete("pod", "first")
    workload.cluster.wait_for(
        "the claim of the first Pod to be gone",
        lambda: (
            [claim["metadata"]["uid"] for claim in workload.cluster.list("resourceclaims")]
            == [second["metadata"]["uid"]]
        ),
    )


def test_the_next_alternative_is_given_where_the_first_is_not_there(workload: Workload, plugin: PluginProcess) -> None:
    alternatives = [
        an_alternative("best", "gpu.dra-driver.io", MODEL.format("B200")),
        an_alternative("two", "gpu.dra-driver.io", MODEL.format("L40S"), count=2),
        an_alternative("any", "accelerator.dra-driver.io"),
    ]
    list_ = {"name": "device", "firstAvailable": alternatives}
    workload.run(
        a_claim_template("list", list_, a_request("other", "npu.dra-driver.io")),
        a_pod_of_two("list", "list", ("device", "other")),
    )
    found = results(workload.claim_of("list"))
    assert [result["request"] for result in found] == ["device/two", "device/two", "other"]
    uuids = [attributes_of(plugin, result["device"])["uuid"] for result in found]
    # The kubelet gives a container the devices whose request name is the one the container asks for, here `device`.
    for container, expected in (("device", uuids[:2]), ("other", uuids[2:])):
        environment = workload.see("list", container).environment
        assert {value for name, value in environment.items() if name.startswith("SIMULATED_DEVICE_")} == set(expected)


def test_a_config_for_one_alternative_holds_for_that_alone(workload: Workload, plugin: PluginProcess) -> None:
    share = {"memory": "4Gi", "cores": "25"}
    alternatives = [
        an_alternative("best", "gpu.dra-driver.io", MODEL.format("B200"), capacity=share),
        an_alternative("next", "gpu.dra-driver.io", MODEL.format("L40S"), capacity=share),
    ]
    configs = [
        {"requests": ["device"], **a_config("Force")},
        {"requests": ["device/next"], **a_config("Burst")},
    ]
    workload.run(
        a_claim_template("chosen", {"name": "device", "firstAvailable": alternatives}, config=configs),
        a_pod("chosen", template="chosen"),
    )
    [shim] = workload.shims("chosen")
    assert shim.endswith("memory=4294967296 cores=25 policy=burst\n")
