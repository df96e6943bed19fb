"""Typed requests to the API server: msgspec structs in, msgspec structs out, errors of `dra_driver.errors`."""

import copy
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, Self, TypeVar

import aiohttp

from dra_driver.api import codec
from dra_driver.api.meta_v1 import Wire
from dra_driver.errors import ApiError, ApiGoneError, InvalidError
from dra_driver.kube.credential import Credential
from dra_driver.kube.resource import EVERYTHING, KubernetesList, ObjectKey, Resource, Selection, T
from dra_driver.kube.transport import Request, Transport

Decoded = TypeVar("Decoded")

_CONNECT_TIMEOUT_S = 10.0


class PatchKind(StrEnum):
    """How a patch is meant, as its content type says: RFC 7386, RFC 6902, or server-side apply."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    APPLY = "application/apply-patch+yaml"


class Preconditions(Wire, frozen=True, kw_only=True):
    """A delete is refused with ApiConflictError unless the object has this UID and version; None is any."""

    uid: str | None = None
    resource_version: str | None = None


class _DeleteOptions(Wire, frozen=True, kw_only=True):
    preconditions: Preconditions | None = None
    grace_period_seconds: int | None = None
    dry_run: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """All objects of a selection as they were at `resource_version`, from which a watch goes on."""

    items: tuple[T, ...]
    resource_version: str


class ApiClient:
    """A client of one API server: `async with ApiClient(credential) as client:`.

    Every method raises ApiError, by what the server answered. None retries, apart from a 401 once with a credential
    that is loaded anew. `timeout_s` bounds each request.
    """

    def __init__(self, credential: Credential, *, user_agent: str = "dra-driver", timeout_s: float = 30.0) -> None:
        self._transport = Transport(credential, user_agent=user_agent)
        self._timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=_CONNECT_TIMEOUT_S)
        self._before_write: Callable[[], None] = _allow

    async def __aenter__(self) -> Self:
        """Open the session. Raises SettingError if certificates are unusable; does not connect yet."""
        await self._transport.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._transport.close()

    def guarded(self, before_write: Callable[[], None]) -> Self:
        """Return a client over the same connections that calls `before_write` before each write.

        What that raises keeps the write from being sent. The connections are open as long as this client is.
        """
        guarded = copy.copy(self)
        guarded._before_write = before_write  # noqa: SLF001 - a copy of our own
        return guarded

    async def get(self, resource: Resource[T], name: str, *, namespace: str = "") -> T:
        """Read one object."""
        path = resource.path(namespace=namespace, name=name)
        return await self._object(
            resource, Request(_subject("get", resource, name, namespace), "GET", path, self._timeout)
        )

    async def create(self, resource: Resource[T], value: T, *, dry_run: bool = False, field_manager: str = "") -> T:
        """Create an object, in the namespace of its metadata. Returns what is stored, or with `dry_run` would be."""
        metadata = value.metadata
        name = metadata.name or f"{metadata.generate_name}*"
        subject = _subject("create", resource, name, metadata.namespace)
        path = resource.path(namespace=metadata.namespace)
        query = _write_query(dry_run=dry_run, field_manager=field_manager)
        return await self._object(resource, Request(subject, "POST", path, self._timeout, query, codec.encode(value)))

    async def create_subresource(
        self, resource: Resource[T], name: str, subresource: str, value: Any, *, namespace: str = ""
    ) -> None:
        """Post to a subresource that is an action, such as a Pod's `binding`. What is answered is not looked at."""
        path = resource.path(namespace=namespace, name=name, subresource=subresource)
        subject = _subject("create", resource, name, namespace, subresource)
        await self._bytes(Request(subject, "POST", path, self._timeout, {}, codec.encode(value)))

    async def update(self, resource: Resource[T], value: T, *, dry_run: bool = False, field_manager: str = "") -> T:
        """Replace an object, if it still has the resource version of `value` (any, if that is empty)."""
        query = _write_query(dry_run=dry_run, field_manager=field_manager)
        return await self._put(resource, value, "", query)

    async def update_status(
        self, resource: Resource[T], value: T, *, dry_run: bool = False, field_manager: str = ""
    ) -> T:
        """Replace the status of an object, under the same condition; the rest of `value` is ignored."""
        query = _write_query(dry_run=dry_run, field_manager=field_manager)
        return await self._put(resource, value, "status", query)

    async def patch(  # noqa: PLR0913 - options of the API, keyword-only
        self,
        resource: Resource[T],
        name: str,
        patch: Any,
        *,
        kind: PatchKind = PatchKind.MERGE,
        namespace: str = "",
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str = "",
        force: bool = False,
    ) -> T:
        """Patch an object with anything that encodes as JSON. A `resourceVersion` in its metadata is a condition.

        APPLY wants a `field_manager`, creates what is missing, and with `force` takes over fields of other managers.
        """
        path = resource.path(namespace=namespace, name=name, subresource=subresource)
        query = _write_query(dry_run=dry_run, field_manager=field_manager) | ({"force": "true"} if force else {})
        subject = _subject("patch", resource, name, namespace, subresource)
        return await self._object(
            resource, Request(subject, "PATCH", path, self._timeout, query, codec.encode(patch), kind)
        )

    async def delete(  # noqa: PLR0913 - options of the API, keyword-only
        self,
        resource: Resource[T],
        name: str,
        *,
        namespace: str = "",
        preconditions: Preconditions | None = None,
        grace_period_s: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Delete an object. With finalizers it stays until they are gone.

        A Pod on a node stays for a grace period, which its kubelet ends with one of 0.
        """
        options = _DeleteOptions(
            preconditions=preconditions,
            grace_period_seconds=grace_period_s,
            dry_run=("All",) if dry_run else (),
        )
        path = resource.path(namespace=namespace, name=name)
        subject = _subject("delete", resource, name, namespace)
        await self._bytes(Request(subject, "DELETE", path, self._timeout, {}, codec.encode(options)))

    async def list(
        self, resource: Resource[T], selection: Selection = EVERYTHING, *, page_size: int = 500
    ) -> Listing[T]:
        """Read all objects of a selection, in pages. When the server forgets the list half way, read it in one go."""
        try:
            return await self._pages(resource, selection, page_size)
        except _PageGoneError:
            return await self._pages(resource, selection, 0)

    @asynccontextmanager
    async def watch(
        self,
        resource: Resource[T],
        selection: Selection,
        resource_version: str,
        *,
        timeout_s: int,
        silence_s: float,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Watch from a resource version on: yields chunks of bytes, which are lines of JSON cut anywhere.

        The server ends the watch after `timeout_s`; if it sends nothing for `silence_s`, or does not end, that is
        ApiUnavailableError. The block does nothing but read.
        """
        query = selection.query() | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(timeout_s),
        }
        path = resource.path(namespace=selection.namespace)
        timeout = aiohttp.ClientTimeout(
            total=timeout_s + silence_s, sock_connect=_CONNECT_TIMEOUT_S, sock_read=silence_s
        )
        request = Request(_subject("watch", resource, "", selection.namespace), "GET", path, timeout, query)
        async with self._transport.exchange(request) as response:
            yield response.content.iter_any()

    async def _pages(self, resource: Resource[T], selection: Selection, page_size: int) -> Listing[T]:
        items: list[T] = []
        token = ""
        path = resource.path(namespace=selection.namespace)
        subject = _subject("list", resource, "", selection.namespace)
        while True:
            query = selection.query() | ({"limit": str(page_size)} if page_size else {})
            query |= {"continue": token} if token else {}
            try:
                body = await self._bytes(Request(subject, "GET", path, self._timeout, query))
            except ApiGoneError as error:
                if token:
                    raise _PageGoneError(str(error), status=error.status, reason=error.reason) from error
                raise
            page: KubernetesList[T] = _decode(subject, body, resource.list_struct)
            items += page.items
            token = page.metadata.continue_
            if not token:
                return Listing(tuple(items), page.metadata.resource_version)

    async def _put(self, resource: Resource[T], value: T, subresource: str, query: dict[str, str]) -> T:
        name, namespace = value.metadata.name, value.metadata.namespace
        path = resource.path(namespace=namespace, name=name, subresource=subresource)
        subject = _subject("update", resource, name, namespace, subresource)
        return await self._object(resource, Request(subject, "PUT", path, self._timeout, query, codec.encode(value)))

    async def _object(self, resource: Resource[T], request: Request) -> T:
        return _decode(request.subject, await self._bytes(request), resource.struct)

    async def _bytes(self, request: Request) -> bytes:
        if request.method != "GET":
            self._before_write()
        async with self._transport.exchange(request) as response:
            return await response.read()


def _allow() -> None:
    """Let a write be sent."""


class _PageGoneError(ApiGoneError):
    """The rest of a list that is being paged is gone; the list can be read in one go."""


def _decode(subject: str, body: bytes, struct: type[Decoded]) -> Decoded:
    try:
        return codec.decode(body, struct)
    except InvalidError as error:
        raise ApiError(f"{subject}: answer not understood: {error}", reason="Undecodable") from error


def _subject(verb: str, resource: Resource[Any], name: str, namespace: str = "", subresource: str = "") -> str:
    plural = f"{resource.plural}/{subresource}" if subresource else resource.plural
    return " ".join(part for part in (verb, plural, str(ObjectKey(namespace, name)) if name else namespace) if part)


def _write_query(*, dry_run: bool, field_manager: str) -> dict[str, str]:
    query = {"dryRun": "All" if dry_run else "", "fieldManager": field_manager}
    return {name: value for name, value in query.items() if value}
