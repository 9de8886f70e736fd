"""Who wrote what for which namespace, by the record of the API server, and whether it was allowed to.

The engine's record is its audit log, the embedded server's is written by `bench.shards_server`. A replica sends its name
as user agent. The assignments, and the holders of the coordinator's Lease, are writes in the same record.

A namespace has one actor at a time: the replica to which the newest assignment gives it, or all of them the leader by
leader election that holds the Lease. A write is wrong if the server may have performed it outside of its writer's time.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from steersman.manager.shards.assignment import Assignment
from steersman.manager.shards.records import read_assignment
from steersman.wire import namespace_hash

#: The name of the program whose replicas are judged, and the namespace of its Leases.
PROGRAM = "sharer"
HOME = "default"
POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Request
  verbs: [create, update]
  resources:
  - {group: "", resources: [configmaps]}
  - {group: coordination.k8s.io, resources: [leases]}
- level: Metadata
  verbs: [create, update, patch, delete]
  resources:
  - {group: "", resources: [secrets, configmaps]}
- level: None
"""


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """One request that may change something; times are in seconds."""

    user: str
    resource: str
    namespace: str
    name: str
    received: float
    completed: float
    code: int
    body: Any = None

    @property
    def may_count(self) -> bool:
        """Whether the server performed it, or may have."""
        return self.code < 400 or self.code >= 500


class Time(msgspec.Struct, frozen=True, kw_only=True):
    """A time in which an actor may write: it began after ``since`` and ended before ``until``."""

    actor: str
    since: float
    until: float


class Record:
    """The record of a server, read as it grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self.writes: list[Write] = []

    def read(self) -> list[Write]:
        """All writes so far."""
        with self._path.open("rb") as file:
            file.seek(self._position)
            whole, end, _ = file.read().rpartition(b"\n")
        self._position += len(whole) + len(end)
        self.writes += [write for line in whole.splitlines() if (write := _write(json.loads(line))) is not None]
        return self.writes


def _write(line: dict[str, Any]) -> Write | None:
    if "auditID" not in line:
        return msgspec.convert(line, Write)
    place = line["objectRef"]
    if line.get("stage") not in {"ResponseComplete", "Panic"}:
        return None
    body = line.get("requestObject") or {}
    return Write(
        user=line.get("userAgent", ""),
        resource=place["resource"],
        namespace=place.get("namespace", ""),
        name=place.get("name") or body.get("metadata", {}).get("name", ""),
        received=_seconds(line["requestReceivedTimestamp"]),
        completed=_seconds(line["stageTimestamp"]),
        code=line.get("responseStatus", {}).get("code", 500),
        body=body or None,
    )


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def assignments(writes: Iterable[Write]) -> list[tuple[Write, Assignment]]:
    """The assignments, in the order in which they were written, each with its write."""
    return [
        (each, read_assignment(each.body["data"]))
        for each in sorted(writes, key=lambda each: each.completed)
        if each.resource == "configmaps" and each.name == f"{PROGRAM}-assignment" and each.code < 400
    ]


def replica_of(term: str) -> str:
    """The name of the process that had a term."""
    return term.removeprefix(f"{PROGRAM}-").rpartition(".")[0]


#: What decides who acts, in the order of the writes: an assignment, or the holder of the coordinator's Lease.
History = list[tuple[Write, "Assignment | str"]]


def history(writes: Iterable[Write]) -> History:
    """All assignments and holders of the Lease."""
    seen = list(writes)
    leases = [
        (each, _holder(each))
        for each in seen
        if each.resource == "leases" and each.name == PROGRAM and each.body is not None and each.code < 400
    ]
    # Most writes of the Lease are renewals.
    changes = [
        pair for before, pair in zip([None, *leases], leases, strict=False) if not before or before[1] != pair[1]
    ]
    return sorted([*assignments(seen), *changes], key=lambda each: each[0].completed)


def times(past: History, namespace: str, *, leaders: Iterable[str] = ()) -> list[Time]:
    """The actors of a namespace, one after the other. ``leaders`` act by leader election."""
    elected = frozenset(leaders)
    owner = holder = ""
    changes: list[tuple[str, Write]] = []
    for each, decision in past:
        if isinstance(decision, str):
            holder = decision
        else:
            owner = _owner(decision, namespace)
        actor = holder if holder in elected else owner
        if not changes or changes[-1][0] != actor:
            changes.append((actor, each))
    ends = [each.completed for _, each in changes[1:]] + [float("inf")]
    return [
        Time(actor=actor, since=change.received, until=until)
        for (actor, change), until in zip(changes, ends, strict=True)
    ]


def _owner(assignment: Assignment, namespace: str) -> str:
    found = namespace_hash(namespace)
    return next(replica_of(part.owner) for part in assignment.parts if part.range.contains(found))


def _holder(lease: Write) -> str:
    return (lease.body.get("spec") or {}).get("holderIdentity") or ""


def wrong_writes(writes: Iterable[Write], *, leaders: Iterable[str] = ()) -> list[str]:
    """The writes that were performed, or may have been, when another actor had the namespace."""
    seen = list(writes)
    found: list[str] = []
    past = history(seen)
    by_namespace: dict[str, list[Write]] = defaultdict(list)
    for each in seen:
        if each.resource == "secrets" and each.may_count:
            by_namespace[each.namespace].append(each)
    for namespace, written in by_namespace.items():
        allowed = times(past, namespace, leaders=leaders)
        for each in written:
            if not any(
                time.actor == each.user and time.since <= each.received and each.completed <= time.until
                for time in allowed
            ):
                near = [f"{time.actor} {time.since:.3f}-{time.until:.3f}" for time in allowed]
                found.append(
                    f"{each.user} wrote {each.namespace}/{each.name} at {each.received:.3f}-{each.completed:.3f}, answered"
                    f" {each.code}; the actors are {', '.join(near)}"
                )
    return found


def moved(before: Assignment, after: Assignment, namespaces: Iterable[str]) -> int:
    """How many namespaces have another owner."""
    return sum(_owner(before, each) != _owner(after, each) for each in namespaces)
