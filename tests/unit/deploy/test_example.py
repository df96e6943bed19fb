"""Every example is complete, is known to Kubernetes field by field, and fits the driver."""

import json
from collections.abc import Iterator
from typing import Any

import kubernetes.client
import pytest
import yaml

from dra_driver.api import codec, resource_v1
from dra_driver.api.config_v1alpha1 import Sharing, parse_device_config
from tests.support.manifest import (
    CHART,
    EXAMPLES,
    Manifest,
    example_names,
    find_values,
    read_example,
    refuse_unknown_fields,
)

NAMES = example_names()
DRIVER = yaml.safe_load((CHART / "values.yaml").read_text())["driverName"]
CLASSES = {f"{name}.dra-driver.io" for name in ("accelerator", "gpu", "npu", "partition")}


def of_kind(manifests: list[Manifest], *kinds: str) -> list[Manifest]:
    return [manifest for manifest in manifests if manifest["kind"] in kinds]


def pod_spec(manifest: Manifest) -> dict[str, Any]:
    spec: dict[str, Any] = manifest["spec"]
    return spec if manifest["kind"] == "Pod" else spec["template"]["spec"]


def claim_spec(manifest: Manifest) -> dict[str, Any]:
    spec: dict[str, Any] = manifest["spec"]
    return spec if manifest["kind"] == "ResourceClaim" else spec["spec"]


def lost(given: object, kept: object, path: str = "") -> Iterator[str]:
    """Whatever of `given` is not in `kept`."""
    match given, kept:
        case dict(), dict():
            for name, value in given.items():
                yield from lost(value, kept.get(name), f"{path}.{name}")
        case list(), list() if len(given) == len(kept):
            for index, value in enumerate(given):
                yield from lost(value, kept[index], f"{path}[{index}]")
        case _ if given != kept:
            yield path


@pytest.mark.parametrize("name", NAMES)
def test_kubernetes_knows_every_field(name: str) -> None:
    manifests = read_example(name)
    assert manifests
    for manifest in manifests:
        refuse_unknown_fields(manifest)


@pytest.mark.parametrize("field", ["coutn", "unknown"])
def test_an_unknown_field_would_be_noticed(field: str) -> None:
    [claim] = of_kind(read_example("whole-device"), "ResourceClaim")
    claim["spec"]["devices"]["requests"][0]["exactly"][field] = 1
    with pytest.raises(ValueError, match=field):
        refuse_unknown_fields(claim)


@pytest.mark.parametrize("name", NAMES)
def test_our_own_structs_read_all_of_it(name: str) -> None:
    kinds = ("ResourceClaim", "ResourceClaimTemplate", "DeviceClass")
    for manifest in of_kind(read_example(name), *kinds):
        decoded = codec.decode(json.dumps(manifest), getattr(resource_v1, manifest["kind"]))
        assert list(lost(manifest, json.loads(codec.encode(decoded)))) == []


@pytest.mark.parametrize("name", NAMES)
def test_pods_and_claims_fit_together(name: str) -> None:
    manifests = read_example(name)
    claims = {
        (manifest["kind"], manifest["metadata"]["name"]): {
            request["name"] for request in claim_spec(manifest)["devices"]["requests"]
        }
        for manifest in of_kind(manifests, "ResourceClaim", "ResourceClaimTemplate")
    }
    used = set()
    for manifest in of_kind(manifests, "Pod", "Deployment"):
        spec = pod_spec(manifest)
        of_pod = {}
        for claim in spec["resourceClaims"]:
            template = claim.get("resourceClaimTemplateName")
            key = ("ResourceClaimTemplate", template) if template else ("ResourceClaim", claim["resourceClaimName"])
            of_pod[claim["name"]] = claims[key]
            used.add(key)
        for container in spec["containers"]:
            for claim in container["resources"]["claims"]:
                assert claim.get("request") in {None, *of_pod[claim["name"]]}
    assert used == set(claims)


@pytest.mark.parametrize("name", NAMES)
def test_classes_and_the_driver_are_those_of_the_chart(name: str) -> None:
    manifests = read_example(name)
    own = {manifest["metadata"]["name"] for manifest in of_kind(manifests, "DeviceClass")}
    assert set(find_values(manifests, "deviceClassName")) <= CLASSES | own
    assert set(find_values(manifests, "driver")) <= {DRIVER}
    for attribute in (*find_values(manifests, "matchAttribute"), *find_values(manifests, "distinctAttribute")):
        assert attribute.startswith(f"{DRIVER}/")


@pytest.mark.parametrize("name", NAMES)
def test_opaque_configs_are_ones_that_the_driver_accepts(name: str) -> None:
    for parameters in find_values(read_example(name), "parameters"):
        assert parse_device_config(parameters).sharing != Sharing()


@pytest.mark.parametrize("name", NAMES)
def test_requests_name_only_capacities_that_devices_have(name: str) -> None:
    for capacity in find_values(read_example(name), "capacity"):
        assert capacity["requests"].keys() <= {"memory", "cores", "slots"}


@pytest.mark.parametrize("name", NAMES)
def test_a_selector_of_a_claim_raises_no_error_where_an_attribute_is_missing(name: str) -> None:
    claims = of_kind(read_example(name), "ResourceClaim", "ResourceClaimTemplate")
    for expression in find_values(claims, "expression"):
        for access in (f'device.attributes["{DRIVER}"]', f'device.capacity["{DRIVER}"]'):
            for rest in expression.split(access)[1:]:
                assert rest.startswith(".?"), f"{expression!r}: {access} without .?"


@pytest.mark.parametrize("name", NAMES)
def test_containers_are_busybox_that_needs_no_second_pull_and_ends_at_once(name: str) -> None:
    for manifest in of_kind(read_example(name), "Pod", "Deployment"):
        spec = pod_spec(manifest)
        assert spec["terminationGracePeriodSeconds"] == 1
        for container in spec["containers"]:
            assert (container["image"], container["imagePullPolicy"]) == ("busybox:1", "IfNotPresent")


@pytest.mark.parametrize("name", NAMES)
def test_the_readme_tells_what_is_needed_how_to_run_what_to_expect_and_how_to_clean_up(name: str) -> None:
    text = (EXAMPLES / name / "README.md").read_text("utf-8")
    for part in (
        "# ",
        "**Needs**",
        "kubectl apply -f manifest.yaml",
        "**Expect**",
        "**Clean up**",
        "kubectl delete -f manifest.yaml",
    ):
        assert part in text


@pytest.mark.parametrize("name", NAMES)
def test_the_index_lists_it(name: str) -> None:
    assert f"[{name}]({name}/README.md)" in (EXAMPLES / "README.md").read_text("utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_a_request_for_capacity_says_which_gate_it_needs(name: str) -> None:
    if list(find_values(read_example(name), "capacity")):
        assert "DRAConsumableCapacity" in (EXAMPLES / name / "README.md").read_text("utf-8")


def test_names_do_not_clash_so_that_all_examples_can_run_together() -> None:
    named = [
        (manifest["kind"], manifest["metadata"].get("namespace"), manifest["metadata"]["name"])
        for name in NAMES
        for manifest in read_example(name)
    ]
    assert len(named) == len(set(named))


def test_admin_access_is_asked_for_in_a_namespace_that_allows_it() -> None:
    manifests = [manifest for name in NAMES for manifest in read_example(name)]
    allowed = {
        manifest["metadata"]["name"]
        for manifest in of_kind(manifests, "Namespace")
        if manifest["metadata"]["labels"].get("resource.kubernetes.io/admin-access") == "true"
    }
    asking = [manifest for manifest in manifests if True in find_values(manifest, "adminAccess")]
    assert asking
    assert {manifest["metadata"].get("namespace") for manifest in asking} <= allowed


def test_the_client_is_of_the_newest_release_that_is_supported() -> None:
    assert kubernetes.client.__version__.split(".")[0] == "37"
