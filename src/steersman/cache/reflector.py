"""The reflector follows a collection on a server: a state, and a pure step from inputs to commands.

Guarantees
- **No hot loop.** After a failure, the next request waits, with exponential backoff and jitter. Only the first failure
  after a healthy stream is retried immediately, and so is the first expired version after that. A stream shorter than
  `Settings.healthy_after` does not reset the backoff.
- **No needless relist.** A stream that ends is resumed at its last version. The reflector relists only if resuming is
  unsafe or fails: an expired version, repeated failures, a removed kind, versions that have gone back, silent streams.
- A list is staged and then committed as a whole: the store never holds half of it.
- After a lost or silent stream, or one that the server has ended before its time, the reflector first asks for the
  server's current version. If it is older than the last version seen, the server was restored from a backup: the next
  commit starts a new epoch.
- After two silent streams in a row, the reflector relists if the server's version has changed.
- The step does no IO and reads no clock or random source: time and randomness are arguments.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

import msgspec
from msgspec.structs import replace

from steersman.cache.stored_object import StoredObject, is_older


class Chance(Protocol):
    """The source of jitter, such as `random.Random`."""

    def random(self) -> float:
        """Return a number in [0, 1)."""
        ...


# changes on a stream


class Put(msgspec.Struct, frozen=True, gc=False):
    """An object exists in this state."""

    stored: StoredObject


class Remove(msgspec.Struct, frozen=True, gc=False):
    """An object was deleted; ``stored`` is its last state, with the version of the deletion."""

    stored: StoredObject


class Mark(msgspec.Struct, frozen=True, gc=False):
    """A bookmark: the stream has delivered everything up to this version."""

    resource_version: str
    #: The initial objects of the stream are complete.
    initial_events_end: bool = False


Change: TypeAlias = Put | Remove | Mark
#: Changes in the order of the stream. As an input: they arrived. As a command: apply them, up to the version of the state.
Changes: TypeAlias = tuple[Change, ...]

# inputs

#: Why a request or stream failed, as far as the next step depends on it.
Reason = Literal["expired", "unsupported", "throttled", "not_served", "lost", "silent", "refused"]


class Begin(msgspec.Struct, frozen=True):
    """The reflector starts."""


class Page(msgspec.Struct, frozen=True):
    """A page of the list arrived."""

    items: tuple[StoredObject, ...]
    resource_version: str
    continue_: str = ""


class Probed(msgspec.Struct, frozen=True):
    """The server's current version arrived."""

    resource_version: str


class Opened(msgspec.Struct, frozen=True):
    """The stream is open."""


class Ended(msgspec.Struct, frozen=True):
    """The server ended the stream normally."""


class Failed(msgspec.Struct, frozen=True):
    """A request or the stream failed."""

    reason: Reason
    retry_after: float = 0.0


class Woke(msgspec.Struct, frozen=True):
    """The sleep is over."""


class Refresh(msgspec.Struct, frozen=True):
    """A caller requests a relist; ``restored``: the server was restored from a backup, so it starts a new epoch."""

    restored: bool = False


class CatchUp(msgspec.Struct, frozen=True):
    """A caller requests early proof that the collection has caught up with the server."""


Input: TypeAlias = Begin | Page | Probed | Opened | Changes | Ended | Failed | Woke | Refresh | CatchUp

# commands


class List(msgspec.Struct, frozen=True):
    """Read a page of the current state: `Page` or `Failed` follows."""

    limit: int
    continue_: str = ""


class Probe(msgspec.Struct, frozen=True):
    """Ask for the server's current version: `Probed` or `Failed` follows."""


class Open(msgspec.Struct, frozen=True):
    """Open a stream, starting with the existing objects if ``initial``: `Opened` or `Failed` follows."""

    resource_version: str
    initial: bool
    seconds: int


class Sleep(msgspec.Struct, frozen=True):
    """Wait: `Woke` follows."""

    seconds: float


class Close(msgspec.Struct, frozen=True):
    """Close the stream."""


class Discard(msgspec.Struct, frozen=True):
    """Drop the staged changes."""


class Stage(msgspec.Struct, frozen=True):
    """Stage changes until the list is complete."""

    changes: Changes


class Commit(msgspec.Struct, frozen=True):
    """Commit the staged objects as the collection at this version; a new epoch drops all earlier state."""

    resource_version: str
    new_epoch: bool = False


class Empty(msgspec.Struct, frozen=True):
    """Empty the collection: the kind is no longer served."""


class Report(msgspec.Struct, frozen=True):
    """Report that the server was restored from a backup: its version is older than one seen before."""

    resource_version: str


Command: TypeAlias = List | Probe | Open | Sleep | Close | Discard | Stage | Commit | Changes | Empty | Report
Commands: TypeAlias = tuple[Command, ...]

Phase = Literal["idle", "streaming", "listing", "opening", "watching", "probing", "waiting"]
Next = Literal["sync", "watch", "probe"]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Times and sizes, in seconds and items."""

    page: int = 500
    #: After this long without data, a stream is closed. Servers send a bookmark about every minute.
    idle_timeout: float = 100.0
    #: Streams request a timeout between this and twice this, so that they do not all end together.
    watch_seconds: int = 300
    #: A stream that lasted this long is healthy and resets the failure count.
    healthy_after: float = 10.0
    initial_delay: float = 1.0
    maximum_delay: float = 30.0
    #: The maximum delay between retries for a kind that is not served.
    missing_delay: float = 5.0
    #: The upper limit for a server's Retry-After, so that no response can stop the informer for a day.
    maximum_retry_after: float = 60.0
    #: The random fraction of every delay.
    jitter: float = 0.3


class State(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a reflector."""

    phase: Phase = "idle"
    #: The version up to which the collection is complete; empty before the first list.
    version: str = ""
    #: Whether the server can send the existing objects on a stream (``sendInitialEvents``).
    streams: bool = True
    #: How many such streams in a row ended before the initial objects were complete.
    broken_streams: int = 0
    #: Whether to list without pages, because the continue token expired before the last page.
    whole: bool = False
    #: Failures since the last healthy stream.
    failures: int = 0
    #: How many versions have expired since then; the first causes an immediate relist.
    expired: int = 0
    #: How many responses in a row said that the kind is not served.
    missing: int = 0
    opened_at: float = 0.0
    #: How long the stream was requested to last.
    seconds: int = 0
    #: How many streams in a row timed out without any data, not even a bookmark.
    silent: int = 0
    #: Whether the server was restored from a backup, so that the next commit starts a new epoch.
    restored: bool = False
    #: Whether the stream is short, so that the server sends a bookmark soon.
    short: bool = False
    #: What to do after the sleep.
    next: Next = "sync"


#: The length of a short stream. Servers send a bookmark two seconds before the end of a stream.
SHORT_SECONDS = 3
#: A stream that ends this many seconds before its time ends in time.
_PUNCTUAL = 1.5
#: After this many broken streams, list in pages instead.
_BROKEN_STREAMS_MAX = 2
#: After this many failures in a row to resume from a version, relist.
_FAILED_WATCHES_MAX = 4
#: After this many silent streams in a row, relist.
_SILENT_MAX = 2
#: This many responses in a row that a kind is not served are believed: one may come from a starting server.
_MISSING_BELIEVED = 2


class Stepper:
    """The pure step function, with its settings."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def step(  # noqa: PLR0911 - one return for each phase
        self, state: State, given: Input, *, now: float, rng: Chance
    ) -> tuple[State, Commands]:
        """Return the next state and the commands to perform. Only the last command may produce an input."""
        if isinstance(given, Refresh):
            state, commands = self._sync(replace(state, restored=state.restored or given.restored), rng)
            return state, (Close(), *commands)
        if isinstance(given, CatchUp):
            state, commands = self._hurry(state, rng)
            return state, (Close(), *commands)
        if isinstance(given, Failed) and given.reason == "not_served":
            return self._missing(state, rng)
        match state.phase:
            case "idle":
                return self._sync(state, rng)
            case "streaming":
                return self._streaming(state, given, now, rng)
            case "listing":
                return self._listing(state, given, rng)
            case "opening" | "watching":
                return self._watching(state, given, now, rng)
            case "probing":
                return self._probing(state, given, rng)
            case "waiting":
                return self._go_on(state, rng)

    def after_stream(self, state: State, now: float) -> State:
        """Return the state at the end of a stream: a healthy one resets the counts of failures."""
        if state.phase == "watching" and now - state.opened_at >= self.settings.healthy_after:
            return replace(state, failures=0, expired=0, broken_streams=0)
        return state

    # actions

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
            opening = Open("", initial=True, seconds=self._seconds(rng))
            return replace(state, phase="streaming", seconds=opening.seconds), (Discard(), opening)
        limit = 0 if state.whole else self.settings.page
        return replace(state, phase="listing"), (Discard(), List(limit))

    def _watch(self, state: State, rng: Chance) -> tuple[State, Commands]:
        opening = Open(state.version, initial=False, seconds=self._seconds(rng))
        return replace(state, phase="opening", short=False, seconds=opening.seconds), (opening,)

    def _hurry(self, state: State, rng: Chance) -> tuple[State, Commands]:
        """Continue immediately, with a short stream where possible."""
        match state.phase:
            case "opening" | "watching":
                opening = Open(state.version, initial=False, seconds=SHORT_SECONDS)
                return replace(state, phase="opening", short=True, seconds=opening.seconds), (opening,)
            case "waiting" | "probing":
                return self._go_on(state, rng)
            case "idle" | "streaming" | "listing":
                return self._sync(state, rng)

    def _seconds(self, rng: Chance) -> int:
        return int(self.settings.watch_seconds * (1 + rng.random()))

    # phases

    def _streaming(self, state: State, given: Input, now: float, rng: Chance) -> tuple[State, Commands]:
        match given:
            case Opened():
                return replace(state, opened_at=now), ()
            case tuple():
                return self._staged(state, given, rng)
            case Failed("unsupported"):
                return self._sync(replace(state, streams=False), rng)
            case Ended() | Failed():
                state = replace(state, broken_streams=state.broken_streams + 1)
                return self._failed(state, "sync", rng, _patience(given))
            case _:
                raise unexpected(state, given)

    def _staged(self, state: State, changes: Changes, rng: Chance) -> tuple[State, Commands]:
        for position, change in enumerate(changes):
            if not isinstance(change, Mark):
                continue
            if not change.initial_events_end:
                # The server ignored sendInitialEvents: it streams only changes and never marks the initial objects complete.
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

    def _listing(self, state: State, given: Input, rng: Chance) -> tuple[State, Commands]:
        match given:
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
                return self._failed(state, "sync", rng, given.retry_after)
            case _:
                raise unexpected(state, given)

    def _watching(self, state: State, given: Input, now: float, rng: Chance) -> tuple[State, Commands]:
        match given:
            case Opened():
                return replace(state, phase="watching", opened_at=now, missing=0), ()
            case tuple():
                return self._applied(state, given)
            case Ended() if state.short and not self._is_early(state, now):
                return self._watch(state, rng)
            case Ended() | Failed():
                state = self.after_stream(state, now)
                if isinstance(given, Failed) and given.reason == "silent":
                    state = replace(state, silent=state.silent + 1)
                if isinstance(given, Failed) and given.reason == "expired":
                    state = replace(state, expired=state.expired + 1)
                    if state.expired == 1:
                        # The server responds, so waiting does not help: the version most likely expired during the failures.
                        return self._sync(replace(state, failures=state.failures + 1), rng)
                then = "probe" if isinstance(given, Ended) and self._is_early(state, now) else _after(given)
                return self._failed(state, then, rng, _patience(given))
            case _:
                raise unexpected(state, given)

    @staticmethod
    def _is_early(state: State, now: float) -> bool:
        """Whether the stream has ended long before its time: the server stops, and may come back with older objects."""
        return now - state.opened_at < state.seconds - _PUNCTUAL

    def _probing(self, state: State, given: Input, rng: Chance) -> tuple[State, Commands]:
        match given:
            case Probed(version) if version == state.version:
                return self._watch(replace(state, silent=0), rng)
            case Probed(version) if is_older(version, state.version):
                state, commands = self._sync(replace(state, restored=True), rng)
                return state, (Report(version), *commands)
            case Probed() if state.silent >= _SILENT_MAX:
                return self._sync(state, rng)
            case Probed():
                return self._watch(state, rng)
            case Failed(reason):
                return self._failed(state, "sync" if reason == "expired" else "probe", rng, given.retry_after)
            case _:
                raise unexpected(state, given)

    # outcomes

    def _committed(self, state: State, version: str) -> tuple[State, Commands]:
        commit = Commit(version, new_epoch=state.restored or is_older(version, state.version))
        if state.missing >= _MISSING_BELIEVED:
            # The kind is served again. How long it was missing says nothing about the server's health.
            state = replace(state, failures=min(state.failures, _MISSING_BELIEVED))
        return replace(state, version=version, whole=False, missing=0, silent=0, restored=False), (commit,)

    def _applied(self, state: State, changes: Changes) -> tuple[State, Commands]:
        last = changes[-1]
        version = last.resource_version if isinstance(last, Mark) else last.stored.resource_version
        version = version or state.version
        return replace(state, version=version, silent=0), (changes,)

    def _failed(self, state: State, then: Next, rng: Chance, at_least: float = 0.0) -> tuple[State, Commands]:
        """Continue with ``then``: immediately after the first failure, otherwise after a delay."""
        if then == "watch" and state.failures >= _FAILED_WATCHES_MAX:
            then = "sync"  # the version may be the problem: start over
        first = state.failures == 0
        delay = 0.0 if first else self._delay(state.failures, self.settings.maximum_delay, rng)
        at_least = min(at_least, self.settings.maximum_retry_after)
        state = replace(state, failures=state.failures + 1, next=then)
        if delay or at_least:
            return replace(state, phase="waiting"), (Sleep(max(delay, at_least)),)
        return self._go_on(state, rng)

    def _missing(self, state: State, rng: Chance) -> tuple[State, Commands]:
        missing, failures = state.missing + 1, state.failures + 1
        believed = missing >= _MISSING_BELIEVED
        # One such response counts as an ordinary failure. A kind that is certainly missing is retried more often, so that
        # the reflector finds it soon after its CRD is installed.
        delay = self._delay(failures, self.settings.missing_delay if believed else self.settings.maximum_delay, rng)
        state = replace(state, phase="waiting", next="sync", missing=missing, failures=failures)
        if believed and state.version:
            return replace(state, version="", broken_streams=0, whole=False), (Discard(), Empty(), Sleep(delay))
        return state, (Sleep(delay),)

    def _delay(self, failures: int, maximum: float, rng: Chance) -> float:
        # Bound the exponent, so that days without a server do not overflow it.
        longest = min(self.settings.initial_delay * 2.0 ** min(failures - 1, 16), maximum)
        return longest * (1 - self.settings.jitter * rng.random())


def _after(given: Ended | Failed) -> Next:
    """Return how to continue after a stream has ended or failed."""
    match given:
        case Failed("expired" | "unsupported"):
            return "sync"
        case Failed("lost" | "silent"):
            return "probe"
        case _:
            return "watch"


def _patience(given: Input) -> float:
    return given.retry_after if isinstance(given, Failed) else 0.0


def unexpected(state: State, given: Input) -> AssertionError:
    """Return the error for an input that is impossible in this state."""
    return AssertionError(f"a reflector that is {state.phase} cannot meet {type(given).__name__}")
