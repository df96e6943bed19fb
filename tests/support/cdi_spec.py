"""Builders of CDI specs: valid unless a test says otherwise."""

from hypothesis import settings
from hypothesis import strategies as st

from cdi import ContainerEdits, Device, DeviceNode, Hook, IntelRdt, LinuxNetDevice, Mount, Spec, default_version

patient = settings(deadline=None, max_examples=50)
"""For tests of whole specs, which take long to make up."""

SOME_EDITS = ContainerEdits(env=("GPU=0",))


def a_device(
    name: str = "gpu-0", edits: ContainerEdits = SOME_EDITS, annotations: dict[str, str] | None = None
) -> Device:
    return Device(name=name, container_edits=edits, annotations=annotations or {})


def a_spec(
    *devices: Device,
    kind: str = "vendor.com/gpu",
    version: str = "1.1.0",
    edits: ContainerEdits | None = None,
    annotations: dict[str, str] | None = None,
) -> Spec:
    return Spec(
        cdi_version=version,
        kind=kind,
        devices=devices or (a_device(),),
        container_edits=edits or ContainerEdits(),
        annotations=annotations or {},
    )


def a_full_spec() -> Spec:
    """Every field of the format, each with a value of its own."""
    edits = ContainerEdits(
        env=("GPU=0", "EMPTY="),
        device_nodes=(
            DeviceNode(
                path="/dev/gpu0",
                host_path="/dev/vendor/gpu0",
                type="c",
                major=195,
                minor=7,
                file_mode=0o660,
                permissions="rw",
                uid=0,
                gid=44,
            ),
        ),
        net_devices=(LinuxNetDevice(host_interface_name="eth1", name="net0"),),
        hooks=(
            Hook(
                hook_name="createContainer",
                path="/usr/bin/hook",
                args=("hook", "link"),
                env=("DEBUG=false",),
                timeout=5,
            ),
        ),
        mounts=(Mount(host_path="/opt/lib", container_path="/usr/lib/x", options=("ro", "bind"), type="none"),),
        intel_rdt=IntelRdt(
            clos_id="gold",
            l3_cache_schema="L3:0=f",
            mem_bw_schema="MB:0=70",
            schemata=("L3:0=f", "MB:0=70"),
            enable_monitoring=True,
        ),
        additional_gids=(44, 109),
    )
    return a_spec(
        a_device("0", edits, {"example.com/model": "größe ☃"}),
        a_device("gpu:1"),
        kind="vendor.com/gpu.full",
        edits=ContainerEdits(env=("DRIVER=550",)),
        annotations={"b": "2", "a": "1"},
    )


_letter = st.sampled_from("abzABZ")
_alphanumeric = st.sampled_from("abzABZ059")


def names(first: st.SearchStrategy[str], inner: str) -> st.SearchStrategy[str]:
    middle = st.text(alphabet=f"abzABZ059{inner}", max_size=6)
    return first | st.builds("{}{}{}".format, first, middle, _alphanumeric)


vendors = names(_letter, "_-.")
device_names = names(_alphanumeric, "_-.:")
_text = st.text(max_size=6)
_filled = st.text(min_size=1, max_size=6)
_variable_names = st.text(st.characters(exclude_characters="=", exclude_categories=["Cs"]), min_size=1, max_size=5)
_env = st.lists(st.builds("{}={}".format, _variable_names, _text), max_size=2)
_uint32 = st.integers(0, 2**32 - 1)
_int64 = st.integers(-(2**63), 2**63 - 1)
_annotations = st.dictionaries(names(_alphanumeric, "_-."), _text, max_size=3)
_nodes = st.builds(
    DeviceNode,
    path=_filled,
    host_path=_text,
    type=st.sampled_from(["", "b", "c", "u", "p"]),
    major=_int64,
    minor=_int64,
    file_mode=st.none() | _uint32,
    permissions=st.sampled_from(["", "none", "r", "rw", "rwm", "mr"]),
    uid=st.none() | _uint32,
    gid=st.none() | _uint32,
)
_hooks = st.builds(
    Hook,
    hook_name=st.sampled_from(["prestart", "poststop"]),
    path=_text.map("/{}".format),
    args=st.lists(_text, max_size=2).map(tuple),
    env=_env.map(tuple),
    timeout=st.none() | st.integers(1, 100),
)
_mounts = st.builds(
    Mount, host_path=_filled, container_path=_filled, options=st.lists(_text, max_size=2).map(tuple), type=_text
)
_rdt = st.builds(
    IntelRdt,
    clos_id=st.sampled_from(["", "/", "gold"]),
    l3_cache_schema=_text,
    mem_bw_schema=_text,
    schemata=st.lists(_text, max_size=2).map(tuple),
    enable_monitoring=st.booleans(),
)
_net_devices = st.lists(
    st.builds(LinuxNetDevice, host_interface_name=_filled, name=_filled),
    max_size=3,
    unique_by=(lambda device: device.host_interface_name, lambda device: device.name),
)
container_edits = st.builds(
    ContainerEdits,
    env=_env.map(tuple),
    device_nodes=st.lists(_nodes, max_size=2).map(tuple),
    net_devices=_net_devices.map(tuple),
    hooks=st.lists(_hooks, max_size=2).map(tuple),
    mounts=st.lists(_mounts, max_size=2).map(tuple),
    intel_rdt=st.none() | _rdt,
    additional_gids=st.lists(_uint32, max_size=2).map(tuple),
)
_devices = st.builds(
    Device,
    name=device_names,
    annotations=_annotations,
    container_edits=container_edits.filter(lambda e: e != ContainerEdits()),
)
specs = st.builds(
    Spec,
    cdi_version=st.just("0.3.0"),
    kind=st.builds("{}/{}".format, vendors, vendors),
    annotations=_annotations,
    devices=st.lists(_devices, min_size=1, max_size=3, unique_by=lambda device: device.name).map(tuple),
    container_edits=container_edits,
).map(default_version)
"""Valid specs that use every field."""
