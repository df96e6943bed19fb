"""Everything the plugin can be told, checked before anything starts."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from dra_driver.api import name
from dra_driver.api.config_v1alpha1 import Strategy
from dra_driver.devices.attribute import DEFAULT_SLOTS
from dra_driver.devices.nvidia.xid import xid_reason
from dra_driver.devices.partitioning import (
    DEFAULT_PARTITION_MODE,
    PartitionMode,
    PartitionPolicy,
    parse_partition_policy,
)
from dra_driver.devices.sharing import DEFAULT_STRATEGY, SharingPolicy, parse_sharing_policy
from dra_driver.errors import SettingError
from dra_driver.http import parse_http_address
from kubeletplugin.boot import BOOT_ID_PATH
from kubeletplugin.kubelet.socket_name import (
    SOCKET_PATH_LIMIT,
    build_registration_socket,
    build_service_socket,
    validate_pod_uid,
)
from kubeletplugin.sharing.mps_edits import MpsFolders

DEFAULT_DRIVER = "accel.dra-driver.io"
DEFAULT_NAMESPACE = "dra-driver"
DEFAULT_SERVICE_ACCOUNT = "default"

SLOTS_MAX = 10_000
INTERVAL_MIN_S, INTERVAL_MAX_S = 0.01, 86_400
HOLD_MAX_S = 31_536_000
XID_MAX = 99_999

_SHOWN_MAX = 24
"""So many digits of a number that is too large are enough."""


class BackendName(StrEnum):
    """The backends that can be switched on."""

    NVIDIA = "nvidia"
    SIMULATED = "simulated"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedSettings:
    """The simulated backend: a built-in profile's name or a file, and where its devices and their changes live."""

    profile: str
    overrides: Path | None = None
    dev_dir: Path = Path("/dev")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one plugin process. Times are in seconds."""

    node_name: str
    driver_name: str = DEFAULT_DRIVER
    pod_uid: str = ""
    kubeconfig: Path | None = None
    kubelet_dir: Path = Path("/var/lib/kubelet")
    cdi_dir: Path = Path("/var/run/cdi")
    backends: tuple[BackendName, ...] = ()
    simulated: SimulatedSettings | None = None
    driver_root: Path = Path("/")
    host_root: Path = Path("/")
    slots: int = DEFAULT_SLOTS
    share_unenforced: bool = False
    sharing_strategy: Strategy = DEFAULT_STRATEGY
    sharing_strategy_of: tuple[str, ...] = ()
    mps_image: str = ""
    mps_namespace: str = DEFAULT_NAMESPACE
    mps_service_account: str = DEFAULT_SERVICE_ACCOUNT
    device_metadata: bool = False
    partitions: PartitionMode = DEFAULT_PARTITION_MODE
    partitions_of: tuple[str, ...] = ()
    discovery_interval_s: float = 5.0
    recovery_hold_s: float = 60.0
    ignore_xids: tuple[int, ...] = ()
    coexistence: bool = True
    http_address: str = ":8080"
    boot_id_path: Path = BOOT_ID_PATH
    shm_dir: Path = Path("/dev/shm")  # noqa: S108 - it belongs to root

    @property
    def plugin_dir(self) -> Path:
        """The driver's own directory below the kubelet's: socket, lock and state."""
        return self.kubelet_dir / "plugins" / self.driver_name

    @property
    def host_kubelet_dir(self) -> Path:
        """The kubelet's directory where the host's files are seen: all of it, of which a Pod is given a few folders."""
        return self.host_root / self.kubelet_dir.relative_to(self.kubelet_dir.anchor)

    @property
    def partition_policy(self) -> PartitionPolicy:
        """Which devices are cut into partitions. Raises SettingError if that cannot be read."""
        return parse_partition_policy(self.partitions, self.partitions_of)

    @property
    def sharing_policy(self) -> SharingPolicy:
        """How the shares of devices get along. Raises SettingError if that cannot be read."""
        return parse_sharing_policy(self.sharing_strategy, self.sharing_strategy_of)

    @property
    def ruled_out_reasons(self) -> frozenset[str]:
        """For what devices are not unhealthy, whatever a process before said."""
        return frozenset(map(xid_reason, self.ignore_xids))

    @property
    def mps_folders(self) -> MpsFolders:
        """Where the clients of MPS daemons meet them. The memory that they share is memory on every Linux."""
        return MpsFolders(pipes=self.plugin_dir / "mps", memory=self.shm_dir / f"{self.driver_name}-mps")

    @property
    def health_path(self) -> Path:
        """What is remembered of devices that were unwell."""
        return self.plugin_dir / "health.json"

    @property
    def claims_dir(self) -> Path:
        """One record a prepared claim."""
        return self.plugin_dir / "claims"

    @property
    def shim_dir(self) -> Path:
        """One folder a prepared claim, one shim config a share in it."""
        return self.plugin_dir / "shim"

    @property
    def metadata_dir(self) -> Path:
        """One folder a prepared claim, one device metadata file a request in it."""
        return self.plugin_dir / "dra-device-metadata"

    @property
    def service_socket(self) -> Path:
        """Where the kubelet calls the DRA service."""
        return build_service_socket(self.plugin_dir, self.pod_uid)

    @property
    def registry_dir(self) -> Path:
        """The directory that the kubelet watches for plugins."""
        return self.kubelet_dir / "plugins_registry"

    @property
    def registration_socket(self) -> Path:
        """Where the kubelet finds the plugin."""
        return build_registration_socket(self.registry_dir, self.driver_name, self.pod_uid)


def validate_settings(settings: Settings) -> None:
    """Raise SettingError that names every setting that cannot be used. Nothing on the host is looked at."""
    if problems := list(_problems(settings)):
        raise SettingError("; ".join(problems))


def _problems(settings: Settings) -> Iterator[str]:
    for flag, value, validate in (
        ("--node-name", settings.node_name, name.validate_dns_subdomain),
        ("--driver-name", settings.driver_name, name.validate_driver_name),
        ("--pod-uid", settings.pod_uid, validate_pod_uid),
    ):
        yield from (f"{flag}: {problem}" for problem in validate(value))
    if not settings.backends:
        yield f"--backend: none given, want {' or '.join(repr(each.value) for each in BackendName)}"
    if BackendName.SIMULATED in settings.backends and settings.simulated is None:
        yield "--simulated-profile: not given, want a profile for the backend 'simulated'"
    yield from _number_problems(settings)
    yield from _policy_problems(settings)
    for socket in (settings.service_socket, settings.registration_socket):
        if (length := len(str(socket).encode())) > SOCKET_PATH_LIMIT:
            yield f"{socket}: {length} bytes, want a socket path of at most {SOCKET_PATH_LIMIT}; shorten --kubelet-dir"
    try:
        parse_http_address(settings.http_address)
    except SettingError as error:
        yield str(error)


def _number_problems(settings: Settings) -> Iterator[str]:
    """Numbers without sense, or beyond what clocks and the API can take. What is no number is in no range."""
    for flag, value, unit, least, most in (
        ("--slots", settings.slots, "sharers of one device", 1, SLOTS_MAX),
        ("--discovery-interval", settings.discovery_interval_s, "seconds", INTERVAL_MIN_S, INTERVAL_MAX_S),
        ("--recovery-hold", settings.recovery_hold_s, "seconds", 0, HOLD_MAX_S),
    ):
        if not least <= value <= most:
            yield f"{flag}: {_cut(value)} {unit}, want {least} to {most}"
    for xid in settings.ignore_xids:
        if not 1 <= xid <= XID_MAX:
            yield f"--ignore-xids: {_cut(xid)}, want a number of an XID, 1 to {XID_MAX}"


def _cut(number: float) -> str:
    text = str(number)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."


def _policy_problems(settings: Settings) -> Iterator[str]:
    for policy in ("partition_policy", "sharing_policy"):
        try:
            getattr(settings, policy)
        except SettingError as error:
            yield str(error)
    strategies = {settings.sharing_strategy.value, *(each.rpartition("=")[2] for each in settings.sharing_strategy_of)}
    if Strategy.MPS.value in strategies and not settings.mps_image:
        yield "--mps-image: not given, want the image of MPS daemons for the strategy 'MPS'"
    yield from (f"--mps-namespace: {problem}" for problem in name.validate_dns_label(settings.mps_namespace))
    account = settings.mps_service_account
    yield from (f"--mps-service-account: {problem}" for problem in name.validate_dns_subdomain(account))
