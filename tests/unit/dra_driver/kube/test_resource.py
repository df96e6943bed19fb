import pytest

from dra_driver.errors import ApiNotFoundError
from dra_driver.kube.resource import NODES, RESOURCE_CLAIMS, RESOURCE_SLICES, ObjectKey, Selection


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (RESOURCE_SLICES.path(), "/apis/resource.k8s.io/v1/resourceslices"),
        (NODES.path(name="node-a"), "/api/v1/nodes/node-a"),
        (RESOURCE_CLAIMS.path(), "/apis/resource.k8s.io/v1/resourceclaims"),
        (
            RESOURCE_CLAIMS.path(namespace="ns", name="c", subresource="status"),
            "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c/status",
        ),
        (NODES.path(namespace="ignored", name="a"), "/api/v1/nodes/a"),
        (NODES.path(name="../pods?x"), "/api/v1/nodes/..%2Fpods%3Fx"),
    ],
)
def test_a_path_leads_to_the_object(path: str, expected: str) -> None:
    assert path == expected


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(ApiNotFoundError, match="no object can be called"):
        NODES.path(name=name)


def test_a_selection_asks_only_for_what_is_set() -> None:
    assert Selection(field_selector="spec.nodeName=a").query() == {"fieldSelector": "spec.nodeName=a"}


def test_a_key_is_written_as_a_user_writes_it() -> None:
    assert [str(ObjectKey("", "n")), str(ObjectKey("ns", "n"))] == ["n", "ns/n"]
