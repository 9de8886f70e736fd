"""What a dashboard made for controller-runtime reads from a manager."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from steersman.cache import InformerStatistics, ScopeStatistics
from steersman.controller import Causes, ControllerStatistics, KeyRecord, QueueStatistics, Request, SourceStatistics
from steersman.debug import LeaderStatistics, ManagerStatistics
from steersman.manager.measurements import Measurements
from steersman.objects import Key
from steersman.telemetry import Registry, expose

MOMENT = datetime(2030, 1, 1, tzinfo=UTC)


def record(result="success", **values):
    defaults = {
        "request": Request(Key("default", "web")),
        "reconcile_id": "1",
        "causes": Causes(),
        "result": result,
        "finished": MOMENT,
        "seconds": 0.5,
        "waited": 0.25,
        "writes": 0,
        "failures": 0,
    }
    return KeyRecord(**(defaults | values))


def queue(**values):
    defaults = {
        "ready": 0,
        "delayed": 0,
        "running": 0,
        "by_priority": {},
        "failing": 0,
        "adds": 0,
        "takes": 0,
        "retries": 0,
        "oldest": (),
        "longest_running": (),
    }
    return QueueStatistics(**(defaults | values))


def scope(**values):
    defaults = {"namespace": "", "phase": "watching", "watermark": "7", "requests": 1, "lists": 1}
    return ScopeStatistics(**(defaults | {"failures": 0, "unreadable": 0, "last_error": ""} | values))


def controller(name="site", **values):
    source = SourceStatistics(name="Site", started=True, events=0, filtered=0, emitted=0, failures=2, retrying=3)
    defaults = {
        "name": name,
        "concurrency": 4,
        "working": True,
        "active": 1,
        "results": {},
        "timeouts": 0,
        "echoes": 7,
        "busy_seconds": 0.0,
        "queue": queue(),
        "sources": (source,),
        "keys": (),
        "since": MOMENT,
    }
    return ControllerStatistics(**(defaults | values))


def manager(*controllers, **values):
    defaults = {"name": "m", "version": "1", "started": MOMENT, "now": MOMENT, "phase": "running"}
    return ManagerStatistics(**(defaults | values), controllers=controllers)


@pytest.fixture
def measurements():
    return Measurements(Registry())


def shown(measurements):
    """Every series and its value, buckets left out."""
    lines = expose(measurements.registry)[1].decode().splitlines()
    pairs = [line.rsplit(" ", 1) for line in lines if not line.startswith("#") and "_bucket" not in line]
    return {name: float(value) for name, value in pairs}


def test_runs_are_counted_by_their_results(measurements):
    for result in ("success", "success", "requeue", "requeue_after", "conflict", "error", "terminal_error"):
        measurements.on_record("site", record(result, writes=2))
    measurements.on_record("site", record("error", timed_out=True))
    measurements.on_record("site", record("error", crashed=True))
    found = shown(measurements)
    results = {
        result: found[f'controller_runtime_reconcile_total{{controller="site",result="{result}"}}']
        for result in ("success", "error", "requeue", "requeue_after")
    }
    # A conflict is tried again, and is no error.
    assert results == {"success": 2, "error": 4, "requeue": 2, "requeue_after": 1}
    assert found['controller_runtime_reconcile_errors_total{controller="site"}'] == 4
    assert found['controller_runtime_terminal_reconcile_errors_total{controller="site"}'] == 1
    assert found['controller_runtime_reconcile_timeouts_total{controller="site"}'] == 1
    assert found['controller_runtime_reconcile_panics_total{controller="site"}'] == 1
    assert found['steersman_reconcile_conflicts_total{controller="site"}'] == 1
    assert found['steersman_reconcile_writes_total{controller="site"}'] == 14
    assert found['workqueue_retries_total{name="site",controller="site"}'] == 5
    assert found['controller_runtime_reconcile_time_seconds_count{controller="site"}'] == 9
    assert found['controller_runtime_reconcile_time_seconds_sum{controller="site"}'] == 4.5
    assert found['workqueue_work_duration_seconds_count{name="site",controller="site"}'] == 9
    assert found['workqueue_queue_duration_seconds_sum{name="site",controller="site"}'] == 2.25


def test_gauges_show_what_is_so_at_the_time_of_reading(measurements):
    busy = queue(
        ready=5,
        by_priority={0: 2, -100: 3},
        failing=1,
        longest_running=((Request(Key("a", "b")), 9.0),),
        unfinished=12.0,
        adds=10,
    )
    informer = InformerStatistics(
        kind="v1, Kind=ConfigMap",
        objects=17,
        synced=True,
        served=True,
        own_writes=0,
        pending=(),
        index_failures=0,
        scopes=(scope(staleness=90.0, relists=2), scope(staleness=1.0, relists=1)),
        oldest_deletion=MOMENT - timedelta(minutes=20),
    )
    leader = LeaderStatistics(lease="web/operator", identity="x", leading=True)
    measurements.collect(manager(controller(queue=busy), informers=(informer,), leader=leader))
    found = shown(measurements)
    assert found['controller_runtime_max_concurrent_reconciles{controller="site"}'] == 4
    assert found['controller_runtime_active_workers{controller="site"}'] == 1
    assert found['workqueue_depth{name="site",controller="site",priority="0"}'] == 2
    assert found['workqueue_depth{name="site",controller="site",priority="-100"}'] == 3
    assert found['workqueue_unfinished_work_seconds{name="site",controller="site"}'] == 12
    assert found['workqueue_longest_running_processor_seconds{name="site",controller="site"}'] == 9
    assert found['workqueue_adds_total{name="site",controller="site"}'] == 10
    assert found['steersman_failing_keys{controller="site"}'] == 1
    assert found['steersman_source_retrying{controller="site"}'] == 3
    assert found['steersman_source_failures_total{controller="site"}'] == 2
    assert found['steersman_echoes_total{controller="site"}'] == 7
    assert found['steersman_cached_objects{kind="v1, Kind=ConfigMap"}'] == 17
    assert found['steersman_cache_staleness_seconds{kind="v1, Kind=ConfigMap"}'] == 90
    assert found['steersman_cache_relists_total{kind="v1, Kind=ConfigMap"}'] == 3
    assert found['steersman_oldest_deletion_seconds{kind="v1, Kind=ConfigMap"}'] == 1200
    assert found['leader_election_master_status{name="web/operator"}'] == 1

    measurements.collect(manager(controller(), leader=msgspec.structs.replace(leader, leading=False)))
    later = shown(measurements)
    depths = {name: value for name, value in later.items() if name.startswith("workqueue_depth")}
    assert depths == {'workqueue_depth{name="site",controller="site",priority="0"}': 0}
    assert later['leader_election_master_status{name="web/operator"}'] == 0
    assert not [name for name in later if name.startswith(("steersman_cached_objects", "steersman_oldest_deletion"))]


@pytest.mark.parametrize("begun", [None, MOMENT + timedelta(seconds=30)], ids=["none", "grace period"])
def test_a_deletion_that_is_not_due_has_no_age(measurements, begun):
    """The deletionTimestamp of a Pod is the end of its grace period."""
    figures = {"objects": 1, "synced": True, "served": True, "own_writes": 0, "pending": (), "index_failures": 0}
    informer = InformerStatistics(kind="v1, Kind=Pod", scopes=(), oldest_deletion=begun, **figures)
    measurements.collect(manager(informers=(informer,)))
    assert shown(measurements)['steersman_oldest_deletion_seconds{kind="v1, Kind=Pod"}'] == 0


def test_counters_go_on_when_a_controller_is_made_anew(measurements):
    adds = 'workqueue_adds_total{name="site",controller="site"}'
    measurements.collect(manager(controller(queue=queue(adds=10))))
    measurements.collect(manager(controller(queue=queue(adds=15))))
    assert shown(measurements)[adds] == 15
    # Between two terms there is no controller: no queue is shown, what was counted stays.
    measurements.collect(manager())
    assert shown(measurements)[adds] == 15
    assert not [name for name in shown(measurements) if name.startswith("workqueue_depth")]
    measurements.collect(manager(controller(queue=queue(adds=40), since=MOMENT + timedelta(minutes=1))))
    assert shown(measurements)[adds] == 55


def test_series_grow_with_controllers_and_not_with_keys(measurements):
    for number in range(1000):
        measurements.on_record("site", record(request=Request(Key("default", str(number)))))
    one = len(shown(measurements))
    measurements.on_record("other", record())
    two = len(shown(measurements))
    assert two == 2 * one < 100
    measurements.collect(manager(controller("other")))
    measurements.forget("other")
    assert len(shown(measurements)) == one
