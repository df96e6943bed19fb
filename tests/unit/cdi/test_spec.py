from cdi import ContainerEdits, IntelRdt, Mount, merge_edits
from tests.support.cdi_spec import a_full_spec


def test_merging_appends_lists_and_the_last_resctrl_wins() -> None:
    mounts = (Mount(host_path="/a", container_path="/a"), Mount(host_path="/b", container_path="/b"))
    first = ContainerEdits(env=("A=1",), mounts=mounts[:1], intel_rdt=IntelRdt(clos_id="one"), additional_gids=(1,))
    second = ContainerEdits(env=("A=2",), mounts=mounts[1:], intel_rdt=IntelRdt(clos_id="two"), additional_gids=(1, 2))
    assert merge_edits(first, second, ContainerEdits()) == ContainerEdits(
        env=("A=1", "A=2"), mounts=mounts, intel_rdt=IntelRdt(clos_id="two"), additional_gids=(1, 1, 2)
    )


def test_merging_one_changes_nothing_and_forgets_no_field() -> None:
    edits = a_full_spec().devices[0].container_edits
    assert merge_edits(edits) == edits
    assert merge_edits(ContainerEdits(), edits) == edits


def test_merging_none_gives_no_edits() -> None:
    assert merge_edits() == ContainerEdits()
