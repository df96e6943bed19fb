"""The composition root: puts a plugin process together from its settings, runs it, and ends it in order."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import PurePosixPath
from typing import assert_never

import grpc.aio
import structlog

from cdi import SpecStore
from dra_driver.devices.backend import Backend
from dra_driver.devices.model import Inventory
from dra_driver.devices.nvidia.backend import Host, NvidiaBackend
from dra_driver.devices.nvidia.driver_root import DriverRoot
from dra_driver.devices.simulated import SimulatedBackend, read_profile
from dra_driver.errors import SettingError, StateError
from dra_driver.http import serve_http
from dra_driver.kube.client import ApiClient
from dra_driver.kube.credential import Credential
from dra_driver.kube.event import EventRecorder
from dra_driver.process import build_registry, stop_signals
from kubeletplugin.advice import Advice
from kubeletplugin.background import Background, Task
from kubeletplugin.boot import read_boot_id
from kubeletplugin.catalog import Catalog
from kubeletplugin.claim_status.writer import ClaimStatusWriter
from kubeletplugin.cluster import Claims, Events
from kubeletplugin.discovery import Discovery
from kubeletplugin.health.change import HealthChange, diff_health
from kubeletplugin.health.judge import HealthJudge
from kubeletplugin.health.stream import HealthStreams
from kubeletplugin.health.verdict import HoldPolicy
from kubeletplugin.kubelet.instance import Instance, hold_instance
from kubeletplugin.kubelet.pod_resource import PodResources
from kubeletplugin.kubelet.probe import GET_INFO, PREPARE, check_socket
from kubeletplugin.kubelet.registration import Registration
from kubeletplugin.kubelet.service import PluginService
from kubeletplugin.kubelet.socket import remove_dead_sockets, require_registry, serve_socket
from kubeletplugin.kubelet.socket_name import is_registration_socket, is_service_socket
from kubeletplugin.metric import Metrics
from kubeletplugin.prepare.artifact import Artifacts
from kubeletplugin.prepare.checkpoint import Checkpoint
from kubeletplugin.prepare.metadata import MetadataFiles
from kubeletplugin.prepare.preparer import Owned, Preparer
from kubeletplugin.prepare.spec import Names
from kubeletplugin.prepare.upkeep import KubeletState, Upkeep
from kubeletplugin.publish.kube_store import KubeSliceStore
from kubeletplugin.publish.metric import PublishMetrics
from kubeletplugin.publish.offer import SharePolicy
from kubeletplugin.publish.publisher import Publisher
from kubeletplugin.setting import BackendName, Settings
from kubeletplugin.sharing.device_sharing import DeviceSharing
from kubeletplugin.sharing.mps_daemon import PodDaemons
from kubeletplugin.sharing.mps_pod import DaemonSettings
from kubeletplugin.sharing.mps_report import MpsReport

log = structlog.get_logger(__name__)

GRACE_S = 20.0
"""How long calls of the kubelet that are under way may take when the process is asked to end."""

EVENTS_GRACE_S = 2.0
"""How long Events that are recorded already may take to be written at the end."""

THREADS = 16

STALE_S = 60.0
"""From what age on a look at the devices says nothing of their health, unless looks are far apart by wish."""


async def run_plugin(settings: Settings) -> None:
    """Run a plugin until SIGTERM or SIGINT. Raises DraError if it cannot start."""
    require_registry(settings.registry_dir)
    backends = read_backends(settings)
    held = hold_instance(settings.plugin_dir, settings.pod_uid, settings.service_socket)
    with held as instance, stop_signals() as stop:
        credential = await Credential.load(settings.kubeconfig)
        async with ApiClient(credential, user_agent="dra-kubeletplugin") as client:
            with ThreadPoolExecutor(THREADS, thread_name_prefix="claim") as executor:
                await Plugin(settings, backends, client, executor, instance).run(stop)


class Plugin:
    """One plugin process: everything that it is made of. `instance` is its place among others, if there may be any.

    `service` answers the kubelet, `preparer` does what it is asked: both once `read_state` was called, as `run` does.
    """

    def __init__(
        self,
        settings: Settings,
        backends: Sequence[Backend],
        client: ApiClient,
        executor: ThreadPoolExecutor,
        instance: Instance | None = None,
    ) -> None:
        self._settings = settings
        self._instance = instance
        self._registry = build_registry()
        self._metrics = Metrics(self._registry)
        self._recorder = EventRecorder(client, component=settings.driver_name, host=settings.node_name)
        loop = asyncio.get_running_loop()
        self._events = Events(self._recorder, settings.node_name, loop)
        is_followed = instance.is_followed if instance else lambda: False
        # What every process of the node sees is told by the one that writes slices.
        self._common_events = Events(self._recorder, settings.node_name, loop, is_quiet=is_followed)
        self._boot_id = read_boot_id(settings.boot_id_path)
        policy = HoldPolicy(first_s=settings.recovery_hold_s)
        self._judge = HealthJudge(
            settings.health_path,
            policy,
            boot_id=self._boot_id,
            ruled_out=settings.ruled_out_reasons,
            count_damped=self._metrics.damped_health_changes.inc,
        )
        self._discovery = Discovery(backends, settings.sharing_policy, self._judge)
        self._inventory = Inventory()
        self._advice = Advice(settings, self._common_events.warn)
        self._checkpoint = Checkpoint(settings.claims_dir)
        self._names = Names(settings.driver_name)
        self._artifacts = self._build_artifacts()
        self.preparer = self._build_preparer(client)
        self._publisher = self._build_publisher(client)
        claims = Claims(client, manager=settings.driver_name)
        self._statuses = self._build_statuses(claims)
        self._upkeep = self._build_upkeep(claims, executor)
        self._mps_report = MpsReport(
            claims=claims,
            records=self._checkpoint.list,
            changes=self.preparer.mender.take_daemon_changes,
            warn_claim=self._common_events.record_claim_failure,
            warn_pod=self._common_events.warn_pod,
        )
        self.service = PluginService(
            self.preparer,
            names=self._names,
            claims=claims,
            events=self._events,
            statuses=self._statuses,
            metrics=self._metrics,
            executor=executor,
        )
        self._health_streams = HealthStreams(
            pool=settings.node_name,
            age_s=self._discovery.age_s,
            stale_s=max(STALE_S, 3 * settings.discovery_interval_s),
        )
        self._registration = Registration(driver=settings.driver_name, endpoint=str(settings.service_socket))
        self._background = Background(lambda task: self._metrics.background_failures.labels(task).inc())
        self._metrics.registered.set_function(lambda: self._registration.registered)
        self._metrics.prepared_claims.set_function(lambda: len(self._checkpoint))

    def _build_artifacts(self) -> Artifacts:
        settings = self._settings
        return Artifacts(
            names=self._names,
            cdi_dir=settings.cdi_dir,
            shim_dir=settings.shim_dir,
            mps=settings.mps_folders,
            metadata=MetadataFiles(settings.driver_name, settings.metadata_dir, enabled=settings.device_metadata),
        )

    def _build_preparer(self, client: ApiClient) -> Preparer:
        settings = self._settings
        return Preparer(
            Owned(
                driver=settings.driver_name,
                pool=settings.node_name,
                slots=settings.slots,
                unenforced=settings.share_unenforced,
            ),
            checkpoint=self._checkpoint,
            artifacts=self._artifacts,
            catalog=self._discovery.current,
            sharing=DeviceSharing(_mps_daemons(settings, client)),
            boot_id=self._boot_id,
        )

    def _build_publisher(self, client: ApiClient) -> Publisher:
        settings = self._settings
        driver = settings.driver_name
        return Publisher(
            store=KubeSliceStore(
                client,
                node_name=settings.node_name,
                driver=driver if settings.coexistence else "",
                pods=PodResources(settings.kubelet_dir),
                look_every_s=settings.discovery_interval_s,
                hold_s=settings.recovery_hold_s,
            ),
            events=self._recorder,
            metrics=PublishMetrics(self._registry),
            driver=driver,
            node_name=settings.node_name,
            shares=SharePolicy(slots=settings.slots, unenforced=settings.share_unenforced),
            turn=self._instance,
        )

    def _build_statuses(self, claims: Claims) -> ClaimStatusWriter:
        return ClaimStatusWriter(
            claims,
            names=self._names,
            pool=self._settings.node_name,
            specs=SpecStore(self._settings.cdi_dir),
            catalog=self._discovery.current,
            daemon_problems=lambda: self.preparer.mender.daemon_problems,
            written=lambda result: self._metrics.claim_statuses.labels(result).inc(),
        )

    def _build_upkeep(self, claims: Claims, executor: ThreadPoolExecutor) -> Upkeep:
        return Upkeep(
            self.preparer,
            self._checkpoint,
            claims=claims,
            warn=self._events.warn,
            warn_of_claim=self._common_events.record_claim_failure,
            executor=executor,
            count_corrupt=self._metrics.corrupt_records.inc,
            remembers=KubeletState(self._settings.host_kubelet_dir).remembers,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Start, serve until `stop`, and end: publishing first, Events last. Slices and claims stay.

        Raises SettingError if it cannot start, and BugError, having ended likewise, if a background task met a bug.
        """
        await asyncio.to_thread(self.read_state)
        async with contextlib.AsyncExitStack() as servers:
            async with self._instance.starting() if self._instance else contextlib.nullcontext():
                await asyncio.to_thread(self._remove_dead_sockets)
                await self._serve(servers)
            async with asyncio.TaskGroup() as tasks:
                running = {
                    task: tasks.create_task(self._background.run(task, work, stop))
                    for task, work in self._tasks().items()
                }
                log.info("plugin started", driver=self._settings.driver_name, node=self._settings.node_name)
                await stop.wait()
                log.info("plugin ending")
                running[Task.PUBLISHER].cancel()
                await asyncio.wait([running[Task.PUBLISHER]])
                if self._instance:
                    self._instance.give_turn_back()
                await servers.aclose()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._recorder.idle(), EVENTS_GRACE_S)
                for task in running.values():
                    task.cancel()
        self._background.raise_bug()

    def _tasks(self) -> Mapping[Task, Callable[[], Awaitable[None]]]:
        """What goes on beside the calls of the kubelet, until it is cancelled; each may begin anew at any time."""
        interval_s = self._settings.discovery_interval_s
        return {
            Task.PUBLISHER: self._publisher.run,
            Task.DISCOVERY: lambda: self._discovery.run(interval_s, self._devices_changed),
            Task.EVENTS: self._recorder.run,
            Task.CLAIM_STATUS: self._statuses.run,
            Task.CLAIM_FOLLOWER: lambda: self._statuses.follow(self._checkpoint.list, interval_s),
            Task.UPKEEP: self._keep_up,
        }

    def read_state(self) -> None:
        """Read the claims that are prepared, before anything else can touch them."""
        try:
            corrupt = self._checkpoint.read_all()
            self._artifacts.ensure_directories(self._checkpoint.locks)
        except StateError as error:
            raise SettingError(str(error)) from error
        self._upkeep.tell_corrupt(corrupt)

    def _remove_dead_sockets(self) -> None:
        """Remove what plugins that were killed left where the kubelet looks."""
        driver = self._settings.driver_name
        for directory, is_ours in (
            (self._settings.registry_dir, lambda name: is_registration_socket(name, driver)),
            (self._settings.plugin_dir, is_service_socket),
        ):
            for path in remove_dead_sockets(directory, is_ours):
                log.info("dead socket removed", path=str(path))

    async def _serve(self, servers: contextlib.AsyncExitStack) -> None:
        """Open the service first and the way to it last; the stack closes them in the opposite order.

        Raises SettingError if a socket or address cannot be used.
        """
        service, registration = self._settings.service_socket, self._settings.registration_socket
        http = await serve_http(
            self._settings.http_address,
            registry=self._registry,
            alive={
                "service": lambda: check_socket(service, PREPARE),
                "registration": lambda: check_socket(registration, GET_INFO),
            },
            ready={
                "registered": self._check_registered,
                "published": self._check_published,
                "background": self._background.check,
            },
        )
        servers.push_async_callback(http.cleanup)
        calls = (*self.service.handlers(), *self._health_streams.handlers())
        servers.push_async_callback(_stop_server, await serve_socket(service, calls))
        servers.callback(self._health_streams.end)
        servers.push_async_callback(_stop_server, await serve_socket(registration, self._registration.handlers()))

    def _devices_changed(self, catalog: Catalog) -> None:
        before, self._inventory = self._inventory, catalog.inventory
        for change in diff_health(before, self._inventory, self._judge.take_fallen()):
            self._tell_health(change)
        self._advice.tell(self._inventory)
        self._metrics.set_health({device.name: device.health is None for device in self._inventory.devices})
        self._publisher.set_inventory(self._inventory)
        self._health_streams.set_inventory(self._inventory)

    def _tell_health(self, change: HealthChange) -> None:
        device = f"{self._settings.node_name}/{change.device}"
        if change.health is None:
            log.info("device well again", device=device)
            self._common_events.inform("DeviceHealthy", f"device {device}: well again, and may be used")
            return
        log.warning("device unhealthy", device=device, reason=change.health.reason, message=change.health.message)
        self._common_events.warn("DeviceUnhealthy", f"device {device}: {change.health.reason}: {change.health.message}")

    async def _keep_up(self) -> None:
        """Keep the node in line with its claims, again and again."""
        while True:
            await self._upkeep.work()
            await self._mps_report.work()
            await asyncio.sleep(self._settings.discovery_interval_s)

    async def _check_registered(self) -> str | None:
        return None if self._registration.registered else "the kubelet has not accepted the plugin"

    async def _check_published(self) -> str | None:
        return None if self._publisher.ready.is_set() else "the ResourceSlices are not published"


def _mps_daemons(settings: Settings, client: ApiClient) -> PodDaemons | None:
    if not settings.mps_image:
        return None
    daemons = DaemonSettings(
        namespace=settings.mps_namespace,
        node_name=settings.node_name,
        image=settings.mps_image,
        service_account=settings.mps_service_account,
        folders=settings.mps_folders,
        driver_root=settings.driver_root,
    )
    return PodDaemons(client, daemons, loop=asyncio.get_running_loop())


def read_backends(settings: Settings) -> tuple[Backend, ...]:
    """Make the backends that are switched on. Raises SettingError or InvalidError if what one reads is unusable."""
    return tuple(_read_backend(name, settings) for name in settings.backends)


def _read_backend(name: BackendName, settings: Settings) -> Backend:
    match name:
        case BackendName.NVIDIA:
            return NvidiaBackend(
                Host(DriverRoot(path=PurePosixPath(settings.driver_root), host=settings.host_root)),
                state_dir=settings.plugin_dir / "nvidia",
                boot_id=read_boot_id(settings.boot_id_path),
                partitions=settings.partition_policy,
                ignored_xids=frozenset(settings.ignore_xids),
            )
        case BackendName.SIMULATED:
            if settings.simulated is None:
                raise SettingError("--simulated-profile: not given, want a profile for the backend 'simulated'")
            return SimulatedBackend(
                read_profile(settings.simulated.profile),
                settings.node_name,
                dev_dir=settings.simulated.dev_dir,
                state_dir=settings.plugin_dir / "simulated",
                overrides_path=settings.simulated.overrides,
                partitions=settings.partition_policy,
            )
        case _:
            assert_never(name)


async def _stop_server(server: grpc.aio.Server) -> None:
    await server.stop(GRACE_S)
