"""Events of the world outside, debounced."""

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from samples.virtual_time import run_virtual
from steersman.aio import Supervisor
from steersman.controller import Cause, ChannelSource, Request
from steersman.controller.sources.channel_source import Batcher, Debouncer
from steersman.objects import Key


def sent(schedule, *, debounce, max_delay=None, end=100.0):
    """Send notes at times; when and with which notes they come out."""

    async def scenario():
        source = ChannelSource("world", debounce=debounce, max_delay=max_delay)
        out = []
        loop = asyncio.get_running_loop()

        def emit(request, cause, priority):
            out.append((round(loop.time(), 3), str(request), cause.note))

        async with Supervisor() as tasks:
            for at, key in schedule:
                if at > 0 and not tasks.running:
                    tasks.start(source.run(emit, lambda: None), name="source")
                    await asyncio.sleep(0)
                if at > loop.time():
                    await asyncio.sleep(at - loop.time())
                source.send(key, f"{at:g}")
            await asyncio.sleep(end - loop.time())
            tasks.cancel()
        return out

    return run_virtual(scenario())[0]


def test_the_first_comes_at_once_and_then_at_most_every_so_often():
    schedule = [(1.0, "a/x"), (1.5, "a/x"), (2.0, "a/x"), (12.0, "a/x"), (50.0, "a/x")]
    assert sent(schedule, debounce=10.0) == [
        (1.0, "a/x", "world: 1"),
        (11.0, "a/x", "world: 1.5"),
        (11.0, "a/x", "world: 2"),
        (21.0, "a/x", "world: 12"),
        (50.0, "a/x", "world: 50"),
    ]


def test_keys_do_not_debounce_each_other():
    assert [at for at, _, _ in sent([(1.0, "a/x"), (1.5, "a/y")], debounce=10.0)] == [1.0, 1.5]


def test_without_debounce_everything_comes_at_once():
    assert [at for at, _, _ in sent([(1.0, "a/x"), (1.5, "a/x")], debounce=0.0)] == [1.0, 1.5]


def test_what_is_sent_before_the_controller_runs_is_not_lost():
    assert sent([(0, "a/x"), (0, "a/y"), (5.0, "a/x")], debounce=1.0)[:2] == [
        (0.0, "a/x", "world: 0"),
        (0.0, "a/y", "world: 0"),
    ]


def test_another_thread_can_send():
    async def scenario():
        source = ChannelSource("world")
        with pytest.raises(RuntimeError, match="is not running yet"):
            source.send_threadsafe("a/x")
        out = []
        got = asyncio.Event()

        def emit(request, cause, priority):
            out.append(str(request))
            got.set()

        async with Supervisor() as tasks:
            tasks.start(source.run(emit, lambda: None), name="source")
            await asyncio.sleep(0)
            await asyncio.to_thread(source.send_threadsafe, "a/x", "from a thread")
            await got.wait()
            tasks.cancel()
        return out

    assert asyncio.run(scenario()) == ["a/x"]


@given(
    times=st.lists(st.tuples(st.integers(0, 60), st.sampled_from("xyz")), min_size=1, max_size=40),
    seconds=st.integers(0, 10),
)
def test_no_event_is_swallowed_and_the_pace_is_kept(times, seconds):
    debouncer = Debouncer(float(seconds))
    pending = sorted(times)
    out = []
    for now in range(80):
        while pending and pending[0][0] == now:
            _, name = pending.pop(0)
            debouncer.put(Request(Key("a", name)), Cause(what="external", note=name))
        out += [(request.key.name, now, causes.total) for request, causes in debouncer.release(float(now))]
    assert len(debouncer) == 0
    for name in "xyz":
        mine = [(at, count) for other, at, count in out if other == name]
        first = min((at for at, other in times if other == name), default=None)
        assert (mine[0][0] if mine else None) == first
        assert sum(count for _, count in mine) == sum(other == name for _, other in times)
        assert all(later - earlier >= seconds for (earlier, _), (later, _) in pairwise(mine))


@pytest.mark.parametrize("bad", [-1.0, float("inf")])
def test_impossible_debounces_are_refused(bad):
    with pytest.raises(ValueError, match="seconds"):
        ChannelSource("x", debounce=bad)


def test_a_burst_is_one_request_when_it_is_over():
    schedule = [(1.0, "a/x"), (1.5, "a/x"), (2.0, "a/y"), (2.2, "a/x"), (9.0, "a/x")]
    assert sent(schedule, debounce=1.0, max_delay=5.0) == [
        (3.0, "a/y", "world: 2"),
        (3.2, "a/x", "world: 1"),
        (3.2, "a/x", "world: 1.5"),
        (3.2, "a/x", "world: 2.2"),
        (10.0, "a/x", "world: 9"),
    ]


def test_a_burst_that_does_not_end_goes_out_after_the_maximum_delay():
    schedule = [(1.0 + step / 2, "a/x") for step in range(40)]
    out = sent(schedule, debounce=1.0, max_delay=5.0)
    assert out[0][0] == 6.0
    assert all(at - float(note.removeprefix("world: ")) <= 5.0 for at, _, note in out)
    assert len({at for at, _, _ in out}) == 4


def test_what_was_sent_before_the_controller_runs_is_not_held_back():
    assert sent([(0, "a/x"), (5.0, "a/y")], debounce=1.0, max_delay=5.0) == [
        (0.0, "a/x", "world: 0"),
        (6.0, "a/y", "world: 5"),
    ]


@given(
    times=st.lists(st.tuples(st.integers(0, 60), st.sampled_from("xyz")), min_size=1, max_size=40),
    quiet=st.integers(1, 10),
    more=st.integers(0, 10),
)
def test_batches_lose_nothing_and_keep_their_times(times, quiet, more):
    batcher = Batcher(float(quiet), float(quiet + more))
    pending, out, waiting, asked = sorted(times), [], {}, None
    for now in range(100):
        while pending and pending[0][0] == now:
            _, name = pending.pop(0)
            batcher.put(Request(Key("a", name)), Cause(what="external", note=name), float(now))
            waiting.setdefault(name, []).append(now)
        asked = batcher.next_release(float(now))
        assert (asked is None) == (not waiting)
        for request, causes in batcher.release(float(now)):
            name = request.key.name
            sent_at = waiting.pop(name)
            assert causes.total == len(sent_at)
            assert now == min(sent_at[-1] + quiet, sent_at[0] + quiet + more)
            out.append(name)
    assert not waiting
    assert len(batcher) == 0
    assert set(out) == {name for _, name in times}


@pytest.mark.parametrize(("debounce", "max_delay"), [(0.0, 5.0), (5.0, 1.0), (1.0, float("inf"))])
def test_impossible_maximum_delays_are_refused(debounce, max_delay):
    with pytest.raises(ValueError, match="max_delay"):
        ChannelSource("x", debounce=debounce, max_delay=max_delay)
