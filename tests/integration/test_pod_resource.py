"""What the kubelet tells of Pods' devices, over a real socket."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from kubeletplugin.kubelet.pod_resource import PodResources
from kubeletplugin.proto import podresources_v1_pb2 as podresources


@contextmanager
def a_kubelet(folder: Path, *pods: podresources.PodResources, answer: bytes | None = None) -> Iterator[None]:
    """Answer with these Pods, or with bytes as they stand."""
    answered = podresources.ListPodResourcesResponse(pod_resources=pods).SerializeToString()

    def handle(_: Any, __: grpc.ServicerContext) -> bytes:
        return answered if answer is None else answer

    method: Any = grpc.unary_unary_rpc_method_handler(handle, podresources.ListPodResourcesRequest.FromString)
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


@pytest.mark.parametrize("answer", [b"\xff" * 9, b"\x0a\x03\x0a\x01\xff"], ids=["no message", "no text"])
async def test_a_kubelet_that_answers_with_something_else_says_nothing(short_path: Path, answer: bytes) -> None:
    pods = PodResources(short_path)
    with a_kubelet(short_path, answer=answer):
        assert await pods.read_held() is None
    with a_kubelet(short_path, a_pod(gpu=1)):
        assert await pods.read_held() == frozenset({"nvidia.com/gpu"})


async def test_a_kubelet_may_tell_of_more_than_grpc_takes_unasked(short_path: Path) -> None:
    with a_kubelet(short_path, a_pod(gpu=1_000_000)):
        assert await PodResources(short_path).read_held() == frozenset({"nvidia.com/gpu"})
