"""What the kubelet tells of Pods' devices, over a real socket."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from kubeletplugin.kubelet.pod_resource import PodResources
from kubeletplugin.proto import podresources_v1_pb2 as podresources


@contextmanager
def a_kubelet(folder: Path, *pods: podresources.PodResources) -> Iterator[None]:
    def answer(_: Any, __: grpc.ServicerContext) -> podresources.ListPodResourcesResponse:
        return podresources.ListPodResourcesResponse(pod_resources=pods)

    method = grpc.unary_unary_rpc_method_handler(
        answer,
        podresources.ListPodResourcesRequest.FromString,
        podresources.ListPodResourcesResponse.SerializeToString,
    )
    handler = grpc.method_handlers_generic_handler("v1.PodResourcesLister", {"List": method})
    server = grpc.server(ThreadPoolExecutor(1), handlers=[handler])
    (folder / "pod-resources").mkdir(exist_ok=True)
    server.add_insecure_port(f"unix://{folder}/pod-resources/kubelet.sock")
    server.start()
    try:
        yield
    finally:
        server.stop(grace=None).wait()


def a_pod(**devices: int) -> podresources.PodResources:
    held = [
        podresources.ContainerDevices(resource_name=f"nvidia.com/{name}", device_ids=map(str, range(count)))
        for name, count in devices.items()
    ]
    return podresources.PodResources(containers=[podresources.ContainerResources(devices=held)])


async def test_the_resources_that_pods_hold_are_told(short_path: Path) -> None:
    with a_kubelet(short_path, a_pod(), a_pod(gpu=2, none=0), a_pod(gpu=1, other=1)):
        assert await PodResources(short_path).read_held() == frozenset({"nvidia.com/gpu", "nvidia.com/other"})
    with a_kubelet(short_path):
        assert await PodResources(short_path).read_held() == frozenset()


async def test_a_kubelet_that_is_away_says_nothing_until_it_is_back(short_path: Path) -> None:
    pods = PodResources(short_path)
    assert await pods.read_held() is None
    with a_kubelet(short_path, a_pod(gpu=1)):
        assert await pods.read_held() == frozenset({"nvidia.com/gpu"})
    assert await pods.read_held() is None
