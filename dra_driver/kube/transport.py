"""Requests as bytes: the aiohttp session of the `kubernetes` client, our credential, and one boundary for errors.

TLS, proxy and server name are those of the client library. When certificates or the address change, new requests get a
new session, and the old one closes when its last request ends.
"""

import asyncio
from collections.abc import AsyncIterator, Hashable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import aiohttp

from dra_driver.errors import ApiError, ApiUnavailableError, SettingError
from dra_driver.kube.credential import Credential
from dra_driver.kube.library import RESTClientObject
from dra_driver.kube.status import build_error, parse_status


@dataclass(frozen=True, slots=True)
class Request:
    """A request. `subject` names it in errors, such as `get nodes node-a`."""

    subject: str
    method: str
    path: str
    timeout: aiohttp.ClientTimeout
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"


@dataclass(slots=True, eq=False)
class _Session:
    """An open session, and how many requests are in it. `key` is the credential's when it was opened."""

    session: aiohttp.ClientSession
    configuration: Any
    key: Hashable
    requests: int = 0


class Transport:
    """Sends requests. Each one carries the Authorization of its moment; a 401 loads the credential anew, once."""

    def __init__(self, credential: Credential, *, user_agent: str) -> None:
        self._credential = credential
        self._user_agent = user_agent
        self._lock = asyncio.Lock()
        self._current: _Session | None = None
        self._retired: list[_Session] = []

    async def open(self) -> None:
        """Open the session now, so that unusable certificates show at the start. Raises SettingError."""
        await self._ready()

    async def close(self) -> None:
        """Close every connection; requests in progress end with ApiUnavailableError."""
        for retired in (*self._retired, *((self._current,) if self._current else ())):
            await retired.session.close()
        self._retired.clear()
        self._current = None

    @asynccontextmanager
    async def exchange(self, request: Request) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request and yield the answer, whose body the block reads. Raises ApiError, and nothing else.

        What goes wrong while the block reads is mapped too, so the block does nothing but read.
        """
        try:
            async with self._answer(request) as response:
                if response.status >= HTTPStatus.MULTIPLE_CHOICES:
                    raise await _refusal(request, response)
                yield response
        except SettingError as error:
            raise ApiUnavailableError(f"{request.subject}: {error}", reason="Credential") from error
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            # An aiohttp error may hold the request's headers, and with them the token: it goes no further.
            raise _unavailable(request, error) from None

    @asynccontextmanager
    async def _answer(self, request: Request) -> AsyncIterator[aiohttp.ClientResponse]:
        """Yield the first answer that is no 401, or the second answer."""
        authorization = await self._credential.authorization()
        async with self._send(request, authorization) as response:
            if response.status != HTTPStatus.UNAUTHORIZED:
                yield response
                return
            refusal = await _refusal(request, response)
        try:
            await self._credential.reload(authorization)
        except SettingError as error:
            raise refusal from error
        async with self._send(request, await self._credential.authorization()) as response:
            yield response

    @asynccontextmanager
    async def _send(self, request: Request, authorization: str) -> AsyncIterator[aiohttp.ClientResponse]:
        async with self._lease() as session:
            configuration = session.configuration
            async with session.session.request(
                request.method,
                f"{configuration.host}{request.path}",
                params=request.query,
                data=request.body,
                headers=self._headers(request, authorization),
                timeout=request.timeout,
                allow_redirects=False,
                server_hostname=configuration.tls_server_name or None,
                proxy=configuration.proxy or None,
                proxy_headers=configuration.proxy_headers,
            ) as response:
                yield response

    def _headers(self, request: Request, authorization: str) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": self._user_agent}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        if authorization:
            headers["Authorization"] = authorization
        return headers

    @asynccontextmanager
    async def _lease(self) -> AsyncIterator[_Session]:
        """Use the session that fits the credential of now."""
        session = await self._ready()
        session.requests += 1
        try:
            yield session
        finally:
            session.requests -= 1
            if session in self._retired and not session.requests:
                self._retired.remove(session)
                await session.session.close()

    async def _ready(self) -> _Session:
        async with self._lock:
            key = self._credential.transport_key
            current = self._current
            if current is not None and current.key == key:
                return current
            opened = await _open(self._credential.configuration, key)
            if current is not None and current.requests:
                self._retired.append(current)
            elif current is not None:
                await current.session.close()
            self._current = opened
            return opened


async def _open(configuration: Any, key: Hashable) -> _Session:
    try:
        client = await asyncio.to_thread(RESTClientObject, configuration)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        files = ", ".join(repr(path) for path in (configuration.ssl_ca_cert, configuration.cert_file) if path)
        raise SettingError(f"certificates {files}: {' '.join(str(error).split())}, want PEM") from error
    # The one place where the library gives its session to those that need raw bytes.
    return _Session(client._create_pool_manager(), configuration, key)  # noqa: SLF001 - see above


async def _refusal(request: Request, response: aiohttp.ClientResponse) -> ApiError:
    status = parse_status(await response.read())
    retry_after = response.headers.get("Retry-After", "")
    return build_error(request.subject, response.status, status, retry_after=retry_after)


def _unavailable(request: Request, error: BaseException) -> ApiUnavailableError:
    if isinstance(error, TimeoutError):
        return ApiUnavailableError(f"{request.subject}: no answer in time from the API server", reason="Timeout")
    text = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    return ApiUnavailableError(f"{request.subject}: no answer from the API server: {text}", reason="Connection")
