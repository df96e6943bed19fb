"""The controller on an API server: from a gated Pod to allocated claims and a Pod without the gate."""

from controller.metric import PodState
from tests.support.control import GATE, ControlPlane, a_claim, a_class, a_device, a_node, a_pod, a_slice
from tests.support.wait import until


async def test_a_gated_pod_gets_its_claim_and_loses_its_gate(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0", "gpu-1"])
    async with control.controller():
        control.put(a_claim(), a_pod("pod-1", "claim-1"))
        await until(lambda: not control.is_gated())
    assert control.devices() == ["node-a/gpu-0"]
    claim = control.claim()
    assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    assert claim["status"]["allocation"]["allocationTimestamp"]
    assert control.users() == ["pod-1"]
    assert control.writes() == [
        "PATCH default/resourceclaims/claim-1",
        "PATCH default/resourceclaims/claim-1/status",
        "PATCH default/pods/pod-1",
    ]


async def test_all_claims_of_a_pod_go_to_the_one_node_that_has_all_devices(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0", "gpu-1"], node_b=["gpu-0", "gpu-1", "gpu-2"])
    async with control.controller():
        control.put(*(a_claim(name) for name in ("one", "two", "three")), a_pod("pod-1", "one", "two", "three"))
        await until(lambda: not control.is_gated())
    assert [control.devices(name) for name in ("one", "two", "three")] == [
        ["node-b/gpu-0"],
        ["node-b/gpu-1"],
        ["node-b/gpu-2"],
    ]


async def test_a_claim_made_from_a_template_is_waited_for(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"])
    async with control.controller() as running:
        await running.leading()
        pod = control.put_one(a_pod(templates=["gpu"]))
        await until(lambda: running.controller.state.pods)
        claim = a_claim("pod-1-gpu-x7k2p", owner=pod)
        pod["status"] |= {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "pod-1-gpu-x7k2p"}]}
        control.put(pod)
        await until(lambda: running.controller.leader.queue.sizes()[PodState.REFUSED])
        control.put(claim)
        await until(lambda: not control.is_gated())
    assert control.users("pod-1-gpu-x7k2p") == ["pod-1"]


async def test_a_template_that_needs_no_claim_is_no_claim(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"])
    pod = a_pod("pod-1", "claim-1", templates=["none"])
    pod["status"] |= {"resourceClaimStatuses": [{"name": "none"}]}
    async with control.controller():
        control.put(a_claim(), pod)
        await until(lambda: not control.is_gated())


async def test_a_claim_that_was_made_for_another_pod_is_left_alone(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"])
    other = control.put_one(a_pod("other", gates=()))
    pod = a_pod(templates=["gpu"])
    pod["status"] |= {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "theirs"}]}
    control.put(a_claim("theirs", owner=other), pod)
    async with control.controller() as running:
        await running.leading()
        await until(lambda: control.events("pod-1"))
    assert control.events("pod-1") == ["claim default/theirs: was not made for this Pod"]
    assert control.writes() == []


async def test_pods_that_share_a_claim_are_reserved_one_after_the_other(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"], node_b=["gpu-0"])
    async with control.controller():
        control.put(a_claim("shared"), a_pod("pod-1", "shared"))
        await until(lambda: not control.is_gated())
        control.put(a_pod("pod-2", "shared"))
        await until(lambda: not control.is_gated("pod-2"))
    assert control.users("shared") == ["pod-1", "pod-2"]
    assert control.devices("shared") == ["node-a/gpu-0"]


async def test_a_pod_with_a_shared_claim_gets_its_other_claim_on_the_same_node(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"], node_b=["gpu-0", "gpu-1", "gpu-2"])
    async with control.controller():
        control.put(a_claim("shared", count=2), a_pod("pod-1", "shared"))
        await until(lambda: not control.is_gated())
        control.put(a_claim("own"), a_pod("pod-2", "own", "shared"))
        await until(lambda: not control.is_gated("pod-2"))
    assert control.devices("own") == ["node-b/gpu-2"]


async def test_a_claim_is_shared_by_256_pods_at_most(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"])
    async with control.controller():
        control.put(a_claim("shared"), a_pod("pod-1", "shared"))
        await until(lambda: not control.is_gated())
        claim = control.claim("shared")
        claim["status"]["reservedFor"] += [{"resource": "pods", "name": f"p{n}", "uid": f"u{n}"} for n in range(255)]
        control.put(claim, a_pod("pod-2", "shared"))
        await until(lambda: control.events("pod-2"))
    assert control.events("pod-2") == ["claim default/shared: 256 Pods use it already, which is as many as can"]


async def test_a_claim_of_kube_scheduler_is_not_written_but_decides_about_the_node(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"], node_b=["gpu-0"])
    nic = a_device("nic-0", taints=())
    control.put(a_class("nic", labels={}, driver="nic.example.com"), a_slice("node-b", nic, driver="nic.example.com"))
    async with control.controller():
        control.put(a_claim(), a_claim("nic", classes=["nic"]), a_pod("pod-1", "nic", "claim-1"))
        await until(lambda: not control.is_gated())
    assert control.devices() == ["node-b/gpu-0"]
    assert control.devices("nic") == []


async def test_what_kube_scheduler_will_find_for_one_pod_is_not_expected_for_another(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0", "gpu-1"])
    nic = a_device("nic-0", taints=())
    control.put(a_class("nic", labels={}, driver="nic.example.com"), a_slice("node-a", nic, driver="nic.example.com"))
    async with control.controller():
        control.put(a_claim(), a_claim("nic", classes=["nic"]), a_pod("pod-1", "nic", "claim-1"))
        await until(lambda: not control.is_gated())
        control.put(a_claim("claim-2"), a_claim("nic-2", classes=["nic"]), a_pod("pod-2", "nic-2", "claim-2"))
        await until(lambda: control.events("pod-2"))
        assert control.devices("claim-2") == []
        control.server.remove("pods", "pod-1", "default")
        control.server.remove("resourceclaims", "nic", "default")
        await until(lambda: not control.is_gated("pod-2"))


async def test_a_claim_of_classes_of_both_allocators_is_refused_with_a_reason(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"])
    control.put(a_class("nic", labels={}))
    async with control.controller():
        control.put(a_claim(classes=["gpu", "nic"]), a_pod("pod-1", "claim-1"))
        await until(lambda: control.events("claim-1") and control.events("pod-1"))
    [text] = control.events("claim-1")
    assert text.startswith("claim default/claim-1: class 'gpu' is allocated by the controller and class 'nic' is not")
    assert control.writes() == []


async def test_a_pod_of_kube_scheduler_is_left_alone(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"])
    control.put(a_class("nic", labels={}))
    async with control.controller() as running:
        await running.leading()
        control.put(a_claim(classes=["nic"]), a_pod("pod-1", "claim-1"))
        control.put(a_claim("mine"), a_pod("pod-2", "mine"))
        await until(lambda: not control.is_gated("pod-2"))
    assert control.devices("claim-1") == []
    assert control.is_gated()


async def test_devices_without_the_taint_are_not_touched(control: ControlPlane) -> None:
    control.put(a_class(), a_node(), a_slice("node-a", "gpu-0", a_device("gpu-1", taints=())))
    async with control.controller():
        control.put(a_claim(), a_pod("pod-1", "claim-1"))
        await until(lambda: control.events("claim-1"))
        assert control.events("claim-1") == [
            "1 node: devices lack the taint dra-driver.io/allocator=controller:NoSchedule"
        ]
        control.put(a_slice("node-a", "gpu-0", "gpu-1"))
        await until(lambda: not control.is_gated())


async def test_nodes_without_the_label_are_not_touched(control: ControlPlane) -> None:
    control.put(a_class(), a_node(labels={}), a_slice("node-a", "gpu-0"))
    async with control.controller():
        control.put(a_claim(), a_pod("pod-1", "claim-1"))
        await until(lambda: control.events("claim-1"))
        assert control.events("claim-1") == ["no node is labelled dra-driver.io/allocator=controller"]
        control.put(a_node())
        await until(lambda: not control.is_gated())


async def test_a_pod_with_another_gate_waits_for_it_to_go(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"])
    async with control.controller() as running:
        control.put(a_claim(), a_pod("pod-1", "claim-1", gates=("quota.example.com/wait", GATE)))
        await until(lambda: running.controller.leader.queue.sizes()[PodState.REFUSED])
        assert control.devices() == []
        pod = control.pod()
        pod["spec"]["schedulingGates"] = [{"name": GATE}]
        control.put(pod)
        await until(lambda: not control.is_gated())
    assert control.pod()["spec"]["schedulingGates"] == []


async def test_a_pod_goes_where_there_is_room_for_all_of_it(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"], node_b=["gpu-0"])
    control.put(a_node(allocatable={"cpu": "1"}))
    async with control.controller():
        containers = [{"name": "main", "image": "busybox:1", "resources": {"requests": {"cpu": "2"}}}]
        control.put(a_claim(), a_pod("pod-1", "claim-1", containers=containers))
        await until(lambda: not control.is_gated())
    assert control.devices() == ["node-b/gpu-0"]


async def test_an_extended_resource_of_a_class_is_left_to_kube_scheduler(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"])
    resource = {"deviceclass.resource.kubernetes.io/npu": "1"}
    container = {"name": "main", "image": "busybox:1", "resources": {"requests": resource, "limits": resource}}
    async with control.controller() as running:
        control.put(a_claim(), a_pod("pod-1", "claim-1", containers=[container]))
        await until(lambda: running.controller.leader.queue.sizes()[PodState.REFUSED])
        control.put(a_class("npu", labels={}))
        await until(lambda: not control.is_gated())
    assert control.devices() == ["node-a/gpu-0"]


async def test_room_that_was_given_to_a_pod_is_not_given_again_before_it_is_bound(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0", "gpu-1"])
    containers = [{"name": "main", "image": "busybox:1", "resources": {"requests": {"cpu": "6"}}}]
    async with control.controller():
        control.put(a_claim("one"), a_pod("pod-1", "one", containers=containers))
        await until(lambda: not control.is_gated())
        control.put(a_claim("two"), a_pod("pod-2", "two", containers=containers))
        await until(lambda: control.events("pod-2"))
        assert control.events("pod-2") == ["1 node: cpu: 2 left, want 6"]
        control.server.remove("pods", "pod-1", "default")
        await until(lambda: not control.is_gated("pod-2"))


async def test_a_pod_that_was_refused_is_allocated_once_a_device_is_freed(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"])
    async with control.controller():
        control.put(a_claim("one"), a_pod("pod-1", "one"))
        await until(lambda: not control.is_gated())
        control.put(a_claim("two"), a_pod("pod-2", "two"))
        await until(lambda: control.events("pod-2") and control.events("two"))
        claim = control.claim("one")
        claim["status"] = {}
        control.server.remove("pods", "pod-1", "default")
        control.put(claim)
        await until(lambda: not control.is_gated("pod-2"))
    assert len(control.events("pod-2")) == 1


async def test_an_ungated_pod_whose_allocation_was_cleared_gets_another_node(control: ControlPlane) -> None:
    control.put_cluster(node_a=["gpu-0"], node_b=["gpu-0"])
    async with control.controller():
        control.put(a_claim(), a_pod("pod-1", "claim-1"))
        await until(lambda: not control.is_gated())
        assert control.devices() == ["node-a/gpu-0"]
        claim = control.claim()
        claim["status"] = {}
        control.put(claim)
        await until(lambda: control.devices() == ["node-b/gpu-0"])
        claim = control.claim()
        claim["status"] = {}
        control.put(claim)
        # Both are avoided; after a while the first is tried again.
        await until(lambda: control.devices() == ["node-a/gpu-0"])
    assert control.users() == ["pod-1"]
