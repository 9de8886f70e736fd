"""Who is next: turns between namespaces, and patience that ends."""

import asyncio

import pytest
from hypothesis import given, strategies as st

from samples.controllers import running
from samples.virtual_time import run_virtual
from steersman.controller import LOW_PRIORITY, Cause, Done, QueueOptions, Request
from steersman.controller.queue.fairness import FairQueue
from steersman.objects import Key

CAUSE = Cause(what="external")


def request(namespace, name):
    return Request(Key(namespace, str(name)))


@given(
    others=st.lists(st.integers(1, 40), min_size=1, max_size=8),
    taken_before=st.integers(0, 30),
    number=st.integers(1, 3),
)
def test_a_tenant_waits_for_one_request_of_each_other(others, taken_before, number):
    """Whatever the others have waiting, the n-th request of a tenant waits for n turns of theirs."""
    line = FairQueue(patience=5.0, share=4)
    for tenant, keys in enumerate(others):
        for name in range(keys):
            line.push(request(f"other-{tenant}", name), 0, 0.0)
    for _ in range(min(taken_before, len(line))):
        line.pop(0.0)
    for name in range(number):
        line.push(request("mine", name), 0, 0.0)
    order = [line.pop(0.0) for _ in range(len(line))]
    places = [place for place, each in enumerate(order) if each.key.namespace == "mine"]
    assert [order[place].key.name for place in places] == [str(name) for name in range(number)]
    for nth, place in enumerate(places, start=1):
        assert place <= nth * len(others) + nth - 1


@given(
    low=st.integers(1, 30),
    flood=st.integers(1, 5),
    share=st.integers(2, 6),
    patience=st.sampled_from([0.0, 1.0, 5.0]),
)
def test_low_priority_gets_its_share_of_turns(low, flood, share, patience):
    """Under a flood that never ends the low ones are all served, one in every ``share`` turns, and no faster."""
    line = FairQueue(patience=patience, share=share)
    for name in range(low):
        line.push(request("low", name), LOW_PRIORITY, 0.0)
    turns, served, now, sent = 0, [], 0.0, 0
    while len(served) < low:
        for tenant in range(flood):
            sent += 1
            line.push(request(f"flood-{tenant}", sent), 0, now)
        now += 0.25
        turns += now >= patience
        assert turns <= share * low + 1
        if (popped := line.pop(now)).key.namespace == "low":
            assert now >= patience
            served.append(popped.key.name)
    assert served == [str(name) for name in range(low)]
    assert turns >= share * (low - 1)


@given(steps=st.lists(st.tuples(st.integers(0, 3), st.sampled_from([LOW_PRIORITY, 0, 0, 7])), max_size=60))
def test_nothing_is_lost_or_doubled(steps):
    line = FairQueue(patience=1.0, share=2)
    for name, priority in steps:
        line.push(request("a", name), priority, 0.0)
    expected = {request("a", name) for name, _ in steps}
    assert len(line) == len(expected)
    popped = [line.pop(10.0) for _ in range(len(line))]
    assert sorted(popped) == sorted(expected)
    assert line.pop(10.0) is None


def test_a_more_urgent_push_moves_a_request_up():
    line = FairQueue(patience=5.0, share=4)
    line.push(request("a", "first"), LOW_PRIORITY, 0.0)
    line.push(request("a", "second"), LOW_PRIORITY, 0.0)
    line.push(request("a", "second"), 0, 0.0)
    line.push(request("a", "second"), LOW_PRIORITY, 0.0)
    assert line.depths() == {0: 1, LOW_PRIORITY: 1}
    assert line.pop(0.0).key.name == "second"


@pytest.mark.parametrize("bad", [{"patience": -1.0, "share": 4}, {"patience": 1.0, "share": 1}])
def test_impossible_lines_are_refused(bad):
    with pytest.raises(ValueError, match="got"):
        FairQueue(**bad)


def test_ten_thousand_keys_of_one_tenant_do_not_delay_anothers_one():
    """In a controller in virtual time: each reconcile takes a second, the newcomer waits for one."""

    async def scenario():
        finished = {}

        async def reconcile(ctx, request):
            await asyncio.sleep(1.0)
            finished[request] = asyncio.get_running_loop().time()
            return Done()

        async with running(reconcile, concurrency=1) as (_, feed):
            for name in range(10_000):
                feed.emit(request("greedy", name), CAUSE, 0)
            await asyncio.sleep(100.5)
            sent = asyncio.get_running_loop().time()
            feed.emit(request("modest", "one"), CAUSE, 0)
            await asyncio.sleep(5)
        return finished[request("modest", "one")] - sent

    waited, _ = run_virtual(scenario())
    # what runs ends, at most one more of the other's, then ours
    assert waited <= 3.0


def test_the_initial_list_does_not_starve_nor_delay_what_happens_now():
    """5,000 objects of an initial list in the same namespace, and a change every second."""

    async def scenario():
        late, initial_done = [], 0

        async def reconcile(ctx, request):
            nonlocal initial_done
            await asyncio.sleep(0.1)
            if request.key.name.startswith("now"):
                late.append(asyncio.get_running_loop().time() - sent[request])
            else:
                initial_done += 1
            return Done()

        sent = {}
        async with running(reconcile, concurrency=1, queue=QueueOptions(patience=5.0, share=4)) as (_, feed):
            for name in range(5000):
                feed.emit(request("a", name), CAUSE, LOW_PRIORITY)
            for name in range(300):
                fresh = request("a", f"now-{name}")
                sent[fresh] = asyncio.get_running_loop().time()
                feed.emit(fresh, CAUSE, 0)
                await asyncio.sleep(1.0)
        return late, initial_done

    (late, initial_done), _ = run_virtual(scenario())
    assert len(late) == 300
    assert max(late) <= 0.4
    assert initial_done >= 2500
