import pytest

from dra_driver.api.config_v1alpha1 import Policy
from dra_driver.api.meta_v1 import ObjectMeta
from dra_driver.api.resource_v1 import ResourceClaim, ResourceClaimSpec
from dra_driver.errors import ClaimError
from kubeletplugin.catalog import Catalog, build_catalog
from kubeletplugin.prepare.plan import plan_claim
from kubeletplugin.prepare.record import Consumed, PreparedDevice
from tests.support.builder import (
    DRIVER,
    NODE,
    FakeBackend,
    a_claim,
    a_config,
    a_device,
    a_partitionable_device,
    a_ref,
    a_result,
    a_share,
    device_config,
)

WHOLE = a_device("GPU-0")
SPLIT = a_partitionable_device("GPU-P")


def a_catalog() -> Catalog:
    backend = FakeBackend((WHOLE, SPLIT))
    return build_catalog([(backend, backend.read_inventory())])


def plan(claim: ResourceClaim) -> tuple[PreparedDevice, ...]:
    return plan_claim(a_ref(), claim, driver=DRIVER, pool=NODE, catalog=a_catalog())


def test_a_whole_device_is_held_exclusively() -> None:
    assert plan(a_claim(a_result(WHOLE.name))) == (PreparedDevice(request="main", pool=NODE, device=WHOLE.name),)


def test_a_partition_knows_its_parent() -> None:
    name = SPLIT.partition_name(SPLIT.partitions[0])
    assert plan(a_claim(a_result(name)))[0].parent == SPLIT.name


def test_results_of_other_drivers_are_ignored() -> None:
    assert plan(a_claim(a_result("nic-7", driver="net.example.com", pool="elsewhere"))) == ()


@pytest.mark.parametrize(
    ("memory", "cores", "limited"),
    [
        pytest.param("8Gi", 1, True, id="part of the memory"),
        pytest.param("80Gi", 30, True, id="part of the cores"),
        pytest.param("80Gi", 2, True, id="least limit"),
        pytest.param("80Gi", 99, True, id="greatest limit"),
        pytest.param("80Gi", 1, False, id="everything, no compute limit"),
        pytest.param("80Gi", 100, False, id="everything, nobody else"),
    ],
)
def test_only_a_real_share_is_limited(memory: str, cores: int, limited: bool) -> None:
    (device,) = plan(a_claim(a_share(WHOLE.name, "share-1", memory=memory, cores=cores)))
    assert (device.shim_policy is not None) == limited
    assert device.consumed is not None


def test_what_a_share_takes_is_in_bytes() -> None:
    (device,) = plan(a_claim(a_share(WHOLE.name, "share-1", memory="8Gi", cores=30)))
    assert device.consumed == Consumed(memory=8 << 30, cores=30, slots=1)


@pytest.mark.parametrize("amount", [{"memory": "0"}, {"cores": 0}, {"slots": 0}], ids=["memory", "cores", "slots"])
def test_nothing_of_a_capacity_is_for_admin_access_only(amount: dict[str, object]) -> None:
    with pytest.raises(ClaimError, match=f"consumes no {next(iter(amount))}, which only admin access may"):
        plan(a_claim(a_share(WHOLE.name, "share-1", **amount)))  # type: ignore[arg-type]
    (device,) = plan(a_claim(a_share(WHOLE.name, "share-1", admin_access=True, **amount)))  # type: ignore[arg-type]
    assert device.admin_access
    assert device.shim_policy is None


@pytest.mark.parametrize("admin", [False, True], ids=["share", "admin access"])
@pytest.mark.parametrize("amount", ["-8Gi", "-1", "-1n", "9223372036854775808", "1e900"])
@pytest.mark.parametrize("capacity", ["memory", "cores", "slots"])
def test_an_amount_that_no_device_has_is_refused(capacity: str, amount: str, admin: bool) -> None:
    with pytest.raises(ClaimError, match=f"device {NODE}/{WHOLE.name}: consumes '{amount}' of {capacity}, want 0 to"):
        plan(a_claim(a_share(WHOLE.name, "share-1", admin_access=admin, **{capacity: amount})))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "share_id",
    ["", "/", "..", "../../../../x", "/../../../x", "a/b", "a\nb", "a\0b", "é", "-a", "a-", "x" * 64, "x" * 10240],
    ids=lambda share_id: ascii(share_id[:12]),
)
def test_a_share_id_that_is_no_part_of_a_file_name_is_refused(share_id: str) -> None:
    with pytest.raises(ClaimError, match=f"device {NODE}/{WHOLE.name}: share ID '.* is not one, want") as raised:
        plan(a_claim(a_share(WHOLE.name, share_id)))
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 300


def test_a_share_of_a_partition_is_refused() -> None:
    with pytest.raises(ClaimError, match="is a partition, which nobody can have a share of"):
        plan(a_claim(a_share(SPLIT.partition_name(SPLIT.partitions[0]), "share-1")))


@pytest.mark.parametrize("admin", [False, True], ids=["shares", "share and admin access"])
def test_one_share_with_two_limits_is_refused(admin: bool) -> None:
    first = a_share(WHOLE.name, "share-1", memory="1Gi", admin_access=admin)
    with pytest.raises(ClaimError, match=f"device {NODE}/{WHOLE.name}: share 'share-1' stands 2 times, want each once"):
        plan(a_claim(first, a_share(WHOLE.name, "share-1", request="other")))


@pytest.mark.parametrize("hostile", ["a\nb", "a\x1b[2J", "\u202e", "x" * 10000], ids=["line", "escape", "bidi", "long"])
@pytest.mark.parametrize("field", ["device", "pool"])
def test_names_that_the_api_server_never_lets_through_are_quoted(field: str, hostile: str) -> None:
    fields = {"device": WHOLE.name, "pool": NODE, field: hostile}
    with pytest.raises(ClaimError, match=r"device '.*: not on this node") as raised:
        plan(a_claim(a_result(**fields)))
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 300


def test_a_claim_of_another_uid_is_refused() -> None:
    claim = a_claim(a_result(WHOLE.name), ref=a_ref("uid-2"))
    with pytest.raises(ClaimError, match="claim default/claim-1: replaced by another one of UID 'uid-2', want 'uid-1'"):
        plan(claim)


def test_a_claim_that_is_not_allocated_is_refused() -> None:
    claim = ResourceClaim(
        metadata=ObjectMeta(name="claim-1", namespace="default", uid="uid-1"), spec=ResourceClaimSpec()
    )
    with pytest.raises(ClaimError, match="claim default/claim-1: not allocated"):
        plan(claim)


def test_everything_that_is_wrong_is_said_at_once() -> None:
    claim = a_claim(
        a_result("gpu-9"),
        a_result(WHOLE.name, pool="node-b"),
        config=[a_config(device_config(stratgy="Shim")), a_config(device_config(policy="Sometimes"))],
    )
    with pytest.raises(ClaimError) as raised:
        plan(claim)
    text = str(raised.value)
    assert f"device {NODE}/gpu-9: not on this node any more" in text
    assert f"device node-b/{WHOLE.name}: not on this node, want pool 'node-a'" in text
    assert "config[0].opaque.parameters.sharing.stratgy" in text
    assert "did you mean 'strategy'?" in text
    assert "config[1].opaque.parameters.sharing.policy" in text


def test_a_claim_config_lies_over_a_class_config() -> None:
    claim = a_claim(
        a_share(WHOLE.name, "share-1"),
        config=[
            a_config(device_config(policy="Burst"), source="FromClaim"),
            a_config(device_config(policy="Force"), source="FromClass"),
        ],
    )
    (device,) = plan(claim)
    assert device.shim_policy is Policy.BURST


def test_a_share_that_is_accounted_only_has_no_shim() -> None:
    claim = a_claim(
        a_share(WHOLE.name, "share-1"), config=[a_config(device_config(strategy="None"), source="FromClass")]
    )
    (device,) = plan(claim)
    assert device.shim_policy is None
    assert device.consumed is not None


@pytest.mark.parametrize(
    ("requests", "applies"),
    [((), True), (("main",), True), (("main/big",), True), (("main/small",), False), (("other",), False)],
    ids=["all", "request", "subrequest", "another subrequest", "another request"],
)
def test_a_config_applies_to_the_requests_it_names(requests: tuple[str, ...], applies: bool) -> None:
    claim = a_claim(
        a_share(WHOLE.name, "share-1", request="main/big"),
        config=[a_config(device_config(policy="Burst"), requests=requests)],
    )
    (device,) = plan(claim)
    assert (device.shim_policy is Policy.BURST) == applies


def test_a_config_of_another_driver_is_not_read() -> None:
    claim = a_claim(a_result(WHOLE.name), config=[a_config({"nonsense": True}, driver="net.example.com")])
    assert len(plan(claim)) == 1
