import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_driver.devices.nvidia.link import Ports, build_links


def a_gpu(name: str, *peers: str, switched: bool = False, fabric: str | None = None) -> Ports:
    """A GPU whose PCI address is its name."""
    return Ports(identity=name, pci_bus_id=name, peers=frozenset(peers), switched=switched, fabric=fabric)


def domains(*gpus: Ports) -> dict[str, str]:
    return {name: link.domain for name, link in build_links(gpus).items()}


def test_gpus_without_links_have_none() -> None:
    assert build_links([a_gpu("a"), a_gpu("b")]) == {}


def test_a_link_to_what_is_no_gpu_of_the_node_joins_nothing() -> None:
    assert build_links([a_gpu("a", "z"), a_gpu("b")]) == {}


def test_two_bridged_pairs_are_two_domains() -> None:
    gpus = (a_gpu("a", "b"), a_gpu("b", "a"), a_gpu("c", "d"), a_gpu("d", "c"))
    assert domains(*gpus) == {"a": "a", "b": "a", "c": "c", "d": "c"}


def test_a_link_that_one_end_reports_joins_both() -> None:
    assert domains(a_gpu("a"), a_gpu("b", "a")) == {"a": "a", "b": "a"}


def test_gpus_on_switches_are_one_full_mesh() -> None:
    links = build_links([a_gpu(name, switched=True) for name in "cab"])
    assert {(link.domain, link.full_mesh, link.type) for link in links.values()} == {("a", True, "NVLink")}
    assert sorted(links) == ["a", "b", "c"]


def test_a_gpu_whose_links_are_down_is_outside_the_mesh() -> None:
    assert domains(a_gpu("a"), a_gpu("b", switched=True), a_gpu("c", switched=True)) == {"b": "b", "c": "b"}


def test_a_chain_is_no_full_mesh() -> None:
    links = build_links([a_gpu("a", "b"), a_gpu("b", "a", "c"), a_gpu("c", "b")])
    assert {(link.domain, link.full_mesh) for link in links.values()} == {("a", False)}


def test_a_cube_mesh_of_eight_is_one_domain_but_no_full_mesh() -> None:
    """As in a DGX-1: two quads, each corner of one joined to a corner of the other."""
    quads = ("abcd", "efgh")
    joined = [pair for quad in quads for pair in itertools.combinations(quad, 2)] + list(zip(*quads, strict=True))
    both_ways = [*joined, *((two, one) for one, two in joined)]
    gpus = [a_gpu(name, *(two for one, two in both_ways if one == name)) for name in "abcdefgh"]
    links = build_links(gpus)
    assert {(link.domain, link.full_mesh) for link in links.values()} == {("a", False)}
    assert len(links) == 8


def test_the_domain_of_a_fabric_is_the_fabrics() -> None:
    assert domains(*(a_gpu(name, switched=True, fabric="f.1") for name in "ab")) == {"a": "f.1", "b": "f.1"}


def test_a_gpu_alone_on_its_node_is_joined_to_the_others_of_its_fabric() -> None:
    assert domains(a_gpu("a", switched=True, fabric="f.1")) == {"a": "f.1"}


def test_gpus_of_two_cliques_are_not_joined() -> None:
    gpus = (a_gpu("a", switched=True, fabric="f.1"), a_gpu("b", switched=True, fabric="f.2"))
    assert domains(*gpus) == {"a": "f.1", "b": "f.2"}


@pytest.mark.parametrize("missing", ["a", "b"])
def test_a_gpu_without_an_address_is_joined_by_what_it_reports(missing: str) -> None:
    gpus = [
        Ports(identity="a", pci_bus_id=None if missing == "a" else "a", peers=frozenset("b")),
        Ports(identity="b", pci_bus_id=None if missing == "b" else "b", peers=frozenset("a")),
    ]
    assert domains(*gpus) == {"a": "a", "b": "a"}


@given(st.sets(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=12), st.permutations("abcdef"))
def test_domains_do_not_depend_on_the_order_of_gpus(pairs: set[tuple[str, str]], order: list[str]) -> None:
    def build(names: list[str]) -> dict[str, str]:
        return domains(*(a_gpu(name, *{two for one, two in pairs if one == name}) for name in names))

    assert build(order) == build(sorted(order))
