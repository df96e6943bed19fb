"""URLs as Go's net/url reads and prints them."""

import pytest

from dra_driver.cel.error import Fault
from dra_driver.cel.library.uri import hostname_of, parameters_of, parse_request_uri, parse_url, port_of

SAME = [
    *("http://h/p?q#f", "http://u:p@h:80/", "http://u:@h/", "//h/p", "/p", "*", "mailto:a@b", "x:/p", "http://h?"),
    *("http://[::1]:80/", "ftp://a:1:2/", "http://h/[x]", "http://h/%2f", "http://h/#%41", "/a:b"),
]
PRINTED = {
    "HTTP://h/": "http://h/",
    "http://h/ é": "http://h/%20%C3%A9",
    'http://h/%ff"': "http://h/%FF%22",
    "http://é/": "http://%C3%A9/",
    "http://h/?": "http://h/?",
    "http://h/#": "http://h/",
    "http://u%40:p%2f@h/": "http://u%40:p%2F@h/",
    "http://[fe80::1%25e]/": "http://[fe80::1%25e]/",
    "http:": "http:",
    "http:///p": "http:///p",
}
REFUSED = {
    "nothing": "",
    "neither_scheme_nor_slash": "a/b",
    "no_scheme_before_the_colon": ":a",
    "a_control_character": "http://h/\x01",
    "an_escape_of_one_digit": "http://h/%a",
    "a_bracket_within_a_host": "http://a[::1]/",
    "a_bracket_that_is_not_closed": "http://[::1/",
    "an_address_of_ipv4_in_brackets": "http://[1.2.3.4]/",
    "a_zone_without_a_name": "http://[::1%25]/",
    "a_zone_with_a_slash": "http://[::1%25%2f]/",
    "a_port_that_is_no_number": "http://h:x/",
    "two_ports": "http://h:1:2/",
    "text_after_the_brackets": "http://[::1]x/",
    "an_escape_of_ascii_in_a_host": "http://%41/",
    "a_space_in_a_host": "http://a b/",
    "a_character_that_no_user_has": "http://u[@h/",
}


@pytest.mark.parametrize("text", SAME)
def test_a_url_is_printed_as_it_was_written(text: str) -> None:
    assert str(parse_url(text)) == text


@pytest.mark.parametrize(("text", "printed"), PRINTED.items(), ids=PRINTED)
def test_a_url_is_printed_with_the_escapes_that_it_needs(text: str, printed: str) -> None:
    assert str(parse_url(text)) == printed


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_what_is_no_url_is_refused(text: str) -> None:
    with pytest.raises(Fault):
        parse_request_uri(text)


def test_a_host_may_have_a_closing_bracket_alone() -> None:
    assert parse_url("https://a]b/").host == b"a]b"


def test_host_and_port_are_taken_apart() -> None:
    found = parse_url("http://u@[::1]:8080/p")

    assert (hostname_of(found), port_of(found), found.escaped_path()) == ("::1", "8080", "/p")


def test_parameters_that_cannot_be_read_are_left_out() -> None:
    found = parse_url("/p?a=%20+&b&a=1&c=%zz&d;e=1&=f")

    assert parameters_of(found) == {"a": ["  ", "1"], "b": [""], "": ["f"]}


def test_too_many_parameters_are_none() -> None:
    assert parameters_of(parse_url("/p?a" + "&" * 9_999)) == {"a": [""]}
    assert parameters_of(parse_url("/p?a" + "&" * 10_000)) == {}
