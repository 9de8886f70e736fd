"""Scarce values of an object, such as the addresses of a Service, while it is written.

Guarantees
- A write that fails leaves allocated what was allocated before it, and nothing else.
- What an object no longer needs is released once that is stored.
- Both hold wherever a request is cancelled, because its client has left or its time is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from steersman.apiserver.context import VerbContext
from steersman.apiserver.documents import decode_stored
from steersman.apiserver.registry.definition import Tree
from steersman.apiserver.storage import Record, settled


@asynccontextmanager
async def allocated(context: VerbContext, obj: Tree, old: Tree | None, *, dry_run: bool) -> AsyncGenerator[None]:
    """Allocate what an object needs, for a block that stores it in place of ``old``."""
    strategy = context.definition.strategy
    if not strategy.allocates:
        yield
        return
    await strategy.allocate(obj, old, context, dry_run=dry_run)
    if dry_run:
        yield
        return
    try:
        yield
    except asyncio.CancelledError:
        await context.finished(_settle(context, obj, old))
        raise
    except BaseException:
        await context.finished(strategy.release(obj, [old], context))
        raise
    await context.finished(strategy.release(old, [obj], context))


async def _settle(context: VerbContext, obj: Tree, old: Tree | None) -> None:
    """Release what the stored object does not need: a store may finish the write of a cancelled request."""
    strategy, metadata = context.definition.strategy, obj["metadata"]
    key = context.definition.storage_key(metadata.get("namespace", ""), metadata["name"])
    record = await settled(context.storage, key)
    stored = None if record is None else decode_stored(record)
    if stored is None or stored["metadata"].get("uid") != metadata.get("uid"):
        await strategy.release(obj, [old], context)
        return
    await strategy.release(obj, [old, stored], context)
    await strategy.release(old, [stored], context)


async def remove(context: VerbContext, record: Record, obj: Tree) -> int:
    """Delete the object of a record from the store, and release what it held. Returns the revision of the deletion."""
    strategy = context.definition.strategy

    async def removed() -> int:
        revision = await context.storage.delete(record.key, expect=record.modified)
        await strategy.release(obj, (), context)
        return revision

    return await (context.finished(removed()) if strategy.allocates else removed())
