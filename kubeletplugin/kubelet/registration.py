"""Introduces the plugin to the kubelet: the service on the socket that the kubelet's plugin watcher finds."""

from typing import Any

import grpc
import structlog

from kubeletplugin.health.stream import HEALTH_VERSIONS
from kubeletplugin.kubelet.service import SUPPORTED_VERSIONS
from kubeletplugin.proto import pluginregistration_v1_pb2 as messages

log = structlog.get_logger(__name__)

PLUGIN_TYPE = "DRAPlugin"


class Registration:
    """Answers the kubelet's questions about the plugin, and remembers whether it was accepted."""

    def __init__(self, *, driver: str, endpoint: str) -> None:
        self._info = messages.PluginInfo(
            type=PLUGIN_TYPE,
            name=driver,
            endpoint=endpoint,
            supported_versions=(*SUPPORTED_VERSIONS, *HEALTH_VERSIONS),
        )
        self._driver = driver
        self.registered = False

    def handlers(self) -> tuple[grpc.GenericRpcHandler, ...]:
        """Return the service, to be added to a server."""
        handler = grpc.method_handlers_generic_handler(
            "pluginregistration.Registration",
            {
                "GetInfo": grpc.unary_unary_rpc_method_handler(
                    self._get_info,
                    request_deserializer=messages.InfoRequest.FromString,
                    response_serializer=messages.PluginInfo.SerializeToString,
                ),
                "NotifyRegistrationStatus": grpc.unary_unary_rpc_method_handler(
                    self._notify_registration_status,
                    request_deserializer=messages.RegistrationStatus.FromString,
                    response_serializer=messages.RegistrationStatusResponse.SerializeToString,
                ),
            },
        )
        return (handler,)

    async def _get_info(self, _request: Any, _context: Any) -> Any:
        return self._info

    async def _notify_registration_status(self, status: Any, context: Any) -> Any:
        """Take note. A refusal is answered with an error, as the kubelet expects; it asks again by itself."""
        self.registered = status.plugin_registered
        if not status.plugin_registered:
            log.error("kubelet refused the plugin", driver=self._driver, error=status.error)
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"driver {self._driver}: {status.error}")
        log.info("registered with the kubelet", driver=self._driver)
        return messages.RegistrationStatusResponse()
