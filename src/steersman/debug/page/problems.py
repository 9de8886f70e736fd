"""The problems of a manager as sentences, worst first: the top of the debug page.

Guarantees
- Pure: the same statistics give the same sentences.
- A converging program has no problems: starting, standing by and stopping are reported as states, not as problems, and
  objects that are not ready are reported only after a few minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Literal, TypeAlias

import msgspec

from steersman.cache import InformerStatistics
from steersman.controller import ControllerStatistics, KeyRecord
from steersman.debug.page.elements import identifier
from steersman.debug.statistics import STALE_AFTER, ManagerStatistics, UnreadyObject, UnreadyObjects
from steersman.debug.text import count, duration
from steersman.objects import Key

Tone: TypeAlias = Literal["bad", "warn"]

#: Seconds after which a running reconcile, or a wait for a worker, is reported.
LONG_RUN = 60.0
LONG_WAIT = 30.0
#: Seconds for which a blocked loop stays on the page.
BLOCKED_IS_NEWS = 600.0
#: Seconds that a start may take before it is reported.
LONG_START = 60.0
#: Seconds that an object may be not ready before it is reported.
LONG_UNREADY = 300.0
#: Checks that summarize parts of the manager, which report their own problems.
_SUMMARIES = frozenset({"caches", "controllers"})
#: The HTML id of the table of objects that are not ready.
UNREADY_PLACE = "unready"
FAILED = frozenset({"error", "terminal_error"})


class Problem(msgspec.Struct, frozen=True):
    """One thing to look at."""

    tone: Tone
    #: The controller, kind or check that it concerns.
    subject: str
    words: str
    #: The HTML id of the section that shows it.
    place: str


def problems_of(statistics: ManagerStatistics) -> list[Problem]:
    """All problems, worst first."""
    # Stale caches come first: every decision based on them may be wrong.
    caches = [problem for informer in statistics.informers for problem in _informer(informer, statistics)]
    controllers = [problem for controller in statistics.controllers for problem in _controller(controller, statistics)]
    checks = _checks(statistics, reported=bool(caches or controllers))
    unready = [problem for objects in statistics.unready for problem in _unready(objects, statistics)]
    found = [*caches, *checks, *controllers, *unready, *_blocked(statistics)]
    return sorted(found, key=lambda problem: problem.tone != "bad")


def failing(controller: ControllerStatistics) -> list[KeyRecord]:
    """The keys whose last reconcile failed, most failures first."""
    bad = [record for record in controller.keys if record.result in FAILED]
    return sorted(bad, key=lambda record: record.failures, reverse=True)


def longest_first(obj: UnreadyObject) -> tuple[bool, datetime | None, Key]:
    """The sort key of objects that are not ready: those that do not say since when, then the longest."""
    return (obj.ready.since is not None, obj.ready.since, obj.key)


def reasons_of(unready: UnreadyObjects) -> str:
    """Why the objects of a controller are not ready: ``12 Waiting, 3 QuotaExceeded``."""
    words = [f"{number:,} {reason}" for reason, number in unready.reasons]
    if more := unready.count - sum(number for _, number in unready.reasons):
        words.append(f"{more:,} for other reasons")
    return ", ".join(words)


def controller_place(name: str) -> str:
    """The HTML id of a controller's section."""
    return identifier("controller", name)


def informer_place(kind: str) -> str:
    """The HTML id of an informer's row."""
    return identifier("informer", kind)


def _checks(statistics: ManagerStatistics, *, reported: bool) -> Iterator[Problem]:
    """The failing checks, except summaries whose parts already reported a problem."""
    excused = _starts(statistics) or statistics.phase in {"candidate", "draining", "stopped"}
    for check in statistics.checks:
        if check.ok or (check.kind == "ready" and (excused or (reported and check.name in _SUMMARIES))):
            continue
        what = "is not healthy" if check.kind == "health" else "is not ready"
        yield Problem(
            "bad" if check.kind == "health" else "warn",
            f"check {check.name}",
            f"{what}: {check.message or 'no reason given'}",
            "checks",
        )


def _starts(statistics: ManagerStatistics) -> bool:
    """Whether the program has just started and need not work yet."""
    began = statistics.started
    young = began is None or (statistics.now - began).total_seconds() < LONG_START
    return young and statistics.phase in {"starting", "syncing"}


def _controller(controller: ControllerStatistics, statistics: ManagerStatistics) -> Iterator[Problem]:
    if _stuck(controller, statistics):
        words = f"reconciles nothing yet: {_waits_for(controller, statistics)}"
        yield Problem("bad", controller.name, words, controller_place(controller.name))
    yield from _failing_keys(controller)
    yield from _hot_keys(controller)
    yield from _slow_keys(controller)
    yield from _sources(controller)


def _failing_keys(controller: ControllerStatistics) -> Iterator[Problem]:
    records = failing(controller)
    if records:
        last = max(records, key=lambda record: record.finished)
        first_line = last.last_error.strip().partition("\n")[0]
        words = f"{count(len(records), 'key fails', 'keys fail')}; last {last.request}: {first_line[:240]}"
        yield Problem("bad", controller.name, words, "failing")


def _hot_keys(controller: ControllerStatistics) -> Iterator[Problem]:
    if controller.looping:
        hot = next((record for record in controller.keys if record.loop), None)
        said = f"; last {hot.request}: {hot.loop}" if hot is not None else ""
        words = f"{count(controller.looping, 'key runs', 'keys run')} hot, throttled{said}"
        yield Problem("bad", controller.name, words, controller_place(controller.name))


def _slow_keys(controller: ControllerStatistics) -> Iterator[Problem]:
    queue = controller.queue
    oldest = queue.oldest[0] if queue.oldest else None
    longest = queue.longest_running[0] if queue.longest_running else None
    if oldest is not None and oldest[1] >= LONG_WAIT:
        busy = (
            f"; all {count(controller.concurrency, 'worker')} are busy"
            if controller.active >= controller.concurrency
            else ""
        )
        waiting = count(queue.ready, "key waits", "keys wait")
        words = f"falls behind: {waiting} for a worker, {oldest[0]} for {duration(oldest[1])}{busy}"
        yield Problem("warn", controller.name, words, "slow")
    if longest is not None and longest[1] >= LONG_RUN:
        yield Problem("warn", controller.name, f"{longest[0]} has been running for {duration(longest[1])}", "slow")


def _sources(controller: ControllerStatistics) -> Iterator[Problem]:
    place = controller_place(controller.name)
    for source in controller.sources:
        if source.failures:
            said = f": {source.last_failure}" if source.last_failure else ""
            left = f"; {count(source.retrying, 'object')} to be mapped again" if source.retrying else ""
            gone = count(source.given_up, "deleted object was", "deleted objects were")
            lost = f"; {gone} given up" if source.given_up else ""
            words = f"source {source.name}: its predicate or mapping failed {_times(source.failures)}{left}{lost}{said}"
            yield Problem("bad" if source.given_up else "warn", controller.name, words, place)


def _stuck(controller: ControllerStatistics, statistics: ManagerStatistics) -> bool:
    """Whether a controller should be working but is not."""
    if controller.working or statistics.phase in {"draining", "stopped"}:
        return False
    return bool(_absent(controller, statistics)) or not _starts(statistics)


def _waits_for(controller: ControllerStatistics, statistics: ManagerStatistics) -> str:
    if absent := _absent(controller, statistics):
        return f"the server has no {', '.join(dict.fromkeys(absent))}; is the CRD installed?"
    if waiting := [source.name for source in controller.sources if not source.started]:
        return f"waiting for the first list of {', '.join(waiting)}"
    return "it is starting or stopping"


def _absent(controller: ControllerStatistics, statistics: ManagerStatistics) -> list[str]:
    """The kinds that a controller waits for and the server does not serve."""
    missing = {informer.kind for informer in statistics.informers if not informer.served}
    return [source.kind for source in controller.sources if not source.started and source.kind in missing]


def _informer(informer: InformerStatistics, statistics: ManagerStatistics) -> Iterator[Problem]:
    place = informer_place(informer.kind)
    kind = informer.kind
    # A controller that waits for the kind has already reported it.
    said_before = any(kind in _absent(one, statistics) for one in statistics.controllers if _stuck(one, statistics))
    if not informer.served:
        if said_before or informer.optional:
            return
        yield Problem("warn", kind, "is not served yet; waiting. Install its CRD if it should be", place)
    else:
        for scope in informer.scopes:
            where = f" in namespace {scope.namespace}" if scope.namespace else ""
            if (scope.failures and scope.phase != "watching") or scope.staleness >= STALE_AFTER:
                what = "the watch is lost, the cache may be stale" if informer.synced else "cannot be listed"
                age = f", for {duration(scope.staleness)}" if informer.synced and scope.staleness >= 1 else ""
                times = f", {_times(scope.failures)} in a row" if scope.failures else ""
                said = f": {scope.last_error}" if scope.last_error else ""
                tone: Tone = "warn" if informer.synced and scope.staleness < STALE_AFTER else "bad"
                yield Problem(tone, kind, f"{what}{where}{age}{times}{said}", place)
            if scope.unreadable:
                words = f"{count(scope.unreadable, 'object')}{where} could not be decoded: see the log"
                yield Problem("warn", kind, words, place)
    if informer.index_failures:
        yield Problem("warn", kind, f"an index failed {_times(informer.index_failures)}: see the log", place)
    if informer.transform_failures:
        words = (
            f"its transform failed {_times(informer.transform_failures)}: those objects are cached whole; see the log"
        )
        yield Problem("warn", kind, words, place)


def _unready(unready: UnreadyObjects, statistics: ManagerStatistics) -> Iterator[Problem]:
    """The objects of a controller that have not been ready for long, if this process should make them ready."""
    if statistics.phase != "running" or not unready.shown:
        return
    worst = min(unready.shown, key=longest_first)
    since = worst.ready.since
    age = (statistics.now - since).total_seconds() if since is not None else None
    if age is not None and age < LONG_UNREADY:
        return
    objects = count(
        unready.count, f"of {unready.of:,} objects is not ready", f"of {unready.of:,} objects are not ready"
    )
    lasts = f" for {duration(age)}" if age is not None else ""
    said = worst.ready.message.strip().partition("\n")[0][:240] or worst.ready.reason or "no reason given"
    yield Problem(
        "warn", unready.controller, f"{objects}: {reasons_of(unready)}; {worst.key}{lasts}: {said}", UNREADY_PLACE
    )


def _blocked(statistics: ManagerStatistics) -> Iterator[Problem]:
    recent = [
        blocked for blocked in statistics.blocked if (statistics.now - blocked.at).total_seconds() < BLOCKED_IS_NEWS
    ]
    if recent:
        worst = max(recent, key=lambda blocked: blocked.seconds)
        words = f"was blocked {_times(len(recent))} recently, for at least {duration(worst.seconds)} by {worst.task}"
        yield Problem("warn", "the event loop", words, "blocked")


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")
