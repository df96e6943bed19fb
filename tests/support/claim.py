"""Allocated claims on the API server of the tests."""

import msgspec

from dra_driver.api import codec
from dra_driver.api.resource_v1 import ResourceClaim
from kubeletplugin.prepare.record import ClaimRef
from tests.support.api_server import TestApiServer


def put_claim(server: TestApiServer, claim: ResourceClaim) -> ClaimRef:
    """Store a claim, which gets a UID, and return what the kubelet would call it."""
    metadata = server.put("resourceclaims", msgspec.json.decode(codec.encode(claim)))["metadata"]
    return ClaimRef(metadata["namespace"], metadata["name"], metadata["uid"])
