"""What is known about external objects, and the next call to make. Pure: time, randomness and answers are passed in.

Guarantees
- At most one call is in progress per object.
- **Find before create.** No call creates, changes or deletes before a lookup, and an external object that was found is never
  created again.
- **Absence needs proof.** After a `create` with an unknown outcome, the request may still arrive for `late` seconds. A lookup
  that finds nothing counts only if it began after that. An object may have had such a request just before this run began,
  unless the watch has shown that it was created since. If `create` is idempotent, only the answer "gone" waits.
- **What the server says counts**, also after it was restored from a backup: a generation that went back is looked up and updated
  like any other change. Only an older generation at an older version of the same epoch is a stale read.
- **No clock is compared with another machine's.** Time is the monotonic clock of this process.
- **The result of `create` counts as present** until a lookup finds it. For `late` seconds, a lookup that finds nothing is
  blamed on a list that lags. The answer is never "gone" before a `delete` of that result was tried.
- A deletion may also arrive late: if the object is wanted again, the same wait applies. After an `update` without an answer, one
  more lookup checks that it did not overwrite a later one. Only a lookup proves presence, never the answer of an `update`.
- **No external change without a request.** After a failure or an external change, the object is reconciled, and work continues
  only if that reconcile asks for it. A deleted object therefore causes no more effects.
- A failure is reported until a call succeeds, with an unchanged message while it is the same failure, so that conditions do not flap.
"""

from __future__ import annotations

from random import Random  # noqa: TID251 - the type alone; chance is passed in
from typing import Any, Generic, TypeVar

from steersman.aio import Backoff
from steersman.objects import Key, Object
from steersman.patterns.external.api import Absent, Broken, ExternalKey, Present, Working
from steersman.patterns.external.entries import (
    NEVER,
    Call,
    Deleted,
    Entry,
    Finished,
    Goal,
    Inquiry,
    Judge,
    Missing,
    Progress,
    Raised,
    Result,
    Start,
    There,
    Timing,
    Version,
    Work,
    are_equal,
)
from steersman.patterns.external.in_flight import InFlight
from steersman.patterns.external.messages import Messages
from steersman.patterns.external.timers import Timers

R = TypeVar("R")

#: A request from outside a reconcile.
UNKNOWN = Inquiry()
#: Seconds for which a deleted external object is remembered.
REMEMBER_GONE = 60.0
#: So many periodic lookups in a row without a request; then one triggers a reconcile.
MOST_PERIODIC_LOOKUPS = 10


class ExternalState(Generic[R]):
    """The known external objects by Kubernetes object. Only requests of reconciles and results of calls change it."""

    def __init__(self, name: str, timing: Timing, start: Start, *, rng: Random, judge: Judge, can_update: bool) -> None:
        self._name = name
        self._messages = Messages(name, timing.late)
        self._timing = timing
        self._start = start
        self._rng = rng
        self._judge = judge
        self._can_update = can_update
        self._entries: dict[str, Entry] = {}
        self._uids: dict[Key, str] = {}
        #: Until when a request for a dropped object may still take effect, by uid: the same object may come back.
        self._in_flight = InFlight()
        self._timers = Timers(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    # requests of reconciles

    def ensure(self, key: ExternalKey, obj: Object, now: float, by: Inquiry = UNKNOWN) -> Present[R] | Working | Broken:
        """Request that the external object exists and matches the Kubernetes object."""
        entry = self._entry(key, obj, now, by)
        if entry.known == "present" and entry.is_fresh and entry.goal != "absent":
            # Compare each time: the result may depend on more than the generation, such as another external object.
            verdict = self._judge(entry.obj, entry.found)
            if isinstance(verdict, str):
                return Broken(self._messages.incomparable(verdict))
            entry.matches = verdict
        self._ask(entry, "present", now, by.trace)
        if entry.is_settled:
            return Present(entry.found)
        if entry.failure:
            return Broken(entry.failure)
        if entry.is_fresh and entry.known == "present" and not self._can_update:
            return Broken(self._messages.differs())
        return Working(self._messages.progress(entry))

    def remove(self, key: ExternalKey, obj: Object, now: float, by: Inquiry = UNKNOWN) -> Absent | Working | Broken:
        """Request that the external object is gone."""
        entry = self._entry(key, obj, now, by)
        self._ask(entry, "absent", now, by.trace)
        if entry.is_settled:
            return Absent()
        return Broken(entry.failure) if entry.failure else Working(self._messages.progress(entry))

    def look(self, key: ExternalKey, obj: Object, now: float, by: Inquiry = UNKNOWN) -> bool:
        """Look up the external object without changing it; returns whether the lookup is still in progress."""
        entry = self._entry(key, obj, now, by)
        if entry.is_fresh:
            return False
        entry.awaits_lookup = True
        self._schedule(entry, now)
        return entry.work is not None or (entry.timer_at is not None and entry.timer_at <= now)

    def note_timeout(self, uid: str) -> None:
        """Record that a wait for the object timed out."""
        if (entry := self._entries.get(uid)) is not None:
            entry.lookup_timed_out = True

    def has_timed_out(self, uid: str) -> bool:
        """Whether the service has not answered for the object since a wait timed out."""
        entry = self._entries.get(uid)
        return entry is not None and entry.lookup_timed_out

    def is_calling(self, uid: str) -> bool:
        """Whether a call for the object is in progress."""
        entry = self._entries.get(uid)
        return entry is not None and entry.work is not None

    def forget(self, key: Key, now: float) -> None:
        """Drop a deleted object. A call in progress ends, and no other follows."""
        uid = self._uids.pop(key, None)
        if uid is None:
            return
        entry = self._entries[uid]
        if (until := entry.in_flight_until(self._timing.late)) > now:
            self._in_flight.add(uid, until, now)
        if entry.work is None:
            del self._entries[uid]
            return
        entry.goal, entry.known, entry.forgotten = "none", "unknown", True
        entry.asked, entry.awaits_lookup, entry.again_at = False, False, None

    # calls

    def take(self, now: float) -> Work | None:
        """Start the next call that is due; None if there is none."""
        while (entry := self._timers.take(now)) is not None:
            if entry.goal == "absent" and entry.is_settled:
                self.forget(entry.key.key, now)
                continue
            if (work := self._begin(entry, now)) is not None:
                return work
            self._schedule(entry, now)
        return None

    def done(self, work: Work, result: Result, now: float, *, go_on: bool = True) -> Finished:
        """Record the result of a call; with ``go_on``, start the object's next call if it is due."""
        entry = self._entries.get(work.key.uid)
        if entry is None or entry.work is not work:
            return Finished()
        entry.work = None
        if entry.forgotten:
            del self._entries[work.key.uid]
            return Finished()
        before = (entry.known, entry.matches, entry.found)
        if isinstance(result, Raised):
            note = self._failed(entry, work, result, now)
        else:
            note = self._succeeded(entry, work, result, now)
            if self._call(entry, now) is None and entry.goal != "none":
                self._settle(entry, now)
        if work.again:
            if entry.periodic_lookups > MOST_PERIODIC_LOOKUPS:
                self.forget(entry.key.key, now)
                return Finished()
            note = note or self._drift(entry, before)
        if self._timing.looks_only and entry.asked and self._call(entry, now) not in {None, "find"}:
            note = note or self._messages.progress(entry)  # no call follows whose result would be news
        following = self._begin(entry, now) if go_on else None
        if following is None:
            self._schedule(entry, now)
        return Finished(following, note)

    def is_due(self, now: float) -> bool:
        """Whether a call may be due."""
        due = self.next_due()
        return due is not None and due <= now

    def next_due(self) -> float | None:
        """When to call `take` again if nothing else happens."""
        return self._timers.next_due()

    # inspection

    def progress(self) -> list[tuple[ExternalKey, Progress, str]]:
        """For each object: its key, its progress, and the last failure."""
        return [(entry.key, entry.progress, entry.failure) for entry in self._entries.values()]

    def pending(self) -> tuple[int, int]:
        """How many objects have a call in progress or due, and how many wait until an earlier request can no longer arrive."""
        entries = self._entries.values()
        return sum(entry.is_pending for entry in entries), sum(entry.is_in_doubt for entry in entries)

    def last_retry(self) -> float | None:
        """When the last of the calls comes again that failed, or that the service had no time for; None if there is none."""
        return max((at for entry in self._entries.values() if (at := entry.retry_at) is not None), default=None)

    def trace(self, uid: str) -> str:
        """The span of the reconcile that last asked."""
        entry = self._entries.get(uid)
        return entry.trace if entry else ""

    # entries

    def _entry(self, key: ExternalKey, obj: Object, now: float, by: Inquiry) -> Entry:
        entry = self._entries.get(key.uid)
        epoch = by.epoch if by.epoch is not None else entry.version.epoch if entry is not None else 0
        version = Version(epoch, key.generation, "" if key.generation else obj.metadata.resource_version or "")
        if entry is None:
            # An earlier object of this name is gone: drop its entry.
            self.forget(key.key, now)
            first, last = self._timing.first_retry, self._timing.last_retry
            entry = Entry(key, obj, version, Backoff(initial=first, maximum=max(first, last), jitter=0.2))
            self._entries[key.uid] = entry
            until = NEVER if by.created else self._start.time + self._timing.late
            entry.lost_until = entry.overtaken_until = max(until, self._in_flight.take(key.uid))
        entry.forgotten = False
        self._uids[key.key] = key.uid
        is_stale = entry.outdates(version, obj)
        if version != entry.version and not is_stale:
            self._change(entry, key, version, now)
        elif (entry.failure or entry.work) and (
            by.changes - entry.changes or (entry.differs_from(obj) and not is_stale)
        ):
            self._hurry(entry, now)
        entry.changes = by.changes
        if not is_stale:
            entry.obj = obj
        return entry

    def _hurry(self, entry: Entry, now: float) -> None:
        """Retry soon: something that the reconcile reads has changed, and may be the reason of a failure, also of a call in progress."""
        entry.backoff.reset()
        entry.hurried = True
        entry.due = max(now, min(entry.due, entry.failed_at + self._timing.first_retry))

    def _change(self, entry: Entry, key: ExternalKey, version: Version, now: float) -> None:
        entry.key, entry.version = key, version
        # The old request itself may have caused the failure.
        entry.backoff.reset()
        entry.due, entry.hurried = now, True
        if self._timing.debounce:
            entry.changed_at = now if entry.changed_at is None else entry.changed_at
            entry.debounced_until = min(now + self._timing.debounce, entry.changed_at + self._timing.at_most)

    def _ask(self, entry: Entry, goal: Goal, now: float, trace: str) -> None:
        if entry.goal != goal:
            early = goal == "absent" and entry.known == "absent" and entry.seen_at < entry.lost_until
            if entry.goal != "none" or early:
                entry.known, entry.failure, entry.due = "unknown", "", now
            entry.goal = goal
            entry.again_at = None
        entry.periodic_lookups, entry.trace = 0, trace
        if not entry.is_settled:
            entry.asked = True
        elif entry.work is None and (entry.again_at is None or entry.failure):
            self._settle(entry, now)
        self._schedule(entry, now)

    # the next call

    def _call(self, entry: Entry, now: float) -> Call | None:
        """The call that the current request needs."""
        if not entry.is_fresh:
            return "find"
        recent = self._timing.looks_only or now - entry.known_at <= self._timing.fresh
        if entry.goal == "present":
            if entry.known == "absent":
                return "create" if recent else "find"
            if entry.matches or not self._can_update:
                return None
            return "update" if recent else "find"
        if entry.goal == "absent" and entry.known == "present":
            return "delete" if recent else "find"
        return None

    def _pending(self, entry: Entry, now: float) -> tuple[Call, float, bool] | None:
        """The next call, when it is due, and whether it is a periodic lookup."""
        if entry.work is not None:
            return None
        call = self._call(entry, now)
        if self._timing.looks_only and call != "find":
            return None
        if call is not None and (entry.asked or (call == "find" and entry.awaits_lookup)):
            held = entry.debounced_until if call in {"create", "update"} else NEVER
            return call, max(entry.due, held), False
        if entry.again_at is not None:
            return "find", entry.again_at, True
        return None

    def _begin(self, entry: Entry, now: float) -> Work | None:
        pending = self._pending(entry, now)
        if pending is None or pending[1] > now:
            return None
        call, _, again = pending
        if again:
            entry.asked, entry.again_at = False, None
            entry.periodic_lookups += 1
        entry.timer_at, entry.hurried = None, False
        entry.work = Work(
            call=call,
            key=entry.key,
            obj=entry.obj,
            found=entry.found if call in {"update", "delete"} else None,
            version=entry.version,
            goal=entry.goal,
            began=now,
            again=again,
        )
        return entry.work

    def _schedule(self, entry: Entry, now: float) -> None:
        pending = self._pending(entry, now)
        when = None if pending is None else max(pending[1], now)
        if pending is not None and pending[0] != "find" and when == now:
            # It goes first: behind many lookups, its own would be outdated when its turn comes.
            when = NEVER
        self._timers.set(entry, when, now)

    def _settle(self, entry: Entry, now: float) -> None:
        """Go idle until the next request or the next periodic lookup."""
        entry.asked = False
        entry.changed_at, entry.debounced_until = None, NEVER
        entry.again_at = now + REMEMBER_GONE if entry.goal == "absent" else self._again(now)
        if entry.goal == "present" and entry.seen_at < entry.overtaken_until:
            until = max(now, entry.overtaken_until)
            entry.again_at = min(until, entry.again_at or until)
        if entry.is_settled:
            entry.relieve()
            if not self._timing.repeatable:
                # One request was sent, and a lookup saw its result. Of several requests, one may still be on its way.
                entry.lost_until = NEVER

    def _again(self, now: float) -> float | None:
        """When the next periodic lookup is due, with jitter."""
        every = self._timing.look_again
        return None if every is None else now + every * (1 - 0.1 * self._rng.random())

    # results; each method returns the news for the reconcile, or an empty string

    def _succeeded(self, entry: Entry, work: Work, result: There | Missing | Deleted, now: float) -> str:
        current = entry.goal == work.goal or work.call == "find"
        entry.known_for, entry.known_at = (work.version if current else None), now
        entry.lookup_timed_out, entry.busy = False, ""
        if work.call != "update":
            # Some services update an object that is gone without an error, so only the lookup before the update counts.
            entry.seen_at = work.began
        entry.awaits_lookup = entry.awaits_lookup and entry.version != work.version
        match result:
            case Deleted():
                # An accepted deletion is not enough: look up until the external object is gone.
                entry.known, entry.deleted = "unknown", True
                entry.made = None
                self._may_come(entry, work)
                return ""
            case Missing() if not self._lags(entry, work):
                return self._missing(entry, work, now)
            case Missing():
                entry.known, entry.matches, entry.doubted = "present", False, False
                (entry.found,) = entry.made or (None,)
                # It may be gone by now: look once more when the list can no longer lag.
                entry.overtaken_until = max(entry.overtaken_until, entry.made_until)
                return self._there(entry, work, now)
            case There(found):
                self._note_made(entry, work, found, now)
                entry.known, entry.found, entry.matches, entry.doubted = "present", found, False, False
                return self._there(entry, work, now)

    def _note_made(self, entry: Entry, work: Work, found: Any, now: float) -> None:
        if work.call == "create":
            entry.made, entry.made_until, entry.deletion_tried = (found,), now + self._timing.late, False
        elif work.call == "find":
            entry.made = None
        elif entry.made is not None:
            entry.made = (found,)

    def _lags(self, entry: Entry, work: Work) -> bool:
        """Whether the external object exists although the lookup missed it: `create` returned it recently."""
        if entry.made is None:
            return False
        if work.began < entry.made_until or (entry.goal == "absent" and not entry.deletion_tried):
            return True
        entry.made = None
        return False

    def _there(self, entry: Entry, work: Work, now: float) -> str:
        if entry.goal == "absent" and entry.deleted:
            # The service is slow to delete: repeat the delete after a while.
            entry.deleted = False
            self._doubt(entry, now, float("inf"))
        elif entry.goal == "present" and entry.is_fresh:
            if work.call == "find" and work.began < entry.ending_until:
                self._doubt(entry, now, entry.ending_until)
            else:
                return self._judged(entry, work, now)
        return ""

    def _judged(self, entry: Entry, work: Work, now: float) -> str:
        verdict = self._judge(entry.obj, entry.found)
        if isinstance(verdict, str):
            words = self._messages.incomparable(verdict)
            return self._failed(entry, work, Raised(verdict, certain=True), now, words=words)
        entry.matches = verdict
        if verdict:
            return self._messages.ended(work.call) if entry.asked else ""
        if work.call == "update":
            words = self._messages.unmatched()
            return self._failed(entry, work, Raised(words), now, words=words)
        return self._messages.differs() if entry.asked and not self._can_update else ""

    def _missing(self, entry: Entry, work: Work, now: float) -> str:
        if work.began < entry.lost_until and not (self._timing.repeatable and entry.goal != "absent"):
            self._doubt(entry, now, entry.lost_until)
            told, entry.doubted = entry.doubted or bool(entry.failure), True
            return self._messages.progress(entry) if entry.asked and not told else ""
        entry.doubted = False
        entry.known, entry.found, entry.matches = "absent", None, False
        if not (entry.is_settled and entry.asked):
            return ""
        return f"{self._name} deleted" if entry.deleted else f"{self._name} is gone"

    def _doubt(self, entry: Entry, now: float, until: float) -> None:
        """Look up again soon: the result may be about to change."""
        entry.known = "unknown"
        entry.due = min(now + entry.backoff.next_delay(self._rng), max(now, until))

    def _failed(self, entry: Entry, work: Work, raised: Raised, now: float, *, words: str = "") -> str:
        entry.deletion_tried = entry.deletion_tried or work.call == "delete"
        if work.again:
            # The external object counts as present until a call shows otherwise.
            entry.again_at = now + (entry.backoff.next_delay(self._rng) if raised.wait is None else raised.wait)
            return ""
        if raised.wait is not None:
            # The request stands, and so does what is known.
            entry.due = now + raised.wait
            told, entry.busy = entry.busy, raised.message
            return self._messages.progress(entry) if entry.asked and not told else ""
        if not raised.certain:
            self._may_come(entry, work)
        entry.known = "unknown"
        if (entry.goal, entry.version) != (work.goal, work.version):
            # The request behind this call no longer exists.
            entry.due = now
            return ""
        entry.awaits_lookup = False
        entry.failure = words or self._messages.failed(work.call, raised.message)
        entry.due, entry.failed_at = now + entry.backoff.next_delay(self._rng), now
        asked, entry.asked = entry.asked, False
        return entry.failure if asked else ""

    def _may_come(self, entry: Entry, work: Work) -> None:
        """Record that the call may take effect later."""
        until = work.began + self._timing.late
        if work.call == "create":
            entry.lost_until = max(entry.lost_until, until)
        elif work.call != "find":
            entry.overtaken_until = max(entry.overtaken_until, until)
            if work.call == "delete":
                entry.ending_until = max(entry.ending_until, until)

    def _drift(self, entry: Entry, before: tuple[str, bool, Any]) -> str:
        """What changed externally since the last request."""
        if entry.known == "absent":
            return f"{self._name} is gone"
        if before[:2] != (entry.known, entry.matches) or not are_equal(before[2], entry.found):
            return f"{self._name} changed"
        return f"{self._name} is looked after" if entry.periodic_lookups == MOST_PERIODIC_LOOKUPS else ""
