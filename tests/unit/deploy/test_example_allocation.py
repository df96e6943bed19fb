"""Every claim of every example is allocated on a node of simulated devices that its README names."""

import copy
import json
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from controller.allocator import Allocated, CelCompiler, Problem, SelectorCache, allocate
from dra_driver.allocator import Allocator, allocator_of
from dra_driver.api.codec import decode
from dra_driver.api.core_v1 import Node
from dra_driver.api.meta_v1 import ObjectMeta
from dra_driver.api.resource_v1 import DeviceClass, ResourceClaim, ResourceSlice
from dra_driver.devices.simulated import SimulatedBackend, read_profile
from kubeletplugin.publish.layout import PoolOwner, build_pool
from kubeletplugin.publish.offer import SharePolicy
from sandbox.api_server.resource_strategy import set_claim_defaults
from tests.support.builder import DRIVER, NODE
from tests.support.manifest import CLASS_CONDITIONS, Manifest, class_expression, example_names, read_example

PROFILES = {"partition": "a100x8"}
"""Where an example needs another profile than the others."""


def slices_of(profile: str, folder: Path) -> Sequence[ResourceSlice]:
    backend = SimulatedBackend(read_profile(profile), NODE, dev_dir=folder, state_dir=folder)
    owner = PoolOwner(driver=DRIVER, node_name=NODE, node_uid="uid")
    return build_pool(backend.read_inventory(), owner=owner, shares=SharePolicy()).slices


def chart_classes() -> list[Manifest]:
    """The DeviceClasses that the chart brings."""
    return [
        {
            "metadata": {"name": f"{like}.dra-driver.io"},
            "spec": {"selectors": [{"cel": {"expression": class_expression(like, DRIVER)}}]},
        }
        for like in CLASS_CONDITIONS
    ]


def claims_of(manifests: Sequence[Manifest]) -> list[ResourceClaim]:
    """The claims, those from templates too, as the API server would store them."""
    claims = []
    for manifest in copy.deepcopy([each for each in manifests if each["kind"].startswith("ResourceClaim")]):
        spec = manifest["spec"]["spec"] if manifest["kind"] == "ResourceClaimTemplate" else manifest["spec"]
        set_claim_defaults(spec)
        claims.append(decode(json.dumps({"metadata": manifest["metadata"], "spec": spec}).encode(), ResourceClaim))
    return claims


def classes_of(manifests: Sequence[Manifest]) -> Mapping[str, DeviceClass]:
    found = [*chart_classes(), *(each for each in manifests if each["kind"] == "DeviceClass")]
    return {each["metadata"]["name"]: decode(json.dumps(each).encode(), DeviceClass) for each in found}


def allocate_example(name: str, folder: Path) -> list[list[Any]]:
    """Give the results of each claim of an example."""
    manifests, numbers = read_example(name), count()
    problem = Problem(
        node=Node(metadata=ObjectMeta(name=NODE)),
        claims=claims_of(manifests),
        slices=slices_of(PROFILES.get(name, "h100x8"), folder),
        classes=classes_of(manifests),
        policy=None,
        new_share_id=lambda: f"00000000-0000-4000-8000-{next(numbers):012}",
    )
    answer = allocate(problem, SelectorCache(CelCompiler()))
    assert isinstance(answer, Allocated), answer
    return [list(result.devices.results) for result in answer.results]


@pytest.mark.parametrize("name", example_names())
def test_its_claims_fit_on_a_node_together(name: str, tmp_path: Path) -> None:
    claims = allocate_example(name, tmp_path)
    assert claims
    assert all(results for results in claims)


def test_the_claim_of_the_controller_gets_two_devices_of_one_link_domain(tmp_path: Path) -> None:
    [[one, other]] = allocate_example("controller", tmp_path)
    domains = {
        device.name: device.attributes["linkDomain"].string
        for item in slices_of("h100x8", tmp_path)
        for device in item.spec.devices
    }
    assert one.device != other.device
    assert domains[one.device] == domains[other.device] is not None


def test_the_example_of_the_controller_says_whose_it_is_in_all_three_places() -> None:
    by_kind = {manifest["kind"]: manifest for manifest in read_example("controller")}
    assert allocator_of(by_kind["DeviceClass"]["metadata"]["labels"]) is Allocator.CONTROLLER
    assert by_kind["Pod"]["spec"]["schedulingGates"] == [{"name": "dra-driver.io/allocation"}]
    assert by_kind["ResourceClaim"]["metadata"]["annotations"]["dra-driver.io/policy"] == "topology"
