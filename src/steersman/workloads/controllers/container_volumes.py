"""The controller of ContainerVolumes.

Guarantees
- A volume that exists is used as it is; otherwise it is created.
- A volume that is not persistent is removed with its object, after the last container that uses it.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

import msgspec

from steersman.aio import utc_now
from steersman.controller import Blueprint, Context, Done, Outcome, Request, RequeueAfter, controller_for
from steersman.objects import Condition, set_condition
from steersman.patterns import add_finalizer, has_finalizer, remove_finalizer
from steersman.workloads.containers import ContainerRunner, ContainerRuntimeError
from steersman.workloads.containers.creator import NAME, UID
from steersman.workloads.kinds import ContainerVolume, ContainerVolumeState
from steersman.workloads.transitions import steps
from steersman.workloads.world import World

#: Keeps a ContainerVolume until its volume is gone.
FINALIZER: Final = "steersman.dev/container-volumes"
#: Seconds until a command that failed is repeated.
_RETRY = 2.0


class VolumeRecord(msgspec.Struct, kw_only=True):
    """The record of a ContainerVolume."""

    work: bool = False
    """Whether a command of the runtime runs."""
    exists: bool = False
    removed: bool = False
    failure: str = ""
    """Why the last command failed; empty if it succeeded."""
    retry_at: float = 0.0
    """When a command that failed is repeated, in the time of the loop."""

    def retry_delay(self) -> float:
        """Seconds until the next command may run; not positive if it may run now."""
        return self.retry_at - asyncio.get_running_loop().time()

    def finish(self, failure: str) -> None:
        """Note the end of a command."""
        self.work, self.failure = False, failure
        self.retry_at = asyncio.get_running_loop().time() + _RETRY if failure else 0.0


def container_volumes(*, runner: ContainerRunner) -> Blueprint:
    """The controller of ContainerVolumes, for a `Manager`."""
    world: World[VolumeRecord] = World("container volumes", VolumeRecord, limit=4)
    return controller_for(ContainerVolume).on(world).run_with(_Volumes(world, runner))


class _Volumes:
    def __init__(self, world: World[VolumeRecord], runner: ContainerRunner) -> None:
        self._world, self._runner = world, runner

    async def reconcile(self, ctx: Context, request: Request) -> Outcome:
        """Bring one ContainerVolume closer to its spec."""
        volume = await ctx.client.find(ContainerVolume, request.key)
        if volume is None:
            return Done()
        record = self._world.record(volume)
        if volume.deleting:
            return await self._delete(ctx, volume, record)
        volume = await add_finalizer(ctx.client, volume, FINALIZER)
        delay = record.retry_delay()
        if not record.work and not record.exists and delay <= 0:
            record.work = True
            self._world.work(self._create(volume), name=f"create volume {volume.key}")
        await self._write(ctx, volume, record)
        return Done() if record.work or record.exists else RequeueAfter(delay)

    async def _write(self, ctx: Context, volume: ContainerVolume, record: VolumeRecord) -> None:
        before: ContainerVolumeState = volume.status.state if volume.status is not None else ""
        state = "Ready" if record.exists else "RuntimeUnhealthy" if record.failure else "Pending"
        # A state that stays is written too: its message may differ.
        for step in steps("ContainerVolume", before, state) or [state]:
            status = volume.ensure_status()
            status.state = step  # type: ignore[assignment]
            status.observed_generation = volume.generation
            ready = step == "Ready"
            condition = Condition(
                type="Ready", status="True" if ready else "False", reason=step, message="" if ready else record.failure
            )
            set_condition(status, condition, now=utc_now())
            volume = (await ctx.client.save(volume)).object

    async def _delete(self, ctx: Context, volume: ContainerVolume, record: VolumeRecord) -> Outcome:
        if not has_finalizer(volume, FINALIZER) or record.work:
            return Done()
        if record.exists and not volume.spec.persistent and not record.removed:
            delay = record.retry_delay()
            if delay > 0:
                # A container may use the volume: its end comes first.
                return RequeueAfter(delay)
            record.work = True
            self._world.work(self._remove(volume), name=f"remove volume {volume.key}")
            return Done()
        await remove_finalizer(ctx.client, volume, FINALIZER)
        self._world.forget(volume.uid)
        return Done()

    async def _create(self, volume: ContainerVolume) -> None:
        exists, failure = False, ""
        try:
            if await self._runner.find_volume(volume.spec.name) is None:
                labels = {NAME: volume.key.name, UID: volume.uid}
                await self._runner.create_volume(volume.spec.name, labels, bound=not volume.spec.persistent)
            exists = True
        except ContainerRuntimeError as error:
            failure = str(error)
        finally:
            self._world.defer(volume.uid, partial(_set_exists, exists, failure), "created")

    async def _remove(self, volume: ContainerVolume) -> None:
        removed, failure = False, ""
        try:
            await self._runner.remove_volume(volume.spec.name)
            removed = True
        except ContainerRuntimeError as error:
            failure = str(error)
        finally:
            self._world.defer(volume.uid, partial(_set_removed, removed, failure), "removed")


def _set_exists(exists: bool, failure: str, record: VolumeRecord) -> None:  # noqa: FBT001 - the argument of an operation
    record.exists = exists
    record.finish(failure)


def _set_removed(removed: bool, failure: str, record: VolumeRecord) -> None:  # noqa: FBT001 - the argument of an operation
    record.removed = removed
    record.finish(failure)
