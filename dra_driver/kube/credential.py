"""Who we are to the API server: loaded from a kubeconfig or from the Pod's service account, and kept fresh.

Tokens and certificates rotate. Before a request the files behind the credential are looked at (at most once a second,
for looking takes about as long as a request), and read again when they changed; plugins and providers are asked again
when what they gave expires.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dra_driver.errors import SettingError, explain_os_error
from dra_driver.kube.kubeconfig import parse_kubeconfig
from dra_driver.kube.library import ConfigException, Configuration, InClusterConfigLoader, build_kubeconfig_loader

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_LOAD_TIMEOUT_S = 60.0  # an exec plugin may ask a slow identity provider, and must not hang us for ever
_LOOK_EVERY_S = 1.0  # an old token stays valid for minutes after the new one is there
_RENEW_EVERY_S = 60.0  # the loader renews five minutes before expiry
_TOKEN = "BearerToken"  # noqa: S105 - the name of the entry that holds it
_LOADER_ERRORS = (ConfigException, OSError, ValueError, TypeError, KeyError, AttributeError, TimeoutError)

Fingerprint = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True, repr=False)
class _Loaded:
    """What one load gave: where to connect and how, the files that it came from, and how it renews itself."""

    configuration: Any
    token_files: tuple[Path, ...]
    renew: Callable[[], Awaitable[None]] | None = None

    def authorization(self) -> str:
        return str(self.configuration.api_key.get(_TOKEN, "")).strip()

    def transport_files(self) -> tuple[Path, ...]:
        configuration = self.configuration
        paths = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
        return tuple(Path(path) for path in paths if path)


class Credential:
    """A credential that stays valid. Made by `load`; several tasks may use it at once."""

    def __init__(
        self,
        loaded: _Loaded,
        load: Callable[[], Awaitable[_Loaded]],
        *,
        look_every_s: float,
        monotonic: Callable[[], float],
    ) -> None:
        self._loaded = loaded
        self._load = load
        self._look_every_s = look_every_s
        self._monotonic = monotonic
        self._lock = asyncio.Lock()
        self._token_print = _fingerprint(loaded.token_files)
        self._transport_print = _fingerprint(loaded.transport_files())
        self._look_at = monotonic() + look_every_s
        self._renew_at = monotonic() + _RENEW_EVERY_S

    @classmethod
    async def load(
        cls,
        kubeconfig: Path | None = None,
        *,
        environ: Mapping[str, str] = os.environ,
        service_account: Path = SERVICE_ACCOUNT,
        look_every_s: float = _LOOK_EVERY_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> "Credential":
        """Load from a kubeconfig, or without one from the service account of the Pod.

        Raises SettingError, naming the file or what to set.
        """

        async def load() -> _Loaded:
            if kubeconfig is not None:
                return await _load_kubeconfig(kubeconfig)
            return await asyncio.to_thread(_load_service_account, environ, service_account)

        return cls(await load(), load, look_every_s=look_every_s, monotonic=monotonic)

    @property
    def configuration(self) -> Any:
        """The `kubernetes` client's Configuration: host, TLS and proxy."""
        return self._loaded.configuration

    @property
    def transport_key(self) -> Hashable:
        """Changes whenever connections must be made anew: another host, other certificates, another proxy."""
        of = self._loaded.configuration
        settings = (of.host, of.ssl_ca_cert, of.cert_file, of.key_file, of.verify_ssl, of.tls_server_name, of.proxy)
        return (settings, self._transport_print)

    async def authorization(self) -> str:
        """Return the value of the Authorization header for the next request, or "". It is a secret.

        What cannot be loaded again just now leaves the old credential in force.
        """
        async with self._lock:
            # A file may be half written. A credential that is really dead gets 401, and then `reload` tells why.
            with suppress(SettingError):
                await self._refresh()
            return self._loaded.authorization()

    async def reload(self, refused: str) -> None:
        """Load anew after a 401 for the authorization `refused`, unless another task has done so meanwhile.

        Raises SettingError when what is there cannot be loaded; the old credential stays.
        """
        async with self._lock:
            if self._loaded.authorization() == refused:
                await self._replace()

    async def _refresh(self) -> None:
        now = self._monotonic()
        if now < self._look_at:
            return
        self._look_at = now + self._look_every_s
        tokens, transport = await asyncio.to_thread(self._fingerprints)
        if (tokens, transport) != (self._token_print, self._transport_print):
            await self._replace()
        elif self._loaded.renew is not None and now >= self._renew_at:
            self._renew_at = now + _RENEW_EVERY_S
            await self._loaded.renew()

    async def _replace(self) -> None:
        before = _fingerprint(self._loaded.token_files)
        loaded = await self._load()
        self._loaded = loaded
        self._token_print = before
        self._transport_print = _fingerprint(loaded.transport_files())
        self._renew_at = self._monotonic() + _RENEW_EVERY_S

    def _fingerprints(self) -> tuple[Fingerprint, Fingerprint]:
        return _fingerprint(self._loaded.token_files), _fingerprint(self._loaded.transport_files())


async def _load_kubeconfig(path: Path) -> _Loaded:
    subject = f"kubeconfig {str(path)!r}"
    kubeconfig = parse_kubeconfig(await asyncio.to_thread(_read, path, subject, "a kubeconfig"), subject)
    folder = await asyncio.to_thread(_folder, path)
    configuration = Configuration()

    async def load() -> None:
        try:
            async with asyncio.timeout(_LOAD_TIMEOUT_S):
                await loader.load_and_set(configuration)
        except _LOADER_ERRORS as error:
            raise SettingError(f"{subject}: {_one_line(error)}") from error
        _check(configuration, subject)

    loader = build_kubeconfig_loader(kubeconfig.content, str(folder))
    await load()
    if kubeconfig.exec_command and not (configuration.api_key.get(_TOKEN) or configuration.cert_file):
        raise SettingError(f"{subject}: plugin {kubeconfig.exec_command!r} gave no token and no certificate")
    token_files = (path, *((folder / kubeconfig.token_file,) if kubeconfig.token_file else ()))
    return _Loaded(configuration, token_files, load if kubeconfig.renews else None)


def _load_service_account(environ: Mapping[str, str], folder: Path) -> _Loaded:
    subject = "in-cluster credential"
    missing = [name for name in ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT") if not environ.get(name)]
    if missing:
        raise SettingError(f"{subject}: {' and '.join(missing)} not set, want a Pod, or --kubeconfig outside of one")
    token, ca = folder / "token", folder / "ca.crt"
    for path in (token, ca):
        wanted = f"the service account's {path.name}, mounted in the Pod"
        if not _read(path, f"{subject} {str(path)!r}", wanted).strip():
            raise SettingError(f"{subject} {str(path)!r}: empty, want {wanted}")
    configuration = Configuration()
    try:
        InClusterConfigLoader(
            token_filename=str(token), cert_filename=str(ca), try_refresh_token=False, environ=environ
        ).load_and_set(configuration)
    except _LOADER_ERRORS as error:
        raise SettingError(f"{subject}: {_one_line(error)}") from error
    _check(configuration, subject)
    return _Loaded(configuration, (token,))


def _read(path: Path, subject: str, wanted: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SettingError(f"{subject}: no such file, want {wanted}") from None
    except UnicodeDecodeError:
        raise SettingError(f"{subject}: not UTF-8 text, want {wanted}") from None
    except OSError as error:
        raise SettingError(f"{subject}: {explain_os_error(error)}, want {wanted}") from error


def _folder(path: Path) -> Path:
    return path.absolute().parent


def _check(configuration: Any, subject: str) -> None:
    token = str(configuration.api_key.get(_TOKEN, "")).strip()
    if not (token.isascii() and token.isprintable()):
        raise SettingError(f"{subject}: the token has characters that no HTTP header carries, want one line of ASCII")


def _fingerprint(paths: tuple[Path, ...]) -> Fingerprint:
    """Return what changes when a file is written or replaced; a symlink counts as what it points to."""
    prints: list[Hashable] = []
    for path in paths:
        try:
            stat = path.stat()
            prints.append((stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size))
        except OSError:
            prints.append(None)
    return tuple(prints)


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split()).rstrip(".")
    return text[:1].lower() + text[1:] or type(error).__name__
