"""Runs that are tried again: what they still know of their beginning, what the log says of them, how they are counted."""

import asyncio
import logging

import pytest

from samples.controllers import running
from samples.site import Site
from samples.virtual_time import run_virtual
from steersman.controller import Cause, Done, QueueOptions, Request, Requeue, RequeueAfter, TerminalError
from steersman.controller.causes import CARRIED_LIMIT, CAUSE_LIMIT, NO_CAUSES
from steersman.errors import Conflict
from steersman.errors.status import ApiStatus
from steersman.objects import Key

A, B = Request(Key("a", "x")), Request(Key("b", "y"))
CHANGE = Cause(what="external", note="the printer is out of paper")
EXACT = QueueOptions(initial=1.0, factor=2.0, maximum=8.0, jitter=0.0)


def played(outcomes, *, seconds=100.0, meanwhile=None):
    """Reconcile with outcomes one after the other (the last one stays): the causes of each run, and the statistics."""

    async def scenario():
        causes = []

        async def reconcile(ctx, request):
            step = outcomes[min(len(causes), len(outcomes) - 1)]
            causes.append(ctx.causes)
            if len(causes) == 1 and meanwhile is not None:
                feed.emit(request, meanwhile, 0)
            if isinstance(step, BaseException):
                raise step
            return step

        async with running(reconcile, queue=EXACT) as (controller, feed):
            feed.emit(A, CHANGE, 0)
            await asyncio.sleep(seconds)
            return causes, controller.statistics(), controller.explain(A)

    return run_virtual(scenario())[0]


@pytest.mark.parametrize(
    ("outcome", "note"),
    [
        (ValueError("oh"), "retry: ValueError: oh"),
        (Conflict(ApiStatus(code=409, message="stale")), "retry: conflict"),
        (Requeue(), "requeue"),
    ],
    ids=["failure", "conflict", "requeue"],
)
def test_what_began_it_is_known_in_every_try(outcome, note):
    causes, _, _ = played([outcome], seconds=60)
    assert len(causes) > 8
    assert [str(each) for each in causes[0]] == [str(CHANGE)]
    assert {str(each) for each in causes[1:]} == {f"{CHANGE}; {note}"}
    assert {len(each) for each in causes[1:]} == {2}


def test_the_note_is_that_of_the_last_try():
    causes, _, _ = played([ValueError("one"), Requeue(), KeyError("two"), Done()])
    assert [str(each).partition("; ")[2] for each in causes] == [
        "",
        "retry: ValueError: one",
        "requeue",
        "retry: KeyError: 'two'",
    ]


def test_what_came_during_the_run_stands_after_what_began_it():
    late = Cause(what="external", note="and the lid is open")
    causes, _, _ = played([ValueError("oh"), Done()], meanwhile=late)
    assert [str(each) for each in causes[1]] == [str(CHANGE), "retry: ValueError: oh", str(late)]


def test_a_run_that_was_planned_begins_anew():
    causes, _, _ = played([ValueError("oh"), RequeueAfter(5.0), Done()])
    assert [str(each) for each in causes[2]] == ["requeue: after 5 s"]


def test_many_causes_leave_room_for_the_note_and_do_not_grow():
    causes = NO_CAUSES
    for number in range(100):
        causes = causes.plus(Cause(what="external", note=str(number)))
    for attempt in range(50):
        causes = causes.carried().plus(Cause(what="retry", note=str(attempt)))
        assert [each.note for each in causes] == [*map(str, range(CARRIED_LIMIT)), str(attempt)]
        assert (causes.total, causes.omitted) == (101, 100 - CARRIED_LIMIT)
    for number in range(200, 250):
        causes = causes.joined(NO_CAUSES.plus(Cause(what="external", note=str(number))))
    assert len(causes.kept) == CAUSE_LIMIT
    assert causes.total == 151


def test_causes_in_short_are_the_first_and_a_number():
    assert NO_CAUSES.in_short() == ""
    one = NO_CAUSES.plus(CHANGE)
    assert one.in_short() == "external: the printer is out of paper"
    assert one.plus(Cause(what="resync")).plus(Cause(what="retry")).in_short() == f"{CHANGE} +2"
    assert len(NO_CAUSES.plus(Cause(what="external", note="x" * 500)).in_short()) == 60


# how they are counted


def test_a_requeue_is_no_failure():
    """Failing keys are what people are woken for."""
    _, statistics, record = played([ValueError("oh"), Requeue()], seconds=20)
    assert (statistics.queue.failing, statistics.queue.requeued) == (0, 1)
    assert record.failures == 0
    _, statistics, record = played([Requeue(), Requeue(), ValueError("oh")], seconds=20)
    assert (statistics.queue.failing, statistics.queue.requeued) == (1, 0)
    assert record.failures == statistics.results["error"] > 1
    _, statistics, _ = played([Requeue(), Done()])
    assert (statistics.queue.failing, statistics.queue.requeued) == (0, 0)


@pytest.mark.parametrize("seconds", [0, 0.0, -3, 0.001])
def test_a_moment_that_has_passed_means_soon_and_never_hot(seconds):
    causes, _, _ = played([RequeueAfter(seconds)], seconds=1.0)
    assert 90 <= len(causes) <= 101
    assert str(causes[1]) == "requeue: after 0.01 s"


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_time_is_refused(seconds):
    with pytest.raises(ValueError, match=r"RequeueAfter needs a finite number of seconds .*return Done\(\)"):
        RequeueAfter(seconds)


# what the log says


def test_a_failure_that_repeats_shows_its_traceback_once(caplog):
    same, other = ValueError("no paper"), LookupError("no ink")
    with caplog.at_level(logging.INFO):
        played([same, same, same, other, other, Done()])
    assert [(bool(each.exc_info), each.getMessage()) for each in caplog.records] == [
        (True, "a/x: failed, retrying in 1.00 s: ValueError: no paper"),
        (False, "a/x: failed 2 times in a row, retrying in 2.00 s: ValueError: no paper"),
        (False, "a/x: failed 3 times in a row, retrying in 4.00 s: ValueError: no paper"),
        (True, "a/x: failed 4 times in a row, retrying in 8.00 s: LookupError: no ink"),
        (False, "a/x: failed 5 times in a row, retrying in 8.00 s: LookupError: no ink"),
    ]


def test_a_success_between_makes_the_failure_news_again(caplog):
    same = ValueError("no paper")
    with caplog.at_level(logging.INFO):
        played([same, RequeueAfter(1.0), same, Done()])
    assert [bool(each.exc_info) for each in caplog.records] == [True, True]


def test_an_error_for_good_shows_its_traceback_once_too(caplog):
    with caplog.at_level(logging.INFO):
        played([TerminalError("bad image"), TerminalError("bad image"), TerminalError("bad name")], meanwhile=CHANGE)
    assert [(bool(each.exc_info), each.getMessage()) for each in caplog.records] == [
        (True, "a/x: failed for good, waiting for a change: TerminalError: bad image"),
        (False, "a/x: failed for good, waiting for a change: TerminalError: bad image"),
    ]


# what can be seen of them


def test_failing_keys_are_always_shown():
    """However many keys ran since."""

    async def scenario():
        async def reconcile(ctx, request):
            if request.key.namespace == "bad":
                raise TerminalError("no")
            return Done()

        async with running(reconcile) as (controller, feed):
            for namespace, number in (("bad", 5), ("good", 300)):
                for name in range(number):
                    feed.emit(Request(Key(namespace, str(name))), CHANGE, 0)
                await asyncio.sleep(1)
            return controller.statistics(keys=10), controller.statistics(keys=0), controller.statistics(keys=1000)

    few, none, all_ = run_virtual(scenario())[0]
    assert [each.request.key.namespace for each in few.keys] == ["good"] * 10 + ["bad"] * 5
    finished = [each.finished for each in few.keys]
    assert finished == sorted(finished, reverse=True)
    assert none.keys == ()
    assert len(all_.keys) == len({each.request for each in all_.keys}) == 305


def test_a_request_has_a_place():
    async def scenario():
        go = asyncio.Event()

        async def reconcile(ctx, request):
            await go.wait()
            return RequeueAfter(10.0) if request == A else Done()

        async with running(reconcile, concurrency=1) as (controller, feed):
            places = [controller.place(A)]
            feed.emit(A, CHANGE, 0)
            feed.emit(B, CHANGE, 0)
            await asyncio.sleep(1)
            places += [controller.place(A), controller.place(B)]
            go.set()
            await asyncio.sleep(4)
            places += [controller.place(A), controller.place(B)]
        return [(state, None if seconds is None else round(seconds, 1)) for state, seconds in places]

    assert run_virtual(scenario())[0] == [
        ("idle", None),
        ("running", 0.0),
        ("ready", 0.0),
        ("delayed", 6.0),
        ("idle", None),
    ]


def test_the_statistics_name_the_kind():
    async def scenario():

        async with running(None, primary=Site.gvk()) as (controller, _):
            return controller.statistics().kind

    assert run_virtual(scenario())[0].endswith("/v1 Site")
