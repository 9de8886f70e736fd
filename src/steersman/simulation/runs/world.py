"""One run: a server, the processes of an operator and a user, on one loop in virtual time.

Guarantees
- The same scenario, seed and faults give the same trace, in any process.
- Until the operator first starts, all runs of a scenario are the same, whatever their seeds: `World.boot` can be shared.
- A crashed process starts again after a second, with a new manager and none of its earlier state.
- The run is settled when no message is on its way, no controller has work, no cache waits to list or watch again, and
  for a while nothing was written and no process was starting.
- The server and its controllers are those of `ControlPlane`; only the network and the clock are simulated.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Coroutine, Iterator
from functools import partial
from typing import Any, Literal

import msgspec

from steersman import aio
from steersman.aio import Actor
from steersman.apiserver import ApiServer
from steersman.cache import Informer
from steersman.client import Client
from steersman.controller import Controller, KeyRecord, current_context
from steersman.controlplane import ControlPlane
from steersman.manager import Manager
from steersman.simulation.checks import Objects
from steersman.simulation.runs.external_calls import ExternalCalls
from steersman.simulation.runs.external_system import external_contents, simulated_calls
from steersman.simulation.runs.lagging_view import LaggingView
from steersman.simulation.runs.loop import Hung, SimulatedLoop
from steersman.simulation.runs.meddler import Meddler
from steersman.simulation.runs.module_state import ModuleState
from steersman.simulation.runs.network import Decide, Network, served_exchange
from steersman.simulation.runs.places import Place
from steersman.simulation.runs.process import Process
from steersman.simulation.runs.recorded_storage import LEASES, RECORDS, RecordedStorage
from steersman.simulation.runs.trace import Trace
from steersman.simulation.runs.webhook_calls import PatientTransport, WebhookCalls
from steersman.simulation.scenario import Scenario
from steersman.testing import answered_in_process, running_controllers
from steersman.transport import Handler

#: Virtual seconds after which a crashed process runs again.
_RESTART = 1.0
#: Virtual seconds without a write after which a run can be settled.
_QUIET = 2.0
#: Virtual seconds that a key may ask to wait and still be waited for, and how often.
_PATIENCE, _ROUNDS = 900.0, 3
#: Virtual seconds for which a run waits for a lost watch: longer than the longest delay of a cache between two attempts.
_RECOVERY = 120.0
#: Virtual seconds after which a run that does not settle has failed, and how many turns of the loop it may take until then.
_LIMIT, TURNS_MAX = 3600.0, 100_000
#: What decides a run until the operator first starts.
_BOOT_SEED = 0
#: How many keys of a controller are looked at, and named.
_KEYS, _SHOWN = 4096, 3


class NeverSettled(Exception):
    """A run did not come to rest."""


class World:
    """One run of a scenario."""

    def __init__(self, scenario: Scenario, *, seed: int, decide: Decide) -> None:
        self.scenario = scenario
        #: What decides the run from the first start of the operator on.
        self.seed = seed
        self.loop = SimulatedLoop(seed=_BOOT_SEED)
        self.trace = Trace()
        self._server = Actor("server", seed=_BOOT_SEED)
        self._user = Actor("user", seed=_BOOT_SEED)
        self.network = Network(self._server, seed=_BOOT_SEED, trace=self.trace, decide=decide)
        self.network.on_crash = self._crash
        self.network.on_send = self._on_send
        self.external = ExternalCalls(self.network, self.trace)
        self.storage = RecordedStorage(self._on_commit)
        self.processes = [
            Process(f"operator-{n + 1}" if scenario.replicas > 1 else "operator") for n in range(scenario.replicas)
        ]
        #: The state of the store at each call of `ScenarioUser.settled`, and at the end.
        self.states: list[dict[str, bytes]] = []
        #: The checks that did not hold, with words, and those of `sometimes` that did: by their numbers.
        self.failed_checks: dict[int, str] = {}
        self.reached: set[int] = set()
        #: The actor that created each object last, by the key; empty for the server's own controllers.
        self.creators: dict[str, str] = {}
        #: Writes of reconciles that were sent while another process led.
        self.deposed_writes: list[str] = []
        #: What stopped a process that should run, or the workload.
        self.failures: list[str] = []
        #: Where the store has the objects of the operator's own kinds, and the groups and resources that it reconciles.
        self.own_prefixes: list[str] = []
        self.primaries: frozenset[tuple[str, str]] = frozenset()
        self._plane: ControlPlane | None = None
        self._admin: Client | None = None
        self._registered: Any = None
        self._companions: list[tuple[Actor, Any]] = []
        self._modules: ModuleState | None = None
        #: Who holds each Lease, by its key.
        self._holders: dict[str, str] = {}
        self._last_write = 0.0
        #: When a process was last seen starting: what its first reconciles begin outside may end without a write soon.
        self._last_start = 0.0
        self._turns_end = TURNS_MAX
        self._waiting: asyncio.Future[None] | None = None

    def _seed_of(self, what: str) -> int:
        return int.from_bytes(hashlib.sha256(f"{self.seed} {what}".encode()).digest()[:8])

    # running

    def run(self) -> None:
        """Run the scenario from the beginning, or from where `boot` ended, to the end."""
        self.boot()
        self._until_end_of(self._life())

    def boot(self) -> None:
        """Run until the operator could start; afterwards, the process may fork, and change the seed and the faults."""
        if self._admin is None:
            self.loop.on_idle = self._on_idle
            self._until_end_of(self._boot())

    def _until_end_of(self, work: Coroutine[Any, Any, None]) -> None:
        with self.trace.logs():
            try:
                self.loop.run_until_complete(work)
            except Hung as error:
                self.failures.append(str(error))

    async def _boot(self) -> None:
        plane = await self._as(self._server, self._serve())
        self._admin = admin = self.client_of(self._user).with_transport(PatientTransport)
        manager = self.scenario.manager()
        kinds = [*self.scenario.kinds, *manager.own_kinds]
        self._modules = ModuleState(self.scenario, manager.own_kinds, self.processes[0].name)
        if len(self.processes) > 1:
            self.loop.on_actor = self._on_actor
        resources = [kind.__resource__ for kind in manager.own_kinds]
        self.own_prefixes = [f"{resource.group}/{resource.plural}/" for resource in resources]
        self.primaries = frozenset(
            (blueprint.primary.__resource__.group, blueprint.primary.__resource__.plural)
            for blueprint in manager.blueprints
            if isinstance(blueprint.primary, type)
        )
        await self._as(self._user, admin.install(*dict.fromkeys(kinds)) if kinds else _nothing())
        if manager.webhooks.hooks:
            await self._as(self._user, self._register(manager, admin, plane))
        await self._accompany()
        await plane.settled()
        await self.storage.begin_history()
        self.snapshot()

    async def _life(self) -> None:
        assert self._admin is not None
        self._reseed()
        for process in self.processes:
            self._start(process)
        try:
            await self._as(self._user, self._work(self._admin))
            await self.settled()
            self.snapshot()
        except NeverSettled as error:
            if not self.failures:
                self.failures.append(str(error))

    def _reseed(self) -> None:
        """Let the seed decide everything from now on. The generators stay the same objects: parts of the program hold them."""
        aio.randomness().seed(self._seed_of("loop"))
        self.network.generator.seed(self._seed_of("network"))
        for actor in (self._server, self._user, *(actor for actor, _ in self._companions)):
            actor.generator.seed(self._seed_of(actor.name))

    async def _work(self, client: Client) -> None:
        try:
            await self.scenario.workload(_User(self, client))
        except NeverSettled:
            raise
        except Exception as error:  # noqa: BLE001 - a failure of the workload is a result of the run
            self.failures.append(f"the workload failed: {type(error).__name__}: {error}")

    async def _serve(self) -> ControlPlane:
        plane = self.scenario.control_plane(self.storage)
        # Never left: the run ends with its process.
        await plane.__aenter__()
        self._plane = plane
        self.network.meddle = Meddler(plane.server.handler).meddle
        self.network.start_lagging = self._start_lagging
        return plane

    async def _start_lagging(self, moment: float, until: float) -> Handler:
        """An API server that shows the state of an earlier moment until its lag ends."""
        server = ApiServer(storage=LaggingView(self.storage, revision=self.storage.revision_at(moment), until=until))
        # Never left, as above.
        await server.__aenter__()
        return server.handler

    async def _register(self, manager: Manager, client: Client, plane: ControlPlane) -> None:
        calls = WebhookCalls(tuple(manager.webhooks.hooks), self.network, self._running)
        name = manager.name or "operator"
        # Never left, as above.
        self._registered = answered_in_process(calls, client, name, plane.server.webhooks.answer_in_process)
        await self._registered.__aenter__()

    async def _accompany(self) -> None:
        """Start the programs beside the operator."""

        async def enter(name: str, actor: Actor) -> None:
            companion = self.scenario.beside[name](self.client_of(actor, field_manager=name))
            self._companions.append((actor, companion))
            # Never left, as above.
            await companion.__aenter__()

        for name in self.scenario.beside:
            actor = Actor(name, seed=_BOOT_SEED)
            await self._as(actor, enter(name, actor))

    def _running(self) -> list[tuple[Actor, Manager]]:
        return [process.running for process in self.processes if process.running is not None]

    def _as(self, actor: Actor, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return self.loop.create_task(work, context=actor.context.copy())

    def client_of(self, actor: Actor, *, field_manager: str = "user") -> Client:
        """A client that acts as an actor."""
        assert self._plane is not None
        transport = self.network.transport(actor, self._plane.server.handler)
        return Client(
            transport,
            server="the simulated control plane",
            field_manager=field_manager,
            user_agent=field_manager,
            namespace="default",
        )

    # processes

    def _start(self, process: Process) -> None:
        process.starts += 1
        seed = self._seed_of(f"{process.name} {process.starts}")
        # The clock belongs to the machine.
        skew = 0.0 if process.actor is None else process.actor.skew
        process.actor = actor = Actor(process.name, seed=seed, skew=skew)
        actor.context.run(simulated_calls.set, self.external)
        self.trace.add(process.name, "start", "starts" if process.starts == 1 else "starts again")
        if process.starts > 1 and self._modules is not None:
            for name in self._modules.restore(process.name):
                self.trace.add(process.name, "note", f"starts without the earlier value of the module variable {name}")
        process.task = self._as(actor, self._operate(process, actor))

    def _on_actor(self, actor: Actor) -> None:
        if self._modules is not None and any(process.name == actor.name for process in self.processes):
            self._modules.enter(actor.name)

    async def _operate(self, process: Process, actor: Actor) -> None:
        try:
            manager = process.manager = self.scenario.manager()
            manager.watchdog = 0
            manager.on_reconcile(partial(self._on_reconcile, process))
            client = self.client_of(actor, field_manager=manager.name or "operator")
            await manager.run(client, signals=False)
        except Exception as error:  # noqa: BLE001 - a failure of the operator is a result of the run
            self.failures.append(f"{process.name} ended: {type(error).__name__}: {error}")
            self._give_up()

    def _on_reconcile(self, process: Process, controller: str, record: KeyRecord) -> None:
        process.records.append((controller, record))
        words = f"{controller} reconciled {record.request}: {record.result}"
        self.trace.add(process.name, "reconcile", words + (f": {record.last_error}" if record.failures else ""))
        if record.loop:
            # It would go on until the limit: an oracle reports it.
            self._give_up()
        if process.actor is not None:
            self.network.reconciled(process.actor, controller, str(record.request))

    def _crash(self, actor: Actor, why: str) -> None:
        if not actor.alive:
            return
        process = next(process for process in self.processes if process.actor is actor)
        self.trace.add(process.name, "crash", why)
        actor.alive = False
        self.network.cut(actor)
        self.network.schedule(self.loop.time() + _RESTART, self._start, process)

    def snapshot(self) -> None:
        """Keep the state of the store and of all external systems."""
        contents = dict(self.storage.contents)
        self._check("at_rest")
        self.states.append(contents | external_contents(contents))

    # rest

    def _on_commit(self, key: str, before: bytes | None, after: bytes | None) -> None:
        if key.startswith(LEASES):
            self._holders[key] = _holder(after)
        if not key.startswith(RECORDS):
            self._last_write = self.loop.time()
            exchange = served_exchange.get()
            by = exchange.actor.name if exchange is not None else ""
            if before is None:
                self.creators[key] = by
            self.trace.add(
                by or "server", "commit", _commit_words(key, before, after), key=key, before=before, after=after
            )
            if after is None and exchange is not None and exchange.on_deletion is not None:
                exchange.on_deletion()
            self._check("always")
            self._check("sometimes")

    def _check(self, when: Literal["always", "at_rest", "sometimes"]) -> None:
        for number, check in enumerate(self.scenario.checks):
            if check.when == when and number not in self.failed_checks and number not in self.reached:
                failure = check.failure(Objects(self.storage.contents))
                if when == "sometimes" and not failure:
                    self.reached.add(number)
                elif when != "sometimes" and failure:
                    self.failed_checks[number] = failure
                    self.trace.add("server", "note", f"does not hold: {failure}")

    def _on_send(self, actor: Actor, place: Place) -> None:
        # What runs before leading (`Manager.before_leading`, webhooks) may write while another process leads.
        if not place.is_write or place.is_lease or current_context() is None:
            return
        processes = {process.name for process in self.processes}
        # A holder is named after its host, with a random suffix.
        leaders = {holder.rpartition("_")[0] for holder in self._holders.values()} & processes
        if leaders and actor.name not in leaders:
            self.deposed_writes.append(f"{place}, while {', '.join(sorted(leaders))} leads")

    async def settled(self) -> None:
        """Wait until nothing is left to do.

        A key that asked to run later, or whose external call failed, may still have something to do: it is waited for, a
        few times while it writes.
        """
        assert self._plane is not None
        deadline = self.loop.time() + _LIMIT
        rounds = 0
        while True:
            await self._rest(deadline)
            await self._plane.settled()
            wrote, starts = self._last_write, self._starts
            last_run = self._last_run() if rounds < _ROUNDS else None
            if last_run is not None:
                rounds += 1
                await asyncio.sleep(last_run + _QUIET)
            if self._starts != starts:
                # A process that crashed has not done what it waited for, and the next one waits for it again.
                rounds = 0
            elif not self._is_busy() and self._last_write == wrote:
                return

    @property
    def _starts(self) -> int:
        return sum(process.starts for process in self.processes)

    async def _rest(self, deadline: float) -> None:
        if self.failures:
            raise NeverSettled(self.failures[0])
        self._turns_end = self.loop.turns + TURNS_MAX
        # A program that never waits is stopped, too.
        self.loop.turns_max = self._turns_end + TURNS_MAX
        self._waiting = self.loop.create_future()
        timer = self.loop.call_at(deadline, self._give_up)
        try:
            await self._waiting
        finally:
            timer.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(NeverSettled(self._why_busy()))

    def _on_idle(self, when: float | None) -> bool:
        if self._waiting is None or self._waiting.done():
            return False
        if self.loop.turns > self._turns_end:
            self._give_up()
            return True
        if any(process.is_starting for process in self.processes):
            self._last_start = self.loop.time()
        rests_at = max(self._last_write, self._last_start) + _QUIET
        if self.loop.time() < rests_at:
            if when is None or when > rests_at:
                self.loop.call_at(rests_at, _noop)
            return False
        if self._is_busy():
            return False
        self._waiting.set_result(None)
        return True

    def _is_busy(self) -> bool:
        if self.network.in_flight:
            return True
        # A crash of the leader is over when another process leads, or it does again.
        if self.primaries and not any(process.controllers for process in self.processes):
            return True
        if any(process.is_starting for process in self.processes) or any(map(_is_working, self._controllers())):
            return True
        return any(_is_recovering(informer) for _, manager in self._running() for informer in manager.informers)

    def _controllers(self) -> Iterator[Controller]:
        """The controllers that run now, those of programs beside the operator included."""
        for process in self.processes:
            yield from process.controllers
        yield from running_controllers()

    def _why_busy(self) -> str:
        starting = [process for process in self.processes if process.is_starting]
        busy = [f"{process.name} does not start working{_unserved(process.running)}" for process in starting]
        busy += [line for controller in self._controllers() for line in _work_of(controller)]
        return f"the run did not settle: {'; '.join(busy) or 'something is written again and again'}"

    def _last_run(self) -> float | None:
        """In how many seconds the last of the keys runs, or of the failed calls comes, that does so soon enough."""
        waits: list[float | None] = []
        for statistics in (controller.statistics(keys=_KEYS) for controller in self._controllers()):
            waits += [record.next_run for record in statistics.keys]
            waits += [source.next_retry for source in statistics.sources]
        return max((wait for wait in waits if wait is not None and wait <= _PATIENCE), default=None)


class _User:
    def __init__(self, world: World, client: Client) -> None:
        self._world = world
        self.client = client

    async def settled(self) -> None:
        """See `ScenarioUser.settled`."""
        await self._world.settled()
        self._world.snapshot()

    async def sleep(self, seconds: float) -> None:
        """See `ScenarioUser.sleep`."""
        await asyncio.sleep(seconds)


def _is_working(controller: Controller) -> bool:
    """Whether a controller has work: a key of its own, or something that its sources wait for."""
    return controller.busy or any(source.pending or source.in_doubt for source in controller.statistics(keys=0).sources)


def _is_recovering(informer: Informer[Any]) -> bool:
    """Whether a cache has lost its watch and waits before it tries again: it may have missed something."""
    return informer.synced and any(
        scope.phase == "waiting" and scope.staleness < _RECOVERY for scope in informer.statistics().scopes
    )


def _work_of(controller: Controller) -> Iterator[str]:
    """What keeps a controller busy."""
    if _is_working(controller):
        failing = [record for record in controller.statistics(keys=_KEYS).keys if record.failures]
        for record in failing[:_SHOWN]:
            error = (record.last_error.strip().splitlines() or ["no message"])[-1]
            yield f"controller {controller.name} fails for {record.request}: {error}"
        if not failing:
            yield f"controller {controller.name} keeps working"


def _commit_words(key: str, before: bytes | None, after: bytes | None) -> str:
    verb = "create" if before is None else "delete" if after is None else "change"
    return f"{verb} {key}"


class _LeaseSpec(msgspec.Struct, rename="camel"):
    holder_identity: str = ""


class _Lease(msgspec.Struct):
    spec: _LeaseSpec = msgspec.field(default_factory=_LeaseSpec)


def _holder(lease: bytes | None) -> str:
    """Who holds a Lease; empty if it is gone."""
    return "" if lease is None else msgspec.json.decode(lease, type=_Lease).spec.holder_identity


def _noop() -> None:
    pass


async def _nothing() -> None:
    pass


def _unserved(running: tuple[Actor, Manager] | None) -> str:
    """The kinds that an operator waits for because the server does not serve them, as words after its name."""
    informers = running[1].informers if running is not None else ()
    kinds = ", ".join(informer.gvk.kind for informer in informers if not informer.served)
    return f", because the server does not serve {kinds}; pass kinds=({kinds},) to install them" if kinds else ""
