"""The tables of the debug page: keys, controllers, informers, checks, blocked loops.

Guarantees
- Rows that need attention come first.
- The number of rows is bounded for any number of controllers. Omitted rows are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steersman.cache import InformerStatistics
from steersman.controller import ControllerStatistics, KeyRecord, Request
from steersman.debug.page.document import section
from steersman.debug.page.elements import (
    DASH,
    NOTHING,
    Html,
    ago,
    badge,
    causes_list,
    cell,
    element,
    error_text,
    identifier,
    join,
    key_link,
    number,
    result_badge,
    table,
    trace_line,
)
from steersman.debug.page.problems import (
    FAILED,
    LONG_RUN,
    LONG_UNREADY,
    LONG_WAIT,
    UNREADY_PLACE,
    Problem,
    controller_place,
    failing,
    informer_place,
    longest_first,
    reasons_of,
)
from steersman.debug.statistics import BlockedLoop, ManagerStatistics, UnreadyObject
from steersman.debug.text import count, duration, next_run, percent

#: Row limits of the longer tables, and of all tables of recent reconciles together.
FAILING_ROWS = 1000
SLOW_ROWS = 12
RUN_ROWS = 1500


def errors_of(controller: ControllerStatistics) -> int:
    """How many reconciles of a controller failed."""
    return sum(times for result, times in controller.results.items() if result in FAILED)


# keys


def failing_keys(statistics: ManagerStatistics) -> Html:
    """Keys whose last reconcile failed."""
    found = [(controller.name, record) for controller in statistics.controllers for record in failing(controller)]
    if not found:
        return section("Failing keys", note="none: the last reconcile of every key succeeded", id_="failing")
    found.sort(key=lambda pair: pair[1].finished, reverse=True)
    rows = [
        (
            cell(key_link(name, record.request), element("div", name, class_="soft"), class_="keys"),
            number(record.failures) if record.failures else number("for good", tone="bad"),
            cell(
                join(result_badge(record), " ") if record.timed_out or record.crashed else NOTHING,
                error_text(record.last_error, place=f"{name} {record.request}"),
                trace_line(record),
                class_="words",
            ),
            cell(ago(record.finished, statistics.now), class_="nowrap"),
            cell(next_run(record.next_run), class_="nowrap"),
        )
        for name, record in found[:FAILING_ROWS]
    ]
    left = len(found) - len(rows)
    return section(
        "Failing keys",
        table(("Key and controller", "#In a row", "Last error", "Failed", "Next try"), rows),
        element("p", f"and {left:,} more; all are in statistics.json") if left else None,
        note=f"{len(found):,}, latest first",
        id_="failing",
    )


def unready_table(statistics: ManagerStatistics) -> Html:
    """Objects whose Ready condition is not True, the longest first."""
    total = sum(objects.count for objects in statistics.unready)
    if not total:
        return NOTHING
    shown = [(one, objects.controller) for objects in statistics.unready for one in objects.shown]
    shown.sort(key=lambda pair: longest_first(pair[0]))
    rows = [_unready_row(one, controller, statistics) for one, controller in shown]
    several = len(statistics.unready) > 1
    words = "; ".join(
        f"{objects.controller}: {reasons_of(objects)}" if several else reasons_of(objects)
        for objects in statistics.unready
    )
    left = total - len(rows)
    return section(
        "Objects that are not ready",
        table(("Key and controller", "Ready", "Message", "Since"), rows),
        element("p", f"and {left:,} more") if left else None,
        note=f"{total:,}, longest first: {words}",
        id_=UNREADY_PLACE,
    )


def _unready_row(one: UnreadyObject, controller: str, statistics: ManagerStatistics) -> tuple[Html, ...]:
    ready = one.ready
    long = ready.since is None or (statistics.now - ready.since).total_seconds() >= LONG_UNREADY
    return (
        cell(key_link(controller, Request(one.key)), element("div", controller, class_="soft"), class_="keys"),
        cell(
            badge(ready.reason or ready.status, "warn" if long else "quiet"),
            join(" ", badge("deleting", "quiet")) if one.deleting and ready.reason != "Deleting" else None,
        ),
        cell(error_text(ready.message, place=f"ready {controller} {one.key}"), class_="words"),
        cell(ago(ready.since, statistics.now), class_="nowrap"),
    )


def slow_keys(statistics: ManagerStatistics) -> Html:
    """The keys that have been running or waiting for a worker longest."""
    waiting = _longest(
        (controller.name, request, seconds)
        for controller in statistics.controllers
        for request, seconds in controller.queue.oldest
    )
    running = _longest(
        (controller.name, request, seconds)
        for controller in statistics.controllers
        for request, seconds in controller.queue.longest_running
    )
    if not waiting and not running:
        return section("Running and waiting longest", note="nothing is running or waiting for a worker", id_="slow")
    rows = [
        (
            cell(key_link(name, request), element("div", name, class_="soft"), class_="keys"),
            cell(badge(state, "warn" if seconds >= limit else "quiet")),
            number(duration(seconds), tone="warn" if seconds >= limit else ""),
        )
        for state, limit, entries in (("runs", LONG_RUN, running), ("waits", LONG_WAIT, waiting))
        for name, request, seconds in entries
    ]
    return section(
        "Running and waiting longest",
        table(("Key and controller", "State", "#For"), rows, class_="compact"),
        id_="slow",
    )


def _longest(entries: Iterable[tuple[str, Request, float]]) -> list[tuple[str, Request, float]]:
    return sorted(entries, key=lambda entry: entry[2], reverse=True)[:SLOW_ROWS]


# controllers

_COLUMNS = (
    ("Controller", ""),
    ("State", ""),
    ("Workers", "number"),
    ("Ready", "number"),
    ("Delayed", "number"),
    ("Failing", "number"),
    ("Oldest", "number"),
    ("Runs", "number"),
    ("Errors", "number"),
    ("Timeouts", "number wide"),
    ("Mean", "number wide"),
    ("Echoes", "number wide"),
)


def controllers_table(statistics: ManagerStatistics, found: Sequence[Problem]) -> Html:
    """A row for each controller; it opens to show sources and recent reconciles."""
    controllers = statistics.controllers
    if not controllers:
        why = "another process leads" if statistics.phase == "candidate" else f"the manager is {statistics.phase}"
        return section("Controllers", note=f"none runs: {why}", id_="controllers")
    troubled = {problem.subject: problem.tone for problem in reversed(found)}
    # What needs attention comes first; the rest keeps the order in which it was added.
    order = {"bad": 0, "warn": 1}
    ordered = sorted(controllers, key=lambda controller: order.get(troubled.get(controller.name, ""), 2))
    budget = max(3, min(50, RUN_ROWS // len(controllers)))
    head = element(
        "div", [element("span", name, class_=class_ or None) for name, class_ in _COLUMNS], class_="grid head"
    )
    rows = [_controller(controller, statistics, troubled.get(controller.name, ""), budget) for controller in ordered]
    search = element(
        "input",
        type="search",
        id="filter",
        class_="script",
        placeholder="Filter by name",
        aria_label="Filter controllers",
    )
    return section(
        "Controllers",
        element("div", element("div", head, rows, class_="controllers"), class_="scroll", id="controllers-scroll"),
        note=f"{len(controllers):,}; click one for its sources and last reconciles",
        id_="controllers",
        extra=search,
    )


def _controller(controller: ControllerStatistics, statistics: ManagerStatistics, tone: str, budget: int) -> Html:
    queue, runs, errors = controller.queue, sum(controller.results.values()), errors_of(controller)
    oldest = queue.oldest[0][1] if queue.oldest else None
    bad = len(failing(controller))
    state = badge("working", "good") if controller.working else badge("waiting", "warn")
    if tone == "bad" and controller.working:
        state = badge("failing", "bad")
    elif tone == "bad":
        state = badge("stuck", "bad")
    cells = (
        element(
            "span", controller.name, class_="name", title=f"reconciles {controller.kind}" if controller.kind else None
        ),
        state,
        _figure_in_row(f"{controller.active} / {controller.concurrency}", quiet=not controller.active),
        _figure_in_row(queue.ready),
        _figure_in_row(queue.delayed),
        _figure_in_row(bad, tone="bad-text"),
        _figure_in_row(
            duration(oldest) if oldest is not None else DASH, tone="warn-text" if (oldest or 0) >= LONG_WAIT else ""
        ),
        _figure_in_row(runs),
        _figure_in_row(percent(errors, runs), quiet=not errors, tone="bad-text" if bad else ""),
        _figure_in_row(controller.timeouts, wide=True, tone="warn-text"),
        _figure_in_row(duration(controller.busy_seconds / runs) if runs else DASH, wide=True),
        _figure_in_row(controller.echoes, wide=True),
    )
    return element(
        "details",
        element("summary", cells, class_="grid"),
        element(
            "div",
            _results(controller),
            _last_runs(controller, statistics, budget),
            _sources(controller),
            class_="inside",
        ),
        id=controller_place(controller.name),
        data_filter=controller.name,
    )


def _figure_in_row(value: int | str, *, quiet: bool | None = None, wide: bool = False, tone: str = "") -> Html:
    if quiet is None:
        quiet = value == 0
    classes = ("number", "wide" if wide else "", "zero" if quiet else tone)
    return element("span", value, class_=" ".join(name for name in classes if name))


def _results(controller: ControllerStatistics) -> Html:
    if not controller.results:
        return NOTHING
    words = ", ".join(f"{times:,} {result.replace('_', ' ')}" for result, times in sorted(controller.results.items()))
    queue = controller.queue
    sentence = f"Reconciles by result: {words}. Causes taken: {queue.adds:,}; retries: {queue.retries:,}; busy for {duration(controller.busy_seconds)} in all."
    return element("p", sentence)


def _last_runs(controller: ControllerStatistics, statistics: ManagerStatistics, budget: int) -> Html:
    if not controller.keys:
        return element("p", "No key has been reconciled yet.")
    shown = controller.keys[:budget]
    rows = [_run(controller.name, record, statistics) for record in shown]
    title = (
        f"Last reconciles, {len(shown):,} of {len(controller.keys):,}"
        if len(shown) < len(controller.keys)
        else "Last runs"
    )
    head = ("Key", "Why", "Ended", "#Took", "#Waited", "#Writes", "When", "Next run")
    return join(element("h3", title), table(head, rows))


def _run(controller: str, record: KeyRecord, statistics: ManagerStatistics) -> tuple[Html, ...]:
    return (
        cell(key_link(controller, record.request), class_="keys"),
        cell(causes_list(record.causes, limit=2), trace_line(record), class_="words"),
        cell(result_badge(record)),
        number(duration(record.seconds)),
        number(duration(record.waited)),
        number(record.writes),
        cell(ago(record.finished, statistics.now), class_="nowrap"),
        cell(next_run(record.next_run), class_="nowrap soft"),
    )


def _sources(controller: ControllerStatistics) -> Html:
    if not controller.sources:
        return NOTHING
    rows = [
        (
            cell(source.name),
            cell(badge("started", "good") if source.started else badge("waiting", "warn")),
            number(source.events),
            number(source.filtered),
            number(source.emitted),
            number(source.running),
            number(source.failures, tone="bad"),
            number(source.retrying, tone="warn"),
            number(source.given_up, tone="bad"),
            cell(error_text(source.last_failure, place=f"{controller.name} source {position}"), class_="words"),
        )
        for position, source in enumerate(controller.sources)
    ]
    head = (
        "Source",
        "State",
        "#Events",
        "#Filtered",
        "#Emitted",
        "#Running",
        "#Failures",
        "#Retrying",
        "#Given up",
        "Last failure",
    )
    return join(element("h3", "Sources"), table(head, rows, class_="compact"))


# the rest


def informers_table(statistics: ManagerStatistics) -> Html:
    """The cached kinds, and the state of their watches."""
    if not statistics.informers:
        return section("Informers", note="no kind is cached yet", id_="informers")
    ordered = sorted(
        statistics.informers, key=lambda informer: (_is_fine(informer), -_staleness(informer), informer.kind)
    )
    rows = [_informer(informer) for informer in ordered]
    head = (
        "Kind",
        "State",
        "#Objects",
        "Watch",
        "#Lists",
        "#Requests",
        "#Unconfirmed writes",
        "#Undelivered events",
        "Last error",
    )
    return section("Informers", table(head, rows), note=count(len(rows), "kind"), id_="informers")


def _is_fine(informer: InformerStatistics) -> bool:
    return informer.synced if informer.served else informer.optional


def _staleness(informer: InformerStatistics) -> float:
    return max((scope.staleness for scope in informer.scopes), default=0.0)


def _informer(informer: InformerStatistics) -> tuple[Html, ...]:
    if not informer.served:
        state = badge("not served", "quiet" if _is_fine(informer) else "warn")
    else:
        state = badge("synced", "good") if informer.synced else badge("syncing", "warn")
    watches = [
        element(
            "div",
            f"{scope.namespace}: " if scope.namespace else "",
            scope.phase,
            f" ({count(scope.failures, 'failure')})" if scope.failures else "",
            f", stale for {duration(scope.staleness)}" if scope.staleness >= 1 else "",
            class_="nowrap"
            if scope.phase == "watching" or (informer.optional and not informer.served)
            else "nowrap warn-text",
        )
        for scope in informer.scopes
    ]
    errors = [
        error_text(words, place=f"{informer.kind} {position}")
        for position, words in enumerate(dict.fromkeys(scope.last_error for scope in informer.scopes))
        if words
    ]
    group_version, _, kind = informer.kind.rpartition(" ")
    return (
        cell(
            element("span", kind, class_="name", id=informer_place(informer.kind)),
            " ",
            element("span", group_version, class_="soft"),
        ),
        cell(state),
        number(informer.objects),
        cell(watches),
        number(sum(scope.lists for scope in informer.scopes)),
        number(sum(scope.requests for scope in informer.scopes)),
        number(informer.own_writes),
        number(sum(informer.pending)),
        cell(errors or DASH, class_="words"),
    )


def checks_table(statistics: ManagerStatistics) -> Html:
    """The named health and readiness checks."""
    if not statistics.checks:
        return NOTHING
    rows = [
        (
            cell(element("span", check.name, class_="name")),
            cell(check.kind),
            cell(badge("ok", "warn" if check.message else "good") if check.ok else badge("failing", "bad")),
            cell(error_text(check.message, place=f"check {check.kind} {check.name}"), class_="words"),
        )
        for check in sorted(statistics.checks, key=lambda check: check.ok)
    ]
    return section("Checks", table(("Check", "Of", "State", "Message"), rows, class_="compact"), id_="checks")


def blocked_table(statistics: ManagerStatistics) -> Html:
    """What blocked the event loop: one row for each stack, latest first."""
    if not statistics.blocked:
        return NOTHING
    places: dict[tuple[str, str], list[BlockedLoop]] = {}
    for blocked in reversed(statistics.blocked):
        places.setdefault((blocked.task, blocked.stack), []).append(blocked)
    rows = [
        (
            cell(
                element("div", task),
                element(
                    "details", element("summary", "stack"), element("pre", stack), id=identifier("stack", str(position))
                ),
                class_="words",
            ),
            number(len(times)),
            number(duration(max(record.seconds for record in times))),
            cell(ago(times[0].at, statistics.now), class_="nowrap"),
        )
        for position, ((task, stack), times) in enumerate(places.items())
    ]
    return section(
        "Blocked event loop",
        table(("By", "#Times", "#At least", "Last"), rows),
        note="nothing else could run meanwhile: await it, or use asyncio.to_thread",
        id_="blocked",
    )
