"""The Lease of an election as the server has it: reads, writes and what a watch shows."""

from __future__ import annotations

import asyncio

from steersman.client import Added, Client, Deleted, Modified
from steersman.kinds.coordination_v1 import Lease, LeaseSpec
from steersman.manager.lease_state import NO_NOTES, LeaseNotes, LeaseRecord
from steersman.objects import Key, ObjectMeta, replace, version_number


class StoredLease:
    """The Lease on the server. A write changes our fields and keeps the rest as it was read."""

    def __init__(self, client: Client, key: Key, notes: LeaseNotes = NO_NOTES) -> None:
        self.key = key
        self._notes = notes
        self._client = client
        self._read: Lease | None = None
        self._news: Lease | None = None
        self._gone = False

    async def close(self) -> None:
        """Close the connections of the Lease."""
        await self._client.close()

    async def read(self) -> LeaseRecord:
        """Read the Lease."""
        return self._keep(await self._client.get(Lease, self.key))

    async def create(self, record: LeaseRecord) -> LeaseRecord:
        """Create the Lease; returns it as the server has it."""
        metadata = self._noted(ObjectMeta(namespace=self.key.namespace, name=self.key.name), record)
        return self._keep(await self._client.create(Lease(metadata=metadata, spec=_filled(LeaseSpec(), record))))

    async def update(self, record: LeaseRecord, version: str) -> LeaseRecord:
        """Update the Lease that was read as ``version``; returns it as the server has it."""
        lease = self._read
        assert lease is not None
        assert lease.metadata.resource_version == version
        spec = _filled(lease.spec or LeaseSpec(), record)
        metadata = self._noted(lease.metadata, record)
        return self._keep(await self._client.update(replace(lease, metadata=metadata, spec=spec)))

    async def watch(self, wake: asyncio.Event) -> None:
        """Record changes until the server ends the watch."""
        name, namespace = self.key.name, self.key.namespace
        async with self._client.watch(Lease, namespace=namespace, fields={"metadata.name": name}) as events:
            async for event in events:
                match event:
                    case Added(lease) | Modified(lease):
                        self._news, self._gone = lease, False
                        wake.set()
                    case Deleted():
                        self._news, self._gone = None, True
                        wake.set()
                    case _:
                        pass

    def forget_news(self) -> None:
        """Drop changes that nothing has taken yet."""
        self._news, self._gone = None, False

    def take_news(self) -> LeaseRecord | bool | None:
        """What the watch showed since the last call: a record, True if the Lease is gone, None if nothing."""
        news, gone = self._news, self._gone
        self.forget_news()
        if news is None:
            return True if gone else None
        return None if self._read is not None and _older(news, self._read) else self._keep(news)

    def take_doubt(self, identity: str) -> bool:
        """Whether the watch showed, since the last call, that the Lease is gone or has another holder."""
        news, gone = self._news, self._gone
        self.forget_news()
        if news is None or self._read is None:
            return gone
        # An older state, or one that cannot be compared, is no reason for doubt.
        holder = (news.spec.holder_identity if news.spec is not None else None) or ""
        return holder != identity and _comparable(news, self._read) and not _older(news, self._read)

    def _noted(self, metadata: ObjectMeta, record: LeaseRecord) -> ObjectMeta:
        labels, annotations = self._notes.labels, self._notes.annotations(bool(record.holder))
        if not labels and not annotations:
            return metadata
        return replace(
            metadata,
            labels={**(metadata.labels or {}), **labels},
            annotations={**(metadata.annotations or {}), **annotations},
        )

    def _keep(self, lease: Lease) -> LeaseRecord:
        self._read = lease
        spec = lease.spec or LeaseSpec()
        return LeaseRecord(
            holder=spec.holder_identity or "",
            duration=float(spec.lease_duration_seconds or 0),
            transitions=spec.lease_transitions or 0,
            acquired=spec.acquire_time,
            renewed=spec.renew_time,
            version=lease.metadata.resource_version or "",
        )


def _older(lease: Lease, than: Lease) -> bool:
    """Whether a watch event is older than what was read. Versions that are not numbers cannot be compared."""
    one, other = _version(lease), _version(than)
    return one is not None and other is not None and one <= other


def _comparable(*leases: Lease) -> bool:
    return all(_version(lease) is not None for lease in leases)


def _version(lease: Lease) -> int | None:
    return version_number(lease.metadata.resource_version or "")


def _filled(spec: LeaseSpec, record: LeaseRecord) -> LeaseSpec:
    return replace(
        spec,
        holder_identity=record.holder or None,
        lease_duration_seconds=int(record.duration),
        lease_transitions=record.transitions,
        acquire_time=record.acquired,
        renew_time=record.renewed,
    )
