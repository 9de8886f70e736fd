"""The queue in time: waiting, delays, cancellation, closing."""

import asyncio
import sys
from random import Random  # noqa: TID251 - seeded

import pytest

from samples.virtual_time import run_virtual
from steersman.aio import Supervisor
from steersman.controller import Cause, Queue, QueueClosed, QueueOptions, Request
from steersman.controller.queue.state import QueueState
from steersman.objects import Key

A, B = Request(Key("a", "x")), Request(Key("b", "y"))


def cause(note):
    return Cause(what="external", note=note)


def clock():
    return asyncio.get_running_loop().time()


def test_a_taker_waits_for_the_first_add():
    async def scenario():
        queue = Queue()
        async with Supervisor() as tasks:
            taking = tasks.start(queue.take(), name="take")
            await asyncio.sleep(3)
            queue.add(A, cause("one"))
            taken = await taking
        return taken.request, clock(), taken.waited

    assert run_virtual(scenario())[0] == (A, 3.0, 0.0)


def test_a_drain_removes_waiting_requests_and_waits_for_the_running_one():
    """Another process has them from then on: a request that stayed would be reconciled twice."""
    ours = [A, B]

    async def scenario():
        queue = Queue(admits=lambda request: request in ours)
        c = Request(Key("a", "z"))
        ours.append(c)
        for request in ours:
            queue.add(request, cause("one"))
        assert (await queue.take()).request == A
        del ours[0], ours[1]
        async with Supervisor() as tasks:
            drain = tasks.start(queue.drain(lambda request: request.key.namespace == "a"), name="drain")
            await asyncio.sleep(1)
            queue.add(A, cause("an event during the run"))
            assert queue.retry(A) == 0.0
            assert not drain.done()
            queue.done(A)
            await drain
        found = queue.statistics()
        assert (found.ready, found.delayed, found.running, found.failing) == (1, 0, 0, 0)
        return (await queue.take()).request, clock()

    assert run_virtual(scenario())[0] == (B, 1.0)


def test_delayed_adds_collapse_to_the_earliest_and_run_once():
    async def scenario():
        queue = Queue()
        for after in (30, 5, 20):
            queue.add(A, cause(str(after)), after=after)
        taken = await queue.take()
        at = clock()
        queue.done(A)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(100):
                await queue.take()
        return at, [each.note for each in taken.causes]

    assert run_virtual(scenario())[0] == (5.0, ["30", "5", "20"])


def test_an_add_ends_a_delay():
    async def scenario():
        queue = Queue()
        queue.add(A, cause("later"), after=60)
        queue.add(A, cause("now"))
        await queue.take()
        return clock()

    assert run_virtual(scenario())[0] == 0.0


def test_one_at_a_time_and_once_more():
    async def scenario():
        queue = Queue()
        queue.add(A, cause("first"))
        await queue.take()
        queue.add(A, cause("second"))
        queue.add(A, cause("third"))
        queue.add(B, cause("other"))
        assert (await queue.take()).request == B
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10):
                await queue.take()
        queue.done(A)
        again = await queue.take()
        queue.done(A)
        assert queue.statistics().ready == 0
        return [each.note for each in again.causes]

    assert run_virtual(scenario())[0] == ["second", "third"]


def test_failures_back_off_per_request_and_start_over_after_a_success():
    async def scenario():
        queue = Queue(QueueOptions(initial=1, factor=2, maximum=8, jitter=0))
        delays = []
        for _ in range(5):
            delays.append(queue.retry(A))
            assert (await queue.take()).request == A
            queue.done(A)
        assert queue.failures(A) == 5
        assert queue.failures(B) == 0
        queue.forget(A)
        delays.append(queue.retry(A))
        return delays, clock()

    assert run_virtual(scenario())[0] == ([1, 2, 4, 8, 8, 1], 23.0)


def test_a_failing_request_never_runs_hot():
    """Events on every turn of the loop cannot make a failing request run more than about once a second."""

    async def scenario():
        queue = Queue()
        runs = 0

        async def worker():
            nonlocal runs
            while True:
                taken = await queue.take()
                runs += 1
                queue.retry(taken.request)
                queue.done(taken.request)

        async with Supervisor() as tasks:
            tasks.start(worker(), name="worker")
            for _ in range(6000):
                queue.add(A, cause("event"))
                await asyncio.sleep(0.01)
            tasks.cancel()
        return runs

    assert 50 <= run_virtual(scenario())[0] <= 75


def test_a_cancelled_taker_loses_nothing():
    """It is cancelled in the same turn in which it was woken; another one gets the request."""

    async def scenario():
        queue = Queue()
        async with Supervisor() as tasks:
            first = tasks.start(queue.take(), name="first")
            second = tasks.start(queue.take(), name="second")
            await asyncio.sleep(1)
            queue.add(A, cause("one"))
            first.cancel()
            return (await second).request, first.cancelled()

    assert run_virtual(scenario())[0] == (A, True)


def test_closing_wakes_everyone_and_hands_out_nothing():
    async def scenario():
        queue = Queue()
        async with Supervisor() as tasks:
            waiting = [tasks.start(_closed(queue), name="take") for _ in range(3)]
            await asyncio.sleep(1)
            queue.close()
            queue.add(A, cause("too late"))
            assert await asyncio.gather(*waiting) == [True] * 3
        with pytest.raises(QueueClosed):
            await queue.take()

    async def _closed(queue):
        with pytest.raises(QueueClosed):
            await queue.take()
        return True

    run_virtual(scenario())


def test_causes_are_capped_with_a_count():
    async def scenario():
        queue = Queue()
        for number in range(100):
            queue.add(A, cause(str(number)))
            queue.add(A, cause("0"))
        return (await queue.take()).causes

    causes, _ = run_virtual(scenario())
    assert (len(causes.kept), causes.total, causes.omitted) == (16, 200, 84)
    assert str(causes).endswith("; and 84 more")


@pytest.mark.parametrize(
    ("bad", "says"),
    [({"priority": 5000}, "between"), ({"after": -1}, "finite"), ({"after": float("inf")}, "finite")],
)
def test_impossible_adds_are_refused(bad, says):
    async def scenario():
        with pytest.raises(ValueError, match=says):
            Queue().add(A, cause("x"), **bad)

    run_virtual(scenario())


def test_done_without_take_is_refused():
    async def scenario():
        with pytest.raises(ValueError, match="not running"):
            Queue().done(A)

    run_virtual(scenario())


def test_it_is_busy_until_nothing_is_left_but_what_waits_for_its_time():
    async def scenario():
        queue = Queue()
        assert not queue.busy
        queue.add(A, cause("later"), after=60)
        assert not queue.busy
        queue.add(A, cause("now"))
        assert queue.busy
        await queue.take()
        assert queue.busy
        queue.retry(A)
        queue.done(A)
        assert queue.busy
        await queue.take()
        queue.forget(A)
        queue.done(A)
        assert not queue.busy

    run_virtual(scenario())


def test_statistics_cost_the_same_however_many_wait():
    """A scrape of the metrics reads them on the event loop."""

    def instructions(number):
        state = QueueState()
        for each in range(number):
            state.add(Request(Key("a", f"x{each}")), cause("x"), now=float(each), priority=-100 * (each % 2))
        while (taken := state.take(1e6)) is not None and state.ready > number // 2:
            state.retry(taken.request, cause("x"), now=1e6, rng=Random(1), at_least=1e6)
            state.done(taken.request, now=1e6)
        steps = 0

        def count(frame, event, argument):
            nonlocal steps
            frame.f_trace_opcodes = True
            steps += event == "opcode"
            return count

        before = sys.gettrace()
        sys._getframe().f_trace_opcodes = True  # from Python 3.12 on, before the trace begins
        sys.settrace(count)
        try:
            state.statistics(1e6)
        finally:
            sys.settrace(before)
        return steps

    assert instructions(20_000) == instructions(200)


def test_a_throttled_request_runs_at_its_time_whatever_is_added():
    state = QueueState()
    state.add(A, cause("first"), now=0.0)
    assert state.take(0.0).request == A
    state.add(A, cause("during the run"), now=0.5)
    state.throttle(A, until=10.0)
    state.done(A, now=1.0)
    state.add(A, cause("after it"), now=2.0)
    state.add(B, cause("another"), now=2.0)
    assert state.take(2.0).request == B
    assert state.take(9.9) is None
    assert (state.statistics(9.9).throttled, state.busy) == (1, True)
    assert [each.note for each in state.take(10.0).causes] == ["during the run", "after it"]
    assert state.statistics(10.0).throttled == 0
    state.done(A, now=10.0)
    state.add(A, cause("later"), now=11.0)
    assert state.take(11.0).request == A


def test_a_server_that_asks_for_a_day_gets_the_longest_backoff():
    """No event could shorten the time that a server asked for."""

    async def scenario():
        queue = Queue(QueueOptions(initial=1, factor=2, maximum=300, jitter=0))
        assert queue.retry(A, at_least=20) == 20
        assert (await queue.take()).request == A
        queue.done(A)
        queue.retry(A, at_least=86400)
        queue.add(A, cause("someone changed it"))
        await queue.take()
        return clock()

    assert run_virtual(scenario())[0] == 320.0
