"""What replicas and coordinator tell each other, as text in a Lease and in a ConfigMap. Pure.

Guarantees
- What was written is read back unchanged.
- A text that cannot be read is an error, never an empty assignment: that would give all ranges away a second time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from steersman.errors import ProtocolError
from steersman.kinds.core_v1 import ConfigMap
from steersman.manager.shards.assignment import Assignment, Part, Released, Weighed
from steersman.wire import HashRange, InvalidShardSelector, read_shard_bound

#: The label of a replica's Lease: the name of its program's shards.
SHARDS_LABEL: Final = "steersman.dev/shards"
#: The annotation of a replica's Lease, and the key in the assignment's ConfigMap.
REPLICA_ANNOTATION: Final = "steersman.dev/replica"
ASSIGNMENT_KEY: Final = "assignment"


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """What a replica says in its Lease."""

    #: The identity of its term: no other term of any replica has it. Empty until the replica has entered the term.
    term: str
    #: The newest assignment that it has seen.
    generation: int = 0
    released: tuple[Released, ...] = ()
    weights: tuple[Weighed, ...] = ()
    #: The name of its manager.
    program: str = ""


class _Part(msgspec.Struct, frozen=True, omit_defaults=True):
    range: str
    owner: str = ""
    next: str = ""
    since: int = 0


class _Assignment(msgspec.Struct, frozen=True):
    generation: int
    parts: tuple[_Part, ...]


class _Member(msgspec.Struct, frozen=True, omit_defaults=True):
    term: str
    generation: int = 0
    released: tuple[tuple[str, int], ...] = ()
    weights: tuple[tuple[str, float], ...] = ()
    program: str = ""


def member_text(member: Member) -> str:
    """A member as text."""
    stored = _Member(
        member.term,
        member.generation,
        tuple((str(each.range), each.generation) for each in member.released),
        tuple((str(each.range), each.weight) for each in member.weights),
        member.program,
    )
    return msgspec.json.encode(stored).decode()


def read_member(annotations: Mapping[str, str] | None) -> Member:
    """The member that a Lease describes. Raises `ProtocolError` if it describes none."""
    text = (annotations or {}).get(REPLICA_ANNOTATION, "")
    try:
        stored = msgspec.json.decode(text, type=_Member)
        return Member(
            term=stored.term,
            generation=stored.generation,
            released=tuple(Released(_range(text), generation) for text, generation in stored.released),
            weights=tuple(Weighed(_range(text), weight) for text, weight in stored.weights),
            program=stored.program,
        )
    except (msgspec.MsgspecError, InvalidShardSelector) as error:
        raise ProtocolError(f"annotation {REPLICA_ANNOTATION} is not the record of a replica: {error}") from None


def assignment_text(assignment: Assignment) -> str:
    """An assignment as text."""
    parts = tuple(_Part(str(each.range), each.owner, each.next, each.since) for each in assignment.parts)
    return msgspec.json.encode(_Assignment(assignment.generation, parts)).decode()


def stored_assignment(stored: ConfigMap) -> Assignment:
    """The assignment in a ConfigMap. Raises `ProtocolError`, which says what to do, if it cannot be read."""
    try:
        return read_assignment(stored.data)
    except ProtocolError as error:
        raise ProtocolError(
            f"ConfigMap {stored.key}: {error}; until you restore or delete it, no range gets another replica; after a"
            " deletion, all replicas begin anew"
        ) from None


def read_assignment(data: Mapping[str, str] | None) -> Assignment:
    """The assignment that the data of a ConfigMap describe. Raises `ProtocolError` if they describe none."""
    try:
        stored = msgspec.json.decode((data or {}).get(ASSIGNMENT_KEY, ""), type=_Assignment)
        parts = tuple(
            Part(range=_range(each.range), owner=each.owner, next=each.next, since=each.since) for each in stored.parts
        )
    except (msgspec.MsgspecError, InvalidShardSelector) as error:
        raise ProtocolError(f"{ASSIGNMENT_KEY} is not an assignment of shards: {error}") from None
    whole = HashRange()
    at = whole.start
    for part in parts:
        if part.range.start != at:
            break
        at = part.range.end
    if at != whole.end or not parts:
        raise ProtocolError(f"{ASSIGNMENT_KEY} does not give each hash to one replica")
    return Assignment(stored.generation, parts)


def _range(text: str) -> HashRange:
    start, _, end = text.partition("-")
    return HashRange(read_shard_bound("start", start), read_shard_bound("end", end))
