"""The coordinator: reads the Leases of all replicas, and writes the assignment. Leader election elects it.

Guarantees
- It writes on top of the version that it read, so a write of an earlier coordinator cannot undo one of a later.
- A replica counts as ended when its Lease says so, or did not change for the time of its lease, in reads by this
  coordinator: a read that began that much later still showed the version that an earlier one had returned.
- It gives ranges only to terms that a Lease names: the replica has entered them.
- It writes nothing while nothing is to change.
- Without an assignment, it writes the first one only when no living replica has seen one.

Not covered: the assignment is deleted together with the Lease of a replica that runs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import msgspec

from steersman import aio
from steersman.client import Client
from steersman.errors import AlreadyExists, ApiError, Conflict, ProtocolError
from steersman.kinds.coordination_v1 import Lease
from steersman.kinds.core_v1 import ConfigMap
from steersman.manager.shards.assignment import Assignment, Sightings, next_assignment
from steersman.manager.shards.records import (
    ASSIGNMENT_KEY,
    SHARDS_LABEL,
    Member,
    assignment_text,
    read_member,
    stored_assignment,
)
from steersman.manager.shards.settings import Shards, assignment_name
from steersman.objects import Key, ObjectMeta, replace

_log = logging.getLogger("steersman.shards")


class _Seen(msgspec.Struct, frozen=True):
    """A replica's Lease in one read."""

    lease: Lease
    member: Member

    @property
    def term(self) -> str:
        """The term, or what stands for it until the replica has entered one."""
        return self.member.term or f"no term of {self.lease.metadata.name}"

    @property
    def duration(self) -> int:
        """The lease in seconds; 0 if the Lease does not say."""
        return (self.lease.spec and self.lease.spec.lease_duration_seconds) or 0

    @property
    def ended(self) -> bool:
        """Whether the Lease says that the term is over."""
        return not (self.lease.spec and self.lease.spec.holder_identity)


class Coordinator:
    """Assigns ranges in one term; ``client`` writes within it."""

    def __init__(self, shards: Shards, client: Client, *, on_write: Callable[[], None] = lambda: None) -> None:
        self._shards = shards
        self._client = client
        self._namespace = shards.namespace or client.namespace
        self._key = Key(self._namespace, assignment_name(shards.name))
        self._sightings = Sightings()
        #: The lease of each term in seconds: another version of the program may have another one.
        self._durations: dict[str, float] = {}
        self._on_write = on_write
        self._complaint = ""
        #: The programs that the last warning named.
        self._programs: frozenset[str] = frozenset()

    async def run(self) -> None:
        """Assign ranges until cancelled."""
        while True:
            moving = False
            try:
                moving = await self._coordinate()
                self._complaint = ""
            except (Conflict, AlreadyExists):
                moving = True  # read again
            except ApiError as error:
                level = logging.WARNING if str(error) != self._complaint else logging.DEBUG
                self._complaint = str(error)
                _log.log(level, "cannot assign shards: %s", error)
            await asyncio.sleep(self._shards.retry / (8 if moving else 2))

    async def _coordinate(self) -> bool:
        """Read, decide and write once. Returns whether a range moves."""
        sent = aio.boottime()
        leases = await self._client.list(Lease, namespace=self._namespace, labels={SHARDS_LABEL: self._shards.name})
        stored = await self._client.find(ConfigMap, self._key)
        current = stored_assignment(stored) if stored is not None else Assignment()
        seen = {each.term: each for lease in leases.items if (each := _seen(lease)) is not None}
        owners = {name for part in current.parts for name in (part.owner, part.next) if name}
        versions = {term: each.lease.metadata.resource_version or "" for term, each in seen.items()}
        self._sightings = self._sightings.after(versions, owners, aio.boottime())
        self._durations |= {term: float(each.duration) for term, each in seen.items() if not each.ended}
        expired = {term for term in self._sightings.seen if self._expired(term, sent)}
        gone = expired | {term for term, each in seen.items() if each.ended}
        living = {term: each.member for term, each in seen.items() if each.member.term and term not in gone}
        if stored is None and any(member.generation for member in living.values()):
            _log.warning("the assignment of shards %s is gone: waiting until no replica uses it", self._key)
            return True
        self._check_programs(frozenset(member.program for member in living.values()))
        weights = [weight for member in living.values() for weight in member.weights]
        following = next_assignment(current, {term: member.released for term, member in living.items()}, gone, weights)
        if following is not current:
            await self._write(stored, following)
        await self._sweep(following, [each for term, each in seen.items() if term in gone])
        return any(part.next for part in following.parts)

    def _check_programs(self, programs: frozenset[str]) -> None:
        """Warn if replicas of several programs share these shards: each reconciles only a part of its objects."""
        if len(programs) > 1 and programs != self._programs:
            _log.warning(
                "managers %s share the shards %s: unless one replaces the other, each reconciles only a part of its objects;"
                " give them Shards with different names",
                ", ".join(repr(name) for name in sorted(programs)),
                self._shards.name,
            )
        self._programs = programs

    def _expired(self, term: str, sent: float) -> bool:
        lease = max(self._shards.lease, self._durations.get(term, 0.0))
        return self._sightings.expired(term, lease=lease, now=sent)

    async def _write(self, stored: ConfigMap | None, following: Assignment) -> None:
        data = {ASSIGNMENT_KEY: assignment_text(following)}
        if stored is None:
            metadata = ObjectMeta(namespace=self._key.namespace, name=self._key.name)
            await self._client.create(ConfigMap(metadata=metadata, data=data))
        else:
            await self._client.update(replace(stored, data={**(stored.data or {}), **data}))
        self._on_write()
        moves = [f"{part.range} from {part.owner} to {part.next}" for part in following.parts if part.next]
        _log.info("assignment %d of shards%s", following.generation, f": moving {', '.join(moves)}" if moves else "")

    async def _sweep(self, assignment: Assignment, gone: list[_Seen]) -> None:
        """Delete the Leases of ended terms that own nothing."""
        owners = {name for part in assignment.parts for name in (part.owner, part.next)}
        for each in gone:
            if each.term not in owners:
                metadata = each.lease.metadata
                await self._client.delete(
                    Lease,
                    each.lease.key,
                    uid=metadata.uid,
                    resource_version=metadata.resource_version,
                    missing_ok=True,
                )


def _seen(lease: Lease) -> _Seen | None:
    try:
        return _Seen(lease, read_member(lease.metadata.annotations))
    except ProtocolError as error:
        _log.debug("%s is no replica of shards: %s", lease.key, error)
        return None
