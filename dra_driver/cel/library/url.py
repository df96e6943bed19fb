"""The functions on URLs."""

from typing import Final

from dra_driver.cel.equality import register_equality
from dra_driver.cel.error import Fault, no_such_overload
from dra_driver.cel.function import Library, Overload
from dra_driver.cel.library.uri import Url, hostname_of, parameters_of, parse_request_uri, parse_url, port_of
from dra_driver.cel.type import BOOL, STRING, list_of, map_of
from dra_driver.cel.type import URL as URL_TYPE
from dra_driver.cel.value import Map, Value, register

URLS: Final = Library()


def query_of(value: Url) -> Map:
    """`url.getQuery()`."""
    return Map.of([(name, tuple(texts)) for name, texts in parameters_of(value).items()])


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
    ("getHost", "url_get_host", lambda value: value.host.decode("utf-8", "replace")),
    ("getHostname", "url_get_hostname", hostname_of),
    ("getPort", "url_get_port", port_of),
    ("getEscapedPath", "url_get_escaped_path", Url.escaped_path),
):
    URLS.add(_name, Overload(_id, (URL_TYPE,), STRING, member=True, run=_part))
