from controller.past import Pasts
from dra_driver.api.core_v1 import Pod
from dra_driver.api.resource_v1 import ResourceClaim
from dra_driver.kube.resource import key_of
from tests.support.control import a_claim, a_pod
from tests.support.control_object import read

UNGATED = read(a_pod(gates=()), Pod)


def test_a_node_whose_allocation_kube_scheduler_took_back_is_avoided_for_a_while() -> None:
    pasts = Pasts()
    pasts.place(UNGATED, "node-a")
    assert pasts.note_refusal(UNGATED, until=60.0) == "node-a"
    assert pasts.note_refusal(UNGATED, until=90.0) == ""
    assert pasts.find_avoided(UNGATED, 59.0) == {"node-a"}
    assert pasts.find_avoided(UNGATED, 60.0) == frozenset()


def test_what_the_controller_took_back_by_itself_refuses_no_node() -> None:
    pasts = Pasts()
    pasts.place(UNGATED, "node-a")
    pasts.place(UNGATED, "")
    assert pasts.note_refusal(UNGATED, until=60.0) == ""


def test_kube_scheduler_has_not_seen_a_pod_that_has_its_gate() -> None:
    pasts, gated = Pasts(), read(a_pod(), Pod)
    pasts.place(gated, "node-a")
    assert pasts.note_refusal(gated, until=60.0) == ""


def test_a_pod_of_the_same_name_has_a_past_of_its_own() -> None:
    pasts = Pasts()
    pasts.place(UNGATED, "node-a")
    manifest = a_pod(gates=())
    manifest["metadata"]["uid"] = "another"
    assert pasts.note_refusal(read(manifest, Pod), until=60.0) == ""


def test_claims_are_unchanged_since_they_were_first_seen_as_they_are() -> None:
    pasts, claim = Pasts(), read(a_claim(), ResourceClaim)
    changed = read(a_claim(resourceVersion="2"), ResourceClaim)
    assert [pasts.unchanged_s(UNGATED, [claim], now) for now in (5.0, 7.0)] == [0.0, 2.0]
    assert pasts.unchanged_s(UNGATED, [changed], 9.0) == 0.0
    pasts.forget(key_of(UNGATED))
    assert pasts.unchanged_s(UNGATED, [changed], 10.0) == 0.0
