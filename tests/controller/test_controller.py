"""A controller in virtual time: outcomes, failures, timeouts, echoes, stopping."""

import asyncio
import itertools
import logging

import pytest

from samples.controllers import Feed, running, unconnected
from samples.site import Site
from samples.virtual_time import run_virtual
from steersman.controller import (
    Cause,
    Controller,
    Done,
    QueueOptions,
    Request,
    Requeue,
    RequeueAfter,
    TerminalError,
    Write,
)
from steersman.errors import Conflict, TooManyRequests, error_from_status
from steersman.errors.status import ApiStatus, StatusCause, StatusDetails
from steersman.objects import Key

A, B = Request(Key("a", "x")), Request(Key("b", "y"))
CAUSE = Cause(what="external", note="test")
EXACT = QueueOptions(initial=1.0, factor=2.0, maximum=8.0, jitter=0.0)


def conflict(*fields):
    causes = tuple(StatusCause(reason="FieldManagerConflict", message='conflict with "x"', field=f) for f in fields)
    details = StatusDetails(causes=causes)
    return error_from_status(ApiStatus(code=409, reason="Conflict", message="stale", details=details), tried="update")


def clock():
    return asyncio.get_running_loop().time()


def times_of(outcomes, *, seconds=100.0, emit=(A,), **options):
    """Reconcile with outcomes one after the other (the last one stays): when it ran, and the statistics at the end."""

    async def scenario():
        runs = []

        async def reconcile(ctx, request):
            step = outcomes[min(len(runs), len(outcomes) - 1)]
            runs.append((request, round(clock(), 3), ctx.causes))
            if isinstance(step, BaseException):
                raise step
            return step

        async with running(reconcile, queue=EXACT, **options) as (controller, feed):
            for request in emit:
                feed.emit(request, CAUSE, 0)
            await asyncio.sleep(seconds)
            return runs, controller.statistics(), controller.explain(A)

    return run_virtual(scenario())[0]


def test_done_runs_once():
    runs, statistics, record = times_of([Done()])
    assert [at for _, at, _ in runs] == [0.001]
    assert statistics.results == {"success": 1}
    assert (record.result, record.next_run, record.causes.kept) == ("success", None, (CAUSE,))


def test_requeue_is_rate_limited():
    runs, statistics, _ = times_of([Requeue()], seconds=30)
    assert [at for _, at, _ in runs] == [0.001, 1.001, 3.001, 7.001, 15.001, 23.001]
    assert statistics.results == {"requeue": 6}


def test_requeue_after_runs_after_its_seconds_and_says_so():
    runs, _, record = times_of([RequeueAfter(40.0), Done()])
    assert [at for _, at, _ in runs] == [0.001, 40.001]
    assert [str(cause) for cause in runs[1][2]] == ["requeue: after 40 s"]
    assert record.result == "success"


def test_the_next_run_can_be_seen():
    _, _, record = times_of([RequeueAfter(60.0)], seconds=10)
    assert record.next_run == pytest.approx(50.0, abs=0.01)


def test_a_crash_is_an_error_of_its_key_alone(caplog):
    """The other key is reconciled, the failing one backs off, the log says where it crashed."""
    with caplog.at_level(logging.ERROR):
        runs, statistics, record = times_of([ZeroDivisionError("oops"), Done(), Done()], emit=(A, B), concurrency=1)
    assert [(request, at) for request, at, _ in runs] == [(A, 0.001), (B, 0.001), (A, 1.001)]
    assert statistics.results == {"error": 1, "success": 2}
    assert (record.last_error, record.result, record.failures) == ("ZeroDivisionError: oops", "success", 0)
    (logged,) = caplog.records
    assert (logged.controller, logged.key, logged.causes.kept) == ("test", "a/x", (CAUSE,))
    assert logged.reconcile_id
    assert "in reconcile" in caplog.text


def test_a_success_after_failures_forgets_them():
    failure = ZeroDivisionError()
    runs, _, _ = times_of([failure, failure, RequeueAfter(10.0), failure, Done()])
    assert [at for _, at, _ in runs] == [0.001, 1.001, 3.001, 13.001, 14.001]


def test_a_terminal_error_waits_for_a_change():
    runs, statistics, record = times_of([TerminalError("the image name is wrong")])
    assert len(runs) == 1
    assert statistics.results == {"terminal_error": 1}
    assert (record.next_run, record.last_error) == (None, "TerminalError: the image name is wrong")


def test_a_conflict_is_quiet_until_it_happens_again_and_again(caplog):
    with caplog.at_level(logging.INFO):
        _, statistics, record = times_of([conflict()] * 3 + [Done()])
        assert caplog.records == []
    assert statistics.results == {"conflict": 3, "success": 1}
    assert record.last_error == ""
    with caplog.at_level(logging.INFO):
        _, statistics, _ = times_of([conflict()])
    assert statistics.results["conflict"] == 5
    assert statistics.results["error"] > 0
    assert "conflicts in a row" in caplog.text


def test_a_field_owned_by_another_is_no_quiet_conflict():
    error = conflict(".spec.replicas")
    assert isinstance(error, Conflict)
    assert times_of([error, Done()])[1].results == {"error": 1, "success": 1}


def test_the_server_may_ask_for_peace():
    error = error_from_status(
        ApiStatus(code=429, reason="TooManyRequests", details=StatusDetails(retry_after_seconds=20)), tried="get"
    )
    assert isinstance(error, TooManyRequests)
    assert [at for _, at, _ in times_of([error, Done()])[0]] == [0.001, 20.001]


@pytest.mark.parametrize("group", [ExceptionGroup("several", [conflict(), ExceptionGroup("more", [conflict()])])])
def test_a_group_of_conflicts_is_a_conflict(group):
    assert times_of([group, Done()])[1].results == {"conflict": 1, "success": 1}


def test_a_wrong_return_value_says_what_to_write():
    assert "return Done(), Requeue() or RequeueAfter(seconds)" in times_of([None])[2].last_error


def test_a_timeout_ends_the_reconcile_and_frees_the_worker():
    async def scenario():
        ended = []

        async def reconcile(ctx, request):
            if request == B:
                return Done()
            try:
                await asyncio.sleep(1000)
            finally:
                ended.append(clock())

        async with running(reconcile, timeout=5.0, concurrency=1, queue=EXACT) as (controller, feed):
            feed.emit(A, CAUSE, 0)
            feed.emit(B, CAUSE, 0)
            await asyncio.sleep(5.5)
            return ended, controller.statistics(), controller.explain(A), controller.explain(B)

    ended, statistics, slow, quick = run_virtual(scenario())[0]
    assert ended == [pytest.approx(5.001)]
    assert statistics.timeouts == 1
    assert "longer than 5 seconds" in slow.last_error
    assert quick.result == "success"


def test_a_timeout_of_the_users_own_is_an_ordinary_error():
    _, statistics, record = times_of([TimeoutError("the printer did not answer"), Done()])
    assert statistics.timeouts == 0
    assert record.last_error == "TimeoutError: the printer did not answer"


def test_a_cancellation_in_user_code_does_not_end_the_worker():
    """The code awaits a future that other code cancelled."""
    _, statistics, _ = times_of([asyncio.CancelledError(), Done()], concurrency=1)
    assert statistics.results == {"error": 1, "success": 1}


def test_a_client_that_cannot_be_made_is_an_error_of_the_key():
    async def scenario():
        def refuse(log):
            raise RuntimeError("the term is over")

        feed = Feed()

        async def reconcile(ctx, request):
            return Done()

        controller = Controller("test", [feed], type("R", (), {"reconcile": reconcile})(), client=refuse)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(controller.run())
            await asyncio.sleep(1)
            feed.emit(A, CAUSE, 0)
            await asyncio.sleep(1)
            controller.stop()
        return controller.explain(A).last_error

    assert run_virtual(scenario())[0] == "RuntimeError: the term is over"


def test_nothing_is_reconciled_before_every_source_has_started():
    async def scenario():
        slow = asyncio.Event()
        feeds = [Feed("quick"), Feed("slow", wait_for=slow)]
        runs = []

        async def reconcile(ctx, request):
            runs.append(clock())
            return Done()

        async with running(reconcile, sources=feeds) as (controller, _):
            feeds[0].emit(A, CAUSE, 0)
            await asyncio.sleep(50)
            assert (runs, controller.working) == ([], False)
            slow.set()
            await asyncio.sleep(1)
            return runs, controller.working

    assert run_virtual(scenario())[0] == ([50.001], True)


def test_who_is_waited_for_is_said(caplog):
    async def scenario():
        async with running(None, sources=[Feed("Widget", wait_for=asyncio.Event())]):
            await asyncio.sleep(31)

    run_virtual(scenario())
    assert "controller test waits for Widget" in caplog.text


def test_stopping_lets_what_runs_end_and_starts_nothing_more():
    async def scenario():
        ended = []

        async def reconcile(ctx, request):
            await asyncio.sleep(10)
            ended.append((request, clock()))
            return Done()

        async with running(reconcile, concurrency=1) as (controller, feed):
            feed.emit(A, CAUSE, 0)
            feed.emit(B, CAUSE, 0)
            await asyncio.sleep(5)
            controller.stop()
        return ended, clock()

    assert run_virtual(scenario())[0] == ([(A, 10.001)], 10.001)


def test_sources_stop_with_the_controller_and_not_after_its_reconciles(caplog):
    """A source that starts calls to a service would otherwise go on for as long as the slowest reconcile takes."""

    class Calling(Feed):
        def __init__(self, name):
            super().__init__(name)
            self.stopped = []

        def stop(self):
            self.stopped.append(clock())
            if self.name == "broken":
                raise OSError("cannot stop")

    async def scenario():
        sources, ended = [Calling("broken"), Calling("calls")], []

        async def reconcile(ctx, request):
            await asyncio.sleep(10)
            ended.append(clock())
            return Done()

        async with running(reconcile, sources=sources) as (controller, _):
            sources[1].emit(A, CAUSE, 0)
            await asyncio.sleep(5)
            controller.stop()
        return [each.stopped[0] for each in sources], ended

    assert run_virtual(scenario())[0] == ([5.001, 5.001], [10.001])
    assert "source broken failed to stop" in caplog.text


def test_only_methods_stop_and_finish_a_source(caplog):
    """Attributes of these names are the source's own: an event, or a method of the other form."""

    class Event(Feed):
        def __init__(self):
            super().__init__("event")
            self.stop = self.finish = asyncio.Event()

    class Otherwise(Feed):
        called = False

        async def stop(self):
            Otherwise.called = True

        def finish(self):
            Otherwise.called = True

    async def scenario():
        async def reconcile(ctx, request):
            return Done()

        async with running(reconcile, sources=[Event(), Otherwise("otherwise")]) as (controller, _):
            controller.stop()

    run_virtual(scenario())
    assert (caplog.text, Otherwise.called) == ("", False)


def test_a_failing_source_is_run_again_each_time_later():
    class Broken(Feed):
        def __init__(self):
            super().__init__("broken")
            self.began = []

        async def run(self, emit, started):
            self.began.append(clock())
            started()
            emit(A, CAUSE, 0)
            raise OSError("the bus is gone")

    async def scenario():
        broken = Broken()

        async def reconcile(ctx, request):
            return Done()

        async with running(reconcile, sources=[broken]) as (controller, _):
            await asyncio.sleep(10)
            return broken.began, controller.statistics()

    began, statistics = run_virtual(scenario())[0]
    waits = [later - earlier for earlier, later in itertools.pairwise(began)]
    assert 5 <= len(waits) <= 10
    assert waits == sorted(waits)
    assert statistics.results == {"success": len(began)}
    assert statistics.sources[0].failures == len(began)
    assert statistics.sources[0].last_failure == "OSError: the bus is gone"


def test_failures_of_sources_with_one_name_are_counted_apart():
    class Broken(Feed):
        async def run(self, emit, started):
            started()
            raise OSError("the bus is gone")

    async def scenario():
        async def reconcile(ctx, request):
            return Done()

        async with running(reconcile, sources=[Broken("bus"), Feed("bus")]) as (controller, _):
            await asyncio.sleep(1)
            return [each.failures > 0 for each in controller.statistics().sources]

    assert run_virtual(scenario())[0] == [True, False]


def test_a_source_that_ends_holds_up_nothing():
    """One that emits what a file holds, and returns, need not say that it has started."""

    class Brief(Feed):
        async def run(self, emit, started):
            emit(A, CAUSE, 0)

    async def scenario():
        async def reconcile(ctx, request):
            return Done()

        async with running(reconcile, sources=[Brief("brief")]) as (controller, _):
            await asyncio.sleep(1)
            return controller.working, controller.statistics().results

    assert run_virtual(scenario())[0] == (True, {"success": 1})


def test_concurrency_is_kept():
    async def scenario():
        active, most = 0, 0

        async def reconcile(ctx, request):
            nonlocal active, most
            active += 1
            most = max(most, active)
            await asyncio.sleep(1)
            active -= 1
            return Done()

        async with running(reconcile, concurrency=3) as (controller, feed):
            for name in range(20):
                feed.emit(Request(Key("a", str(name))), CAUSE, 0)
            await asyncio.sleep(0.5)
            assert controller.statistics().active == 3
            await asyncio.sleep(20)
        return most

    assert run_virtual(scenario())[0] == 3


SITE = Site.gvk()


def echo_of(version, *, key=A.key, unbroken=True):
    return Cause(what="object", kind=SITE, type="changed", key=key, resource_version=version, unbroken=unbroken)


@pytest.mark.parametrize(
    ("written", "cause", "runs"),
    [
        (Write(SITE, A.key, "7", "status"), echo_of("7"), 1),
        (Write(SITE, A.key, "7"), echo_of("7"), 2),
        (Write(SITE, B.key, "7"), echo_of("7", key=B.key), 1),
        (Write(SITE, A.key, "7", "status", certain=False), echo_of("7"), 2),
        (Write(SITE, A.key, "7", "status"), echo_of("8"), 2),
        (Write(SITE, A.key, "7", "status"), echo_of("7", unbroken=False), 2),
    ],
    ids=["status", "own spec", "a child", "uncertain", "another version", "coalesced"],
)
@pytest.mark.parametrize("arrives", ["before the answer", "after the answer", "after the run"])
def test_only_the_echo_of_the_own_write_makes_no_run(written, cause, runs, arrives):
    async def scenario():
        log, count = [], 0

        async def reconcile(ctx, request):
            nonlocal count
            count += 1
            if count == 1:
                if arrives == "before the answer":
                    feed.emit(A, cause, 0)
                log[-1].written(written, None)
                if arrives == "after the answer":
                    feed.emit(A, cause, 0)
            return Done()

        def client(write_log):
            log.append(write_log)
            return unconnected(write_log)

        feed = Feed()
        controller = Controller(
            "test", [feed], type("R", (), {"reconcile": staticmethod(reconcile)})(), client=client, primary=SITE
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(controller.run())
            await asyncio.sleep(0.001)
            feed.emit(A, CAUSE, 0)
            await asyncio.sleep(1)
            if arrives == "after the run":
                feed.emit(A, cause, 0)
            await asyncio.sleep(1)
            controller.stop()
        assert controller.statistics().echoes == (runs == 1)
        return count

    assert run_virtual(scenario())[0] == runs


def test_the_log_of_a_reconcile_carries_its_causes(caplog):
    async def scenario():
        async def reconcile(ctx, request):
            ctx.logger.info("looking", extra={"replicas": 3})
            return Done()

        async with running(reconcile) as (_, feed):
            feed.emit(A, CAUSE, 0)
            await asyncio.sleep(1)

    with caplog.at_level(logging.INFO):
        run_virtual(scenario())
    (record,) = caplog.records
    assert (record.name, record.controller, record.key, record.replicas) == (
        "steersman.controller.test",
        "test",
        "a/x",
        3,
    )
    assert str(record.causes) == "external: test"


def test_reconciles_that_never_wait_let_others_have_their_turn():
    """A restart over a converged world finds everything in the cache; the rest of the program must go on meanwhile."""

    async def scenario():
        turns = 0

        async def reconcile(ctx, request):
            return Done()

        async with running(reconcile, concurrency=1) as (controller, feed):
            for name in range(1000):
                feed.emit(Request(Key("a", str(name))), CAUSE, 0)
            while controller.statistics(keys=0).results.get("success", 0) < 1000:
                turns += 1
                await asyncio.sleep(0)
        return turns

    assert run_virtual(scenario())[0] >= 900


def test_the_observer_gets_every_run():
    async def scenario():
        told = []
        feed = Feed()

        async def reconcile(ctx, request):
            await asyncio.sleep(2)
            return Done()

        reconciler = type("R", (), {"reconcile": staticmethod(reconcile)})()
        controller = Controller("test", [feed], reconciler, client=unconnected, on_record=told.append)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(controller.run())
            await asyncio.sleep(1)
            feed.emit(A, CAUSE, 0)
            await asyncio.sleep(1)
            controller.stop()
        return [(record.request, record.result, record.seconds, record.causes.kept) for record in told]

    assert run_virtual(scenario())[0] == [(A, "success", 2.0, (CAUSE,))]


def test_a_controller_runs_once():
    async def scenario():
        controller = Controller("test", [], None, client=unconnected)
        controller.stop()
        await controller.run()
        with pytest.raises(RuntimeError, match="make a new one"):
            await controller.run()

    run_virtual(scenario())
