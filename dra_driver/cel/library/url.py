"""URLs, as Go's net/url reads them."""

import re
from dataclasses import dataclass
from typing import Final

from dra_driver.cel.equality import register_equality
from dra_driver.cel.error import Fault, no_such_overload
from dra_driver.cel.function import Library, Overload
from dra_driver.cel.type import BOOL, STRING, list_of, map_of
from dra_driver.cel.type import URL as URL_TYPE
from dra_driver.cel.value import Map, Value, register

URLS: Final = Library()
_SCHEME: Final = re.compile(r"([a-zA-Z][a-zA-Z0-9+.\-]*):")
_ESCAPE: Final = re.compile(r"%(?:[0-9a-fA-F]{2})?")
_SUB_DELIMITERS: Final = "!$&'()*+,;="
_UNRESERVED: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~")
_PATH: Final = _UNRESERVED | frozenset("$&+,/:;=@")
_ENCODED: Final = _UNRESERVED | frozenset("!$&'()*+,;=:@/[]%")
_HOST: Final = _UNRESERVED | frozenset("!$&'()*+,;=:[]<>\"")
_USER: Final = _UNRESERVED | frozenset(":@!$&'()*+,;=%")


@dataclass(frozen=True, slots=True, eq=False)
class Url:
    """A URL. `path` is decoded, `raw_path` as written."""

    scheme: str = ""
    user: str | None = None
    host: str = ""
    path: str = ""
    raw_path: str = ""
    query: str = ""
    has_query: bool = False
    fragment: str = ""
    opaque: str = ""

    def escaped_path(self) -> str:
        """Give the path with escapes: as written if that is valid, else encoded."""
        if self.raw_path and all(character in _ENCODED for character in self.raw_path):
            return self.raw_path
        return "*" if self.path == "*" else _encode(self.path, _PATH)

    def __str__(self) -> str:
        text = f"{self.scheme}:" if self.scheme else ""
        if self.opaque:
            text += self.opaque
        else:
            if self.scheme or self.host or self.user is not None:
                if self.host or self.path or self.user is not None:
                    text += "//" if self.host or self.user is not None or self.path.startswith("//") else ""
                text += f"{self.user}@" if self.user is not None else ""
                text += _encode(self.host, _HOST)
            text += self.escaped_path()
        text += f"?{self.query}" if self.has_query or self.query else ""
        return text + (f"#{_encode(self.fragment, _PATH | frozenset('!()*?'))}" if self.fragment else "")


def _encode(text: str, kept: frozenset[str]) -> str:
    return "".join(
        character if character in kept else "".join(f"%{byte:02X}" for byte in character.encode()) for character in text
    )


def _decode(text: str, *, plus: bool = False) -> str:
    for match in _ESCAPE.finditer(text):
        if len(match[0]) == 1:
            raise Fault(f"URL: invalid escape in {text[:50]!r}")
    if plus:
        text = text.replace("+", " ")
    if "%" not in text:
        return text
    return re.sub(rb"%([0-9a-fA-F]{2})", lambda match: bytes([int(match[1], 16)]), text.encode()).decode(
        "utf-8", "replace"
    )


def parse_request_uri(text: str) -> Url:
    """Read a URL that is absolute or begins with a slash. Raises a fault."""
    return _parse(text, request=True)


def parse_url(text: str) -> Url:
    """`url(text)`."""
    parse_request_uri(text)
    body, hash_, fragment = text.partition("#")
    found = _parse(body, request=False)
    if not hash_:
        return found
    return Url(
        found.scheme,
        found.user,
        found.host,
        found.path,
        found.raw_path,
        found.query,
        found.has_query,
        _decode(fragment),
        found.opaque,
    )


def _parse(text: str, *, request: bool) -> Url:
    if any(ord(character) < 0x20 or ord(character) == 0x7F for character in text):  # noqa: PLR2004 - control characters
        raise Fault("URL parse error: invalid control character")
    if not text and request:
        raise Fault("URL parse error: empty url")
    if text == "*":
        return Url(path="*")
    scheme, rest = _split_scheme(text)
    if rest.endswith("?") and rest.count("?") == 1:
        rest, query, has_query = rest[:-1], "", True
    else:
        rest, mark, query = rest.partition("?")
        has_query = bool(mark) and not query
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme=scheme, opaque=rest, query=query, has_query=has_query)
        if request:
            raise Fault(f"URL {text[:50]!r}: parse error: invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise Fault("URL parse error: first path segment in URL cannot contain colon")
    user, host = None, ""
    if (scheme or (not request and not rest.startswith("///"))) and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        user, host = _parse_authority(authority)
    path = _decode(rest)
    return Url(scheme, user, host, path, "" if rest == _encode(path, _PATH) else rest, query, has_query)


def _split_scheme(text: str) -> tuple[str, str]:
    match = _SCHEME.match(text)
    if match is not None:
        return match[1].lower(), text[match.end() :]
    if text.startswith(":"):
        raise Fault("URL parse error: missing protocol scheme")
    return "", text


def _parse_authority(authority: str) -> tuple[str | None, str]:
    user, at, host = authority.rpartition("@")
    if at:
        if not all(character in _USER for character in user):
            raise Fault("URL parse error: invalid userinfo")
        _decode(user)
    return (user if at else None), _parse_host(host)


def _parse_host(host: str) -> str:
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            raise Fault("URL parse error: missing ']' in host")
        port = host[end + 1 :]
        inside = host[1:end]
        if not re.fullmatch(r"[0-9a-fA-F:.]+(?:%25.+)?", inside) or ":" not in inside:
            raise Fault("URL parse error: invalid host")
    else:
        if "[" in host or "]" in host:
            raise Fault("URL parse error: invalid host")
        _, colon, port_text = host.rpartition(":")
        port = colon + port_text if colon else ""
        if host.count(":") > 1:
            raise Fault("URL parse error: invalid port")
    if port and not re.fullmatch(r":[0-9]*", port):
        raise Fault(f"URL parse error: invalid port {port[:20]!r} after host")
    for match in re.finditer(r"%(..)?", host):
        if match[1] is None or (match[0] != "%25" and int(match[1], 16) < 0x80):  # noqa: PLR2004 - ASCII
            raise Fault("URL parse error: invalid URL escape in host")
    if any(character not in _HOST and ord(character) < 0x80 and character != "%" for character in host):  # noqa: PLR2004
        raise Fault("URL parse error: invalid character in host name")
    return _decode(host)


def hostname(value: Url) -> str:
    """`url.getHostname()`."""
    host = _split_port(value.host)[0]
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def _split_port(host: str) -> tuple[str, str]:
    before, colon, port = host.rpartition(":")
    if colon and (not port or port.isdigit()) and not (host.startswith("[") and not before.endswith("]")):
        return before, port
    return host, ""


def query_of(value: Url) -> Map:
    """`url.getQuery()`."""
    values: dict[str, list[str]] = {}
    for pair in value.query.split("&"):
        if not pair or ";" in pair:
            continue
        key, _, text = pair.partition("=")
        try:
            name, decoded = _decode(key, plus=True), _decode(text, plus=True)
        except Fault:
            continue
        values.setdefault(name, []).append(decoded)
    return Map.of([(key, tuple(texts)) for key, texts in values.items()])


def _is_url(text: str) -> bool:
    try:
        parse_request_uri(text)
    except Fault:
        return False
    return True


def _is_equal(left: Url, right: Value) -> bool:
    if type(right) is not Url:
        raise no_such_overload("_==_")
    return str(left) == str(right)


register(Url, URL_TYPE.name)
register_equality(Url, _is_equal)
URLS.add("url", Overload("string_to_url", (STRING,), URL_TYPE, run=parse_url))
URLS.add("isURL", Overload("is_url_string", (STRING,), BOOL, run=_is_url))
URLS.add(
    "getQuery",
    Overload("url_get_query", (URL_TYPE,), map_of(STRING, list_of(STRING)), member=True, run=query_of),
)
for _name, _id, _part in (
    ("getScheme", "url_get_scheme", lambda value: value.scheme),
    ("getHost", "url_get_host", lambda value: value.host),
    ("getHostname", "url_get_hostname", hostname),
    ("getPort", "url_get_port", lambda value: _split_port(value.host)[1]),
    ("getEscapedPath", "url_get_escaped_path", Url.escaped_path),
):
    URLS.add(_name, Overload(_id, (URL_TYPE,), STRING, member=True, run=_part))
