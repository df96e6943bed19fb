"""The DRA service that the kubelet calls, in both versions it knows. Protobuf messages do not leave this module."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Executor
from typing import Any, Protocol, TypeVar

import grpc
import structlog

from dra_driver.api import name
from dra_driver.api.resource_v1 import ResourceClaim
from dra_driver.errors import ApiError, ApiNotFoundError, ClaimError, DraError
from kubeletplugin.background import explain_passing
from kubeletplugin.kubelet.claim_thread import ClaimThreads
from kubeletplugin.metric import Metrics
from kubeletplugin.prepare.preparer import Preparer
from kubeletplugin.prepare.record import ClaimRecord, ClaimRef, is_claim_uid
from kubeletplugin.prepare.spec import Names
from kubeletplugin.proto import dra_v1_pb2, dra_v1beta1_pb2

log = structlog.get_logger(__name__)

SUPPORTED_VERSIONS = ("v1.DRAPlugin", "v1beta1.DRAPlugin")
"""Newest first: the kubelet takes the first one that it knows."""

_DONE = {"prepare": "claim prepared", "unprepare": "claim unprepared"}
_NOT_DONE = {"prepare": "claim not prepared", "unprepare": "claim not unprepared"}

PATIENCE_S = 40.0
"""How long a claim may take to be answered: the kubelet hears why it is not done, before it gives up after 45 s."""

_T = TypeVar("_T")


class Claims(Protocol):
    """Where claims are read."""

    async def read_claim(self, ref: ClaimRef) -> ResourceClaim:
        """Return the claim as the API server has it now. Raises ApiError."""
        ...


class Events(Protocol):
    """Where users learn of failures."""

    def record_claim_failure(self, ref: ClaimRef, reason: str, message: str) -> None:
        """Tell, on the claim, what went wrong. Never raises, never blocks."""
        ...


class Statuses(Protocol):
    """Where it is told how the devices of claims are. Nothing here raises or blocks."""

    def prepared(self, record: ClaimRecord) -> None:
        """Take note that a claim is prepared."""
        ...

    def failed(self, ref: ClaimRef, reason: str, message: str) -> None:
        """Take note that a claim could not be prepared or unprepared."""
        ...

    def unprepared(self, ref: ClaimRef) -> None:
        """Take note that a claim is not prepared any more."""
        ...


class PluginService:
    """Answers prepare and unprepare calls. One claim's failure is its own: the others go on.

    What is not done after `patience_s` goes on, but the kubelet is told so; the claim's next call waits for it.
    """

    def __init__(  # noqa: PLR0913 - what it works with, by keyword
        self,
        preparer: Preparer,
        *,
        names: Names,
        claims: Claims,
        events: Events,
        statuses: Statuses,
        metrics: Metrics,
        executor: Executor,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._patience_s = patience_s
        self._preparer = preparer
        self._names = names
        self._claims = claims
        self._events = events
        self._statuses = statuses
        self._metrics = metrics
        self._threads = ClaimThreads(executor)

    def handlers(self) -> tuple[grpc.GenericRpcHandler, ...]:
        """Return the service in each version, to be added to a server."""
        return _handlers("v1", dra_v1_pb2, self), _handlers("v1beta1", dra_v1beta1_pb2, self)

    async def prepare(self, refs: Iterable[ClaimRef]) -> dict[str, ClaimRecord | DraError]:
        """Prepare claims side by side. Returns the record, or what went wrong, by claim UID."""
        return await self._each(refs, "prepare", self._prepare)

    async def unprepare(self, refs: Iterable[ClaimRef]) -> dict[str, DraError | None]:
        """Unprepare claims side by side. Returns None, or what went wrong, by claim UID."""
        return await self._each(refs, "unprepare", self._unprepare)

    async def _each(
        self, refs: Iterable[ClaimRef], operation: str, act: Callable[[ClaimRef], Awaitable[_T]]
    ) -> dict[str, _T | DraError]:
        async def attempt(ref: ClaimRef) -> tuple[str, _T | DraError]:
            with self._metrics.operation(operation) as done:
                problem: DraError
                try:
                    _validate_uid(ref)
                    result = await self._wait_for(ref, act(ref))
                except DraError as error:
                    problem = error
                except Exception as error:
                    # The boundary to the kubelet: a bug costs the claim that brings it out, never the others.
                    if (passing := explain_passing(error)) is None:
                        log.exception("claim met a bug", claim=str(ref), claim_uid=ref.uid)
                        passing = f"unforeseen {type(error).__name__}, see the plugin's log"
                    problem = ClaimError(f"claim {ref}: {passing}")
                except asyncio.CancelledError:
                    self._tell(ref, operation, ClaimError(f"claim {ref}: not done after {done.duration_s:.0f} s"))
                    raise
                else:
                    log.info(_DONE[operation], claim=str(ref), claim_uid=ref.uid, duration_s=done.duration_s)
                    return ref.uid, result
                done.failed()
            self._tell(ref, operation, problem)
            return ref.uid, problem

        return dict(await asyncio.gather(*(attempt(ref) for ref in dict.fromkeys(refs))))

    async def _wait_for(self, ref: ClaimRef, act: Awaitable[_T]) -> _T:
        try:
            async with asyncio.timeout(self._patience_s) as limit:
                return await act
        except TimeoutError:
            if not limit.expired():
                raise
            raise ClaimError(
                f"claim {ref}: not done after {self._patience_s:g} s, want what it waits for to answer"
            ) from None

    async def _prepare(self, ref: ClaimRef) -> ClaimRecord:
        if problems := _name_problems(ref):
            raise ClaimError(f"claim {ref.uid}: {'; '.join(problems)}")
        if (done := await self._threads.run(ref.uid, self._preparer.find_prepared, ref)) is not None:
            self._statuses.prepared(done)
            return done
        try:
            claim = await self._claims.read_claim(ref)
        except ApiNotFoundError as error:
            raise ClaimError(f"claim {ref}: gone from the API server") from error
        except ApiError as error:
            raise ClaimError(f"claim {ref}: {error}") from error
        record = await self._threads.run(ref.uid, self._preparer.prepare, ref, claim)
        self._statuses.prepared(record)
        return record

    async def _unprepare(self, ref: ClaimRef) -> None:
        await self._threads.run(ref.uid, self._preparer.unprepare, ref)
        self._statuses.unprepared(ref)

    def _tell(self, ref: ClaimRef, operation: str, error: DraError) -> None:
        log.warning(_NOT_DONE[operation], claim=str(ref), claim_uid=ref.uid, error=str(error))
        if _name_problems(ref):
            return
        reason = f"{operation.capitalize()}Failed"
        self._events.record_claim_failure(ref, reason, str(error))
        self._statuses.failed(ref, reason, str(error))

    def devices(self, record: ClaimRecord) -> Iterable[dict[str, Any]]:
        """Return the fields of the kubelet's Device message for each allocation result of a prepared claim."""
        for device in record.devices:
            yield {
                "request_names": [device.request.partition("/")[0]],
                "pool_name": device.pool,
                "device_name": device.device,
                "cdi_device_ids": [self._names.qualified(record.uid, device)],
                "share_id": device.share_id,
            }


def _validate_uid(ref: ClaimRef) -> None:
    """A UID becomes a file name, so one that could leave its directory is refused."""
    if not is_claim_uid(ref.uid):
        raise ClaimError(f"claim {ref}: UID {name.quote(ref.uid)} is not one, want at most 63 letters, digits and '-'")


def _name_problems(ref: ClaimRef) -> tuple[str, ...]:
    """Names become a path of the API, so for one that names something else nothing is asked there."""
    return (
        *(f"namespace: {problem}" for problem in name.validate_dns_label(ref.namespace)),
        *(f"name: {problem}" for problem in name.validate_dns_subdomain(ref.name)),
    )


def _handlers(version: str, messages: Any, service: PluginService) -> grpc.GenericRpcHandler:
    known = {field.name for field in messages.Device.DESCRIPTOR.fields}

    def device(fields: dict[str, Any]) -> Any:
        return messages.Device(**{name: value for name, value in fields.items() if name in known})

    def prepared(outcome: ClaimRecord | DraError) -> Any:
        if isinstance(outcome, DraError):
            return messages.NodePrepareResourceResponse(error=str(outcome))
        return messages.NodePrepareResourceResponse(devices=[device(fields) for fields in service.devices(outcome)])

    def unprepared(outcome: DraError | None) -> Any:
        return messages.NodeUnprepareResourceResponse(error="" if outcome is None else str(outcome))

    async def node_prepare_resources(request: Any, _: Any) -> Any:
        outcomes = await service.prepare(_refs(request))
        return messages.NodePrepareResourcesResponse(claims={uid: prepared(each) for uid, each in outcomes.items()})

    async def node_unprepare_resources(request: Any, _: Any) -> Any:
        outcomes = await service.unprepare(_refs(request))
        return messages.NodeUnprepareResourcesResponse(claims={uid: unprepared(each) for uid, each in outcomes.items()})

    return grpc.method_handlers_generic_handler(
        f"k8s.io.kubelet.pkg.apis.dra.{version}.DRAPlugin",
        {
            "NodePrepareResources": grpc.unary_unary_rpc_method_handler(
                node_prepare_resources,
                request_deserializer=messages.NodePrepareResourcesRequest.FromString,
                response_serializer=messages.NodePrepareResourcesResponse.SerializeToString,
            ),
            "NodeUnprepareResources": grpc.unary_unary_rpc_method_handler(
                node_unprepare_resources,
                request_deserializer=messages.NodeUnprepareResourcesRequest.FromString,
                response_serializer=messages.NodeUnprepareResourcesResponse.SerializeToString,
            ),
        },
    )


def _refs(request: Any) -> list[ClaimRef]:
    return [ClaimRef(claim.namespace, claim.name, claim.uid) for claim in request.claims]
