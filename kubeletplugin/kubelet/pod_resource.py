"""What Pods of this node hold of device plugins, as the kubelet tells on its PodResources socket (KEP-606).

The Node counts what may still be given away. Once a device plugin has ended that is nothing, while Pods go on with what
they got from it.
"""

from pathlib import Path

import grpc.aio
import structlog
from google.protobuf.message import DecodeError

from kubeletplugin.proto import podresources_v1_pb2 as podresources

log = structlog.get_logger(__name__)

TIMEOUT_S = 5.0

ANSWER_MAX = 1 << 24
"""The bytes of the longest answer that is taken: as many as the kubelet's own client takes."""

_LIST = "/v1.PodResourcesLister/List"


class PodResources:
    """The kubelet's word. `kubelet_dir` is the kubelet's root directory."""

    def __init__(self, kubelet_dir: Path) -> None:
        self._socket = kubelet_dir / "pod-resources" / "kubelet.sock"
        self._answers = True

    async def read_held(self) -> frozenset[str] | None:
        """Return the names of the extended resources that Pods hold; None if the kubelet does not say."""
        options = (("grpc.max_receive_message_length", ANSWER_MAX),)
        async with grpc.aio.insecure_channel(f"unix:{self._socket}", options=options) as channel:
            call = channel.unary_unary(
                _LIST,
                request_serializer=podresources.ListPodResourcesRequest.SerializeToString,
                response_deserializer=bytes,  # gRPC makes None of what it cannot decode
            )
            try:
                data = await call(podresources.ListPodResourcesRequest(), timeout=TIMEOUT_S)
                answer = podresources.ListPodResourcesResponse.FromString(data)
            except grpc.aio.AioRpcError as error:
                self._tell(answers=False, problem=error.code().name.lower())
                return None
            except DecodeError as error:
                self._tell(answers=False, problem=str(error).lower())
                return None
        self._tell(answers=True)
        return frozenset(
            devices.resource_name
            for pod in answer.pod_resources
            for container in pod.containers
            for devices in container.devices
            if devices.device_ids
        )

    def _tell(self, *, answers: bool, problem: str = "") -> None:
        """Log a change, once."""
        if answers == self._answers:
            return
        self._answers = answers
        if answers:
            log.info("pods' devices known again", socket=str(self._socket))
        else:
            log.warning("pods' devices not known", socket=str(self._socket), error=problem)
