"""The debug page: what a manager is doing, for the on-call engineer.

Guarantees
- Pure functions turn statistics into one self-contained HTML document: no file, no other server, no other script.
- The first screen says whether all is well, who leads, what is stuck, what fails and what is not ready.
- Text from outside (names, errors, causes) is escaped, and the content security policy runs no script but the page's
  own.
- The page's size is bounded for any number of controllers. Omitted rows are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steersman.controller import ControllerStatistics, KeyRecord, Request
from steersman.debug.page.document import document, section
from steersman.debug.page.elements import DASH, NOTHING, Child, Html, ago, badge, element, join, key_link, result_badge
from steersman.debug.page.problems import FAILED, Problem, failing, problems_of
from steersman.debug.page.tables import (
    blocked_table,
    checks_table,
    controllers_table,
    errors_of,
    failing_keys,
    informers_table,
    slow_keys,
    unready_table,
)
from steersman.debug.statistics import Explanation, ManagerStatistics
from steersman.debug.text import count, duration, next_run, percent
from steersman.objects import Key, nearest

#: How many problems are listed.
PROBLEM_ROWS = 12


def overview(statistics: ManagerStatistics) -> str:
    """The page about the whole manager."""
    found = problems_of(statistics)
    return document(
        statistics,
        title=_title(statistics, found),
        heading=element("h1", statistics.name or "manager"),
        body=join(
            _verdict(statistics, found),
            _figures(statistics),
            failing_keys(statistics),
            unready_table(statistics),
            slow_keys(statistics),
            controllers_table(statistics, found),
            informers_table(statistics),
            checks_table(statistics),
            blocked_table(statistics),
        ),
    )


def explanation(found: Sequence[Explanation], *, kind: str, key: Key, statistics: ManagerStatistics) -> str:
    """The page about one key, for ``/debug/explain?kind=...``: a section for each matching controller."""
    back = element("p", element("a", "All of this manager", href="/debug"))
    sections = [_explained(explanation, statistics) for explanation in found]
    if not found:
        names = ", ".join(controller.name for controller in statistics.controllers)
        words = f"No controller reconciles {kind}. " + (f"There are: {names}." if names else "None runs here now.")
        sections = [section("Nothing is known", element("p", words))]
    return document(
        statistics,
        title=f"{kind} {key}",
        heading=element(
            "h1", f"{found[0].kind.rpartition(' ')[2] if found else kind} ", element("span", str(key), class_="mono")
        ),
        body=join(sections, back),
    )


def _explained(explanation: Explanation, statistics: ManagerStatistics) -> Html:
    record, now = explanation.record, statistics.now
    if record is None:
        return section(
            f"Controller {explanation.controller}",
            element(
                "dl",
                _fact("Last run", _never_ran(explanation, statistics)),
                _fact("Next run", _next(explanation)),
                class_="facts",
            ),
        )
    causes = [element("li", str(cause)) for cause in record.causes]
    if record.causes.omitted:
        causes.append(element("li", f"and {record.causes.omitted:,} more, not kept", class_="soft"))
    merged = f"{count(record.causes.total, 'event')} in one run" if record.causes.total > 1 else ""
    failed = record.result in FAILED
    when = join(ago(record.last_error_at, now), " ") if record.last_error_at and not failed else NOTHING
    return section(
        f"Controller {explanation.controller}",
        element(
            "dl",
            _fact("Ready", str(explanation.ready)) if explanation.ready is not None else None,
            _fact("Why it last ran", element("ol", causes) if causes else DASH, element("div", merged, class_="soft")),
            _fact(
                "How it ended",
                result_badge(record),
                " ",
                ago(record.finished, now),
                f", after {duration(record.seconds)}",
            ),
            _fact("Failures in a row", _failures(record)) if record.failures or failed else None,
            _fact("Last error", when, element("pre", record.last_error)) if record.last_error else None,
            _fact("Next run", _next(explanation)),
            _fact("Writes", record.writes or "none"),
            _fact("Waited for a worker", duration(record.waited)),
            _fact(
                "Reconcile id",
                element("span", record.reconcile_id, class_="mono"),
                " ",
                element("span", "as in the log", class_="soft"),
            ),
            _fact("Trace", element("span", record.trace, class_="mono")) if record.trace else None,
            class_="facts",
        ),
        extra=badge(explanation.state, "quiet"),
    )


def _fact(name: str, *words: Child) -> Html:
    return join(element("dt", name), element("dd", *words))


def _failures(record: KeyRecord) -> str:
    return "not retried: a retry cannot help" if record.result == "terminal_error" else f"{record.failures:,}"


def _next(explanation: Explanation) -> str:
    if explanation.elsewhere and explanation.state != "running":
        return f"in another replica: {explanation.elsewhere}"
    match explanation.state:
        case "running":
            return "it runs now"
        case "ready":
            return "as soon as a worker is free"
        case "delayed" | "idle":
            return next_run(explanation.next_run)


def _never_ran(explanation: Explanation, statistics: ManagerStatistics) -> Html:
    """The section for a key without a record, with suggestions for a misspelled key."""
    known = [
        str(record.request.key)
        for one in statistics.controllers
        if one.name == explanation.controller
        for record in one.keys
    ]
    if explanation.elsewhere:
        return join("not here: ", element("span", explanation.elsewhere, class_="mono"), " has the key")
    words = "never here, or too long ago to be remembered"
    meant = nearest(str(explanation.key), known)
    if not meant:
        return join(words)
    return join(words, ". Did you mean ", key_link(explanation.controller, Request(Key.parse(meant))), "?")


# the first screen


def _title(statistics: ManagerStatistics, found: Sequence[Problem]) -> str:
    """The title that the browser's tab shows."""
    name = statistics.name or "manager"
    return f"({len(found)}) {name}" if found else name


def _verdict(statistics: ManagerStatistics, found: Sequence[Problem]) -> Html:
    bad = sum(problem.tone == "bad" for problem in found)
    if bad:
        tone, words = (
            "bad",
            f"{count(bad, 'thing')} wrong" + (f", {len(found) - bad} to look at" if found[bad:] else ""),
        )
    elif found:
        tone, words = "warn", f"{count(len(found), 'thing')} to look at"
    else:
        tone, words = _calm(statistics)
    items = [
        element(
            "li",
            badge("wrong" if problem.tone == "bad" else "look", problem.tone),
            element(
                "span",
                element("b", element("a", problem.subject, href=f"#{problem.place}")),
                " ",
                problem.words,
                class_="words",
            ),
        )
        for problem in found[:PROBLEM_ROWS]
    ]
    more = f"and {len(found) - PROBLEM_ROWS} more, marked below" if len(found) > PROBLEM_ROWS else ""
    return element(
        "section",
        element("div", element("h2", words), element("small", _leads(statistics), class_="soft"), class_="title"),
        element("ul", items) if items else None,
        element("p", more) if more else None,
        class_=f"verdict {tone}",
        id="verdict",
    )


def _calm(statistics: ManagerStatistics) -> tuple[str, str]:
    match statistics.phase:
        case "running" if unready := sum(objects.count for objects in statistics.unready):
            return "quiet", f"Converging: {count(unready, 'object is', 'objects are')} not ready yet"
        case "running":
            return "good", "All is well"
        case "candidate":
            return "quiet", "Standing by: another process leads"
        case "starting" | "syncing":
            return "quiet", "Starting: the caches are filling"
        case "draining":
            return "quiet", "Draining: running reconciles finish, no new ones start"
        case "stopped":
            return "quiet", "Stopped"


def _leads(statistics: ManagerStatistics) -> Html:
    leader = statistics.leader
    if (shards := statistics.shards) is not None:
        role = "coordinates" if leader is not None and leader.leading else "shares"
        return join(
            f"This process {role} shards as ",
            element("span", shards.replica, class_="mono"),
            f": it works on {count(len(shards.working), 'range')}, in assignment {shards.generation}"
            f" for {count(len(shards.replicas), 'replica')}.",
        )
    if leader is None:
        return join("No leader election: this process acts alone.")
    lease = element("span", leader.lease, class_="mono")
    if not leader.identity:
        return join("Not a candidate yet: the caches are filling. Lease ", lease)
    if leader.leading:
        since = join(", for ", duration((statistics.now - leader.since).total_seconds())) if leader.since else NOTHING
        return join("This process leads as ", element("span", leader.identity, class_="mono"), since, ". Lease ", lease)
    holder = element("span", leader.holder, class_="mono") if leader.holder else "no one"
    return join("Led by ", holder, "; this is ", element("span", leader.identity, class_="mono"), ". Lease ", lease)


def _figures(statistics: ManagerStatistics) -> Html:
    controllers, informers = statistics.controllers, statistics.informers
    working = sum(controller.working for controller in controllers)
    ready = sum(controller.queue.ready for controller in controllers)
    delayed = sum(controller.queue.delayed for controller in controllers)
    active, slots = (
        sum(controller.active for controller in controllers),
        sum(controller.concurrency for controller in controllers),
    )
    bad = sum(len(failing(controller)) for controller in controllers)
    runs, errors = _runs(controllers)
    synced = sum(informer.synced for informer in informers)
    uptime = duration((statistics.now - statistics.started).total_seconds()) if statistics.started else "not yet"
    return element(
        "dl",
        _figure("Leader", *_leader_figure(statistics)),
        _figure("Failing keys", bad, "last run failed", tone="bad" if bad else "good"),
        _unready_figure(statistics),
        _figure("Waiting", ready, f"ready; {delayed:,} delayed"),
        _figure("Running", f"{active:,} / {slots:,}", "workers busy"),
        _figure(
            "Controllers",
            f"{working:,} / {len(controllers):,}",
            "working",
            tone="" if working == len(controllers) else "warn",
        ),
        _figure(
            "Kinds cached",
            f"{synced:,} / {len(informers):,}",
            f"synced; {count(sum(informer.objects for informer in informers), 'object')}",
            tone="" if synced == len(informers) else "warn",
        ),
        _figure("Reconciles", runs, f"{percent(errors, runs)} errors"),
        _figure(
            "Up", uptime, statistics.started.strftime("since %b %d, %H:%M") if statistics.started else "not started"
        ),
        class_="figures",
    )


def _unready_figure(statistics: ManagerStatistics) -> Html:
    unready = sum(objects.count for objects in statistics.unready)
    of = sum(objects.of for objects in statistics.unready)
    return _figure(
        "Not ready", unready, f"of {of:,} objects" if unready else "objects", tone="warn" if unready else "good"
    )


def _leader_figure(statistics: ManagerStatistics) -> tuple[str, str]:
    leader = statistics.leader
    if leader is None:
        return "none", "no election: acts alone"
    if leader.leading:
        since = f"for {duration((statistics.now - leader.since).total_seconds())}" if leader.since else "now"
        return "this one", since
    return ("another", leader.holder) if leader.holder else ("no one", "the Lease is free")


def _figure(name: str, value: str | int, note: str, *, tone: str = "") -> Html:
    return element(
        "div",
        element("dt", name),
        element("dd", value, class_=tone or None),
        element("dd", note, class_="note"),
        class_="figure",
    )


def _runs(controllers: Iterable[ControllerStatistics]) -> tuple[int, int]:
    totals = [(sum(controller.results.values()), errors_of(controller)) for controller in controllers]
    return sum(total for total, _ in totals), sum(errors for _, errors in totals)
