"""What a container may read of its devices (`metadata.resource.k8s.io`, kind DeviceMetadata; KEP-5304).

The content is the same in every version; a file has one object a version, newest first.
"""

from typing import Final, Literal

import msgspec

from dra_driver.api import codec
from dra_driver.api.meta_v1 import ObjectMeta, Wire, constant
from dra_driver.api.resource_v1 import DeviceAttribute, NetworkDeviceData

GROUP: Final = "metadata.resource.k8s.io"
VERSIONS: Final = ("v1beta1", "v1alpha1")
"""Newest first: a reader takes the first object that it knows."""

CONTAINER_FOLDER: Final = "/var/run/kubernetes.io/dra-device-attributes"


class MetadataDevice(Wire, frozen=True, kw_only=True):
    """A device, with its attributes as in a ResourceSlice."""

    driver: str
    pool: str
    name: str
    attributes: dict[str, DeviceAttribute] = msgspec.field(default_factory=dict)
    network_data: NetworkDeviceData | None = None


class DeviceMetadataRequest(Wire, frozen=True, kw_only=True):
    """A request of a claim, by `main` or `main/sub`, and what it got."""

    name: str
    devices: tuple[MetadataDevice, ...] = ()


class DeviceMetadata(Wire, frozen=True, kw_only=True):
    """What a claim got, as told to a container. `metadata` is the claim's name, namespace, UID, and a generation.

    `pod_claim_name` is what the Pod calls a claim that was made from a template.
    """

    api_version: str
    kind: Literal["DeviceMetadata"] = constant("DeviceMetadata")
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    pod_claim_name: str | None = None
    requests: tuple[DeviceMetadataRequest, ...] = ()


def encode_metadata(value: DeviceMetadata) -> bytes:
    """Write an object in every version, whatever its own, one a line."""
    versions = (msgspec.structs.replace(value, api_version=f"{GROUP}/{version}") for version in VERSIONS)
    return b"".join(codec.encode(version) + b"\n" for version in versions)


def render_container_path(driver: str, claim: str, pod_claim_name: str | None, request: str) -> str:
    """Return where a container finds the file of a request, whose name has no subrequest."""
    folder = f"resourceclaimtemplates/{pod_claim_name}" if pod_claim_name else f"resourceclaims/{claim}"
    return f"{CONTAINER_FOLDER}/{folder}/{request}/{driver}-metadata.json"
