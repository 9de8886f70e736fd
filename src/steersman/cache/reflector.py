"""Following a collection on a server: a state, and a pure step from what happened to what is to be done.

Guarantees
- **No hot loop.** After a failure the next request waits, each time longer, with jitter; only the first failure after a
  healthy time is answered at once, and so is the first version that expires after it. A stream that lasts less than
  `Settings.healthy_after` heals nothing.
- **No relist without need.** A stream that ends is resumed where it stopped. Only an expired version, a kind that went
  away, or a server whose versions have gone back makes the collection be read again.
- A collection is staged and then committed as a whole: the store never holds half of a list.
- After a lost or silent stream the server is first asked for its present version. If that lies before what was seen,
  the server was restored from a backup: the next commit is a new epoch.
- The step does no IO, knows no clock and throws no dice: time and chance are arguments.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

import msgspec
from msgspec.structs import replace

from steersman.cache.stored import Stored
from steersman.cache.versions import is_older


class Chance(Protocol):
    """Where jitter comes from; `random.Random` is one."""

    def random(self) -> float:
        """A number between 0 and 1, 1 excluded."""
        ...


# what the stream says


class Put(msgspec.Struct, frozen=True, gc=False):
    """An object is there, in this state."""

    stored: Stored


class Remove(msgspec.Struct, frozen=True, gc=False):
    """An object is gone; its last state, at the version of its removal."""

    stored: Stored


class Mark(msgspec.Struct, frozen=True, gc=False):
    """Everything up to this version was said."""

    resource_version: str
    #: The objects that were there when the stream began are complete.
    initial_events_end: bool = False


Change: TypeAlias = Put | Remove | Mark

# what happened

#: Why something failed, as far as it matters for what to do next.
Reason = Literal["expired", "unsupported", "throttled", "not_served", "lost", "refused"]


class Begin(msgspec.Struct, frozen=True):
    """The reflector starts."""


class Page(msgspec.Struct, frozen=True):
    """A page of the list came."""

    items: tuple[Stored, ...]
    resource_version: str
    continue_: str = ""


class Probed(msgspec.Struct, frozen=True):
    """The server's present version came."""

    resource_version: str


class Opened(msgspec.Struct, frozen=True):
    """The stream is open."""


class Changes(msgspec.Struct, frozen=True):
    """Frames of the stream came together."""

    changes: tuple[Change, ...]


class Ended(msgspec.Struct, frozen=True):
    """The server ended the stream as it should."""


class Failed(msgspec.Struct, frozen=True):
    """A request or the stream failed."""

    reason: Reason
    retry_after: float = 0.0


class Woke(msgspec.Struct, frozen=True):
    """The time to wait is over."""


class Refresh(msgspec.Struct, frozen=True):
    """Somebody wants the collection to be read again, as new as the server has it."""


Event: TypeAlias = Begin | Page | Probed | Opened | Changes | Ended | Failed | Woke | Refresh

# what is to be done


class List(msgspec.Struct, frozen=True):
    """Read a page of the present state: a `Page` or `Failed` follows."""

    limit: int
    continue_: str = ""


class Probe(msgspec.Struct, frozen=True):
    """Ask for the server's present version: `Probed` or `Failed` follows."""


class Open(msgspec.Struct, frozen=True):
    """Open a stream, with the present objects first if ``initial``: `Opened` or `Failed` follows."""

    resource_version: str
    initial: bool
    seconds: int


class Sleep(msgspec.Struct, frozen=True):
    """Wait: `Woke` follows."""

    seconds: float


class Close(msgspec.Struct, frozen=True):
    """Close the stream."""


class Discard(msgspec.Struct, frozen=True):
    """Drop what was staged."""


class Stage(msgspec.Struct, frozen=True):
    """Put changes aside until the collection is complete."""

    changes: tuple[Change, ...]


class Commit(msgspec.Struct, frozen=True):
    """What was staged is the collection at this version; a new epoch drops everything that was remembered."""

    resource_version: str
    new_epoch: bool = False


class Apply(msgspec.Struct, frozen=True):
    """Changes to the collection, up to this version."""

    changes: tuple[Change, ...]
    resource_version: str


class Empty(msgspec.Struct, frozen=True):
    """The kind is not served any more: nothing of it is left."""


Command: TypeAlias = List | Probe | Open | Sleep | Close | Discard | Stage | Commit | Apply | Empty
Commands: TypeAlias = tuple[Command, ...]

Phase = Literal["idle", "streaming", "listing", "opening", "watching", "probing", "waiting"]
Next = Literal["sync", "watch", "probe"]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Times and sizes, in seconds and items."""

    page: int = 500
    #: A stream that says nothing for so long is given up; servers send a bookmark about every minute.
    idle_timeout: float = 100.0
    #: The server is asked to end streams after a time between this and its double, so that they spread out.
    watch_seconds: int = 300
    #: A stream that lasted so long was a good one: failures before it do not count any more.
    healthy_after: float = 10.0
    initial_delay: float = 1.0
    maximum_delay: float = 30.0
    #: The longest time between two questions for a kind that is not served.
    missing_delay: float = 5.0
    #: The part of every delay that is left to chance.
    jitter: float = 0.3


class State(msgspec.Struct, frozen=True, kw_only=True):
    """Where a reflector is."""

    phase: Phase = "idle"
    #: The version up to which everything was seen; empty before the first list.
    version: str = ""
    #: The server can send the present objects on a stream.
    streams: bool = True
    #: How often in a row such a stream broke before it was complete.
    broken_streams: int = 0
    #: The list is read in one answer, because the server forgot the pages before the last one was read.
    whole: bool = False
    #: Failures since the last healthy stream.
    failures: int = 0
    #: A version expired since then, and was answered at once.
    expired: bool = False
    #: How often in a row the server did not know the kind.
    missing: int = 0
    opened_at: float = 0.0
    #: What to do after waiting.
    next: Next = "sync"


#: So many broken streams, and the list is read in pages instead.
_BROKEN_STREAMS_MAX = 2
#: So many failures in a row to go on from a version, and the collection is read again.
_FAILED_WATCHES_MAX = 4
#: One answer that a kind is unknown may come from a server that is just starting.
_MISSING_BELIEVED = 2


class Stepper:
    """The step, for one set of settings."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def step(  # noqa: PLR0911 - one return for each phase
        self, state: State, event: Event, *, now: float, rng: Chance
    ) -> tuple[State, Commands]:
        """What follows from an event. Of the commands at most the last one is a question that an event answers."""
        if isinstance(event, Refresh):
            state, commands = self._sync(state, rng)
            return state, (Close(), *commands)
        if isinstance(event, Failed) and event.reason == "not_served":
            return self._missing(state, rng)
        match state.phase:
            case "idle":
                return self._sync(state, rng)
            case "streaming":
                return self._streaming(state, event, now, rng)
            case "listing":
                return self._listing(state, event, rng)
            case "opening" | "watching":
                return self._watching(state, event, now, rng)
            case "probing":
                return self._probing(state, event, rng)
            case "waiting":
                return self._go_on(state, rng)

    # what may be begun

    def _go_on(self, state: State, rng: Chance) -> tuple[State, Commands]:
        match state.next:
            case "sync":
                return self._sync(state, rng)
            case "watch":
                return self._watch(state, rng)
            case "probe":
                return replace(state, phase="probing"), (Probe(),)

    def _sync(self, state: State, rng: Chance) -> tuple[State, Commands]:
        if state.streams and state.broken_streams < _BROKEN_STREAMS_MAX:
            return replace(state, phase="streaming"), (Discard(), Open("", initial=True, seconds=self._seconds(rng)))
        limit = 0 if state.whole else self.settings.page
        return replace(state, phase="listing"), (Discard(), List(limit))

    def _watch(self, state: State, rng: Chance) -> tuple[State, Commands]:
        opening = Open(state.version, initial=False, seconds=self._seconds(rng))
        return replace(state, phase="opening"), (opening,)

    def _seconds(self, rng: Chance) -> int:
        return int(self.settings.watch_seconds * (1 + rng.random()))

    # phases

    def _streaming(self, state: State, event: Event, now: float, rng: Chance) -> tuple[State, Commands]:
        match event:
            case Opened():
                return replace(state, opened_at=now), ()
            case Changes(changes):
                return self._staged(state, changes, rng)
            case Failed("unsupported"):
                return self._sync(replace(state, streams=False), rng)
            case Ended() | Failed():
                state = replace(state, broken_streams=state.broken_streams + 1)
                return self._failed(state, "sync", rng, _patience(event))
            case _:
                raise unexpected(state, event)

    def _staged(self, state: State, changes: tuple[Change, ...], rng: Chance) -> tuple[State, Commands]:
        for position, change in enumerate(changes):
            if not isinstance(change, Mark):
                continue
            if not change.initial_events_end:
                # a server that does not know the option streams only what changes, and would never say "complete"
                state, commands = self._sync(replace(state, streams=False), rng)
                return state, (Close(), *commands)
            before, after = changes[:position], changes[position + 1 :]
            state, commands = self._committed(state, change.resource_version)
            if before:
                commands = (Stage(before), *commands)
            state = replace(state, phase="watching")
            if after:
                state, applying = self._applied(state, after)
                commands = (*commands, *applying)
            return state, commands
        return state, (Stage(changes),)

    def _listing(self, state: State, event: Event, rng: Chance) -> tuple[State, Commands]:
        match event:
            case Page(items, version, continue_):
                staging = Stage(tuple(Put(item) for item in items))
                if continue_:
                    return state, (staging, List(self.settings.page, continue_))
                state, committing = self._committed(state, version)
                state, watching = self._watch(state, rng)
                return state, (staging, *committing, *watching)
            case Failed("expired") if not state.whole:
                return self._failed(replace(state, whole=True), "sync", rng)
            case Failed():
                return self._failed(state, "sync", rng, event.retry_after)
            case _:
                raise unexpected(state, event)

    def _watching(self, state: State, event: Event, now: float, rng: Chance) -> tuple[State, Commands]:
        match event:
            case Opened():
                return replace(state, phase="watching", opened_at=now, missing=0), ()
            case Changes(changes):
                return self._applied(state, changes)
            case Ended() | Failed():
                if state.phase == "watching" and now - state.opened_at >= self.settings.healthy_after:
                    state = replace(state, failures=0, expired=False, broken_streams=0)
                if isinstance(event, Failed) and event.reason == "expired" and not state.expired:
                    # it answers, and waiting would help nobody: what failed before was most likely why it expired
                    return self._sync(replace(state, failures=state.failures + 1, expired=True), rng)
                return self._failed(state, _after(event), rng, _patience(event))
            case _:
                raise unexpected(state, event)

    def _probing(self, state: State, event: Event, rng: Chance) -> tuple[State, Commands]:
        match event:
            case Probed(version) if is_older(version, state.version):
                return self._sync(state, rng)
            case Probed():
                return self._watch(state, rng)
            case Failed(reason):
                return self._failed(state, "sync" if reason == "expired" else "probe", rng, event.retry_after)
            case _:
                raise unexpected(state, event)

    # outcomes

    def _committed(self, state: State, version: str) -> tuple[State, Commands]:
        commit = Commit(version, new_epoch=is_older(version, state.version))
        if state.missing >= _MISSING_BELIEVED:
            # the kind is there at last: how long it was away says nothing about its server
            state = replace(state, failures=min(state.failures, _MISSING_BELIEVED))
        return replace(state, version=version, whole=False, missing=0), (commit,)

    def _applied(self, state: State, changes: tuple[Change, ...]) -> tuple[State, Commands]:
        last = changes[-1]
        version = last.resource_version if isinstance(last, Mark) else last.stored.resource_version
        version = version or state.version
        return replace(state, version=version), (Apply(changes, version),)

    def _failed(self, state: State, then: Next, rng: Chance, at_least: float = 0.0) -> tuple[State, Commands]:
        """Go on with ``then``: at once if things went well until now, else after a while."""
        if then == "watch" and state.failures >= _FAILED_WATCHES_MAX:
            then = "sync"  # whatever is wrong with the version that was seen: begin afresh
        first = state.failures == 0
        delay = 0.0 if first else self._delay(state.failures, self.settings.maximum_delay, rng)
        state = replace(state, failures=state.failures + 1, next=then)
        if delay or at_least:
            return replace(state, phase="waiting"), (Sleep(max(delay, at_least)),)
        return self._go_on(state, rng)

    def _missing(self, state: State, rng: Chance) -> tuple[State, Commands]:
        missing, failures = state.missing + 1, state.failures + 1
        believed = missing >= _MISSING_BELIEVED
        # a kind that comes and goes with every answer is a failure like others; one that is away is looked for often
        delay = self._delay(failures, self.settings.missing_delay if believed else self.settings.maximum_delay, rng)
        state = replace(state, phase="waiting", next="sync", missing=missing, failures=failures)
        if believed and state.version:
            return replace(state, version="", broken_streams=0, whole=False), (Discard(), Empty(), Sleep(delay))
        return state, (Sleep(delay),)

    def _delay(self, failures: int, maximum: float, rng: Chance) -> float:
        # the exponent is bounded: a server that is away for days must not overflow it
        longest = min(self.settings.initial_delay * 2.0 ** min(failures - 1, 16), maximum)
        return longest * (1 - self.settings.jitter * rng.random())


def _after(event: Ended | Failed) -> Next:
    """How to go on after a stream from a version that was seen."""
    match event:
        case Failed("expired" | "unsupported"):
            return "sync"
        case Failed("lost"):
            return "probe"
        case _:
            return "watch"


def _patience(event: Event) -> float:
    return event.retry_after if isinstance(event, Failed) else 0.0


def unexpected(state: State, event: Event) -> AssertionError:
    """An event that cannot follow from what was commanded."""
    return AssertionError(f"a reflector that is {state.phase} cannot meet {type(event).__name__}")
