"""Compaction: revisions older than one to two intervals can be neither listed nor watched."""

from __future__ import annotations

import asyncio

from steersman.apiserver.storage.protocol import Storage

#: Seconds between compactions, as in kube-apiserver.
INTERVAL = 300.0


async def compact_forever(storage: Storage, *, interval: float = INTERVAL) -> None:
    """Compact a store to the revision of one interval ago, every interval."""
    before = await storage.revision()
    while True:
        await asyncio.sleep(interval)
        reached = await storage.revision()
        await storage.compact(before)
        before = reached
