"""The simulated loop: order, time, refusals, threads and forks."""

import asyncio
import inspect
import os
import signal
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from steersman import aio
from steersman.aio import utc_now
from steersman.simulation.runs.loop import Hung, NotSimulated, SimulatedLoop


@pytest.fixture
def loop():
    loop = SimulatedLoop()
    yield loop
    loop.close()


# time


def test_an_hour_takes_a_few_turns(loop):
    async def wait():
        before = utc_now()
        await asyncio.sleep(3600)
        return utc_now() - before

    assert loop.run_until_complete(wait()) == timedelta(hours=1)
    assert loop.time() == 3600
    assert loop.turns < 10


def test_time_stands_still_while_something_can_run(loop):
    """Otherwise a timeout would depend on how much a program computes."""
    times = []

    async def work():
        loop.call_later(0.001, times.append, "timer")
        for _ in range(1000):
            times.append(loop.time())
            await asyncio.sleep(0)
        await asyncio.sleep(1)

    loop.run_until_complete(work())
    assert times == [0.0] * 1000 + ["timer"]


def test_a_cancelled_timer_moves_no_time(loop):
    async def wait():
        async with asyncio.timeout(500):
            await asyncio.sleep(2)
        timer = loop.call_later(100, lambda: None)
        timer.cancel()
        await asyncio.sleep(1)

    loop.run_until_complete(wait())
    assert loop.time() == 3


def test_time_never_runs_backwards(loop):
    async def wait():
        await asyncio.sleep(5)
        heard = loop.create_future()
        loop.call_at(1.0, heard.set_result, None)
        await heard

    loop.run_until_complete(wait())
    assert loop.time() == 5


def test_what_waits_for_nothing_is_named(loop):
    async def wait():
        await loop.create_future()

    with pytest.raises(Hung, match="hangs"):
        loop.run_until_complete(wait())


# order


def test_callbacks_run_in_the_order_of_their_scheduling(loop):
    heard = []

    async def work():
        for number in range(100):
            loop.call_soon(heard.append, number)
        # of one moment, and out of the order of their times
        for number in range(100, 200):
            loop.call_at(2.0, heard.append, number)
        loop.call_at(1.0, heard.append, "first")
        await asyncio.sleep(3)

    loop.run_until_complete(work())
    assert heard == [*range(100), "first", *range(100, 200)]


def test_a_callback_of_a_timer_runs_before_what_it_schedules(loop):
    """Timers of one moment are one batch: the next batch is what they scheduled."""
    heard = []

    def chain(name):
        heard.append(name)
        loop.call_soon(heard.append, f"after {name}")

    async def work():
        loop.call_at(1.0, chain, "a")
        loop.call_at(1.0, chain, "b")
        await asyncio.sleep(2)

    loop.run_until_complete(work())
    assert heard == ["a", "b", "after a", "after b"]


def test_the_same_seed_gives_the_same_randomness():
    def drawn(seed):
        loop = SimulatedLoop(seed=seed)

        async def draw():
            return aio.new_uid(), aio.name_suffix(), aio.randomness().random()

        try:
            return loop.run_until_complete(draw())
        finally:
            loop.close()

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_a_closed_loop_has_no_clock_of_its_own(loop):
    async def is_bound():
        return aio.is_bound()

    assert loop.run_until_complete(is_bound())
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        loop.run_forever()


# failures


def test_a_lost_exception_is_kept(loop):
    async def work():
        loop.call_soon(lambda: 1 / 0)
        await asyncio.sleep(1)

    loop.run_until_complete(work())
    (context,) = loop.unhandled
    assert isinstance(context["exception"], ZeroDivisionError)


def test_a_task_group_cancels_in_the_same_order_whatever_the_addresses():
    """It keeps its tasks in a set: two runs of a schedule would differ by the memory of their processes."""

    def cancelled():
        loop, heard = SimulatedLoop(), []

        async def wait(number):
            try:
                await asyncio.sleep(10)
            finally:
                heard.append(number)

        async def fail():
            await asyncio.sleep(1)
            raise ValueError

        async def work():
            async with asyncio.TaskGroup() as tasks:
                for number in range(20):
                    held.append(bytearray(number * 97))
                    tasks.create_task(wait(number))
                tasks.create_task(fail())

        with pytest.raises(ExceptionGroup):
            loop.run_until_complete(work())
        loop.close()
        return heard

    held = []
    assert cancelled() == cancelled() == cancelled()


# threads


def test_work_for_threads_runs_here_and_takes_time(loop):
    async def work():
        before = loop.time()
        where = await asyncio.to_thread(threading.get_ident)
        assert loop.time() > before
        return where

    assert loop.run_until_complete(work()) == threading.get_ident()


def test_a_failure_in_a_thread_reaches_its_caller(loop):
    async def work():
        await loop.run_in_executor(None, lambda: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        loop.run_until_complete(work())


def test_work_for_a_thread_that_was_cancelled_in_time_never_runs(loop):
    heard = []

    async def work():
        future = loop.run_in_executor(None, heard.append, "ran")
        future.cancel()
        await asyncio.sleep(1)

    loop.run_until_complete(work())
    assert heard == []


# refusals


async def _connect():
    await asyncio.open_connection("127.0.0.1", 1)


async def _serve():
    await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)


async def _serve_unix():
    await asyncio.start_unix_server(lambda *_: None, "/nowhere")


async def _look_up():
    await asyncio.get_running_loop().getaddrinfo("localhost", 80)


async def _start():
    await asyncio.create_subprocess_exec("true")


async def _start_shell():
    await asyncio.create_subprocess_shell("true")


async def _datagrams():
    await asyncio.get_running_loop().create_datagram_endpoint(asyncio.DatagramProtocol, ("127.0.0.1", 0))


async def _signals():
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, print)


async def _read():
    asyncio.get_running_loop().add_reader(0, print)


@pytest.mark.parametrize(
    ("ask", "what"),
    [
        (_connect, "a connection"),
        (_serve, "a listening socket"),
        (_serve_unix, "a listening socket"),
        (_look_up, "the address of a host"),
        (_start, "a process"),
        (_start_shell, "a process"),
        (_datagrams, "a socket"),
        (_signals, "signals"),
        (_read, "events of a descriptor"),
    ],
)
def test_a_refusal_names_the_line_that_asked(loop, ask, what):
    """The mistake is in the user's program, often far below the reconciler."""

    async def work():
        await asyncio.sleep(1)
        await ask()

    with pytest.raises(NotSimulated) as refused:
        loop.run_until_complete(work())
    line = inspect.getsourcelines(ask)[1] + 1
    assert f"{__file__}:{line} ({ask.__name__}) asks for {what}" in str(refused.value)


# forks


def test_a_loop_holds_no_descriptor_and_no_thread():
    def held():
        return set(Path("/proc/self/fd").iterdir()), threading.active_count()

    before = held()
    loop = SimulatedLoop()

    async def work():
        await asyncio.to_thread(lambda: None)
        await asyncio.sleep(1)
        return held()

    descriptors, threads = loop.run_until_complete(work())
    # A descriptor or a thread of an earlier test may end meanwhile.
    assert (descriptors <= before[0], threads <= before[1]) == (True, True)
    loop.close()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_goes_on_from_the_same_moment(loop):
    """The branch and its origin have the same past and separate futures."""
    reading, writing = os.pipe()

    async def work():
        past = [aio.name_suffix() for _ in range(3)]
        await asyncio.sleep(10)
        pid = os.fork()
        if pid == 0:
            loop.go_on()
        await asyncio.sleep(5)
        told = f"{past} {aio.name_suffix()} {loop.time()} {utc_now().isoformat()}"
        if pid == 0:
            os.write(writing, told.encode())
            os._exit(0)
        return pid, told

    parent = os.getpid()
    try:
        pid, told = loop.run_until_complete(work())
    finally:
        if os.getpid() != parent:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    assert status == 0
    os.close(writing)
    assert os.read(reading, 1 << 16).decode() == told
    os.close(reading)
