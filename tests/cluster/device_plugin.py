"""A vendor's device plugin, as a process of the tests: it registers with the real kubelet and counts devices there.

`python -m tests.cluster.device_plugin nvidia.com/gpu 2` on a node counts two devices until it is ended. As other device
plugins do, it registers anew when the kubelet has started anew, which empties the folder of the sockets.
A container that gets devices finds their ids in its environment.
"""

import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

import grpc

from tests.cluster.cluster import Cluster
from tests.cluster.image import PROJECT
from tests.cluster.node import KUBELET_DIR
from tests.cluster.process import Process
from tests.cluster.proto import device_plugin_v1beta1_pb2 as v1beta1

VARIABLE: Final = "DEVICE_PLUGIN_DEVICES"

_FOLDER: Final = KUBELET_DIR / "device-plugins"
_SOCKET: Final = "test.sock"
_LOOK_S: Final = 0.1


class _DevicePlugin:
    """The service that the kubelet calls once the plugin is registered."""

    def __init__(self, resource: str, count: int) -> None:
        self._devices = [v1beta1.Device(ID=f"{resource}-{index}", health="Healthy") for index in range(count)]

    def handler(self) -> grpc.GenericRpcHandler:
        return grpc.method_handlers_generic_handler(
            "v1beta1.DevicePlugin",
            {
                "GetDevicePluginOptions": _unary(self._get_options, v1beta1.Empty),
                "ListAndWatch": grpc.unary_stream_rpc_method_handler(
                    self._list, v1beta1.Empty.FromString, v1beta1.ListAndWatchResponse.SerializeToString
                ),
                "Allocate": _unary(self._allocate, v1beta1.AllocateRequest),
            },
        )

    def _get_options(self, _: v1beta1.Empty, __: grpc.ServicerContext) -> v1beta1.DevicePluginOptions:
        return v1beta1.DevicePluginOptions()

    def _list(self, _: v1beta1.Empty, context: grpc.ServicerContext) -> Iterator[v1beta1.ListAndWatchResponse]:
        yield v1beta1.ListAndWatchResponse(devices=self._devices)
        while context.is_active():
            time.sleep(_LOOK_S)

    def _allocate(self, request: v1beta1.AllocateRequest, _: grpc.ServicerContext) -> v1beta1.AllocateResponse:
        answers = (
            v1beta1.ContainerAllocateResponse(envs={VARIABLE: " ".join(container.devices_ids)})
            for container in request.container_requests
        )
        return v1beta1.AllocateResponse(container_responses=answers)


def _unary(behaviour: Any, request: Any) -> Any:
    return grpc.unary_unary_rpc_method_handler(behaviour, request.FromString, lambda answer: answer.SerializeToString())


def _register(resource: str) -> None:
    with grpc.insecure_channel(f"unix://{_FOLDER / 'kubelet.sock'}") as channel:
        register = channel.unary_unary(
            "/v1beta1.Registration/Register",
            v1beta1.RegisterRequest.SerializeToString,
            v1beta1.Empty.FromString,
        )
        request = v1beta1.RegisterRequest(version="v1beta1", endpoint=_SOCKET, resource_name=resource)
        register(request, timeout=10, wait_for_ready=True)


def serve(resource: str, count: int) -> None:
    """Count devices for the kubelet, for ever."""
    plugin, socket = _DevicePlugin(resource, count), _FOLDER / _SOCKET
    while True:
        socket.unlink(missing_ok=True)
        server = grpc.server(ThreadPoolExecutor(4), handlers=[plugin.handler()])
        server.add_insecure_port(f"unix://{socket}")
        server.start()
        _register(resource)
        while socket.exists():
            time.sleep(_LOOK_S)
        server.stop(grace=None).wait()


@contextmanager
def run_device_plugin(cluster: Cluster, node: str, resource: str, count: int) -> Iterator[Process]:
    """Run it on a node until the block ends, without waiting for anything."""
    arguments = (sys.executable, "-P", "-m", "tests.cluster.device_plugin", resource, str(count))
    command = cluster.nodes[node].namespace.command(arguments)
    process = cluster.processes.start(f"{node}-device-plugin", command, {"PYTHONPATH": str(PROJECT)})
    try:
        yield process
    finally:
        if process.returncode is None:
            process.stop()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
