"""The controller of ExecutableReplicaSets: a number of Executables of one template.

Guarantees
- An Executable is replaced only after its processes have ended: the replacement never competes for a port.
- A restart is a new Executable, named after its parent, the hash of the template and a sequence number.
- Restarts, their reason and the time of the next one are in the status.
- A stop or restart that an annotation requests is written to the Executables, so a repeated reconcile repeats nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from steersman import aio
from steersman.controller import Blueprint, Context, Done, Outcome, Request, RequeueAfter, controller_for, when
from steersman.errors import AlreadyExists
from steersman.objects import MicroTime, ObjectMeta, parse_duration
from steersman.patterns import add_finalizer, remove_finalizer
from steersman.workloads.controllers.replicas import Replicas, ended_words, state_of, write_status
from steersman.workloads.files import FileWatcher, Watched
from steersman.workloads.kinds import (
    RESTARTED_AT,
    STOPPED,
    STOPPED_MESSAGE,
    Executable,
    ExecutableReplicaSet,
    ProcessAdditions,
    ReplicaSetAdditions,
    RestartPolicy,
    is_stopped,
    requested_restart,
)
from steersman.workloads.launches import working_folder
from steersman.workloads.lifecycle_key import template_hash
from steersman.workloads.world import World

#: Keeps a set until its Executables are gone.
FINALIZER: Final = "steersman.dev/replicas"
#: Labels of an Executable: its set, and the hash of the template that made it.
SET_LABEL, TEMPLATE_LABEL = "steersman.dev/replica-set", "steersman.dev/template"
#: Annotations of an Executable: its number of restarts in a row, and that its set counts it no longer: it was replaced
#: after its end ("restarted"), or stopped to scale down ("scaled").
RESTARTS, RETIRED = "steersman.dev/restarts", "steersman.dev/retired"
#: Seconds after which a deletion is looked at again, if no event comes first.
_LOOK_AGAIN = 0.2


def executable_replica_sets(
    *, files: FileWatcher, folder: Path, is_ending: Callable[[], bool] = lambda: False
) -> Blueprint:
    """The controller of ExecutableReplicaSets, for a `Manager`.

    ``folder`` is the working directory of programs that name none. ``is_ending`` returns whether the server ends once all
    Executables are gone: then a deleted set stays until that.
    """
    world: World[Replicas] = World("replicas", Replicas)
    reconciler = _ReplicaSets(world, files, folder, is_ending)
    builder = controller_for(ExecutableReplicaSet).when(when(world.concerns)).on(world).owns(Executable)
    return builder.options(concurrency=8).run_with(reconciler)


class _Decision(NamedTuple):
    """What a reconcile replaces."""

    doomed: Sequence[Executable]
    """Executables to delete."""
    ended: Sequence[Executable]
    """Executables that have ended, and that the restart policy replaces."""
    cascades: bool = False
    """Whether the sets that depend on this one restart too."""
    requested: str = ""
    """A sentence about the restart that the set's annotation requests."""


class _ReplicaSets:
    def __init__(self, world: World[Replicas], files: FileWatcher, folder: Path, is_ending: Callable[[], bool]) -> None:
        self._world = world
        self._files = files
        self._folder = folder
        self._is_ending = is_ending

    async def reconcile(self, ctx: Context, request: Request) -> Outcome:
        """Bring one set closer to its spec."""
        replica_set = await ctx.client.find(ExecutableReplicaSet, request.key)
        for uid, _ in self._world.replaced(request.key, replica_set.uid if replica_set is not None else ""):
            self._files.forget(uid)
            self._world.forget(uid)
        if replica_set is None:
            return Done()
        children = sorted(await ctx.client.owned_by(Executable, replica_set), key=_sequence)
        if replica_set.deleting:
            return await self._delete(ctx, replica_set, children)
        replica_set = await add_finalizer(ctx.client, replica_set, FINALIZER)
        record = self._world.record(replica_set)
        _recall(replica_set, record, children)
        self._watch(replica_set, record)
        present = [each for each in children if RETIRED not in _annotations(each)]
        if is_stopped(replica_set):
            await self._hold(ctx, replica_set, record, [each for each in present if not each.deleting])
            return Done()
        decided = self._decide(replica_set, record, [each for each in present if not each.deleting])
        self._record_events(ctx, replica_set, decided)
        for each in decided.doomed:
            await ctx.client.delete(each, missing_ok=True)
        await self._retire(ctx, replica_set, children, decided.ended)
        present = [each for each in present if each not in decided.ended]
        alive = [each for each in present if not each.deleting and each not in decided.doomed]
        alive = await self._scale_down(ctx, replica_set, record, alive)
        for _ in range(replica_set.spec.replicas - len(present)):
            alive.append(await self._create(ctx, replica_set, record))
        write_status(replica_set, alive, record, now=aio.utc_now())
        await ctx.client.save(replica_set)
        if decided.cascades:
            await self._cascade(ctx, replica_set)
        return _next(record, is_replacing=bool(decided.doomed))

    # restarts

    def _decide(self, replica_set: ExecutableReplicaSet, record: Replicas, alive: Sequence[Executable]) -> _Decision:
        """The Executables to replace: those of an earlier template, all for a restart, or those that have ended."""
        wanted = template_hash(replica_set.spec.template)
        doomed = [each for each in alive if (each.metadata.labels or {}).get(TEMPLATE_LABEL) != wanted]
        current = [each for each in alive if each not in doomed]
        record.next_restart, record.exhausted = None, ""
        reason = self._reason(replica_set, record)
        if not reason:
            return self._replace(replica_set, record, doomed, current)
        if current:
            record.restarts += 1
            record.reason = reason
        watch = (replica_set.spec.steersman or ReplicaSetAdditions()).watch
        is_changed, record.changed, record.asked = bool(record.changed), "", ""
        return _Decision([*doomed, *current], [], cascades=is_changed and watch is not None and watch.cascade)

    def _replace(
        self,
        replica_set: ExecutableReplicaSet,
        record: Replicas,
        doomed: Sequence[Executable],
        current: Sequence[Executable],
    ) -> _Decision:
        """Decide which Executables of the current template to replace: those from before a requested restart, or ended ones."""
        asked = requested_restart(replica_set)
        earlier = [each for each in current if asked and requested_restart(each) != asked]
        requested = f"A restart was requested at {asked}." if earlier else ""
        if earlier:
            record.restarts += 1
            record.reason = requested
        ended = [
            each
            for each in current
            if each not in earlier
            and (state_of(each) in ENDED if STOPPED in _annotations(each) else _is_due(replica_set, record, each))
        ]
        return _Decision([*doomed, *earlier], ended, requested=requested)

    async def _hold(
        self, ctx: Context, replica_set: ExecutableReplicaSet, record: Replicas, alive: Sequence[Executable]
    ) -> None:
        """Stop all Executables, and mark them, including ended ones, for the next start."""
        for each in alive:
            if STOPPED not in _annotations(each):
                each.spec.stop = each.spec.stop or state_of(each) not in ENDED
                each.metadata.annotations = {**_annotations(each), STOPPED: "true"}
                await ctx.client.save(each)
        left = sum(state_of(each) not in ENDED for each in alive)
        message = f"Stopping: {left} of {len(alive)} Executables are still running." if left else STOPPED_MESSAGE
        # The next run reads the files as they are then.
        record.next_restart, record.exhausted, record.changed, record.asked = None, "", "", ""
        if not _is_held(replica_set):
            ctx.events.record(replica_set, "Normal", "Stopping", "Stop", f"The annotation {STOPPED} requests a stop.")
        write_status(replica_set, alive, record, now=aio.utc_now(), stopped=message)
        await ctx.client.save(replica_set)

    def _record_events(self, ctx: Context, replica_set: ExecutableReplicaSet, decided: _Decision) -> None:
        if decided.requested:
            ctx.events.record(replica_set, "Normal", "Restarting", "Restart", decided.requested)
        elif _is_held(replica_set):
            ctx.events.record(replica_set, "Normal", "Starting", "Start", f"The annotation {STOPPED} was removed.")

    async def _retire(
        self,
        ctx: Context,
        replica_set: ExecutableReplicaSet,
        children: Sequence[Executable],
        ended: Sequence[Executable],
    ) -> None:
        """Keep the latest Executables that have ended, for their status and their output, and delete earlier ones."""
        for each in ended:
            each.metadata.annotations = {**_annotations(each), RETIRED: "restarted"}
            await ctx.client.save(each)
        retired = [each for each in children if _annotations(each).get(RETIRED) == "restarted"]
        for each in retired[: -max(replica_set.spec.replicas, 1)]:
            if not each.deleting:
                await ctx.client.delete(each, missing_ok=True)

    def _reason(self, replica_set: ExecutableReplicaSet, record: Replicas) -> str:
        """Why all Executables restart now; empty if they do not."""
        watch = (replica_set.spec.steersman or ReplicaSetAdditions()).watch
        if record.changed and watch is not None:
            due = record.changed_at + parse_duration(watch.debounce).total_seconds()
            if asyncio.get_running_loop().time() >= due:
                return f"The file {record.changed} has changed."
            record.next_restart = due
        return record.asked

    def _watch(self, replica_set: ExecutableReplicaSet, record: Replicas) -> None:
        watch = (replica_set.spec.steersman or ReplicaSetAdditions()).watch
        uid = replica_set.uid
        if watch is None:
            self._files.forget(uid)
            record.watched, record.unwatched = None, ""
            return
        folder = working_folder(replica_set.spec.template.spec, str(self._folder))

        def listen(path: str) -> None:
            moment = asyncio.get_running_loop().time()
            self._world.defer(uid, partial(_note_change, path, moment), f"{path} has changed")

        def complain(problem: str) -> None:
            self._world.defer(uid, partial(_note_problem, problem), problem)

        watched = Watched(folder, tuple(watch.paths), tuple(watch.ignore or ()))
        if record.watched != watched:
            record.watched, record.unwatched = watched, ""
        self._files.watch(uid, watched, listen, complain)

    async def _cascade(self, ctx: Context, replica_set: ExecutableReplicaSet) -> None:
        """Restart the sets that depend on this one, directly or not. Their dependencies decide the order."""
        others = {each.key.name: each for each in await ctx.client.list(ExecutableReplicaSet)}
        reached, left = {replica_set.key.name}, [replica_set.key.name]
        while left:
            name = left.pop()
            for other in others.values():
                needs = (other.spec.template.spec.steersman or ProcessAdditions()).depends_on or ()
                is_dependent = any(each.kind == "ExecutableReplicaSet" and each.name == name for each in needs)
                if is_dependent and other.key.name not in reached:
                    reached.add(other.key.name)
                    left.append(other.key.name)
                    reason = f"ExecutableReplicaSet {name} has restarted."
                    self._world.defer(other.uid, partial(_ask, reason), reason)

    # the number of replicas

    async def _scale_down(
        self, ctx: Context, replica_set: ExecutableReplicaSet, record: Replicas, alive: list[Executable]
    ) -> list[Executable]:
        """Delete or stop surplus Executables: those that have ended first, then the latest. Returns the others."""
        surplus = len(alive) - replica_set.spec.replicas
        if surplus <= 0:
            return alive
        ordered = sorted(alive, key=lambda each: (state_of(each) in ENDED, _sequence(each)), reverse=True)
        for each in ordered[:surplus]:
            if replica_set.spec.stop_on_scale_down:
                each.spec.stop = True
                each.metadata.annotations = {**_annotations(each), RETIRED: "scaled"}
                await ctx.client.save(each)
            else:
                await ctx.client.delete(each, missing_ok=True)
        record.last_scale = MicroTime.of(aio.utc_now())
        return [each for each in alive if each not in ordered[:surplus]]

    async def _create(self, ctx: Context, replica_set: ExecutableReplicaSet, record: Replicas) -> Executable:
        template = replica_set.spec.template
        wanted = template_hash(template)
        annotations = dict(template.annotations or {})
        if asked := requested_restart(replica_set):
            annotations[RESTARTED_AT] = asked
        restarts = record.lineages.pop(0) if record.lineages else 0
        if restarts:
            annotations[RESTARTS] = str(restarts)
        while True:
            record.sequence += 1
            metadata = ObjectMeta(
                name=f"{replica_set.key.name}-{wanted}-{record.sequence}",
                labels={**(template.labels or {}), SET_LABEL: replica_set.key.name, TEMPLATE_LABEL: wanted},
                annotations=annotations or None,
            )
            try:
                made = await ctx.client.create(Executable(metadata=metadata, spec=template.spec), owner=replica_set)
            except AlreadyExists:
                continue
            record.last_scale = MicroTime.of(aio.utc_now())
            return made

    # the end

    async def _delete(self, ctx: Context, replica_set: ExecutableReplicaSet, children: Sequence[Executable]) -> Outcome:
        self._files.forget(replica_set.uid)
        held = [
            each for each in children if each.deleting or await ctx.client.delete(each, missing_ok=True) is not None
        ]
        if held:
            return Done()
        if not self._is_ending():
            await remove_finalizer(ctx.client, replica_set, FINALIZER)
        self._world.forget(replica_set.uid)
        return Done()


#: States of an Executable that a restart can follow.
ENDED: Final = frozenset({"Finished", "Terminated", "FailedToStart", "Unknown"})


def _recall(replica_set: ExecutableReplicaSet, record: Replicas, children: Sequence[Executable]) -> None:
    """Continue where an earlier control plane has stopped."""
    record.sequence = max([record.sequence, *(_sequence(each) for each in children)])
    status = replica_set.status
    if record.restarts < 0:
        observed = status.steersman if status is not None else None
        record.restarts = observed.restarts if observed is not None else 0
        record.reason = (observed.last_restart_reason if observed is not None else None) or ""
        record.last_scale = status.last_scale_time if status is not None else None


def _is_due(replica_set: ExecutableReplicaSet, record: Replicas, executable: Executable) -> bool:
    """Whether an Executable has ended and is to be replaced now."""
    policy = (replica_set.spec.steersman or ReplicaSetAdditions()).restart or RestartPolicy()
    status = executable.status
    if status is None or status.state not in ENDED or executable.spec.stop or policy.policy == "Never":
        return False
    if policy.policy == "OnFailure" and status.state == "Finished" and status.exit_code == 0:
        return False
    maximum = parse_duration(policy.maximum_delay)
    restarts = int(_annotations(executable).get(RESTARTS, "0"))
    began, ended = status.startup_timestamp, status.finish_timestamp
    if began is not None and ended is not None and ended - began >= maximum:
        # It ran for a while: the next failure is a new one.
        restarts = 0
    if policy.maximum_restarts is not None and restarts >= policy.maximum_restarts:
        record.exhausted = f"a change: {ended_words(executable)} after {restarts} restarts in a row, the maximum"
        return False
    delay = min(parse_duration(policy.delay) * 2 ** min(restarts, 32), maximum)
    now, loop_now = aio.utc_now(), asyncio.get_running_loop().time()
    left = delay - (now - (ended or now)) if ended is not None else timedelta(0)
    if left > timedelta(0):
        due = loop_now + left.total_seconds()
        record.next_restart = due if record.next_restart is None else min(record.next_restart, due)
        return False
    record.restarts += 1
    record.reason = f"{ended_words(executable)}."
    record.lineages.append(restarts + 1)
    return True


def _next(record: Replicas, *, is_replacing: bool) -> Outcome:
    if record.next_restart is not None:
        return RequeueAfter(record.next_restart - asyncio.get_running_loop().time())
    return RequeueAfter(_LOOK_AGAIN) if is_replacing else Done()


def _annotations(executable: Executable) -> dict[str, str]:
    return executable.metadata.annotations or {}


def _is_held(replica_set: ExecutableReplicaSet) -> bool:
    """Whether the status says that an annotation keeps the set stopped."""
    observed = replica_set.status.steersman if replica_set.status is not None else None
    return observed is not None and observed.message is not None


def _sequence(executable: Executable) -> int:
    number = executable.key.name.rpartition("-")[2]
    return int(number) if number.isdigit() else 0


def _note_change(path: str, moment: float, record: Replicas) -> None:
    record.changed, record.changed_at = path, moment


def _note_problem(problem: str, record: Replicas) -> None:
    record.unwatched = problem


def _ask(reason: str, record: Replicas) -> None:
    record.asked = reason
