import re

from hypothesis import given
from hypothesis import strategies as st

from kubeletplugin.publish.slice_name import build_slice_name
from tests.support.builder import DRIVER, NODE

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")

labels = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,18}[a-z0-9])?", fullmatch=True)


def subdomains(longest: int) -> st.SearchStrategy[str]:
    return st.lists(labels, min_size=1, max_size=20).map(".".join).map(lambda name: name[:longest].rstrip(".-"))


@given(index=st.integers(0, 10_000_000), driver=subdomains(63), node_name=subdomains(253))
def test_a_name_is_a_dns_subdomain(index: int, driver: str, node_name: str) -> None:
    name = build_slice_name(index, driver=driver, node_name=node_name)
    assert SUBDOMAIN.fullmatch(name)
    assert len(name) <= 253


def test_names_are_in_the_order_of_their_positions() -> None:
    names = [build_slice_name(index, driver=DRIVER, node_name=NODE) for index in range(300)]
    assert names == sorted(names)
    assert len(set(names)) == len(names)


def test_long_node_names_that_differ_at_the_end_only_have_different_slices() -> None:
    first, second = ("n" * 250 + suffix for suffix in ("aa", "bb"))
    assert build_slice_name(0, driver=DRIVER, node_name=first) != build_slice_name(0, driver=DRIVER, node_name=second)


def test_drivers_and_nodes_that_read_alike_have_different_slices() -> None:
    assert build_slice_name(0, driver="a-b", node_name="c") != build_slice_name(0, driver="a", node_name="b-c")


def test_the_name_of_a_slice_never_changes() -> None:
    assert build_slice_name(10, driver=DRIVER, node_name=NODE) == "0000a-accel.dra-driver.io-node-a-616502a1"
