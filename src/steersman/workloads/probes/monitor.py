"""Runs the probes of many workloads by their schedules, and reports what changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from heapq import heappop, heappush
from types import TracebackType
from typing import Self

from steersman import aio
from steersman.objects import MicroTime
from steersman.workloads.kinds import HealthProbeResult, HealthStatus, ProbeOutcome
from steersman.workloads.probes.failure_count import FailureCount
from steersman.workloads.probes.probe import Probe, Prober, Run, Verdict

#: Seconds between two runs until the first success.
_EAGER = 0.1
#: Runs begin at multiples of this, so that many probes share one turn of the event loop.
_GRID = 0.05
#: After the first success, runs at an interval of so many steps, or a multiple, begin at multiples of it: in a larger
#: batch each probe costs less. The first such interval is up to half of these steps shorter or longer.
_COARSE = 10
#: Seconds after which results that differ only in their timestamps are reported.
_REPEAT = 60.0

#: Called with the latest results of all probes of a workload, in the order of the probes, in the event loop.
Listener = Callable[[tuple[HealthProbeResult, ...]], None]


def health_of(names: Iterable[str], results: Iterable[HealthProbeResult]) -> HealthStatus:
    """The health of a workload with these probes: Unhealthy if one fails, Healthy if all succeed, otherwise Caution."""
    outcomes = {each.probe_name: each.outcome for each in results}
    found = [outcomes.get(name, "Unknown") for name in names]
    if "Failure" in found:
        return "Unhealthy"
    return "Healthy" if all(each == "Success" for each in found) else "Caution"


class _Watched:
    """The probes of one workload, and their listener."""

    __slots__ = ("listener", "parts", "probes", "reported")

    def __init__(self, probes: Sequence[Probe], listener: Listener) -> None:
        self.probes = probes
        self.listener = listener
        self.parts = [_Part(probe, self) for probe in probes]
        self.reported = 0.0

    def report(self) -> None:
        """Call the listener with the latest results."""
        self.reported = asyncio.get_running_loop().time()
        self.listener(tuple(part.result(part.verdict) for part in self.parts if part.verdict is not None))


class _Part:
    """One probe of a workload, and its latest result."""

    __slots__ = ("at", "count", "has_succeeded", "outcome", "probe", "run", "verdict", "watched")

    def __init__(self, probe: Probe, watched: _Watched) -> None:
        self.probe = probe
        #: The workload; None once it is no longer watched.
        self.watched: _Watched | None = watched
        self.run: Run | None = None
        self.verdict: Verdict | None = None
        self.at: datetime | None = None
        self.has_succeeded = False
        self.count = FailureCount(probe.schedule, asyncio.get_running_loop().time())
        self.outcome: ProbeOutcome = "Unknown"

    def result(self, verdict: Verdict) -> HealthProbeResult:
        """The latest result, for a status."""
        assert self.at is not None
        return HealthProbeResult(
            outcome=self.outcome,
            timestamp=MicroTime.of(self.at),
            probe_name=self.probe.name,
            reason=verdict.reason or None,
        )


class HealthMonitor:
    """Runs probes while its ``async with`` block lasts."""

    def __init__(self, prober: Prober) -> None:
        self._prober = prober
        self._watched: dict[str, _Watched] = {}
        #: The probes that begin at a moment of the grid, and these moments in order.
        self._due: dict[int, list[_Part]] = {}
        self._moments: list[int] = []
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        for key in list(self._watched):
            self.forget(key)
        if self._timer is not None:
            self._timer.cancel()

    def watch(self, key: str, probes: Sequence[Probe], listener: Listener) -> None:
        """Set the probes of a workload; an empty list stops them. Setting the same probes again changes nothing."""
        known = self._watched.get(key)
        if known is not None and known.probes == probes:
            known.listener = listener
            return
        self.forget(key)
        if not probes:
            return
        watched = self._watched[key] = _Watched(probes, listener)
        for part in watched.parts:
            if part.probe.schedule.initial_delay > 0:
                self._later(part, part.probe.schedule.initial_delay)
            else:
                self._start(part)

    def forget(self, key: str) -> None:
        """Stop the probes of a workload. Does nothing if it has none."""
        watched = self._watched.pop(key, None)
        for part in watched.parts if watched is not None else ():
            part.watched = None
            if part.run is not None:
                part.run.cancel()

    def _start(self, part: _Part) -> None:
        part.run = self._prober.start(part.probe.check, part.probe.schedule.timeout, partial(self._take, part))

    def _take(self, part: _Part, verdict: Verdict) -> None:
        """Record a verdict, report it if it is a change, and schedule the next run."""
        part.run, watched = None, part.watched
        if watched is None:
            return
        now = asyncio.get_running_loop().time()
        before, part.verdict, part.at = (part.verdict, part.outcome), verdict, aio.utc_now()
        part.outcome = part.count.outcome(succeeded=verdict.succeeded, now=now)
        part.has_succeeded = part.has_succeeded or verdict.succeeded
        schedule = part.probe.schedule
        if not (part.has_succeeded and schedule.until_success):
            self._later(part, schedule.interval if part.has_succeeded else min(_EAGER, schedule.interval))
        if before != (verdict, part.outcome) or now - watched.reported >= _REPEAT:
            watched.report()

    # the grid

    def _later(self, part: _Part, seconds: float) -> None:
        # Never for the initial delay, which would be shorter at times.
        steps = seconds / _GRID if part.has_succeeded else 0
        grid = _COARSE if steps >= 2 * _COARSE and steps % _COARSE == 0 else 1
        moment = round((asyncio.get_running_loop().time() + seconds) / (_GRID * grid)) * grid
        due = self._due.get(moment)
        if due is not None:
            due.append(part)
            return
        self._due[moment] = [part]
        heappush(self._moments, moment)
        if self._moments[0] == moment:
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(self._moments[0] * _GRID, self._start_due)

    def _start_due(self) -> None:
        """Start the probes that are due, including those that a busy event loop has missed."""
        self._timer = None
        now = asyncio.get_running_loop().time()
        parts: list[_Part] = []
        while self._moments and self._moments[0] * _GRID <= now + _GRID / 10:
            parts += self._due.pop(heappop(self._moments))
        if self._moments:
            self._set_timer()
        for part in parts:
            if part.watched is not None:
                self._start(part)
