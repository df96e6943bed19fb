import re

import pytest

from dra_driver.errors import SettingError
from dra_driver.http import parse_http_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":8080", ("", 8080)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("[::1]:65535", ("::1", 65535)),
        ("localhost:80", ("localhost", 80)),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, address: tuple[str, int]) -> None:
    assert parse_http_address(text) == address


@pytest.mark.parametrize("text", ["", "8080", ":", ":65536", ":-1", "host:http", "[::1]"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(SettingError, match=f"^--http-address: {re.escape(repr(text))} is not an address, want host:p"):
        parse_http_address(text)
