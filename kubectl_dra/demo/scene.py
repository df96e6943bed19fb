"""The scenes of the demo, in order. Each shows what happened and why, and fails if it did not really happen."""

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dra_driver.api.quantity import Quantity
from dra_driver.api.resource_v1 import Device, DeviceAttribute
from dra_driver.kube.resource import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from kubectl_dra.demo.exhibit import Code, Exhibit, Fact, Reason, Table
from kubectl_dra.demo.format import format_json
from kubectl_dra.demo.stage import Stage, check

Act = Callable[[Stage], Awaitable[Sequence[Exhibit]]]

PROFILES: Final = ("h100x8", "a100x8", "ascend910b3x8")
"""The nodes of the demo: NVIDIA GPUs joined by NVLink, GPUs with MIG partitions, and Ascend NPUs."""

_SHIM_FOLDER: Final = "/etc/dra-driver/shim.d/"
_SHARED: Final = ("share-a", "share-b")
_GIB: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Scene:
    """One scene: `manifest` is what a user would apply, `why` what the reader should know, `wait` what takes time."""

    title: str
    why: str
    wait: str
    act: Act
    manifest: str = ""


async def show_devices(stage: Stage) -> Sequence[Exhibit]:
    """Show what the plugins published."""
    await stage.sandbox.ready()
    wholes: defaultdict[tuple[str, ...], list[Device]] = defaultdict(list)
    partitions: Counter[str] = Counter()
    for node, device in stage.devices():
        if not _is_whole(device):
            partitions[node] += 1
        else:
            names = ("model", "type", "linkType")
            wholes[node, *(str(_value(device, name) or "") for name in names)].append(device)
    rows = []
    for (node, model, kind, link), devices in sorted(wholes.items()):
        memory = _bytes(devices[0].capacity["memory"].value)
        domains = {_value(device, "linkDomain") for device in devices}
        joined = f"{link} ({len(domains)})" if link else "none"
        sharers = str(devices[0].capacity["slots"].value)
        rows.append((node, f"{len(devices)} {model}", kind, memory, joined, sharers, str(partitions[node] or "none")))
    check(len(wholes) == len(PROFILES), f"devices on {len(PROFILES)} nodes")
    check(all(len(devices) == 8 for devices in wholes.values()), "8 whole devices on each node")  # noqa: PLR2004 - as said
    columns = ("node", "devices", "type", "memory", "link domains", "sharers", "partitions")
    return (
        Table(columns, rows),
        Fact(f"{len(stage.devices())} devices in ResourceSlices, in the same words for every vendor"),
    )


async def show_pair(stage: Stage) -> Sequence[Exhibit]:
    """Two devices of one NVLink domain."""
    pod = await stage.running("pair")
    results = stage.results(stage.claim("pair"))
    devices = [stage.device(result) for result in results]
    domains = {_value(device, "nvlinkDomain") for device in devices}
    check(len({device.name for device in devices}) == 2, "two different devices")  # noqa: PLR2004 - as said
    check(len(domains) == 1 and None not in domains, "both devices in one NVLink domain")
    check({_value(device, "model") for device in devices} == {"H100"}, "two H100")
    rows = [
        (result.request, result.pool, device.name, str(_value(device, "model")), _short(_value(device, "nvlinkDomain")))
        for result, device in zip(results, devices, strict=True)
    ]
    return (
        Table(("request", "node", "device", "model", "NVLink domain"), rows),
        Fact(f"pod pair runs on {pod.spec.node_name} with two H100 whose nvlinkDomain is equal"),
    )


async def show_shares(stage: Stage) -> Sequence[Exhibit]:
    """Two claims on one device."""
    pods = [await stage.running(name) for name in _SHARED]
    claims = [stage.claim_of(pod) for pod in pods]
    results = [result for claim in claims for result in stage.results(claim)]
    check(len({(result.pool, result.device) for result in results}) == 1, "both claims on one device")
    check(len({result.share_id for result in results} - {None}) == len(_SHARED), "a share ID for each claim")
    device = stage.device(results[0])
    rows = [
        (
            claim.metadata.name,
            result.device,
            _bytes(result.consumed_capacity["memory"]),
            f"{result.consumed_capacity['cores']} %",
            _short(result.share_id),
        )
        for claim, result in zip(claims, results, strict=True)
    ]
    total = device.capacity["memory"].value
    used = sum(result.consumed_capacity["memory"].value() for result in results)
    check(used == len(_SHARED) * 8 * _GIB, "8Gi for each claim")
    cores = sum(result.consumed_capacity["cores"].value() for result in results)
    taken = f"{_gib(used)} of {_bytes(total)} and {cores} of {device.capacity['cores'].value} cores are taken"
    return (
        Table(("claim", "device", "memory", "cores", "share"), rows),
        Fact(f"one {_value(device, 'model')}, two containers: {taken}"),
    )


async def show_partition(stage: Stage) -> Sequence[Exhibit]:
    """A hardware partition, made for the claim."""
    pod = await stage.running("partition")
    [result] = stage.results(stage.claim("partition"))
    device = stage.device(result)
    check(_value(device, "partition") is True, "a partition")
    check(_value(device, "partitionProfile") == "1g.10gb", "the profile 1g.10gb")
    made = [path.stem for path in stage.leftovers() if path.parent.name == "partitions"]
    check(made == [result.device], "the partition made on its parent")
    consumed = ", ".join(
        f"{name} {counter.value}" for each in device.consumes_counters for name, counter in each.counters.items()
    )
    row = (result.pool, device.name, str(_value(device, "partitionProfile")), _bytes(device.capacity["memory"].value))
    return (
        Table(("node", "device", "profile", "memory"), [row]),
        Fact(f"it takes from its parent: {consumed}"),
        Fact(f"made on {pod.spec.node_name} when the claim was prepared, and removed with it"),
    )


async def show_priority(stage: Stage) -> Sequence[Exhibit]:
    """The second choice, since the first is not free."""
    pod = await stage.running("priority")
    results = stage.results(stage.claim("priority"))
    devices = [stage.device(result) for result in results]
    check({result.request for result in results} == {"devices/ascend"}, "the second alternative")
    check({_value(device, "model") for device in devices} == {"910B3"}, "Ascend 910B3")
    used = {(result.pool, result.device) for claim in stage.claims() for result in stage.results(claim)}
    wholes = [(node, device) for node, device in stage.devices() if _is_whole(device)]
    h100 = [(node, device.name) for node, device in wholes if _value(device, "model") == "H100"]
    free = sum(device not in used for device in h100)
    check(free < len(results), "too few H100 for the first alternative")
    rows = [
        ("h100", "6 H100", f"no: {free} of {len(h100)} are free"),
        ("ascend", "6 910B3", f"yes, on {pod.spec.node_name}"),
    ]
    return (
        Table(("alternative", "wants", "taken"), rows),
        Fact(f"{len(results)} Ascend 910B3 for the request devices/ascend; the Pod did not change a word"),
    )


async def show_refusal(stage: Stage) -> Sequence[Exhibit]:
    """A claim that cannot fit now, and the reason."""

    def probe() -> str | None:
        pod = stage.pod("too-large")
        conditions = pod.status.conditions if pod is not None else ()
        scheduled = next((each for each in conditions if each.type == "PodScheduled"), None)
        return scheduled.message if scheduled is not None and "request gpus" in scheduled.message else None

    reason = await stage.until("pod too-large: refused with a reason", probe)
    check(stage.claim("too-large").status.allocation is None, "no allocation")
    return (
        Reason("condition PodScheduled of pod too-large", reason),
        Fact("nothing was allocated, not even a part; it is tried again as soon as something is freed"),
    )


async def show_container(stage: Stage) -> Sequence[Exhibit]:
    """What one of the sharing containers gets."""
    pod = await stage.running(_SHARED[0])
    claim = stage.claim_of(pod)
    path, spec = stage.cdi_spec(pod, claim)
    config_path, config = stage.oci_config(pod, "serve")
    [mount] = [each for each in config["mounts"] if each["destination"].startswith(_SHIM_FOLDER)]
    shim = Path(mount["source"]).read_text("utf-8")  # noqa: ASYNC240 - a few bytes
    check(f"memory={8 * _GIB} cores=30" in shim, "the limits of the share in the shim config")
    check("ro" in mount["options"], "a read-only mount")
    given = [entry for entry in config["process"]["env"] if entry.startswith("SIMULATED_DEVICE_")]
    check(len(given) == 1, "one device in the container")
    excerpt = {
        "process": {"args": config["process"]["args"], "env": config["process"]["env"]},
        "mounts": [each for each in config["mounts"] if each["type"] == "bind" or each["source"].startswith("/")],
        "linux": {name: config["linux"][name] for name in ("devices", "resources")},
    }
    return (
        Code(f"CDI spec: {_relative(path)}", format_json(spec), "json"),
        Code(f"shim config, mounted below {_SHIM_FOLDER}", shim.rstrip(), "text"),
        Code(f"OCI config: {_relative(config_path)}, in parts", format_json(excerpt), "json"),
        Fact("the container sees its one device, and finds the limits that a shim is to hold it to: 8Gi and 30 cores"),
    )


async def show_deletion(stage: Stage) -> Sequence[Exhibit]:
    """Everything is freed, and what waited runs."""
    for name in ("pair", *_SHARED):
        await stage.delete(PODS, name)
    waited = await stage.running("too-large")
    domains = {_value(stage.device(result), "nvlinkDomain") for result in stage.results(stage.claim("too-large"))}
    check(len(domains) == 1, "six H100 of one NVLink domain")
    first = Fact(
        f"with the devices of three Pods free, pod too-large runs on {waited.spec.node_name}: 6 H100 of one domain"
    )
    for name in ("partition", "priority", "too-large"):
        await stage.delete(PODS, name)
    for name in ("pair", "partition", "priority", "too-large"):
        await stage.delete(RESOURCE_CLAIMS, name)
    await stage.delete(RESOURCE_CLAIM_TEMPLATES, "share")
    await stage.until("claims: all gone", lambda: not stage.claims())
    await stage.until("nodes: nothing left of any claim", lambda: not stage.leftovers())
    return (
        first,
        Fact("all Pods and claims are deleted: no allocation is left in the cluster"),
        Fact("no CDI spec, shim config, claim record, partition or container is left on any node"),
    )


SCENES: Final = (
    Scene(
        "The devices that the node plugins published",
        "On each node a plugin asks its backend what is there, and publishes it as ResourceSlices: attributes to "
        "select by, capacities to share by, counters that partitions draw from. Nothing is a bare number.",
        "three nodes to start and to publish their devices",
        show_devices,
    ),
    Scene(
        "Two H100 of one NVLink domain",
        "The CEL selector picks the model, matchAttribute demands that both devices have the same NVLink domain. "
        "With nvidia.com/gpu: 2 neither can be said.",
        "the Pod to run",
        show_pair,
        "pair",
    ),
    Scene(
        "Two claims share one device by memory and cores",
        "A claim that asks for a part of the memory shares the device; cores are its part of the compute, in percent. "
        "Each Pod gets a claim of its own from the template, and the next share goes where room is left.",
        "both Pods to run",
        show_shares,
        "share",
    ),
    Scene(
        "A hardware partition",
        "Every possible partition is published as a device that draws from its parent's counters, so that partitions, "
        "shares and whole devices exclude each other. The plugin makes it when the kubelet prepares the claim.",
        "the Pod to run",
        show_partition,
        "partition",
    ),
    Scene(
        "A list of priorities: six H100, else six Ascend 910B",
        "Three of the eight H100 are in use, so the first alternative does not fit; the second one does, on hardware "
        "of another vendor.",
        "the Pod to run",
        show_priority,
        "priority",
    ),
    Scene(
        "A claim that cannot fit, and the reason",
        "Six H100 of one NVLink domain are not free. The allocator tells what it saw, request by request.",
        "the refusal",
        show_refusal,
        "too-large",
    ),
    Scene(
        "What a container gets",
        "The plugin answers the kubelet with CDI device names. The runtime looks them up in the CDI spec and edits the "
        "container's OCI config: variables, device nodes, and for a share the mount with its limits, for a "
        "library that is to enforce them and is not there yet.",
        "the files",
        show_container,
    ),
    Scene(
        "Deletion frees everything",
        "When a Pod is gone the kubelet unprepares its claims, the control plane takes the allocations back, and what "
        "waited is tried again.",
        "everything to be freed",
        show_deletion,
    ),
)


def _attribute(value: DeviceAttribute | None) -> Any:
    if value is None:
        return None
    found = (value.string, value.bool, value.int, value.version)
    return next((each for each in found if each is not None), None)


def _value(device: Device, name: str) -> Any:
    return _attribute(device.attributes.get(name))


def _is_whole(device: Device) -> bool:
    return not _value(device, "partition")


def _bytes(quantity: Quantity) -> str:
    return _gib(quantity.value())


def _gib(amount: int) -> str:
    return f"{amount / _GIB:.1f}".removesuffix(".0") + "Gi"


def _short(text: object) -> str:
    """Shorten an identifier to what tells it from others."""
    return f"{str(text)[:13]}…"


def _relative(path: Path) -> str:
    """Give a path without the temporary folder that it is in: node, folder, file."""
    return "/".join(path.parts[-3:])
