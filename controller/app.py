"""The composition root: puts a controller process together from its settings, runs it, and ends it in order."""

import asyncio
import contextlib
import uuid
from dataclasses import dataclass, field
from functools import partial

import structlog

from controller.allocator import CelCompiler, SelectorCache
from controller.allocator.allocation import DEFAULT_BUDGET
from controller.decider import Decider
from controller.follower import Follower
from controller.leader import Leader, Timing
from controller.metric import Metrics, PodState
from controller.pod_writer import PodWriter
from controller.refusal_text import explain_refusal
from controller.setting import Settings
from controller.state import Effect, State
from controller.teller import Patience, Teller
from controller.writer import Writer
from dra_driver.errors import ApiError
from dra_driver.http import serve_http
from dra_driver.kube.backoff import Backoff
from dra_driver.kube.client import ApiClient
from dra_driver.kube.credential import Credential
from dra_driver.kube.event import EventRecorder
from dra_driver.kube.lease import LeaderElection
from dra_driver.kube.resource import RESOURCE_CLAIMS
from dra_driver.kube.watch import WatchTiming
from dra_driver.process import build_registry, stop_signals

log = structlog.get_logger(__name__)

COMPONENT = "dra-controller"

EVENTS_GRACE_S = 2.0
"""How long Events that are recorded already may take to be written at the end."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How patient the parts are, and how much effort a search is worth; the defaults are for real clusters."""

    watch: WatchTiming = field(default_factory=WatchTiming)
    leader: Timing = field(default_factory=Timing)
    teller: Patience = field(default_factory=Patience)
    budget: int = DEFAULT_BUDGET
    writer: Backoff = field(default_factory=lambda: Backoff(initial_s=0.1, max_s=10.0))


async def run_controller(settings: Settings) -> None:
    """Run a controller until SIGTERM or SIGINT. Raises DraError if it cannot start."""
    with stop_signals() as stop:
        credential = await Credential.load(settings.kubeconfig)
        async with ApiClient(credential, user_agent=COMPONENT) as client:
            await Controller(settings, client).run(stop)


class Controller:
    """One controller process: everything that it is made of. Nothing of it is shared with another one."""

    def __init__(self, settings: Settings, client: ApiClient, pace: Pace | None = None) -> None:
        pace = pace or Pace()
        self._settings = settings
        self._client = client
        self.registry = build_registry()
        self.address = ""
        self.metrics = Metrics(self.registry)
        self._recorder = EventRecorder(client, component=COMPONENT, host=settings.identity)
        self._election = LeaderElection(
            client,
            namespace=settings.lease_namespace,
            name=settings.lease_name,
            identity=settings.identity,
            lease_duration_s=settings.lease_duration_s,
            renew_deadline_s=settings.renew_deadline_s,
            retry_period_s=settings.retry_period_s,
        )
        self.state = State(SelectorCache(CelCompiler()), lambda: str(uuid.uuid4()), settings.features)
        self.follower = Follower(client, self.state, self._notice, pace.watch)
        decider = Decider(self.state, settings.policy, pace.budget)
        writer = Writer(
            client.guarded(self._election.confirm) if settings.leader_elect else client,
            self.follower.caches.claims,
            self.follower.caches.pods,
            self.metrics,
            pace.writer,
        )
        self.leader = Leader(
            self.state,
            decider,
            PodWriter(self.state, decider, writer, self.metrics),
            Teller(self._recorder, partial(explain_refusal, self.state), pace.teller),
            self.metrics,
            pace.leader,
        )
        for state in PodState:
            self.metrics.pods.labels(state).set_function(partial(self._count_pods, state))

    async def run(self, stop: asyncio.Event) -> None:
        """Start, work until `stop`, and end: what is being written first, then the lease, Events last."""
        async with contextlib.AsyncExitStack() as servers:
            http = await serve_http(
                self._settings.http_address,
                registry=self.registry,
                alive={"watches": self._check_watches},
                ready={"synced": self._check_synced},
            )
            servers.push_async_callback(http.cleanup)
            host, port, *_ = http.addresses[0]
            self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            async with asyncio.TaskGroup() as tasks:
                recording = tasks.create_task(self._recorder.run())
                following = tasks.create_task(self.follower.run())
                leading = tasks.create_task(self._work())
                log.info("controller started", identity=self._settings.identity)
                await stop.wait()
                log.info("controller ending")
                leading.cancel()
                await asyncio.wait((leading,))
                following.cancel()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._recorder.idle(), EVENTS_GRACE_S)
                recording.cancel()

    async def _work(self) -> None:
        """Lead whenever this process may."""
        await self.follower.synced()
        log.info("synced", pods=len(self.state.pods), claims=len(self.state.claims), nodes=len(self.state.nodes))
        if self._settings.leader_elect:
            await self._election.run(self._lead)
        else:
            await self._lead()

    async def _lead(self) -> None:
        """Make sure that all is known that the one before has written, and then lead."""
        await self._catch_up()
        await self.leader.run()

    async def _catch_up(self) -> None:
        """Wait until the watch has told of every claim as it is now."""
        while True:
            try:
                listing = await self._client.list(RESOURCE_CLAIMS)
            except ApiError as error:
                log.warning("claims not listed", error=str(error))
                await asyncio.sleep(1.0)
                continue
            for claim in listing.items:
                await self.follower.caches.claims.reached(claim.metadata.resource_version)
            return

    def _count_pods(self, state: PodState) -> int:
        return self.leader.queue.sizes()[state]

    def _notice(self, effect: Effect) -> None:
        self.leader.notice(effect)

    async def _check_watches(self) -> str | None:
        dead = self.follower.find_dead()
        return f"not watched any more: {', '.join(dead)}" if dead else None

    async def _check_synced(self) -> str | None:
        missing = self.follower.find_missing()
        return f"not listed yet: {', '.join(missing)}" if missing else None
