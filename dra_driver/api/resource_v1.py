"""resource.k8s.io/v1 as Kubernetes 1.37 has it, alpha fields included.

Limits and rules stand in `dra_driver.api.resource_slice_validation`; a server drops fields whose feature gate is off.
"""

from typing import Literal, TypeAlias

import msgspec

from dra_driver.api.core_v1 import NodeSelector
from dra_driver.api.meta_v1 import Condition, JsonObject, ListMeta, ObjectMeta, Time, Wire, constant
from dra_driver.api.quantity import Quantity

# DeviceAttribute has fields of these names, which hide the types within the class.
_Bool: TypeAlias = bool
_Int: TypeAlias = int


class Counter(Wire, frozen=True, kw_only=True):
    """How much of a counter there is, or is taken."""

    value: Quantity


class CounterSet(Wire, frozen=True, kw_only=True):
    """Counters that devices of a pool share."""

    name: str
    counters: dict[str, Counter]


class ResourcePool(Wire, frozen=True, kw_only=True):
    """The pool that a slice belongs to. Only slices of the largest generation count."""

    name: str
    generation: int
    resource_slice_count: int


class DeviceAttribute(Wire, frozen=True, kw_only=True):
    """What a device is: exactly one field is set. `version` is semver 2.0. The lists are alpha."""

    int: _Int | None = None
    bool: _Bool | None = None
    string: str | None = None
    version: str | None = None
    ints: tuple[_Int, ...] = ()
    bools: tuple[_Bool, ...] = ()
    strings: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()


class CapacityRequestPolicyRange(Wire, frozen=True, kw_only=True):
    """The amounts that may be consumed: `min`, `min + step`, … up to `max`."""

    min: Quantity
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(Wire, frozen=True, kw_only=True):
    """How a request for a capacity is rounded up, and what a claim that asks for none consumes."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Wire, frozen=True, kw_only=True):
    """How much a device has of something."""

    value: Quantity
    request_policy: CapacityRequestPolicy | None = None


class DeviceCounterConsumption(Wire, frozen=True, kw_only=True):
    """What a device takes from a counter set of its pool."""

    counter_set: str
    counters: dict[str, Counter]
    compatibility_groups: tuple[str, ...] = ()


class DeviceTaint(Wire, frozen=True, kw_only=True):
    """Keeps claims without the toleration away. `effect` is `None`, `NoSchedule` or `NoExecute`."""

    key: str
    value: str = ""
    effect: str
    time_added: Time | None = None


class NodeAllocatableMapping(Wire, frozen=True, kw_only=True):
    """What of the node an allocation takes: by consumed capacity, or by device."""

    capacity_key: str | None = None
    capacity_multiplier: Quantity | None = None
    device_multiplier: Quantity | None = None


class NodeAllocatableOverhead(Wire, frozen=True, kw_only=True):
    """What of the node an allocation takes besides."""

    per_pod: Quantity | None = None
    per_container: Quantity | None = None


class NodeAllocatableResource(Wire, frozen=True, kw_only=True):
    """How a device counts against one resource of its node, such as `cpu`."""

    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None


class Device(Wire, frozen=True, kw_only=True):
    """A device of a slice. Keys of attributes and capacity without a domain are of the driver's domain."""

    name: str
    attributes: dict[str, DeviceAttribute] = msgspec.field(default_factory=dict)
    capacity: dict[str, DeviceCapacity] = msgspec.field(default_factory=dict)
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None
    node_allocatable_resources: dict[str, NodeAllocatableResource] = msgspec.field(default_factory=dict)


class ResourceSliceSpec(Wire, frozen=True, kw_only=True):
    """Devices, or the counter sets that they consume, of one pool."""

    driver: str
    pool: ResourcePool
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()
    partition_type_attribute: str | None = None
    skip_node_operations: tuple[str, ...] = ()


class ResourceSlice(Wire, frozen=True, kw_only=True):
    """A part of a pool, published by a driver."""

    api_version: Literal["resource.k8s.io/v1"] = constant("resource.k8s.io/v1")
    kind: Literal["ResourceSlice"] = constant("ResourceSlice")
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ResourceSliceSpec


class ResourceSliceList(Wire, frozen=True, kw_only=True):
    """A list of slices."""

    api_version: Literal["resource.k8s.io/v1"] = constant("resource.k8s.io/v1")
    kind: Literal["ResourceSliceList"] = constant("ResourceSliceList")
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: tuple[ResourceSlice, ...]


class CELDeviceSelector(Wire, frozen=True, kw_only=True):
    """A CEL expression over `device` that gives a bool."""

    expression: str


class DeviceSelector(Wire, frozen=True, kw_only=True):
    """A condition that a device must meet."""

    cel: CELDeviceSelector | None = None


class OpaqueDeviceConfiguration(Wire, frozen=True, kw_only=True):
    """A JSON object, at most 10 KiB, that only its driver understands."""

    driver: str
    parameters: JsonObject


class CapacityRequirements(Wire, frozen=True, kw_only=True):
    """How much of each capacity a request wants."""

    requests: dict[str, Quantity] = msgspec.field(default_factory=dict)


class DeviceToleration(Wire, frozen=True, kw_only=True):
    """Accepts taints. `operator` is `Equal` (also when empty) or `Exists`; an empty key or effect matches all."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class DeviceDerivedAttribute(Wire, frozen=True, kw_only=True):
    """An attribute that a CEL expression computes, for constraints only."""

    name: str
    expression: str


class ExactDeviceRequest(Wire, frozen=True, kw_only=True):
    """A request for devices of one class. `allocation_mode` is `ExactCount` or `All`."""

    device_class_name: str
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceSubRequest(Wire, frozen=True, kw_only=True):
    """One of the alternatives of a request."""

    name: str
    device_class_name: str
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceRequest(Wire, frozen=True, kw_only=True):
    """A request: exactly one of `exactly` and `first_available`."""

    name: str
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Wire, frozen=True, kw_only=True):
    """What devices of some requests (of all, if none are named) must have in common, or not."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(Wire, frozen=True, kw_only=True):
    """Configuration for some requests, or all if none are named."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(Wire, frozen=True, kw_only=True):
    """What a claim asks for."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Wire, frozen=True, kw_only=True):
    """What a claim asks for; it never changes."""

    devices: DeviceClaim = msgspec.field(default_factory=DeviceClaim)


class DeviceRequestAllocationResult(Wire, frozen=True, kw_only=True):
    """One device, or one share of it, for one request. `request` is `main` or `main/sub`."""

    request: str
    driver: str
    pool: str
    device: str
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, Quantity] = msgspec.field(default_factory=dict)
    skip_node_operations: tuple[str, ...] = ()


class DeviceAllocationConfiguration(Wire, frozen=True, kw_only=True):
    """A copied configuration. `source` is `FromClass` or `FromClaim`."""

    source: str
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(Wire, frozen=True, kw_only=True):
    """What a claim got. Of two configurations for a request the later one wins."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(Wire, frozen=True, kw_only=True):
    """What a claim got, and where it can be used: everywhere without `node_selector`."""

    devices: DeviceAllocationResult = msgspec.field(default_factory=DeviceAllocationResult)
    node_selector: NodeSelector | None = None
    allocation_timestamp: Time | None = None


class ResourceClaimConsumerReference(Wire, frozen=True, kw_only=True):
    """Who uses a claim: a pod, if `resource` is `pods` and `api_group` is empty."""

    api_group: str = ""
    resource: str
    name: str
    uid: str


class NetworkDeviceData(Wire, frozen=True, kw_only=True):
    """How a network device came out. `ips` are in CIDR form."""

    interface_name: str = ""
    ips: tuple[str, ...] = ()
    hardware_address: str = ""


class AllocatedDeviceStatus(Wire, frozen=True, kw_only=True):
    """What the driver says of a device that the claim got."""

    driver: str
    pool: str
    device: str
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: tuple[Condition, ...] = ()
    data: JsonObject | None = None
    network_data: NetworkDeviceData | None = None


class ResourceClaimStatus(Wire, frozen=True, kw_only=True):
    """What a claim got, who uses it, and how its devices are."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(Wire, frozen=True, kw_only=True):
    """A claim for devices."""

    api_version: Literal["resource.k8s.io/v1"] = constant("resource.k8s.io/v1")
    kind: Literal["ResourceClaim"] = constant("ResourceClaim")
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ResourceClaimSpec = msgspec.field(default_factory=ResourceClaimSpec)
    status: ResourceClaimStatus = msgspec.field(default_factory=ResourceClaimStatus)


class ResourceClaimList(Wire, frozen=True, kw_only=True):
    """A list of claims."""

    api_version: Literal["resource.k8s.io/v1"] = constant("resource.k8s.io/v1")
    kind: Literal["ResourceClaimList"] = constant("ResourceClaimList")
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: tuple[ResourceClaim, ...]


class ResourceClaimTemplateSpec(Wire, frozen=True, kw_only=True):
    """The labels, annotations and spec of the claims that are made from a template."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ResourceClaimSpec = msgspec.field(default_factory=ResourceClaimSpec)


class ResourceClaimTemplate(Wire, frozen=True, kw_only=True):
    """What each pod's own claim is made from."""

    api_version: Literal["resource.k8s.io/v1"] = constant("resource.k8s.io/v1")
    kind: Literal["ResourceClaimTemplate"] = constant("ResourceClaimTemplate")
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ResourceClaimTemplateSpec = msgspec.field(default_factory=ResourceClaimTemplateSpec)


class ResourceClaimTemplateList(Wire, frozen=True, kw_only=True):
    """A list of templates."""

    api_version: Literal["resource.k8s.io/v1"] = constant("resource.k8s.io/v1")
    kind: Literal["ResourceClaimTemplateList"] = constant("ResourceClaimTemplateList")
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: tuple[ResourceClaimTemplate, ...]


class DeviceClassConfiguration(Wire, frozen=True, kw_only=True):
    """Configuration for every device that is allocated through the class."""

    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(Wire, frozen=True, kw_only=True):
    """Which devices are of the class, and how they are configured."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(Wire, frozen=True, kw_only=True):
    """A class of devices, named by requests."""

    api_version: Literal["resource.k8s.io/v1"] = constant("resource.k8s.io/v1")
    kind: Literal["DeviceClass"] = constant("DeviceClass")
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: DeviceClassSpec = msgspec.field(default_factory=DeviceClassSpec)


class DeviceClassList(Wire, frozen=True, kw_only=True):
    """A list of classes."""

    api_version: Literal["resource.k8s.io/v1"] = constant("resource.k8s.io/v1")
    kind: Literal["DeviceClassList"] = constant("DeviceClassList")
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: tuple[DeviceClass, ...]


class DeviceTaintSelector(Wire, frozen=True, kw_only=True):
    """Devices that meet all of what is set; empty, it selects every device."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Wire, frozen=True, kw_only=True):
    """The taint of the selected devices; None selects none."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint


class DeviceTaintRuleStatus(Wire, frozen=True, kw_only=True):
    """How far the eviction is."""

    conditions: tuple[Condition, ...] = ()


class DeviceTaintRule(Wire, frozen=True, kw_only=True):
    """A taint that an administrator gives to devices."""

    api_version: Literal["resource.k8s.io/v1"] = constant("resource.k8s.io/v1")
    kind: Literal["DeviceTaintRule"] = constant("DeviceTaintRule")
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: DeviceTaintRuleSpec
    status: DeviceTaintRuleStatus = msgspec.field(default_factory=DeviceTaintRuleStatus)


class DeviceTaintRuleList(Wire, frozen=True, kw_only=True):
    """A list of taint rules."""

    api_version: Literal["resource.k8s.io/v1"] = constant("resource.k8s.io/v1")
    kind: Literal["DeviceTaintRuleList"] = constant("DeviceTaintRuleList")
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: tuple[DeviceTaintRule, ...]
