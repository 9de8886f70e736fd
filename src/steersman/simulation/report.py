"""`simulate`: run an operator with every fault at every request, and report what breaks, with a story of each finding."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from steersman.objects import Object
from steersman.simulation.checks import StateCheck
from steersman.simulation.exploration.exploration import Exploration
from steersman.simulation.exploration.smallest_schedule import shrunk
from steersman.simulation.runs.faults import Fault, FaultName, fault_name, named_faults
from steersman.simulation.runs.places import Place
from steersman.simulation.runs.schedules import FaultSchedule, PlacedFault, Result, Violation
from steersman.simulation.scenario import Companion, Scenario, Setup, Workload
from steersman.simulation.stories import Case, PageContents, Story, stories_of, story_page

#: Called after each schedule with how many have run, and how many there will be at least.
OnProgress = Callable[[int, int], None]
#: How many findings have a story: each takes two more runs.
_STORIES_MAX = 10
#: How many objects with values that are not compared the text names.
_SHOWN = 5
#: How many kinds of faults are named.
_FAULTS_SHOWN = 3


#: Words of an oracle that say when, not what: ``at the end:``, ``after step 2:``.
MOMENT = re.compile(r"^(after step \d+|at the end): ")
_NAME = re.compile(r"\S+/\S+|\d+")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A violation, with the smallest schedule that shows it."""

    schedule: FaultSchedule
    violations: tuple[Violation, ...]
    #: What happened; None for findings beyond the first ten.
    story: Story | None = None

    def __str__(self) -> str:
        if self.story is not None:
            return self.story.headline
        faults = " and ".join(map(str, self.schedule.faults)) or "no fault"
        return "\n".join((faults, *(f"-> {violation}" for violation in self.violations)))


class SimulationReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a simulation found."""

    scenario: str
    seed: int
    schedules: int
    requests: int
    seconds: float
    #: What is wrong without any fault; then no schedule was run.
    without_faults: tuple[Violation, ...] = ()
    findings: tuple[Finding, ...] = ()
    #: The conditions of `sometimes` that never held.
    never: tuple[str, ...] = ()
    #: Values that vary between two runs without faults, and so are not compared.
    uncompared: tuple[str, ...] = ()
    #: How often each fault happened at each request.
    coverage: dict[str, dict[str, int]] = {}
    #: The requests and faults of the coverage that broke something on their own.
    broken: frozenset[tuple[str, str]] = frozenset()
    #: The kinds of faults that were tried; None for all.
    faults: tuple[str, ...] | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.without_faults and not self.findings and not self.never

    def check(self) -> None:
        """Raise AssertionError, with the report and the stories, if something is wrong."""
        if not self.ok:
            raise AssertionError("\n\n".join((str(self), *(str(each.story) for each in self.findings if each.story))))

    def page(self) -> str:
        """The report, the stories and the coverage as one HTML page that loads nothing."""
        return story_page(
            PageContents(
                scenario=self.scenario,
                summary=f"{self._summary}; seed {self.seed}",
                remarks=(*map(str, self.without_faults), *(f"held in no run: {name}" for name in self.never)),
                stories=tuple(each.story or _headline(each) for each in self.findings),
                uncompared=self.uncompared,
                coverage=self.coverage,
                broken=self.broken,
            )
        )

    @property
    def _summary(self) -> str:
        counts = f"{self.schedules} schedules, {self.requests} requests"
        return f"{counts}, {self._faults_words} at each; {self.seconds:.0f} s"

    @property
    def _faults_words(self) -> str:
        if self.faults is None:
            return "every single fault"
        if len(self.faults) > _FAULTS_SHOWN:
            return f"{len(self.faults)} kinds of faults"
        return ", ".join(self.faults) or "no fault"

    def __str__(self) -> str:
        if self.without_faults:
            words = "".join(f"\n  -> {violation}" for violation in self.without_faults)
            return f"wrong without any fault:{words}"
        head = self._summary + "".join(f"\nheld in no run: {name}" for name in self.never)
        if self.uncompared:
            more = f"; and {len(self.uncompared) - _SHOWN} more" if len(self.uncompared) > _SHOWN else ""
            head += f"\nnot compared, because they vary without faults: {'; '.join(self.uncompared[:_SHOWN])}{more}"
        if not self.findings:
            return f"{head}\nno violation"
        count, sizes = len(self.findings), {len(finding.schedule.faults) for finding in self.findings}
        faults = f"{'at most ' if len(sizes) > 1 else ''}{max(sizes)} fault{'s' if max(sizes) != 1 else ''}"
        found = f"{count} violation{'s' if count > 1 else ''}, shrunk to {faults}:"
        return "\n".join(
            (head, found, *(f"  {line}" for finding in self.findings for line in str(finding).splitlines()))
        )


def simulate(
    setup: Setup | str,
    workload: Workload,
    *,
    faults: Iterable[FaultName] | None = None,
    pairs: int = 0,
    random_schedules: int = 0,
    checks: Iterable[StateCheck] = (),
    kinds: Iterable[type[Object]] = (),
    replicas: int = 1,
    beside: Mapping[str, Companion] | None = None,
    seed: int = 1,
    jobs: int | None = None,
    on_progress: OnProgress = lambda _done, _total: None,
) -> SimulationReport:
    """Run an operator under every single fault at every request it sends; optionally also under pairs and random schedules.

    ``setup`` builds the operator, for its first start and after each crash. It can also be the name of a module that has a
    ``manager``; the module is imported again for each start. ``workload`` is what users do. ``faults`` are the kinds of
    faults to try, such as ``("crash-after-commit", "lost-reply")``; all by default. ``beside`` names programs that run
    with the operator, such as ``{"kubelet": PodRunner}``; no fault happens to them. Call `simulate` outside of any event loop.
    """
    return simulated(
        Scenario(setup, workload, checks=checks, kinds=kinds, replicas=replicas, beside=beside),
        faults=None if faults is None else named_faults(faults),
        pairs=pairs,
        random_schedules=random_schedules,
        seed=seed,
        jobs=jobs,
        on_progress=on_progress,
    )


def simulated(
    scenario: Scenario,
    *,
    faults: Sequence[Fault] | None = None,
    singles: bool = True,
    pairs: int = 0,
    random_schedules: int = 0,
    seed: int = 1,
    jobs: int | None = None,
    on_progress: OnProgress = lambda _done, _total: None,
) -> SimulationReport:
    """Run a scenario under every single fault at every request, unless ``singles`` is False; see `simulate`."""
    exploration = Exploration(scenario, seed=seed, jobs=jobs or os.cpu_count() or 1, faults=faults)
    began = time.monotonic()
    wrong = exploration.prepare()
    requests = sum(place.actor.startswith("operator") for place in exploration.places)
    if wrong:
        return SimulationReport(
            scenario=scenario.name,
            seed=seed,
            schedules=3,
            requests=requests,
            seconds=time.monotonic() - began,
            without_faults=wrong,
        )
    results: list[Result] = []
    total = (len(exploration.targets()) if singles else 0) + pairs + random_schedules

    def on_result(result: Result) -> None:
        results.append(result)
        on_progress(len(results), total)

    if singles:
        exploration.singles(on_result)
    if pairs:
        exploration.runs(exploration.pairs(pairs), on_result)
    if random_schedules:
        exploration.runs(exploration.random_schedules(random_schedules), on_result)
    return SimulationReport(
        scenario=scenario.name,
        seed=seed,
        schedules=len(results),
        requests=requests,
        seconds=time.monotonic() - began,
        findings=_with_stories(scenario, _findings(exploration, results)),
        never=_never(scenario, exploration.reached.union(*(result.reached for result in results))),
        uncompared=exploration.uncompared,
        coverage=_coverage(results),
        faults=None if faults is None else tuple(map(fault_name, faults)),
        broken=frozenset(
            (_target(placed.place), fault_name(placed.fault))
            for result in results
            if result.violations and len(result.fired) == 1
            for placed in result.fired
        ),
    )


def scenario_of(setup: Setup | str, workload: Workload, options: Mapping[str, Any]) -> Scenario:
    """The scenario that `simulate` runs with these options."""
    names = ("checks", "kinds", "replicas", "beside")
    return Scenario(setup, workload, **{name: options[name] for name in names if name in options})


def _findings(exploration: Exploration, results: Iterable[Result]) -> tuple[Finding, ...]:
    """One finding for each way to fail, with its smallest schedule; the same in every run, whichever process ends first."""
    groups: dict[frozenset[str], list[Result]] = {}
    order = {placed: number for number, placed in enumerate(exploration.targets())}
    for result in sorted(results, key=lambda result: _rank(result.schedule, order)):
        if result.violations:
            groups.setdefault(frozenset(map(_sort_of, result.violations)), []).append(result)
    findings: list[Finding] = []
    for group in groups.values():
        smallest = group[0]
        least = shrunk(exploration, smallest) if len(smallest.schedule.faults) > 1 else smallest
        findings.append(Finding(schedule=least.schedule, violations=least.violations))
    return tuple(findings)


def _sort_of(violation: Violation) -> str:
    """A violation without its moment and the names of its objects: the same mistake shows at many of them."""
    words = MOMENT.sub("", violation.words)
    parts = {_NAME.sub("", part) for part in words.split("; ")}
    return f"{violation.oracle}: {'; '.join(sorted(parts))}"


def _rank(schedule: FaultSchedule, order: Mapping[PlacedFault, int]) -> tuple[int, list[int], int]:
    """Few faults first, then early ones."""
    return len(schedule.faults), [order.get(placed, len(order)) for placed in schedule.faults], schedule.seed


def _with_stories(scenario: Scenario, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    first = findings[:_STORIES_MAX]
    stories = stories_of(scenario, [Case(finding.schedule, finding.violations) for finding in first])
    with_them = (msgspec.structs.replace(finding, story=story) for finding, story in zip(first, stories, strict=True))
    return (*with_them, *findings[_STORIES_MAX:])


def _headline(finding: Finding) -> Story:
    title, *violations = str(finding).splitlines()
    return Story(title=title, violations=tuple(line.removeprefix("-> ") for line in violations))


def _never(scenario: Scenario, reached: frozenset[int]) -> tuple[str, ...]:
    checks = enumerate(scenario.checks)
    return tuple(check.name for number, check in checks if check.when == "sometimes" and number not in reached)


def _coverage(results: Iterable[Result]) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = {}
    for result in results:
        for placed in result.fired:
            counts.setdefault(_target(placed.place), Counter())[fault_name(placed.fault)] += 1
    return {target: dict(sorted(kinds.items())) for target, kinds in sorted(counts.items())}


def _target(place: Place) -> str:
    return f"{place.verb} {place.resource}"
