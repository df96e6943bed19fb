"""URLs in parts: how Go's net/url takes them apart and prints them again.

Parts that may have escapes are kept as the bytes that they mean; texts that are not UTF-8 can only come of these.
"""

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from ipaddress import IPv6Address
from typing import Final

from dra_driver.cel.error import Abort, Fault

_SCHEME: Final = re.compile(r"([a-zA-Z][a-zA-Z0-9+.\-]*):")
_PORT: Final = re.compile(r"(?::[0-9]*)?")
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")
_UNRESERVED: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~")
_PATH: Final = _UNRESERVED | frozenset(b"$&+,/:;=@")
_USER: Final = _UNRESERVED | frozenset(b"$&+,;=")
_HOST: Final = _UNRESERVED | frozenset(b"!\"$&'()*+,:;<=>[]")
_FRAGMENT: Final = _UNRESERVED | frozenset(b"!$&()*+,/:;=?@")
# What may stand as it is in what was written, whatever would be printed.
_WRITTEN: Final = frozenset(b"!$&'()*+,;=:@[]%")
_USER_WRITTEN: Final = _UNRESERVED | frozenset(b":!$&'()*+,;=%@")
_MAX_PARAMETERS: Final = 10_000
_ASCII: Final = 0x80
_PERCENT: Final = ord("%")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_MAX_LENGTH: Final = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Url:
    """A URL. `path` and `fragment` mean what `raw_path` and `raw_fragment` write, if that is not what is printed."""

    scheme: str = ""
    opaque: str = ""
    user: bytes | None = None
    password: bytes | None = None
    host: bytes = b""
    has_no_host: bool = False
    path: bytes = b""
    raw_path: str = ""
    query: str = ""
    has_query: bool = False
    fragment: bytes = b""
    raw_fragment: str = ""

    def escaped_path(self) -> str:
        """Give the path with escapes: as written if that is valid, else encoded."""
        if self.path == b"*":
            return "*"
        return _written(self.raw_path, _PATH) or _encode(self.path, _PATH)

    def __str__(self) -> str:
        text = f"{self.scheme}:" if self.scheme else ""
        text += self.opaque or self._hierarchy(is_first=not text)
        if self.has_query or self.query:
            text += f"?{self.query}"
        if not self.fragment:
            return text
        return f"{text}#{_written(self.raw_fragment, _FRAGMENT) or _encode(self.fragment, _FRAGMENT)}"

    def _hierarchy(self, *, is_first: bool) -> str:
        text = ""
        has_authority = bool(self.host) or self.user is not None
        if has_authority or (self.scheme and self.path and not self.has_no_host):
            text += "//"
        if self.user is not None:
            password = "" if self.password is None else f":{_encode(self.password, _USER)}"
            text += f"{_encode(self.user, _USER)}{password}@"
        text += _encode(self.host, _HOST)
        path = self.escaped_path()
        if not text and is_first and ":" in path.partition("/")[0]:
            text += "./"
        return text + path


def parse_request_uri(text: str) -> Url:
    """Read a URL that is absolute or begins with a slash. Raises a fault."""
    return _parse(text, request=True)


def parse_url(text: str) -> Url:
    """Read a URL. Raises a fault."""
    parse_request_uri(text)
    body, _, fragment = text.partition("#")
    found = _parse(body, request=False)
    meaning = _decode(fragment)
    return replace(found, fragment=meaning, raw_fragment="" if _encode(meaning, _FRAGMENT) == fragment else fragment)


def hostname_of(url: Url) -> str:
    """Give the host without port and brackets."""
    host = _split_port(url.host.decode("utf-8", "replace"))[0]
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def port_of(url: Url) -> str:
    """Give the port."""
    return _split_port(url.host.decode("utf-8", "replace"))[1]


def parameters_of(url: Url) -> dict[str, list[str]]:
    """Give the parameters of the query. Those that cannot be read are left out, and all if there are too many."""
    found: dict[str, list[str]] = {}
    if url.query.count("&") >= _MAX_PARAMETERS:
        return found
    for pair in url.query.split("&"):
        if not pair or ";" in pair:
            continue
        key, _, value = pair.replace("+", " ").partition("=")
        try:
            name, text = _decode(key).decode("utf-8", "replace"), _decode(value).decode("utf-8", "replace")
        except Fault:
            continue
        found.setdefault(name, []).append(text)
    return found


def _check_text(text: str, *, request: bool) -> None:
    if len(text) > _MAX_LENGTH:
        raise Abort(f"URL of {len(text)} characters, want at most {_MAX_LENGTH}")
    if _CONTROL.search(text):
        raise Fault("URL parse error: invalid control character")
    if not text and request:
        raise Fault("URL parse error: empty URL")


def _parse(text: str, *, request: bool) -> Url:
    _check_text(text, request=request)
    if text == "*":
        return Url(path=b"*")
    scheme, rest = _split_scheme(text)
    rest, _, query = rest.partition("?")
    found = Url(scheme, query=query, has_query=text.endswith("?") and not query)
    if not rest.startswith("/"):
        if scheme:
            return replace(found, opaque=rest)
        if request:
            raise Fault(f"URL {text[:50]!r}: parse error: want a scheme or a slash at the beginning")
        if ":" in rest.partition("/")[0]:
            raise Fault("URL parse error: colon in the first part of the path")
    if rest.startswith("//") and (scheme or not (request or rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        found = _with_authority(found, authority)
    elif scheme:
        found = replace(found, has_no_host=True)
    meaning = _decode(rest)
    return replace(found, path=meaning, raw_path="" if _encode(meaning, _PATH) == rest else rest)


def _split_scheme(text: str) -> tuple[str, str]:
    match = _SCHEME.match(text)
    if match is not None:
        return match[1].lower(), text[match.end() :]
    if text.startswith(":"):
        raise Fault("URL parse error: missing protocol scheme")
    return "", text


def _with_authority(url: Url, authority: str) -> Url:
    written, at, host = authority.rpartition("@")
    found = replace(url, host=_parse_host(url.scheme, host))
    if not at:
        return found
    if not _USER_WRITTEN.issuperset(written.encode()):
        raise Fault("URL parse error: invalid user")
    user, colon, password = written.partition(":")
    return replace(found, user=_decode(user), password=_decode(password) if colon else None)


def _parse_host(scheme: str, host: str) -> bytes:
    if "[" in host:
        return _parse_address(host)
    if host.count(":") == 1 or scheme in ("http", "https"):
        _check_port(host[host.find(":") :] if ":" in host else "")
    elif ":" in host:
        _check_port(host[host.rfind(":") :])
    _check_host(host)
    return _decode(host)


def _parse_address(host: str) -> bytes:
    """Read `[::1%25eth0]:80`."""
    inside, bracket, port = host[1:].rpartition("]")
    if not bracket or host.rfind("[") != 0:
        raise Fault("URL parse error: misplaced bracket in host")
    _check_port(port)
    place = inside.find("%25")
    address, zone = (inside, "") if place < 0 else (inside[:place], inside[place:])
    _check_host(address)
    _check_zone(zone)
    meaning = _decode(address) + _decode(zone)
    if not _is_ipv6(meaning):
        raise Fault(f"URL parse error: {inside[:50]!r} is no address of IPv6")
    return b"[%s]%s" % (meaning, port.encode())


def _is_ipv6(text: bytes) -> bool:
    address, percent, zone = text.partition(b"%")
    if percent and not zone:
        return False
    try:
        IPv6Address(address.decode())
    except ValueError:
        return False
    return True


def _check_port(port: str) -> None:
    if not _PORT.fullmatch(port):
        raise Fault(f"URL parse error: invalid port {port[:20]!r} after host")


def _check_host(host: str) -> None:
    """Refuse escapes of ASCII, and ASCII that is no part of a host."""
    _decode(host)
    for part in re.findall(r"%(..)", host):
        if int(part, 16) < _ASCII and part != "25":
            raise Fault(f"URL parse error: invalid escape %{part} in host")
    _check_characters(host)


def _check_zone(zone: str) -> None:
    _decode(zone)
    for part in re.findall(r"%(..)", zone):
        if int(part, 16) not in _HOST | frozenset(b" %"):
            raise Fault(f"URL parse error: invalid escape %{part} in zone")
    _check_characters(zone)


def _check_characters(text: str) -> None:
    if any(byte < _ASCII and byte not in _HOST and byte != _PERCENT for byte in text.encode()):
        raise Fault("URL parse error: invalid character in host name")


def _split_port(host: str) -> tuple[str, str]:
    before, colon, port = host.rpartition(":")
    return (before, port) if colon and _PORT.fullmatch(colon + port) else (host, "")


def _written(text: str, kept: AbstractSet[int]) -> str:
    """Give what was written if it may stand so, else nothing."""
    return text if all(byte in kept or byte in _WRITTEN for byte in text.encode()) else ""


def _encode(meaning: bytes, kept: AbstractSet[int]) -> str:
    return "".join(chr(byte) if byte in kept else f"%{byte:02X}" for byte in meaning)


def _decode(text: str) -> bytes:
    first, *parts = text.encode().split(b"%")
    decoded = [first]
    for part in parts:
        if len(part) < 2 or not _HEX.issuperset(part[:2]):  # noqa: PLR2004 - two digits make a byte
            raise Fault(f"URL: invalid escape in {text[:50]!r}")
        decoded += [bytes([int(part[:2], 16)]), part[2:]]
    return b"".join(decoded)
