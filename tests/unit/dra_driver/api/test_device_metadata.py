import json

from dra_driver.api.device_metadata import (
    DeviceMetadata,
    DeviceMetadataRequest,
    MetadataDevice,
    encode_metadata,
    render_container_path,
)
from dra_driver.api.meta_v1 import ObjectMeta
from dra_driver.api.resource_v1 import DeviceAttribute

METADATA = DeviceMetadata(
    api_version="metadata.resource.k8s.io/v1beta1",
    metadata=ObjectMeta(name="claim", namespace="default", uid="uid-1", generation=1),
    pod_claim_name="gpu",
    requests=(
        DeviceMetadataRequest(
            name="request/sub",
            devices=(
                MetadataDevice(
                    driver="accel.dra-driver.io",
                    pool="worker-0",
                    name="gpu-0",
                    attributes={"model": DeviceAttribute(string="H100"), "index": DeviceAttribute(int=0)},
                ),
            ),
        ),
    ),
)


def test_a_file_has_one_object_a_version_newest_first() -> None:
    content = {
        "kind": "DeviceMetadata",
        "metadata": {"name": "claim", "namespace": "default", "uid": "uid-1", "generation": 1},
        "podClaimName": "gpu",
        "requests": [
            {
                "name": "request/sub",
                "devices": [
                    {
                        "driver": "accel.dra-driver.io",
                        "pool": "worker-0",
                        "name": "gpu-0",
                        "attributes": {"model": {"string": "H100"}, "index": {"int": 0}},
                    }
                ],
            }
        ],
    }
    assert [json.loads(line) for line in encode_metadata(METADATA).splitlines()] == [
        {"apiVersion": f"metadata.resource.k8s.io/{version}", **content} for version in ("v1beta1", "v1alpha1")
    ]


def test_a_container_finds_a_claim_by_the_name_that_its_pod_has_for_it() -> None:
    folder = "/var/run/kubernetes.io/dra-device-attributes"
    plain = render_container_path("d.example.com", "claim", None, "gpu")
    assert plain == f"{folder}/resourceclaims/claim/gpu/d.example.com-metadata.json"
    made = render_container_path("d.example.com", "claim-x7k2p", "mine", "gpu")
    assert made == f"{folder}/resourceclaimtemplates/mine/gpu/d.example.com-metadata.json"
