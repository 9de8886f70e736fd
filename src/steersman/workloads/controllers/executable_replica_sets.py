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
from steersman.telemetry import visible
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

    outdated: Sequence[Executable]
    """Executables to delete: of an earlier template, or from before a restart."""
    ended: Sequence[Executable]
    """Executables that have ended, and that the restart policy replaces. They stay for a while, for their status."""
    reason: str = ""
    """Why Executables of the current template restart, as a sentence; empty if none does."""
    answers: bool = False
    """Whether the decision does what a changed file or another object asks for."""
    cascades: bool = False
    """Whether the sets that depend on this one restart too."""
    requested: bool = False
    """Whether the set's annotation requests the restart."""


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
        present = [child for child in children if RETIRED not in _annotations(child)]
        if is_stopped(replica_set):
            await self._stop_all(ctx, replica_set, record, [child for child in present if not child.deleting])
            return Done()
        decision = self._decide(replica_set, record, [child for child in present if not child.deleting])
        for child in decision.outdated:
            await ctx.client.delete(child, missing_ok=True)
        if decision.cascades:
            await self._cascade(ctx, replica_set)
        # Only now, because a reconcile that fails before this must decide the same again.
        _note_restart(record, decision)
        self._record_events(ctx, replica_set, decision)
        await self._retire(ctx, replica_set, record, children, decision.ended)
        present = [child for child in present if child not in decision.ended]
        alive = [child for child in present if not child.deleting and child not in decision.outdated]
        alive = await self._scale_down(ctx, replica_set, record, alive)
        for _ in range(replica_set.spec.replicas - len(present)):
            alive.append(await self._create(ctx, replica_set, record))
        write_status(replica_set, alive, record, now=aio.utc_now())
        await ctx.client.save(replica_set)
        return _next(record, is_replacing=bool(decision.outdated))

    # restarts

    def _decide(self, replica_set: ExecutableReplicaSet, record: Replicas, alive: Sequence[Executable]) -> _Decision:
        """The Executables to replace: those of an earlier template, all for a restart, or those that have ended."""
        wanted = template_hash(replica_set.spec.template)
        outdated = [child for child in alive if (child.metadata.labels or {}).get(TEMPLATE_LABEL) != wanted]
        current = [child for child in alive if child not in outdated]
        record.next_restart, record.exhausted = None, ""
        reason = self._reason(replica_set, record)
        if not reason:
            return self._decide_without_reason(replica_set, record, outdated, current)
        watch = (replica_set.spec.steersman or ReplicaSetAdditions()).watch
        return _Decision(
            [*outdated, *current],
            [],
            reason=reason if current else "",
            answers=True,
            cascades=bool(record.changed) and watch is not None and watch.cascade,
        )

    def _decide_without_reason(
        self,
        replica_set: ExecutableReplicaSet,
        record: Replicas,
        outdated: Sequence[Executable],
        current: Sequence[Executable],
    ) -> _Decision:
        """The same where no file and no other object restarts all: requested restarts, and the restart policy."""
        asked = requested_restart(replica_set)
        earlier = [child for child in current if asked and requested_restart(child) != asked]
        reason = f"A restart was requested at {asked}." if earlier else ""
        ended = [child for child in current if child not in earlier and _is_replaced(replica_set, record, child)]
        return _Decision([*outdated, *earlier], ended, reason=reason, requested=bool(earlier))

    async def _stop_all(
        self, ctx: Context, replica_set: ExecutableReplicaSet, record: Replicas, alive: Sequence[Executable]
    ) -> None:
        """Stop all Executables, and mark them, including ended ones, for the next start."""
        for child in alive:
            if STOPPED not in _annotations(child):
                child.spec.stop = child.spec.stop or state_of(child) not in ENDED
                child.metadata.annotations = {**_annotations(child), STOPPED: "true"}
                await ctx.client.save(child)
        left = sum(state_of(child) not in ENDED for child in alive)
        message = f"Stopping: {left} of {len(alive)} Executables are still running." if left else STOPPED_MESSAGE
        # The next run reads the files as they are then.
        record.next_restart, record.exhausted, record.changed, record.asked = None, "", "", ""
        if not _is_held(replica_set):
            ctx.events.record(replica_set, "Normal", "Stopping", "Stop", f"The annotation {STOPPED} requests a stop.")
        write_status(replica_set, alive, record, now=aio.utc_now(), stopped=message)
        await ctx.client.save(replica_set)

    def _record_events(self, ctx: Context, replica_set: ExecutableReplicaSet, decision: _Decision) -> None:
        if decision.requested:
            ctx.events.record(replica_set, "Normal", "Restarting", "Restart", decision.reason)
        elif _is_held(replica_set):
            ctx.events.record(replica_set, "Normal", "Starting", "Start", f"The annotation {STOPPED} was removed.")

    async def _retire(
        self,
        ctx: Context,
        replica_set: ExecutableReplicaSet,
        record: Replicas,
        children: Sequence[Executable],
        ended: Sequence[Executable],
    ) -> None:
        """Keep the latest Executables that have ended, for their status and their output, and delete earlier ones.

        Their restarts are counted, except after a stop of the set.
        """
        for child in ended:
            is_restart = STOPPED not in _annotations(child)
            child.metadata.annotations = {**_annotations(child), RETIRED: "restarted"}
            await ctx.client.save(child)
            if is_restart:
                record.restarts += 1
                record.reason = f"{ended_words(child)}."
                record.lineages.append(_restarts_in_a_row(replica_set, child) + 1)
        retired = [child for child in children if _annotations(child).get(RETIRED) == "restarted"]
        for child in retired[: -max(replica_set.spec.replicas, 1)]:
            if not child.deleting:
                await ctx.client.delete(child, missing_ok=True)

    def _reason(self, replica_set: ExecutableReplicaSet, record: Replicas) -> str:
        """Why all Executables restart now: a changed file, or another object. Empty if they do not."""
        watch = (replica_set.spec.steersman or ReplicaSetAdditions()).watch
        if record.changed and watch is not None:
            due = record.changed_at + parse_duration(watch.debounce).total_seconds()
            if asyncio.get_running_loop().time() >= due:
                return f"The file {visible(record.changed)} has changed."
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
        others = {other.key.name: other for other in await ctx.client.list(ExecutableReplicaSet)}
        restarted, left = {replica_set.key.name}, [replica_set.key.name]
        while left:
            name = left.pop()
            for other in others.values():
                needs = (other.spec.template.spec.steersman or ProcessAdditions()).depends_on or ()
                is_dependent = any(need.kind == "ExecutableReplicaSet" and need.name == name for need in needs)
                if is_dependent and other.key.name not in restarted:
                    restarted.add(other.key.name)
                    left.append(other.key.name)
                    reason = f"ExecutableReplicaSet {name} has restarted."
                    self._world.defer(other.uid, partial(_note_request, reason), reason)

    # the number of replicas

    async def _scale_down(
        self, ctx: Context, replica_set: ExecutableReplicaSet, record: Replicas, alive: list[Executable]
    ) -> list[Executable]:
        """Delete or stop surplus Executables: those that have ended first, then the latest. Returns the others."""
        surplus = len(alive) - replica_set.spec.replicas
        if surplus <= 0:
            return alive
        ordered = sorted(alive, key=lambda child: (state_of(child) in ENDED, _sequence(child)), reverse=True)
        for child in ordered[:surplus]:
            if replica_set.spec.stop_on_scale_down:
                child.spec.stop = True
                child.metadata.annotations = {**_annotations(child), RETIRED: "scaled"}
                await ctx.client.save(child)
            else:
                await ctx.client.delete(child, missing_ok=True)
        record.last_scale = MicroTime.of(aio.utc_now())
        return [child for child in alive if child not in ordered[:surplus]]

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
                created = await ctx.client.create(Executable(metadata=metadata, spec=template.spec), owner=replica_set)
            except AlreadyExists:
                continue
            record.last_scale = MicroTime.of(aio.utc_now())
            return created

    # the end

    async def _delete(self, ctx: Context, replica_set: ExecutableReplicaSet, children: Sequence[Executable]) -> Outcome:
        self._files.forget(replica_set.uid)
        remaining = [
            child for child in children if child.deleting or await ctx.client.delete(child, missing_ok=True) is not None
        ]
        if remaining:
            return Done()
        if not self._is_ending():
            await remove_finalizer(ctx.client, replica_set, FINALIZER)
        self._world.forget(replica_set.uid)
        return Done()


#: States of an Executable that a restart can follow.
ENDED: Final = frozenset({"Finished", "Terminated", "FailedToStart", "Unknown"})


def _recall(replica_set: ExecutableReplicaSet, record: Replicas, children: Sequence[Executable]) -> None:
    """Continue where an earlier control plane has stopped."""
    record.sequence = max([record.sequence, *(_sequence(child) for child in children)])
    status = replica_set.status
    if record.restarts < 0:
        observed = status.steersman if status is not None else None
        record.restarts = observed.restarts if observed is not None else 0
        record.reason = (observed.last_restart_reason if observed is not None else None) or ""
        record.last_scale = status.last_scale_time if status is not None else None


def _is_replaced(replica_set: ExecutableReplicaSet, record: Replicas, executable: Executable) -> bool:
    """Whether an Executable of the current template has ended and is replaced now."""
    if STOPPED in _annotations(executable):
        # The set was stopped and starts again: that is no restart, and needs no delay.
        return state_of(executable) in ENDED
    return _is_restart_due(replica_set, record, executable)


def _is_restart_due(replica_set: ExecutableReplicaSet, record: Replicas, executable: Executable) -> bool:
    """Whether an Executable has ended and the restart policy replaces it now.

    If it does not, the record says when the next restart is due, or why none follows.
    """
    policy = _restart_policy(replica_set)
    status = executable.status
    if status is None or status.state not in ENDED or executable.spec.stop or policy.policy == "Never":
        return False
    if policy.policy == "OnFailure" and status.state == "Finished" and status.exit_code == 0:
        return False
    maximum = parse_duration(policy.maximum_delay)
    restarts = _restarts_in_a_row(replica_set, executable)
    if policy.maximum_restarts is not None and restarts >= policy.maximum_restarts:
        record.exhausted = f"a change: {ended_words(executable)} after {restarts} restarts in a row, the maximum"
        return False
    delay = min(parse_duration(policy.delay) * 2 ** min(restarts, 32), maximum)
    now, loop_now = aio.utc_now(), asyncio.get_running_loop().time()
    ended = status.finish_timestamp
    # An end in the future: the clock was set back.
    left = delay - (now - ended) if ended is not None and ended <= now else timedelta(0)
    if left > timedelta(0):
        due = loop_now + left.total_seconds()
        record.next_restart = due if record.next_restart is None else min(record.next_restart, due)
        return False
    return True


def _restart_policy(replica_set: ExecutableReplicaSet) -> RestartPolicy:
    return (replica_set.spec.steersman or ReplicaSetAdditions()).restart or RestartPolicy()


def _restarts_in_a_row(replica_set: ExecutableReplicaSet, executable: Executable) -> int:
    """The restarts that led to an Executable; 0 if it ran for a while, so that its end is a new failure."""
    status = executable.status
    began, ended = (status.startup_timestamp, status.finish_timestamp) if status is not None else (None, None)
    ran = ended - began if began is not None and ended is not None else timedelta(0)
    if ran >= parse_duration(_restart_policy(replica_set).maximum_delay):
        return 0
    return int(_annotations(executable).get(RESTARTS, "0"))


def _note_restart(record: Replicas, decision: _Decision) -> None:
    """Count a restart that is not the restart policy's, and forget what asked for it."""
    if decision.reason:
        record.restarts += 1
        record.reason = decision.reason
    if decision.answers:
        record.changed, record.asked = "", ""


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


def _note_request(reason: str, record: Replicas) -> None:
    record.asked = reason
