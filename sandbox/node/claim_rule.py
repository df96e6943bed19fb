"""The rules by which a kubelet lets a Pod use a claim. Pure.

Source: kubernetes/kubernetes pkg/kubelet/cm/dra/manager.go and k8s.io/dynamic-resource-allocation/resourceclaim.
"""

from dra_driver.api.core_v1 import PodResourceClaim
from dra_driver.api.resource_v1 import ResourceClaim
from dra_driver.pod_claim import is_made_for, is_reserved_for
from sandbox.node.claim_record import ClaimRecord
from sandbox.node.error import NodeError
from sandbox.node.pod import Container, Pod


def find_claim_name(pod: Pod, entry: PodResourceClaim) -> str | None:
    """Return the name of the claim behind an entry of the Pod, None if the Pod does not need one.

    Raises NodeError while the claim of a template is not made.
    """
    if entry.resource_claim_template_name is None:
        return entry.resource_claim_name
    for status in pod.status.resource_claim_statuses:
        if status.name == entry.name:
            return status.resource_claim_name
    raise NodeError(f"pod {pod}: claim {entry.name!r} is not made from its template yet")


def explain_refusal(pod: Pod, entry: PodResourceClaim, claim: ResourceClaim) -> str | None:
    """Say why the Pod may not use the claim, or return None."""
    name = f"claim {claim.metadata.namespace}/{claim.metadata.name}"
    if entry.resource_claim_template_name is not None and not is_made_for(claim, pod):
        return f"{name}: was not made for pod {pod}"
    if claim.status.allocation is None:
        return f"{name}: not allocated"
    if not is_reserved_for(claim, pod):
        return f"{name}: not reserved for pod {pod}"
    return None


def list_drivers(claim: ResourceClaim) -> tuple[str, ...]:
    """List the drivers of an allocated claim, each once, in the order of the results."""
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    return tuple(dict.fromkeys(result.driver for result in results))


def collect_cdi_ids(container: Container, records: dict[str, ClaimRecord]) -> tuple[str, ...]:
    """Collect the CDI ids that a container gets; `records` are by the name that the Pod has for the claim."""
    ids: list[str] = []
    for use in container.resources.claims:
        record = records.get(use.name)
        devices = (device for each in record.devices.values() for device in each) if record else ()
        for device in devices:
            if not use.request or not device.requests or use.request in device.requests:
                ids += device.cdi_ids
    return tuple(dict.fromkeys(ids))
