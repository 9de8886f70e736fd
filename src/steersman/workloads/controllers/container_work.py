"""The slow work of a Container: commands of the runtime, which run beside the reconcile and report with operations."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from steersman.aio import utc_now
from steersman.workloads.containers import (
    CannotExecute,
    ContainerFacts,
    ContainerLaunch,
    ContainerRunner,
    ContainerRuntimeError,
    InvalidFiles,
    NameInUse,
    RuntimeUnavailable,
    StartupLog,
    archive,
)
from steersman.workloads.containers.creator import LIFECYCLE_KEY, UID
from steersman.workloads.controllers.container_launch import build_of, creates, mode_of, reuses
from steersman.workloads.controllers.container_run import Run
from steersman.workloads.controllers.container_world import ContainerWorld
from steersman.workloads.controllers.output_copy import OutputCopy
from steersman.workloads.kinds import Container, runtime_names

#: A change of a record that finished work asks for.
Change = Callable[[Run], None]
#: What the runtimes say of a port that another process has.
PORT_IN_USE = re.compile(r"address already in use|port is already allocated", re.IGNORECASE)
#: Seconds until a runtime that does not answer is asked again, and until a missing container is looked for again.
RETRY, _MISSING = 5.0, 2.0
#: How long before the time of its start a container may have written its first line.
_BEFORE_START = timedelta(seconds=1)
#: The exit code of a container whose own is lost: that of SIGKILL.
_KILLED = 137


class ContainerWork:
    """Begins pieces of work. A record has at most one at a time, named in ``run.work``."""

    def __init__(self, world: ContainerWorld, runner: ContainerRunner, logs: Path) -> None:
        self._world, self._runner, self._logs = world, runner, logs
        self._tasks: dict[str, asyncio.Task[None]] = {}
        #: The uids of Containers whose image is being pulled.
        self._pulling: set[str] = set()

    def look(self, container: Container, run: Run) -> None:
        """Ask whether the runtime answers, and look for the container to reuse."""
        self._begin(container.uid, run, "look", self._look(container, run.name, run.lifecycle_key))

    def build(self, container: Container, run: Run) -> None:
        """Build the image."""
        run.building = True
        self._begin(container.uid, run, "build", self._build(container, self._log(container, run)))

    def start(self, container: Container, run: Run, launch: ContainerLaunch) -> None:
        """Create and start the container."""
        run.starting = True
        run.names = runtime_names(container, launch.name)
        self._begin(container.uid, run, "start", self._start(container, launch, self._log(container, run)))

    def start_again(self, container: Container, run: Run) -> None:
        """Start a container that has ended."""
        run.starting = True
        work = self._start_again(container, run.again, run.again_since, run.output)
        self._begin(container.uid, run, "start", work)

    def look_at(self, container: Container, run: Run) -> None:
        """Read the facts of the container."""
        assert run.facts is not None
        run.stale = False
        self._begin(container.uid, run, "inspect", self._look_at(container, run.facts, run.output))

    def look_for_start(self, container: Container, run: Run) -> None:
        """Read the facts of a container that another program starts."""
        run.stale = False
        self._begin(container.uid, run, "inspect", self._look_for_start(run.created))

    def stop(self, container: Container, run: Run, grace: float) -> None:
        """Stop the container."""
        assert run.facts is not None
        self._begin(container.uid, run, "stop", self._stop(container, run.facts.id, grace))

    def remove(self, container: Container, run: Run, grace: float) -> None:
        """Stop and remove the container; one that a failed attempt may have created is looked for first."""
        identity = run.facts.id if run.facts is not None else run.created
        if identity:
            work = self._remove(identity, grace if run.is_alive else None, run.output)
        else:
            work = self._remove_attempted(container.uid, run.names)
        self._begin(container.uid, run, "remove", work)

    def remove_lost(self, uid: str, run: Run) -> None:
        """Remove the container of an object that vanished; one that a failed attempt may have created is looked for first."""
        work = self._remove(run.created, 1.0, run.output) if run.created else self._remove_attempted(uid, run.names)
        self._begin(uid, run, "remove", work)

    def cancel(self, container: Container, run: Run) -> None:
        """Cancel work that creates nothing, such as a build or a pull; its command is killed."""
        task = self._tasks.get(container.uid)
        if task is not None and (run.work in {"look", "build"} or container.uid in self._pulling):
            task.cancel()

    def delete_output(self, run: Run) -> None:
        """Delete the files of a container's output, with the rotated ones."""
        for name in (run.stdout, run.stderr, run.startup_stdout, run.startup_stderr):
            for path in self._logs.glob(f"{Path(name).name}*") if name else ():
                path.unlink(missing_ok=True)

    def _begin(self, uid: str, run: Run, name: str, work: Coroutine[Any, Any, Change]) -> None:
        run.work = name
        task = self._tasks[uid] = self._world.work(self._reported(uid, name, work), name=f"{name} {run.name}")
        task.add_done_callback(lambda ended: self._tasks.pop(uid, None) if self._tasks.get(uid) is ended else None)

    async def _reported(self, uid: str, name: str, work: Coroutine[Any, Any, Change]) -> None:
        """Run work, and change the record by its result."""
        change: Change = _unchanged
        try:
            change = await work
        except RuntimeUnavailable as error:
            change = partial(_set_outage, str(error), asyncio.get_running_loop().time() + RETRY)
        except CannotExecute as error:
            change = partial(_set_cannot_execute, error)
        except (ContainerRuntimeError, InvalidFiles, OSError) as error:
            change = partial(_set_failure, str(error))
            if name == "remove":
                change = partial(_set_remove_failed, str(error), asyncio.get_running_loop().time() + RETRY)
        finally:
            work.close()
            self._world.defer(uid, partial(_finish, change), f"{name} has ended")

    async def _look(self, container: Container, name: str, key: str) -> Change:
        spec = container.spec
        await self._runner.check()
        if not reuses(spec):
            return _set_looked
        facts = await self._runner.find(name)
        if facts is None:
            again = asyncio.get_running_loop().time() + _MISSING
            return _set_looked if creates(spec) else partial(_set_missing, again)
        ours = UID in facts.labels
        same = facts.labels.get(LIFECYCLE_KEY, "") == key and facts.state == "running"
        if creates(spec) and not spec.stop and ours and not same:
            if spec.start:
                await self._runner.remove(facts.id)
            return _set_looked
        return partial(_set_adopted, facts, *await self._follow(container, facts.id))

    async def _build(self, container: Container, log: StartupLog) -> Change:
        await self._runner.build(build_of(container), log)
        return _set_built

    async def _start(self, container: Container, launch: ContainerLaunch, log: StartupLog) -> Change:
        spec = container.spec
        try:
            if spec.build is None and await self._must_pull(spec.pull_policy, launch.image):
                await self._pull(container, launch.image, log)
            for mount in launch.mounts:
                if mount.type == "bind" and mount.source.startswith("/"):
                    await asyncio.to_thread(_make_source, Path(mount.source))
            archives = [
                (await asyncio.to_thread(archive, files), files.destination) for files in spec.create_files or ()
            ]
            try:
                identity = await self._create(container, launch)
            except ContainerRuntimeError:
                # It may exist all the same, if the runtime answers no more or cannot connect it to a network.
                self._world.defer(container.uid, _set_attempted, "the attempt to create it has failed")
                raise
            self._world.defer(container.uid, partial(_set_created, identity), "created")
            for data, destination in archives:
                await self._runner.copy(identity, data, destination)
            if launch.attach:
                await self._runner.initialize(identity)
                return _set_attachable
            await self._runner.start(identity)
            facts = await self._runner.find(identity)
        except ContainerRuntimeError as error:
            await asyncio.to_thread(_log_error, log.stderr, str(error))
            if PORT_IN_USE.search(str(error)) and any(not each.host_port for each in spec.ports or ()):
                return partial(_set_port_in_use, str(error))
            raise
        if facts is None:
            return partial(_set_lost, f"The container {launch.name} vanished while it started.")
        return partial(_set_facts, facts, *await self._follow(container, identity))

    async def _start_again(
        self, container: Container, identity: str, since: datetime | None, output: OutputCopy | None
    ) -> Change:
        if await self._runner.find(identity) is None:
            return _set_gone
        if output is not None:
            # A copy that goes on would see the next run too, whose output would then be in the file twice.
            await output.finish()
        await self._runner.start(identity)
        facts = await self._runner.find(identity)
        if facts is None:
            return partial(_set_lost, "The container vanished while it started.")
        return partial(_set_facts, facts, *await self._follow(container, identity, _since(since, facts)))

    async def _pull(self, container: Container, image: str, log: StartupLog) -> None:
        self._pulling.add(container.uid)
        try:
            await self._runner.pull(image, log)
        finally:
            self._pulling.discard(container.uid)

    async def _must_pull(self, policy: str, image: str) -> bool:
        return policy == "always" or (policy == "missing" and not await self._runner.has_image(image))

    async def _create(self, container: Container, launch: ContainerLaunch) -> str:
        """Create the container, in place of one that an earlier attempt may have left."""
        for name in runtime_names(container, launch.name):
            named = msgspec.structs.replace(launch, name=name)
            try:
                return await self._runner.create(named)
            except NameInUse:
                facts = await self._runner.find(name)
                if facts is not None and facts.labels.get(UID) == container.uid:
                    await self._runner.remove(facts.id)
                    return await self._runner.create(named)
        raise ContainerRuntimeError(
            f"another container has the name {launch.name}: remove it with {self._runner.name} rm, or use mode"
            f" persistent to replace it (this one has mode {mode_of(container.spec)})"
        )

    async def _follow(
        self, container: Container, identity: str, since: datetime | None = None
    ) -> tuple[str, str, OutputCopy]:
        """Copy the output of a container to files; ``since`` leaves earlier output out."""
        stdout, stderr = (self._file(container, f"{identity[:8]}.{end}") for end in ("out", "err"))
        copy = OutputCopy()
        copy.process = await self._runner.follow_output(identity, stdout, stderr, copy.on_event, since=since)
        return stdout, stderr, copy

    async def _look_at(self, container: Container, known: ContainerFacts, output: OutputCopy | None) -> Change:
        facts = await self._runner.find(known.id)
        if facts is None or not facts.is_alive or known.started_at in {None, facts.started_at}:
            return _seen(facts)
        # The runtime has restarted it: the copy of its output ended with the earlier run.
        if output is not None:
            await output.finish()
        since = _since(known.finished_at or facts.finished_at or facts.started_at, facts)
        return partial(_set_facts, facts, *await self._follow(container, known.id, since))

    async def _look_for_start(self, identity: str) -> Change:
        facts = await self._runner.find(identity)
        waits = facts is not None and facts.started_at is None and not facts.is_alive
        return _set_waiting if waits else _seen(facts)

    async def _stop(self, container: Container, identity: str, grace: float) -> Change:
        again = asyncio.get_running_loop().time() + RETRY
        try:
            await self._runner.stop(identity, grace)
            facts = await self._runner.find(identity)
            if facts is not None and facts.state == "stopping":
                # Podman's monitor of the container was killed, so Podman waits for its report for ever: only a new one
                # starts.
                if mode_of(container.spec) != "session":
                    words = f"its monitor was killed, and Podman cannot stop it; remove it: podman rm --force {identity[:12]}"
                    return partial(_set_stop_failed, words, again)
                await self._runner.remove(identity)
                facts = msgspec.structs.replace(facts, state="exited", exit_code=_KILLED, finished_at=utc_now())
        except ContainerRuntimeError as error:
            return partial(_set_stop_failed, str(error), again)
        return _seen(facts)

    async def _remove(self, identity: str, grace: float | None, output: OutputCopy | None) -> Change:
        if grace is not None and await self._runner.find(identity) is not None:
            await self._runner.stop(identity, grace)
        await self._runner.remove(identity)
        if output is not None:
            # A line that comes later would make its file again after that is deleted.
            await output.finish()
        return _set_removed

    async def _remove_attempted(self, uid: str, names: Sequence[str]) -> Change:
        for each in names:
            facts = await self._runner.find(each)
            if facts is not None and facts.labels.get(UID) == uid:
                await self._runner.remove(facts.id)
        return _set_removed

    def _log(self, container: Container, run: Run) -> StartupLog:
        run.startup_stdout = self._file(container, "startup.out")
        run.startup_stderr = self._file(container, "startup.err")
        return StartupLog(run.startup_stdout, run.startup_stderr)

    def _file(self, container: Container, end: str) -> str:
        return str(self._logs / f"{container.key.name[:100]}-{container.uid[:8]}.{end}")


def _since(ended: datetime | None, facts: ContainerFacts) -> datetime | None:
    """From when on to copy the output of a run that follows another: from the end of that one.

    If the clock was set back since then, the output of the new run is older than that. A part is then copied twice, and none lost.
    """
    started = facts.started_at
    if ended is None or started is None or ended <= started:
        return ended
    return started - _BEFORE_START


def _seen(facts: ContainerFacts | None) -> Change:
    if facts is None:
        return partial(_set_lost, "The container was removed by another program.")
    return partial(_set_facts, facts)


def _make_source(path: Path) -> None:
    """Create the folder of a bind mount, unless the path exists. A file is mounted as a file."""
    if not path.exists():
        path.mkdir(parents=True, exist_ok=True)


def _log_error(path: str, error: str) -> None:
    """Append an error, unless the command of the runtime has already written its reason there."""
    file = Path(path)
    written = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
    if error.partition(": ")[2] not in written:
        file.write_text(f"{written}{error}\n", encoding="utf-8")


def _unchanged(run: Run) -> None:
    """The work was cancelled, or found nothing new."""


def _finish(change: Change, run: Run) -> None:
    run.work = ""
    change(run)


def _set_looked(run: Run) -> None:
    run.looked, run.outage, run.missing = True, "", False


def _set_gone(run: Run) -> None:
    """The container to start again is gone: the next step creates another one."""
    run.again = run.created = ""


def _set_missing(again: float, run: Run) -> None:
    run.outage, run.missing, run.retry_at = "", True, again


def _set_outage(error: str, again: float, run: Run) -> None:
    run.retry_at = again
    if run.facts is None and not run.attachable:
        run.outage = f"The container runtime does not answer: {error}"
        run.looked = run.building = False
    else:
        run.stale, run.problem = True, error


def _set_failure(error: str, run: Run) -> None:
    run.failure = error


def _set_remove_failed(error: str, again: float, run: Run) -> None:
    """The removal is tried again. It is a problem of the container, and no failure of its start."""
    run.problem, run.retry_at = error, again


def _set_cannot_execute(error: CannotExecute, run: Run) -> None:
    run.failure, run.start_code = str(error), error.code


def _set_port_in_use(error: str, run: Run) -> None:
    """Another process took the port since it was chosen: choose another one, once."""
    if run.has_changed_ports:
        run.failure = error
    run.has_changed_ports = True


def _set_stop_failed(error: str, again: float, run: Run) -> None:
    """The stop is tried again; the container may also have ended meanwhile."""
    run.stop_asked, run.stale, run.problem, run.retry_at = False, True, error, again


def _set_built(run: Run) -> None:
    run.built = True


def _set_created(identity: str, run: Run) -> None:
    run.created, run.attempted = identity, False


def _set_attempted(run: Run) -> None:
    run.attempted = True


def _set_attachable(run: Run) -> None:
    run.attachable = True


def _set_waiting(run: Run) -> None:
    """The runtime answers, and the container still waits for the program that starts it."""
    run.problem = ""


def _set_adopted(facts: ContainerFacts, stdout: str, stderr: str, output: OutputCopy, run: Run) -> None:
    _set_looked(run)
    _set_facts(facts, stdout, stderr, output, run)


def _set_facts(facts: ContainerFacts, *rest: Any) -> None:
    *files, run = rest
    if files:
        run.stdout, run.stderr, run.output = files
    run.outage = run.problem = ""
    run.attachable = False
    run.looked_at = asyncio.get_running_loop().time()
    if facts.is_alive:
        run.exited_at = None
    elif run.exited_at is None:
        run.exited_at = run.looked_at
    run.facts = facts


def _set_lost(why: str, run: Run) -> None:
    run.lost = why


def _set_removed(run: Run) -> None:
    run.removed = run.over = True
