"""What is known about one external object, and the work on it: the data of `steersman.patterns.external.state`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from steersman.aio import Backoff
from steersman.cache import is_older
from steersman.errors import is_exit
from steersman.objects import Object
from steersman.patterns.external.api import ExternalKey

Call: TypeAlias = Literal["find", "create", "update", "delete"]
Progress: TypeAlias = Literal["unknown", "finding", "creating", "present", "updating", "deleting", "gone", "broken"]
Goal: TypeAlias = Literal["none", "present", "absent"]

NEVER = float("-inf")
_RUNNING: dict[Call, Progress] = {"find": "finding", "create": "creating", "update": "updating", "delete": "deleting"}


class Version(NamedTuple):
    """Identifies one version of the request."""

    #: A server that is restored from a backup begins an epoch, in which generations may go back.
    epoch: int
    generation: int
    #: Empty unless the kind has no generations.
    resource_version: str


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Delays and timeouts, in seconds."""

    #: How long after it was sent a request without an answer may still take effect.
    late: float = 180.0
    #: `create` is idempotent: calling it twice creates one external object.
    repeatable: bool = False
    #: How long a change waits for the next one; `at_most` limits the whole wait, counted from the first change.
    debounce: float = 0.0
    at_most: float = 5.0
    #: Seconds between two periodic lookups.
    look_again: float | None = None
    #: Make no call but `find`: what another call would do is reported as in progress. For a plan.
    looks_only: bool = False
    #: How long the result of a lookup may be acted on without another lookup. A slow `CallLimit` needs longer.
    fresh: float = 5.0
    first_retry: float = 0.5
    last_retry: float = 300.0


class Start(msgspec.Struct, frozen=True):
    """When a run began. Another process may have sent requests just before."""

    #: On the monotonic clock. The wall clock would not help: the server's own clock sets the age of an object.
    time: float


class Inquiry(msgspec.Struct, frozen=True, kw_only=True):
    """The reconcile behind a request."""

    #: Its span.
    trace: str = ""
    #: The object was created during this run, so no earlier request for it exists.
    created: bool = False
    #: How often the server had been restored from a backup; None if unknown.
    epoch: int | None = None
    #: The changes of other objects that caused it, by kind, key and version.
    changes: frozenset[object] = frozenset()


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One call to the service."""

    call: Call
    key: ExternalKey
    obj: Any
    found: Any
    version: Version
    goal: Goal
    began: float
    #: A periodic lookup, without a request from a reconcile.
    again: bool = False


class There(msgspec.Struct, frozen=True):
    """The call found, created or updated the external object."""

    found: Any


class Missing(msgspec.Struct, frozen=True):
    """The lookup found nothing."""


class Deleted(msgspec.Struct, frozen=True):
    """The service accepted the deletion."""


class Raised(msgspec.Struct, frozen=True):
    """The call failed; ``certain``: it certainly had no effect."""

    message: str
    certain: bool = False
    #: For how many seconds the service asked to wait; None if it did not.
    wait: float | None = None


Result: TypeAlias = There | Missing | Deleted | Raised

#: Whether the found object matches the request, or a message if the comparison failed. Never raises.
Judge: TypeAlias = Callable[[Any, Any], bool | str]


class Finished(msgspec.Struct, frozen=True):
    """What follows a result: the next work for the same object, and the news for its reconcile."""

    work: Work | None = None
    note: str = ""


class Entry:
    """What is known about the external object of one Kubernetes object, the request, and the work on both.

    Guarantees
    - Only `ExternalState` and its `Timers` change an entry.
    - While ``known`` is "unknown", the fields ``found`` and ``matches`` are left from an earlier answer and mean nothing.
    - ``made`` and ``made_until`` change together.
    """

    __slots__ = (  # noqa: RUF023 - one line for each group of __init__
        "key", "obj", "version", "goal", "asked", "awaits_lookup", "changes", "trace", "forgotten",
        "known", "known_for", "known_at", "seen_at", "found", "matches",
        "lost_until", "ending_until", "overtaken_until", "doubted", "made", "made_until", "deletion_tried", "deleted",
        "failure", "failed_at", "backoff", "hurried", "lookup_timed_out", "busy",
        "work", "due", "changed_at", "debounced_until", "again_at", "periodic_lookups", "timer_at",
    )  # fmt: skip

    def __init__(self, key: ExternalKey, obj: Any, version: Version, backoff: Backoff) -> None:
        # the request

        self.key = key
        self.obj = obj
        self.version = version
        self.goal: Goal = "none"
        #: A reconcile has asked since it last got a result.
        self.asked = False
        #: A reconcile waits for the result of `find`.
        self.awaits_lookup = False
        #: The changes of other objects that the last request was made for.
        self.changes: frozenset[object] = frozenset()
        #: The span of the reconcile that asked.
        self.trace = ""
        #: To be dropped as soon as its work has ended.
        self.forgotten = False

        # what is known

        self.known: Literal["unknown", "present", "absent"] = "unknown"
        self.known_for: Version | None = None
        #: When the last answer came, and when the lookup or creation that it rests on began.
        self.known_at = self.seen_at = NEVER
        self.found: Any = None
        self.matches = False

        # what is in doubt

        #: Until then a creation without an answer may still take effect.
        self.lost_until = NEVER
        #: Until then a deletion may still take effect.
        self.ending_until = NEVER
        #: Until then an update or a deletion may still undo a later call.
        self.overtaken_until = NEVER
        #: A lookup found nothing, but it is too early to trust that.
        self.doubted = False
        #: The result of `create`, in a tuple, until a lookup finds it.
        self.made: tuple[Any] | None = None
        #: Until then a lookup that misses the result of `create` is blamed on a list that lags.
        self.made_until = NEVER
        #: A deletion of the result of `create` was tried.
        self.deletion_tried = False
        #: The service has accepted a deletion.
        self.deleted = False

        # failure

        self.failure, self.failed_at = "", NEVER
        self.backoff = backoff
        #: Something that the request depends on has changed since the last call began, so a retry comes soon.
        self.hurried = False
        #: A wait for a lookup timed out, and no call has succeeded since.
        self.lookup_timed_out = False
        #: What the service said when it asked to wait; empty since it has answered.
        self.busy = ""

        # the next call

        self.work: Work | None = None
        #: No call starts before.
        self.due = NEVER
        #: When the first pending change came.
        self.changed_at: float | None = None
        #: No call that follows a change starts before.
        self.debounced_until = NEVER
        #: The time of the next periodic lookup, and how many there were since the last request.
        self.again_at: float | None = None
        self.periodic_lookups = 0
        self.timer_at: float | None = None

    @property
    def is_fresh(self) -> bool:
        """Whether the last answer is about the current version of the request."""
        return self.known != "unknown" and self.known_for == self.version

    @property
    def is_settled(self) -> bool:
        """Whether the external object is as requested, and no call in progress can change it."""
        if not self.is_fresh or (self.work is not None and self.work.call != "find"):
            return False
        if self.goal == "absent":
            return self.known == "absent"
        return self.goal == "present" and self.known == "present" and self.matches

    @property
    def is_pending(self) -> bool:
        """Whether a call is in progress or comes soon. Periodic lookups, retries and requests in doubt take their own time."""
        if self.work is not None:
            return not self.work.again
        is_own_time = (self.failure and not self.hurried) or self.doubted or self.busy
        return self.timer_at is not None and self.asked and not is_own_time

    @property
    def is_in_doubt(self) -> bool:
        """Whether a call comes when an earlier request can no longer arrive."""
        return self.timer_at is not None and self.asked and self.doubted and not (self.failure or self.busy)

    @property
    def retry_at(self) -> float | None:
        """When a failed call comes again, or one that the service had no time for; None if there is none."""
        return self.timer_at if self.asked and (self.failure or self.busy) else None

    @property
    def progress(self) -> Progress:
        """The progress in one word."""
        if self.failure:
            return "broken"
        if self.work is not None and not self.work.again:
            return _RUNNING[self.work.call]
        if not self.is_fresh:
            return "unknown"
        if self.known == "absent":
            return "creating" if self.goal == "present" else "gone"
        if self.goal == "absent":
            return "deleting"
        return "present" if self.matches or self.goal == "none" else "updating"

    def outdates(self, version: Version, obj: Object) -> bool:
        """Whether an object is older than the request: a stale read, so the newer request stands.

        A generation that is older at a newer resourceVersion, or in a later epoch, is none: the server was restored from a backup.
        """
        if version.epoch != self.version.epoch:
            return version.epoch < self.version.epoch
        older = is_older(obj.metadata.resource_version or "", self.obj.metadata.resource_version or "")
        # Without generations, both are 0. An equal one too is about what it does not count, such as labels.
        return version.generation <= self.version.generation and older

    def differs_from(self, obj: Object) -> bool:
        """Whether a user has changed the object without a new generation."""
        old, new = self.obj.metadata, obj.metadata
        return (old.labels, old.annotations) != (new.labels, new.annotations)

    def in_flight_until(self, late: float) -> float:
        """Until when a request for the object, or the lag of a list, may still change what a lookup finds."""
        until = max(self.lost_until, self.ending_until, self.overtaken_until)
        if self.made is not None:
            until = max(until, self.made_until)
        if self.work is not None and self.work.call != "find":
            until = max(until, self.work.began + late)
        return until

    def relieve(self) -> None:
        """Clear the traces of earlier failures after a success.

        ``lost_until`` and ``overtaken_until`` stay: their requests may still arrive.
        """
        self.failure = self.busy = ""
        self.backoff.reset()
        self.ending_until = NEVER
        self.deleted = self.doubted = False


def are_equal(one: Any, other: Any) -> bool:
    """Whether two values are equal; their ``__eq__`` is user code and may raise."""
    try:
        return one is other or bool(one == other)
    except BaseException as error:
        if is_exit(error):
            raise
        return False  # an exception does not prove equality
