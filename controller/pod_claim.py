"""The claims of a Pod: which objects they are, and why they cannot be used yet."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dra_driver.api.core_v1 import Pod, PodResourceClaim
from dra_driver.api.resource_v1 import ResourceClaim
from dra_driver.kube.resource import ObjectKey
from dra_driver.pod_claim import find_claim_name, is_live, is_made_for, is_reserved_for


@dataclass(frozen=True, slots=True)
class PodClaims:
    """The claims that are there, each once, in the Pod's order; `missing` says why others are not."""

    claims: tuple[ResourceClaim, ...]
    missing: tuple[str, ...]


def find_claims(pod: Pod, claims: Mapping[ObjectKey, ResourceClaim]) -> PodClaims:
    """Look up the claims of a Pod."""
    found: dict[ObjectKey, ResourceClaim] = {}
    missing: list[str] = []
    for entry in pod.spec.resource_claims:
        key = find_key(pod, entry)
        if key is None:
            if not _needs_none(pod, entry):
                missing.append(f"claim {entry.name!r}: not made from its template yet")
            continue
        claim = claims.get(key)
        problem = _find_problem(pod, entry, key, claim)
        if problem:
            missing.append(problem)
        elif claim is not None:
            found[key] = claim
    return PodClaims(tuple(found.values()), tuple(missing))


def find_keys(pod: Pod) -> Iterator[ObjectKey]:
    """Yield the keys of a Pod's claims, each once, as far as they are known."""
    keys = (find_key(pod, entry) for entry in pod.spec.resource_claims)
    yield from dict.fromkeys(key for key in keys if key is not None)


def find_key(pod: Pod, entry: PodResourceClaim) -> ObjectKey | None:
    """Give the claim that an entry of the Pod means; None for a template of which no claim is made, or not yet."""
    name = find_claim_name(pod, entry)
    return ObjectKey(pod.metadata.namespace, name) if name is not None else None


def is_reserved_only_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Tell whether the Pod, and nobody else, may use the claim."""
    return [entry.uid for entry in claim.status.reserved_for] == [pod.metadata.uid]


def is_pending(pod: Pod) -> bool:
    """Tell whether a node is still to be found for the Pod."""
    return is_live(pod) and not pod.spec.node_name


def _needs_none(pod: Pod, entry: PodResourceClaim) -> bool:
    return any(
        status.name == entry.name and status.resource_claim_name is None
        for status in pod.status.resource_claim_statuses
    )


def _find_problem(pod: Pod, entry: PodResourceClaim, key: ObjectKey, claim: ResourceClaim | None) -> str:
    if claim is None:
        return f"claim {key}: does not exist yet"
    if claim.metadata.deletion_timestamp is not None and not is_reserved_for(claim, pod):
        return f"claim {key}: is being deleted"
    if not entry.resource_claim_name and not is_made_for(claim, pod):
        return f"claim {key}: was not made for this Pod"
    return ""
