"""The debug page: what it says, that it is whole, and that nothing on it can be anything but words."""

from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace

from steersman.cache import InformerStatistics
from steersman.cache.statistics import ScopeStatistics
from steersman.controller import Cause, Causes, ControllerStatistics, KeyRecord, QueueStatistics, Request
from steersman.controller.sources.source import SourceStatistics
from steersman.debug import (
    BlockedLoop,
    CheckResult,
    Explanation,
    LeaderStatistics,
    ManagerStatistics,
    ReadyCondition,
    UnreadyObject,
    UnreadyObjects,
    duration,
    percent,
)
from steersman.debug.page import explanation, overview, problems_of
from steersman.objects import GroupVersionKind, Key

NOW = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)
SITE = GroupVersionKind("web.example.com", "v1", "Site")
HOSTILE = "<script>alert(1)</script>\"'&"
VOID = {"meta", "input", "br", "hr"}


class Page(HTMLParser):
    """The page as a browser reads it: tags that match, ids, links, and the text of each element."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.scripts = 0
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == [], "every element is closed"

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        assert not any(name.startswith("on") or name == "style" for name in attributes), attributes
        assert not {"src", "srcset"} & attributes.keys(), "the page needs nothing else"
        self.scripts += tag == "script"
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag == "a":
            self.links.append(attributes["href"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open[-1:] == [tag], f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def record(name="web", *, result="success", failures=0, error="", next_run=None, seconds_ago=5.0, **rest) -> KeyRecord:
    cause = Cause(what="object", kind=SITE, type="changed", key=Key("default", name), generation=3)
    return KeyRecord(
        request=Request(Key("default", name)),
        reconcile_id=f"id-of-{name}",
        causes=Causes((cause,), 4, 0),
        result=result,
        finished=NOW - timedelta(seconds=seconds_ago),
        seconds=0.25,
        waited=0.004,
        writes=2,
        failures=failures,
        last_error=error,
        last_error_at=NOW - timedelta(seconds=seconds_ago) if error else None,
        next_run=next_run,
        **rest,
    )


def queue(**figures) -> QueueStatistics:
    empty = {"ready": 0, "delayed": 0, "running": 0, "failing": 0, "adds": 0, "takes": 0, "retries": 0}
    return QueueStatistics(by_priority={}, **({"oldest": (), "longest_running": ()} | empty | figures))


GIZMO = "gizmo.example.com/v1 Gizmo"


def source(name="Site", *, started=True, **rest) -> SourceStatistics:
    figures = {"events": 3, "filtered": 1, "emitted": 2, "failures": 0}
    return SourceStatistics(name=name, started=started, **(figures | rest))


def controller(name="site", *, keys=(), **rest) -> ControllerStatistics:
    figures = {
        "concurrency": 4,
        "working": True,
        "active": 0,
        "results": {"success": 10},
        "timeouts": 0,
        "echoes": 7,
        "busy_seconds": 1.0,
        "queue": queue(),
        "sources": (source(),),
    }
    return ControllerStatistics(name=name, keys=tuple(keys), **(figures | rest))


def informer(kind="web.example.com/v1 Site", *, phase="watching", failures=0, last_error="", staleness=0.0, **rest):
    scope = ScopeStatistics(
        namespace="",
        phase=phase,
        watermark="7",
        requests=2,
        lists=1,
        failures=failures,
        unreadable=0,
        last_error=last_error,
        staleness=staleness,
    )
    figures = {"objects": 12, "synced": True, "served": True, "own_writes": 0, "pending": (), "index_failures": 0}
    return InformerStatistics(kind=kind, scopes=(scope,), **(figures | rest))


def unready(
    *names, reason="Waiting", message="waits for the license", minutes=10.0, number=0, of=12, controller="site"
):
    since = None if minutes is None else NOW - timedelta(minutes=minutes)
    condition = ReadyCondition("False", reason, message, since)
    shown = tuple(UnreadyObject(key=Key("default", name), ready=condition) for name in names)
    number = number or len(names)
    return UnreadyObjects(controller=controller, count=number, of=of, reasons=((reason, number),), shown=shown)


def manager(**rest) -> ManagerStatistics:
    figures = {
        "name": "site-operator",
        "version": "1.2.3",
        "started": NOW - timedelta(hours=3, minutes=20),
        "now": NOW,
        "phase": "running",
        "controllers": (controller(keys=[record()]),),
        "informers": (informer(),),
    }
    return ManagerStatistics(**(figures | rest))


def test_a_healthy_manager_is_well():
    page = Page(overview(manager()))
    assert "All is well" in page.text
    assert "3 h 20 min" in page.text
    assert "site-operator" in page.text
    assert page.scripts == 1


def test_every_failing_key_is_shown_with_its_error_and_its_next_try():
    failing = [
        record(f"web-{n}", result="error", failures=n + 1, error=f"ValueError: number {n}", next_run=30.0 + n)
        for n in range(300)
    ]
    last = record("cursed", result="terminal_error", error="TerminalError: no image")
    page = Page(overview(manager(controllers=(controller(keys=[*failing, last]), controller("other")))))
    for n in range(300):
        assert f"default/web-{n} " in page.text
        assert f"ValueError: number {n} " in page.text
    assert "in 30 s" in page.text
    assert "TerminalError: no image" in page.text
    assert "301 keys fail" in page.text
    assert "/debug/explain?kind=site&namespace=default&name=web-7" in page.links


def test_objects_that_are_not_ready_are_listed_with_their_reasons():
    """A manager without errors is not well while its objects are not ready."""
    page = Page(overview(manager(unready=(unready("a", "b", number=7_000, of=9_000),))))
    assert "All is well" not in page.text
    assert "1 thing to look at" in page.text
    problem = "7,000 of 9,000 objects are not ready: 7,000 Waiting; default/a for 10 min: waits for the license"
    assert f"site {problem}" in page.text
    assert "default/b site Waiting waits for the license 10 min ago" in page.text
    assert "and 6,998 more" in page.text
    assert "/debug/explain?kind=site&namespace=default&name=b" in page.links


def test_one_object_of_many_that_is_not_ready_is_seen():
    """Objects that do not say since when count as old, and come first."""
    found = (unready("new", minutes=0.1), unready("old", controller="other", minutes=None, message=""))
    page = Page(overview(manager(unready=found)))
    assert "other 1 of 12 objects is not ready: 1 Waiting; default/old: Waiting" in page.text
    assert "2, longest first: site: 1 Waiting; other: 1 Waiting" in page.text
    assert page.text.index("default/old other") < page.text.index("default/new site")


def test_objects_that_have_just_been_created_are_converging():
    """A page that cries at every new object is not believed at the next fault."""
    young = manager(unready=(unready("a", "b", minutes=1.0),))
    assert problems_of(young) == []
    page = Page(overview(young))
    assert "Converging: 2 objects are not ready yet" in page.text
    assert "All is well" not in page.text
    assert "default/a site Waiting waits for the license 1 min ago" in page.text


def test_a_process_that_stands_by_lists_objects_without_alarm():
    standing_by = manager(phase="candidate", controllers=(), unready=(unready("a"),))
    assert problems_of(standing_by) == []
    page = Page(overview(standing_by))
    assert "Standing by: another process leads" in page.text
    assert "default/a site Waiting" in page.text


def test_hostile_names_are_words():
    hostile = record(HOSTILE, result="error", failures=1, error=f"{HOSTILE}\n{HOSTILE * 40}", next_run=1.0)
    everywhere = manager(
        name=HOSTILE,
        leader=LeaderStatistics(lease=HOSTILE, identity=HOSTILE, leading=False, holder=HOSTILE),
        controllers=(
            controller(HOSTILE, keys=[hostile], sources=(source(HOSTILE, failures=1, last_failure=HOSTILE),)),
        ),
        informers=(informer(HOSTILE, last_error=HOSTILE, failures=1, phase="waiting"),),
        checks=(CheckResult(name=HOSTILE, kind="health", ok=False, message=HOSTILE),),
        blocked=(BlockedLoop(at=NOW, seconds=0.4, task=HOSTILE, stack=HOSTILE),),
        unready=(unready(HOSTILE, reason=HOSTILE, message=f"{HOSTILE}\n{HOSTILE * 40}", controller=HOSTILE),),
    )
    text = overview(everywhere)
    assert "<script>alert" not in text
    page = Page(text)
    assert page.scripts == 1
    assert HOSTILE in " ".join(page.words)
    found = [
        Explanation(
            controller=HOSTILE, kind=HOSTILE, key=Key(HOSTILE, HOSTILE), record=hostile, state="idle", next_run=None
        )
    ]
    text = explanation(found, kind=HOSTILE, key=Key(HOSTILE, HOSTILE), statistics=everywhere)
    assert "<script>alert" not in text
    assert Page(text).scripts == 1


def test_a_controller_that_waits_for_a_crd_is_named_with_what_to_do():
    waiting = controller("gizmo", working=False, results={}, sources=(source("Gizmo", kind=GIZMO, started=False),))
    missing = informer(GIZMO, served=False, synced=False, objects=0, phase="waiting")
    check = CheckResult(name="caches", kind="ready", ok=False, message="Gizmo is not synced")
    page = Page(overview(manager(phase="syncing", controllers=(waiting,), informers=(missing,), checks=(check,))))
    assert "the server has no gizmo.example.com/v1 Gizmo; is the CRD installed?" in page.text
    assert "1 thing wrong" in page.text
    assert "not served" in page.text


def test_a_kind_that_is_missing_is_not_taken_for_another_of_its_name():
    """A controller of Services that are served waits for something else than the CRD of Knative's Services."""
    waiting = controller("web", working=False, sources=(source("Service", kind="v1 Service", started=False),))
    missing = informer("serving.knative.dev/v1 Service", served=False, synced=False, objects=0, phase="waiting")
    page = Page(overview(manager(controllers=(waiting,), informers=(informer("v1 Service"), missing))))
    assert "web reconciles nothing yet: waiting for the first list of Service" in page.text
    assert "serving.knative.dev/v1 Service is not served yet" in page.text


def test_a_kind_that_is_not_served_is_a_warning_of_a_manager_that_works():
    waiting = controller("gizmo", working=False, results={}, sources=(source("Gizmo", kind=GIZMO, started=False),))
    missing = informer(GIZMO, served=False, synced=False, objects=0, phase="waiting")
    check = CheckResult(
        name="caches", kind="ready", ok=True, message="waiting for gizmo.example.com/v1 Gizmo: not served"
    )
    page = Page(overview(manager(controllers=(controller(), waiting), informers=(missing,), checks=(check,))))
    assert "gizmo reconciles nothing yet: the server has no gizmo.example.com/v1 Gizmo" in page.text
    assert "waiting for gizmo.example.com/v1 Gizmo: not served" in page.text


def test_a_kind_that_may_be_missing_is_no_problem():
    """A retired kind of children whose CRD was removed is as it should be: nothing is to be done."""
    missing = informer(GIZMO, served=False, synced=False, objects=0, phase="waiting")
    assert "Install its CRD" in Page(overview(manager(controllers=(controller(),), informers=(missing,)))).text
    retired = replace(missing, optional=True)
    page = Page(overview(manager(controllers=(controller(),), informers=(retired,))))
    assert "All is well" in page.text
    assert "not served" in page.text


def test_running_daemons_are_counted_apart_from_events():
    """Functions that run for hours are no events."""
    watchman = source("watchman", events=0, filtered=0, emitted=0, running=4)
    page = Page(overview(manager(controllers=(controller(sources=(watchman,)),))))
    assert "Emitted Running Failures" in page.text
    assert "watchman started 0 0 0 4 0" in page.text


def test_a_mapper_that_fails_is_seen_with_what_it_left_behind():
    failing = source("Secret (users)", failures=7, retrying=3, last_failure="mapper on <Secret a/b>: KeyError: 'x'")
    page = Page(overview(manager(controllers=(controller(sources=(failing,)),))))
    assert "mapping failed 7 times; 3 objects to be mapped again: mapper on <Secret a/b>" in page.text
    lost = replace(failing, retrying=0, given_up=2)
    found = problems_of(manager(controllers=(controller(sources=(lost,)),)))
    assert [each.tone for each in found] == ["bad"]
    assert "2 deleted objects were given up" in found[0].words


def test_a_run_that_was_traced_can_be_found_in_the_traces():
    trace = "0af7651916cd43dd8448eb211c80319c"
    good, bad = record(trace=f"00-{trace}-b7ad6b7169203331-01"), record("bad", result="error", error="no", failures=1)
    page = Page(overview(manager(controllers=(controller(keys=[good, bad]),))))
    assert page.text.count("trace") == 1
    assert f"trace {trace}" in page.text


def test_a_start_is_given_its_time():
    """A page that cries at every start is not believed at the next fault."""
    waiting = controller("site", working=False, results={}, sources=(source(started=False),))
    check = CheckResult(name="caches", kind="ready", ok=False, message="Site is not synced")
    young = manager(
        phase="syncing", started=NOW - timedelta(seconds=3), controllers=(waiting,), checks=(check,), informers=()
    )
    assert problems_of(young) == []
    assert "Starting: the caches are filling" in Page(overview(young)).text
    old = replace(young, started=NOW - timedelta(minutes=3))
    assert "site reconciles nothing yet: waiting for the first list of Site" in Page(overview(old)).text


def test_what_is_stuck_is_said():
    key = Request(Key("tenant", "slow"))
    behind = controller(active=4, queue=queue(ready=900, oldest=((key, 90.0),), longest_running=((key, 400.0),)))
    page = Page(overview(manager(controllers=(behind,))))
    assert "falls behind: 900 keys wait for a worker, tenant/slow for 1 min 30 s; all 4 workers are busy" in page.text
    assert "tenant/slow has been running for 6 min 40 s" in page.text


def test_a_lost_watch_is_said_with_its_error():
    lost = informer(phase="waiting", failures=3, last_error="connection refused")
    page = Page(overview(manager(informers=(lost,))))
    assert "the watch is lost, the cache may be stale, 3 times in a row: connection refused" in page.text


def test_a_stale_cache_comes_first():
    """What is decided on it is wrong whatever else is right."""
    failing = controller(keys=[record(result="error", failures=5, error="it broke")])
    silent = informer(staleness=400.0, last_error="nothing came for 100 s")
    (first, *_) = problems_of(manager(controllers=(failing,), informers=(informer("v1 Pod"), silent)))
    assert first.tone == "bad"
    assert first.subject == "web.example.com/v1 Site"
    assert first.words == "the watch is lost, the cache may be stale, for 6 min 40 s: nothing came for 100 s"


def test_a_process_that_stands_by_is_not_ill():
    """A readiness check that fails because another process leads alerts no one."""
    standing_by = manager(
        phase="candidate",
        controllers=(),
        leader=LeaderStatistics(lease="default/site-operator", identity="b", leading=False, holder="a"),
        checks=(CheckResult(name="leader", kind="ready", ok=False, message="another leads"),),
    )
    assert problems_of(standing_by) == []
    page = Page(overview(standing_by))
    assert "Standing by: another process leads" in page.text
    assert "Led by a ; this is b" in page.text


def test_a_check_and_a_blocked_loop_are_shown():
    page = Page(
        overview(
            manager(
                checks=(CheckResult(name="disk", kind="health", ok=False, message="full"),),
                blocked=(
                    BlockedLoop(at=NOW - timedelta(minutes=2), seconds=0.7, task="task 'site: a/b'", stack="line 7"),
                ),
            )
        )
    )
    assert "check disk is not healthy: full" in page.text
    assert "was blocked once recently, for at least 700 ms by task 'site: a/b'" in page.text
    assert "line 7" in page.text


def test_an_old_block_is_kept_but_is_no_news():
    old = BlockedLoop(at=NOW - timedelta(hours=2), seconds=0.7, task="t", stack="")
    assert problems_of(manager(blocked=(old,))) == []
    assert "2 h ago" in Page(overview(manager(blocked=(old,)))).text


def test_one_place_that_blocks_often_is_one_row():
    times = [BlockedLoop(at=NOW - timedelta(seconds=n), seconds=n / 10, task="t", stack="line 7") for n in (9, 5, 3)]
    page = Page(overview(manager(blocked=tuple(times))))
    assert page.text.count("line 7") == 1
    assert "stack line 7 3 900 ms 3.0 s ago" in page.text


def test_two_hundred_controllers_stay_readable():
    """Those that fail come first, ids differ, and the page does not grow with the number of remembered keys."""
    keys = [record(f"web-{n}") for n in range(100)]
    many = [controller(f"c-{n}", keys=keys) for n in range(199)]
    many.append(controller("ill", keys=[record("x", result="error", failures=2, error="E: x", next_run=1.0)]))
    text = overview(manager(controllers=tuple(many)))
    page = Page(text)
    order = [each for each in page.ids if each.startswith("controller-")]
    assert order[0] == "controller-ill"
    assert len(order) == 200
    assert len(text) < 2_000_000
    assert "Last reconciles, 7 of 100" in page.text


def test_ids_are_not_repeated():
    keys = [record("a", result="error", failures=1, error="E: " + "x" * 500, next_run=1.0)]
    waits = tuple(unready("a", message="x" * 500, controller=name) for name in ("one", "two"))
    both = (controller("one", keys=keys), controller("two", keys=keys))
    ids = Page(overview(manager(controllers=both, unready=waits))).ids
    assert sorted(set(ids)) == sorted(ids)


def test_keys_that_ask_to_be_run_again_do_not_fail():
    again = controller(keys=[record(result="requeue", failures=3, next_run=1.0)], queue=queue(delayed=1, failing=1))
    assert problems_of(manager(controllers=(again,))) == []


def test_links_within_the_page_lead_somewhere():
    ill = controller("ill", keys=[record(result="error", failures=1, error="E: x")], working=False)
    lost = informer(phase="waiting", failures=1)
    page = Page(overview(manager(controllers=(ill,), informers=(lost,), unready=(unready("a"),))))
    inner = [link.removeprefix("#") for link in page.links if link.startswith("#")]
    assert inner
    assert set(inner) <= set(page.ids)


def test_a_key_is_explained():
    failed = record(
        result="error", failures=9, error="ValueError: no image\nsecond line", next_run=12.0, trace="00-abc-def-01"
    )
    found = [
        Explanation(
            controller="site", kind=str(SITE), key=Key("default", "web"), record=failed, state="delayed", next_run=12.0
        )
    ]
    page = Page(explanation(found, kind="site", key=Key("default", "web"), statistics=manager()))
    assert "Site default/web" in page.text
    assert "Why it last ran Site default/web changed (generation 3)" in page.text
    assert "4 events in one run" in page.text
    assert "Failures in a row 9" in page.text
    assert "ValueError: no image second line" in page.text
    assert "Next run in 12 s" in page.text
    assert "id-of-web" in page.text
    assert "00-abc-def-01" in page.text


def test_a_mistake_in_the_program_and_a_time_out_are_distinguished():
    crashed = record("a", result="error", failures=1, error="TypeError: x", crashed=True)
    slow = record("b", result="error", failures=1, error="TimeoutError: x", timed_out=True)
    page = Page(overview(manager(controllers=(controller(keys=[crashed, slow]),))))
    assert "crashed TypeError" in page.text
    assert "timed out TimeoutError" in page.text


def test_a_key_that_never_ran_is_answered_with_the_nearest():
    found = [
        Explanation(
            controller="site", kind=str(SITE), key=Key("default", "wed"), record=None, state="idle", next_run=None
        )
    ]
    page = Page(explanation(found, kind="Site", key=Key("default", "wed"), statistics=manager()))
    assert "Did you mean default/web ?" in page.text
    assert "/debug/explain?kind=site&namespace=default&name=web" in page.links


def test_a_kind_without_a_controller_is_answered_with_the_controllers():
    page = Page(explanation([], kind="Sight", key=Key("default", "web"), statistics=manager()))
    assert "No controller reconciles Sight. There are: site." in page.text


@pytest.mark.parametrize("phase", ["starting", "syncing", "candidate", "running", "draining", "stopped"])
def test_a_manager_with_nothing_in_it_has_a_page(phase):
    empty = manager(phase=phase, controllers=(), informers=(), started=None)
    assert "Failing keys none" in Page(overview(empty)).text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 ms"),
        (0.0001, "<1 ms"),
        (0.25, "250 ms"),
        (0.9999, "1.0 s"),
        (9.99, "10 s"),
        (59.4, "59 s"),
        (59.7, "1 min"),
        (3599.9, "1 h"),
        (12_000, "3 h 20 min"),
        (200_000, "2 d 7 h"),
    ],
)
def test_durations(seconds, words):
    assert duration(seconds) == words


def test_a_rare_error_does_not_look_like_none():
    assert percent(0, 1000) == "0%"
    assert percent(1, 1_000_000) == "<0.1%"
    assert percent(1, 40) == "2.5%"


def test_the_figures_are_those_of_now():
    before = manager()
    after = replace(before, controllers=(controller(keys=[record()], results={"success": 90, "error": 10}),))
    assert "Reconciles 100 10% errors" in Page(overview(after)).text
