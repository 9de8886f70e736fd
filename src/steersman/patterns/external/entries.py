"""What is known of one thing outside, and what is done about it: the data of `steersman.patterns.external.state`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal, TypeAlias

import msgspec

from steersman.aio import Backoff
from steersman.objects import Object
from steersman.patterns.external.api import ExternalKey

Call: TypeAlias = Literal["find", "create", "update", "delete"]
Phase: TypeAlias = Literal["unknown", "finding", "creating", "present", "updating", "deleting", "gone", "broken"]
Goal: TypeAlias = Literal["none", "present", "absent"]
#: What tells one wish of an object from the next: its generation, or its resourceVersion where there is none.
Version: TypeAlias = tuple[int, str]

NEVER = float("-inf")
_RUNNING: dict[Call, Phase] = {"find": "finding", "create": "creating", "update": "updating", "delete": "deleting"}


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """When things are done; in seconds."""

    #: How long after it was sent a request without an answer may still have its effect.
    late: float = 180.0
    #: Asking twice to make a thing makes one thing.
    repeatable: bool = False
    #: A change waits so long for the next one, and `at_most` so long after the first.
    debounce: float = 0.0
    at_most: float = 5.0
    #: How often to look though nobody asks.
    look_again: float | None = None
    first_retry: float = 0.5
    last_retry: float = 300.0


class Start(msgspec.Struct, frozen=True):
    """When a run began. Another program may have asked for something just before."""

    #: On the clock of `Timing`, and on the wall.
    time: float
    wall: datetime | None = None

    def follows(self, obj: Object, *, appeared: bool = False) -> bool:
        """Whether an object may have been there before; one of the same second may, unless it was seen to appear since."""
        created = obj.metadata.creation_timestamp
        if self.wall is None or created is None:
            return False
        return created < self.wall.replace(microsecond=0) or (created <= self.wall and not appeared)


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One call of the outside."""

    call: Call
    key: ExternalKey
    obj: Any
    found: Any
    version: Version
    goal: Goal
    began: float
    #: A look that nobody asked for.
    again: bool = False


class There(msgspec.Struct, frozen=True):
    """Found, made or updated."""

    found: Any


class Missing(msgspec.Struct, frozen=True):
    """Looked for, and not found."""


class Deleted(msgspec.Struct, frozen=True):
    """The outside took the deletion."""


class Raised(msgspec.Struct, frozen=True):
    """The call failed; ``certain``: and surely had no effect."""

    message: str
    certain: bool = False


Result: TypeAlias = There | Missing | Deleted | Raised

#: Whether what was found is as an object asks; words if that cannot be said. It never raises.
Judge: TypeAlias = Callable[[Any, Any], bool | str]


class Finished(msgspec.Struct, frozen=True):
    """What follows a result: more work for the same object, and news for its reconcile."""

    work: Work | None = None
    note: str = ""


class Entry:
    """What is known of one object's thing."""

    __slots__ = (
        "again_at", "asked", "backoff", "changed", "deleted", "doubted", "due", "ending_until", "failure", "forgotten", "found", "goal",
        "held", "key", "known", "known_at", "known_for", "lost_until", "made", "made_until", "matches", "obj", "overtaken_until", "peek", "seen_at", "tired", "trace",
        "tried", "unasked", "version", "when", "work",
    )  # fmt: skip

    def __init__(self, key: ExternalKey, obj: Any, version: Version, backoff: Backoff) -> None:
        self.key = key
        self.obj = obj
        self.version = version
        self.goal: Goal = "none"
        #: A reconcile has asked since it was last told something.
        self.asked = False
        #: Somebody wants to know what is there.
        self.peek = False
        self.known: Literal["unknown", "present", "absent"] = "unknown"
        self.known_for: Version | None = None
        #: When that was answered, and when the look or the creation began that says that it is so.
        self.known_at = self.seen_at = NEVER
        self.found: Any = None
        self.matches = False
        self.deleted = False
        #: Until then a creation that got no answer, or a deletion, may still have its effect.
        self.lost_until = self.ending_until = NEVER
        #: It was not found, and that is not believed yet.
        self.doubted = False
        #: What `create` answered with, in a tuple, as long as no look has found it; until when a look that finds nothing may
        #: be the fault of a list that lags; and whether it was tried to delete it.
        self.made: tuple[Any] | None = None
        self.made_until = NEVER
        self.tried = False
        #: Somebody waited for a look, and in vain.
        self.tired = False
        #: Until then an update or a deletion may still undo what came after it.
        self.overtaken_until = NEVER
        self.failure = ""
        self.backoff = backoff
        #: Nothing starts before; effects that follow a change not before `held`; changes began at `changed`.
        self.due = self.held = NEVER
        self.changed: float | None = None
        #: When to look again though nobody asks, and how often that was done.
        self.again_at: float | None = None
        self.unasked = 0
        self.work: Work | None = None
        #: When its timer is set for.
        self.when: float | None = None
        #: The span of the reconcile that asked.
        self.trace = ""
        #: Goes as soon as its work has ended.
        self.forgotten = False

    @property
    def fresh(self) -> bool:
        """Whether what is known was found out for what is asked now."""
        return self.known != "unknown" and self.known_for == self.version

    @property
    def settled(self) -> bool:
        """Whether all is as it is asked for, and stays so."""
        if not self.fresh or (self.work is not None and self.work.call != "find"):
            return False
        if self.goal == "absent":
            return self.known == "absent"
        return self.goal == "present" and self.known == "present" and self.matches

    @property
    def phase(self) -> Phase:
        """How far it is, in a word."""
        if self.failure:
            return "broken"
        if self.work is not None and not self.work.again:
            return _RUNNING[self.work.call]
        if not self.fresh:
            return "unknown"
        if self.known == "absent":
            return "creating" if self.goal == "present" else "gone"
        if self.goal == "absent":
            return "deleting"
        return "present" if self.matches or self.goal == "none" else "updating"

    def relieve(self) -> None:
        """It went well: what failed before is no matter any more."""
        self.failure = ""
        self.backoff.reset()
        self.ending_until = NEVER
        self.deleted = self.doubted = False
