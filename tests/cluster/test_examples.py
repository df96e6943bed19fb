"""The examples for users: each README is followed to the letter, with only the image replaced."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.image import BUSYBOX
from tests.cluster.plugin import NAMESPACE, PluginProcess
from tests.cluster.scenario import held, run_plugins
from tests.support.manifest import EXAMPLES, example_names

README_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# What the commands of each README are to print: patterns, and how often each is found. The controller's example needs
# an installed controller: `test_controller_release`.
EXPECTED: Mapping[str, Mapping[str, int]] = {
    "claim-template": {
        r"^claim-template-\S+ +allocated,reserved ": 2,
        r"^/dev/nvidia\d$": 2,
        r"^SIMULATED_DEVICE_GPU_\w{12}=GPU-": 2,
    },
    "device-config": {
        r"^device .* cores=30 policy=burst$": 1,
        r"^device .* cores=30 policy=force$": 1,
    },
    "linked-devices": {
        r"\A(node-\w)/(gpu-\w{12})\n\1/(?!\2)gpu-\w{12}\n": 1,
        r"^/dev/nvidia\d$": 2,
    },
    "mps": {
        r"^mps-daemon-gpu-\w{12}-\w{8} +1/1 +Running ": 1,
        r"^CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=8192M$": 1,
        r"^CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30$": 1,
    },
    "monitoring": {
        r"\A(?:(node-\w)/gpu-\w{12} true\n)(?:\1/gpu-\w{12} true\n){7}": 1,
        r"^/dev/nvidia\d$": 8,
    },
    "partition": {
        r"\Agpu-\w{12}-1g-10gb-\d\n": 1,
        r"^/dev/nvidia-caps/nvidia-cap\d+$": 1,
        r"^/dev/nvidia\d$": 0,
    },
    "priority-list": {r"\Aaccelerator/h100 gpu-\w{12}\n\Z": 1},
    "share": {
        r'\A(\S+) (\S+) \{"cores":"30","memory":"8Gi","slots":"1"\}\n\1 (?!\2)\S+ \{"cores":"30","memory":"8Gi"': 1,
        r"^device .* memory=8589934592 cores=30 ": 1,
        r"^/dev/nvidia\d$": 1,
    },
    "time-slicing": {r'\A(\S+) \{"cores":"30","memory":"8Gi","slots":"1"\}\n\1 \{': 1},
    "whole-device": {
        r"\Agpu-\w{12}\n": 1,
        r"^/dev/nvidia\d$": 1,
        r"^/dev/(nvidiactl|nvidia-uvm)$": 2,
        r"^SIMULATED_DEVICE_GPU_[0-9A-F]{12}=GPU-": 1,
    },
}


@pytest.fixture(scope="module", autouse=True)
def plugins(cluster: Cluster) -> Iterator[dict[str, PluginProcess]]:
    values = ("mps.enabled=true", f"mps.image={BUSYBOX}")
    profiles = {"node-a": "a100x8", "node-b": "h100x8"}
    flags = {"mps_image": BUSYBOX, "mps_namespace": NAMESPACE, "mps_service_account": "dra-mps-daemon"}
    with run_plugins(cluster, profiles, values, **flags) as plugins:
        yield plugins


def missing(expected: Mapping[str, int], output: str) -> list[str]:
    """List the patterns that are not found as often as they should be."""
    return [
        pattern for pattern, times in expected.items() if len(re.findall(pattern, output, re.MULTILINE)) != times
    ]  # fmt: skip


def test_no_example_is_left_out() -> None:
    assert {*EXPECTED, "controller"} == set(example_names())


@pytest.mark.parametrize("example", EXPECTED)
def test_an_example_does_what_its_readme_says(cluster: Cluster, tmp_path: Path, example: str) -> None:
    manifest = (EXAMPLES / example / "manifest.yaml").read_text()
    (tmp_path / "manifest.yaml").write_text(manifest.replace("busybox:1", BUSYBOX))
    apply, look, clean = README_BLOCK.findall((EXAMPLES / example / "README.md").read_text())

    def probe() -> str | None:
        # The log of a container that has just started may not be complete.
        output = cluster.shell(look)
        if lacking := missing(EXPECTED[example], output):
            raise LookupError(f"{lacking} in:\n{output}")
        return output

    try:
        cluster.shell(f"cd {tmp_path}\n{apply}")
        cluster.wait_for(f"the README of {example} to hold", probe, timeout=20)
    finally:
        cluster.shell(f"cd {tmp_path}\n{clean}")
    for node in cluster.nodes.values():
        cluster.wait_for(f"{node.name} to hold no claim", lambda node=node: not held(node))  # type: ignore[misc]
