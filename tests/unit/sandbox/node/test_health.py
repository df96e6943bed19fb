"""What the simulated kubelet remembers of devices' health."""

from sandbox.node.claim_record import ClaimRecord, PreparedDevice
from sandbox.node.health import DeviceHealth, HealthCache, build_allocated_resources
from sandbox.node.pod import Container, ContainerClaim, ContainerResources

GPU = ("driver", "node", "gpu-0")


def a_report(device: str = "gpu-0", health: str = "Healthy", **fields: object) -> DeviceHealth:
    return DeviceHealth(pool="node", device=device, health=health, **fields)  # type: ignore[arg-type]


def a_container(*claims: ContainerClaim) -> Container:
    return Container(name="main", resources=ContainerResources(claims=claims))


def a_record(*devices: PreparedDevice) -> ClaimRecord:
    return ClaimRecord(uid="u", namespace="n", name="c", devices={"driver": devices})


def a_device(name: str, request: str, *cdi_ids: str) -> PreparedDevice:
    return PreparedDevice(requests=(request,), pool="node", device=name, cdi_ids=cdi_ids)


def test_only_what_is_new_is_a_change() -> None:
    cache = HealthCache()
    assert cache.update("driver", [a_report()], 0) == {GPU}
    assert cache.update("driver", [a_report()], 10) == frozenset()
    assert cache.update("driver", [a_report(health="Unhealthy", message="hot")], 20) == {GPU}
    assert cache.find(GPU, 20) == ("Unhealthy", "hot")


def test_a_device_that_is_left_out_keeps_its_health_until_that_is_too_old() -> None:
    cache = HealthCache()
    cache.update("driver", [a_report(timeout_s=30)], 0)
    assert cache.update("driver", [], 30) == frozenset()
    assert cache.find(GPU, 30) == ("Healthy", "")
    assert cache.find(GPU, 31) == ("Unknown", "")
    assert cache.update("driver", [], 31) == {GPU}


def test_a_driver_without_a_stream_knows_nothing() -> None:
    cache = HealthCache()
    cache.update("driver", [a_report()], 0)
    cache.update("other", [a_report()], 0)
    cache.forget("driver")
    assert cache.find(GPU, 0) == ("Unknown", "")
    assert cache.find(("other", "node", "gpu-0"), 0) == ("Healthy", "")


def test_a_container_tells_of_the_devices_of_its_own_claims_and_requests() -> None:
    cache = HealthCache()
    cache.update("driver", [a_report("a"), a_report("b", "Unhealthy", message="hot")], 0)
    record = a_record(a_device("a", "first", "vendor/class=a"), a_device("b", "second"))
    container = a_container(ContainerClaim(name="gpu"), ContainerClaim(name="gpu", request="second"))
    first = {"resourceID": "vendor/class=a", "health": "Healthy"}
    second = {"resourceID": "driver/node/b", "health": "Unhealthy", "message": "hot"}
    assert build_allocated_resources(container, {"gpu": record}, cache, 0) == [
        {"name": "claim:gpu", "resources": [first, second]},
        {"name": "claim:gpu/second", "resources": [second]},
    ]


def test_a_container_without_devices_tells_nothing() -> None:
    container = a_container(ContainerClaim(name="gpu"), ContainerClaim(name="net"))
    assert build_allocated_resources(container, {"gpu": a_record()}, HealthCache(), 0) == []
