"""What a kubelet remembers of claims: which Pods use them, and what the drivers made of them. Pure."""

from dataclasses import dataclass

import msgspec

from dra_driver.api.meta_v1 import Wire


@dataclass(frozen=True, slots=True, order=True)
class ClaimName:
    """A claim as the kubelet names it to a driver."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class PreparedDevice(Wire, frozen=True, kw_only=True):
    """A device as a driver prepared it. Without `requests` it is for all of the claim's requests."""

    requests: tuple[str, ...] = ()
    pool: str
    device: str
    cdi_ids: tuple[str, ...] = ()
    share_id: str = ""


class ClaimRecord(Wire, frozen=True, kw_only=True):
    """A claim in use. `devices` are by driver, and each driver that was, or may have been, called is among them."""

    uid: str
    namespace: str
    name: str
    pods: tuple[str, ...] = ()
    devices: dict[str, tuple[PreparedDevice, ...]] = msgspec.field(default_factory=dict)

    @property
    def claim(self) -> ClaimName:
        """The claim's name."""
        return ClaimName(self.namespace, self.name, self.uid)

    def with_pod(self, uid: str) -> "ClaimRecord":
        """Add a Pod that uses it."""
        return msgspec.structs.replace(self, pods=tuple(dict.fromkeys((*self.pods, uid))))

    def without_pod(self, uid: str) -> "ClaimRecord":
        """Remove a Pod that used it."""
        return msgspec.structs.replace(self, pods=tuple(pod for pod in self.pods if pod != uid))

    def with_devices(self, driver: str, devices: tuple[PreparedDevice, ...]) -> "ClaimRecord":
        """Replace what a driver prepared."""
        return msgspec.structs.replace(self, devices={**self.devices, driver: devices})
