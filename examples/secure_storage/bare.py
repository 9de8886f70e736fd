"""The SecureStorage operator on the bare runtime: calls, conditions, retries and finalizer are written by hand.

Run it with `steersman run examples.secure_storage.bare --install-crds`; operator.py is the same with patterns.

It calls the cloud from within a reconcile, so a slow cloud delays other storages, and every reconcile asks for
everything. It finds before it creates, and creates with a token. Limitation: after a deletion it does not wait for
requests of an earlier process that are still in flight.
"""

import asyncio
from contextlib import suppress
from typing import Literal

import aiohttp
from examples.secure_storage.outside import Buckets, Keys, Policies, Thing, Things
from examples.secure_storage.types import SecureStorage

from steersman import (
    Condition,
    Context,
    Done,
    Manager,
    ObjectMeta,
    Request,
    RequeueAfter,
    find_condition,
    set_condition,
    utc_now,
)
from steersman.errors import NotFound
from steersman.kinds.core_v1 import Secret
from steersman.objects import controller_of
from steersman.patterns import ExternalKey, ServiceRefused

FINALIZER = "storage.example.com/outside"
TIMEOUT = 10.0
#: Errors that a call to the cloud may raise.
FAILURES = (ServiceRefused, aiohttp.ClientError, TimeoutError)

PHASES: dict[str, tuple[str, Things]] = {
    "BucketReady": ("bucket", Buckets()),
    "KeyReady": ("key", Keys()),
    "PolicyReady": ("policy", Policies()),
}
CONDITIONS = (*PHASES, "CoordinatesReady")


class NotOurs(Exception):
    """Another program owns a Secret of that name."""


# status


def report(
    storage: SecureStorage, kind: str, status: Literal["True", "False", "Unknown"], reason: str, message: str = ""
) -> None:
    condition = Condition(
        type=kind, status=status, reason=reason, message=message, observed_generation=storage.generation
    )
    set_condition(storage.ensure_status(), condition, now=utc_now())


def conclude(storage: SecureStorage) -> None:
    """Derive Ready from the conditions of the phases: the first that is not true says why."""
    status = storage.ensure_status()
    for name in CONDITIONS:
        condition = find_condition(status.conditions, name)
        if condition is not None and condition.status != "True":
            report(storage, "Ready", "False", condition.reason, condition.message)
            break
    else:
        report(storage, "Ready", "True", "Ready")
    status.observed_generation = storage.generation


def words(error: BaseException) -> str:
    text = str(error) or f"no answer within {TIMEOUT:g} s"
    return text if isinstance(error, ServiceRefused) else f"{type(error).__name__}: {text}"


# actions


def key_of(storage: SecureStorage) -> ExternalKey:
    return ExternalKey(uid=storage.uid, generation=storage.generation, kind=storage.kind, key=storage.key)


async def ensure(storage: SecureStorage, things: Things) -> Thing:
    """Find it, create it if it is missing, update it if it differs."""
    key = key_of(storage)
    async with asyncio.timeout(TIMEOUT):
        found = await things.find(key, storage)
        if found is None:
            found = await things.create(key, storage)
        if not things.up_to_date(storage, found):
            found = await things.update(key, storage, found)
    return found


async def remove(storage: SecureStorage, things: Things) -> None:
    key = key_of(storage)
    async with asyncio.timeout(TIMEOUT):
        while (found := await things.find(key, storage)) is not None:
            await things.delete(key, storage, found)


async def write_coordinates(ctx: Context, storage: SecureStorage) -> None:
    status = storage.ensure_status()
    assert status.bucket is not None
    assert status.key is not None
    present = await ctx.client.find(Secret, storage.key) or await ctx.client.live.find(Secret, storage.key)
    owner = controller_of(present) if present is not None else None
    if present is not None and (owner is None or owner.uid != storage.uid):
        raise NotOurs(f"Secret {storage.key.name} exists and belongs to another owner")
    meta = ObjectMeta(name=storage.key.name, namespace=storage.key.namespace)
    secret = Secret(metadata=meta, string_data={"bucket": status.bucket, "key": status.key})
    await ctx.client.apply(secret, owner=storage, force=True)


async def bring_up(ctx: Context, storage: SecureStorage) -> None:
    """Run the phases in order; report a failure in its condition and raise it, so that the runtime retries."""
    stopped_at: str | None = None
    error: BaseException | None = None
    for condition in CONDITIONS:
        if stopped_at is not None:
            report(storage, condition, "Unknown", "NotReached", f"waits for {stopped_at}")
            continue
        try:
            if condition in PHASES:
                name, things = PHASES[condition]
                setattr(storage.ensure_status(), name, (await ensure(storage, things))["id"])
            else:
                await write_coordinates(ctx, storage)
        except (*FAILURES, NotOurs) as failure:
            reason = "NotOurs" if isinstance(failure, NotOurs) else "ExternalError"
            report(storage, condition, "False", reason, words(failure))
            stopped_at, error = condition, failure
        else:
            report(storage, condition, "True", "Complete")
    conclude(storage)
    with suppress(NotFound):
        await ctx.client.save(storage)
    if error is not None:
        raise error


async def take_down(ctx: Context, storage: SecureStorage) -> None:
    """Delete what refers to something before it; remove the finalizer last."""
    finalizers = storage.metadata.finalizers or []
    if FINALIZER not in finalizers:
        return
    try:
        for _, things in reversed(PHASES.values()):
            await remove(storage, things)
    except FAILURES as error:
        report(storage, "Ready", "False", "ExternalError", words(error))
        with suppress(NotFound):
            await ctx.client.save(storage)
        raise
    storage.metadata.finalizers = [each for each in finalizers if each != FINALIZER]
    with suppress(NotFound):  # it is already gone
        await ctx.client.save(storage)


def make(*, look_again: float = 60.0) -> Manager:
    """Return a manager with its controller."""

    async def reconcile(ctx: Context, request: Request) -> Done | RequeueAfter:
        storage = await ctx.client.find(SecureStorage, request.key)
        if storage is None:
            return Done()
        if storage.deleting:
            await take_down(ctx, storage)
            return Done()
        finalizers = storage.metadata.finalizers or []
        if FINALIZER not in finalizers:  # before it has anything to guard
            storage.metadata.finalizers = [*finalizers, FINALIZER]
            storage = (await ctx.client.save(storage)).object
        await bring_up(ctx, storage)
        return RequeueAfter(look_again)  # the cloud sends no event when a bucket is deleted

    manager = Manager(name="secure-storage")
    manager.controller(SecureStorage).owns(Secret).run_with(reconcile)
    return manager


manager = make()
