"""Every fault of a simulation happens on kube-apiserver too, and the operator sees the same there.

Each test tells one story twice: an operator in a process of its own on the engine, behind a proxy that applies the fault to
bytes and processes, and the same operator in a simulation with the same schedule. It compares what the operator read, how
its writes ended, what it sent, and what the user found on the server.
"""

import asyncio
from typing import get_args

import pytest
from simulation.faithful_runs import Story, in_simulation, on_engine
from simulation.faulty_server import Forks
from simulation.films import AGAIN, GLANCE, LEASE, RECALL, WATCH, Film

from steersman.kinds.coordination_v1 import Lease
from steersman.simulation.runs.faults import (
    ChildDeleted,
    ChildEdited,
    ClockSkew,
    Coalesced,
    CrashBefore,
    CrashCommitted,
    CrashReplied,
    CutDeletion,
    DroppedWatch,
    Fault,
    InterferingWrite,
    LaggingServer,
    LostReply,
    LostRequest,
    NoBookmarks,
    Outage,
    Partition,
    ServerError,
    ServerTimeout,
    SlowServer,
    StaleCache,
    Throttled,
)
from steersman.transport import DEFAULT_TIMEOUT

pytestmark = pytest.mark.slow

SEES_ONE = ("sees", "one", None)
CREATED = [("create",), ("create", "ok")]
UPDATED = [("update",), ("update", "ok")]
BROKEN = ("OutcomeUnknown", "ConnectionFailed", "sent=True")
LATE = ("OutcomeUnknown", "DeadlineExceeded", "sent=True")
#: The first title, without a fault.
FIRST = [SEES_ONE, *CREATED]


@pytest.fixture(scope="module")
def forks(tmp_path_factory):
    forks = Forks(tmp_path_factory.mktemp("operators") / "log")
    yield forks
    forks.close()


@pytest.fixture
async def told(engine, namespace, install, forks, tmp_path):
    """Tell a story in both worlds; they must be the same, and it is returned."""
    await install(Film)

    async def told(story, *, watches=True):
        real = await on_engine(story, engine, namespace, forks, tmp_path)
        simulated = await asyncio.to_thread(in_simulation, story, tmp_path)
        assert simulated.diary == real.diary
        assert simulated.notes == real.notes
        assert simulated.starts == real.starts
        assert simulated.writes == real.writes
        if watches:
            assert simulated.watches == real.watches
        return real

    return told


# what users do


def ends_with(*words):
    """A user who creates the Film, and leaves when the operator has written a line."""

    async def plot(audience):
        await audience.create("one")
        await audience.until_written(*words)
        audience.note(await audience.poster())

    return plot


async def until_retitled(audience):
    """Create the Film, and then give it another title."""
    await audience.create("one")
    await audience.until_written("create", "ok")
    await audience.retitle("two")


async def until_updated(audience, times):
    """Wait until the operator has updated the poster so many times."""

    async def updated():
        return audience.diary.read().count(("update", "ok")) == times

    await audience.until(updated)


# crashes


async def test_a_process_is_killed_before_it_sends_a_request(told):
    seen = await told(Story(fault=CrashBefore(), verb="create", plot=ends_with("create", "ok")))
    assert seen.starts == 2
    assert seen.writes == ["create configmaps home"] * 2
    assert seen.diary == [SEES_ONE, ("create",), SEES_ONE, *CREATED]


@pytest.mark.parametrize("fault", [CrashCommitted(), CrashReplied()], ids=["committed", "replied"])
async def test_a_process_is_killed_after_the_server_has_committed(told, fault):
    """The next process finds the poster, and does not learn who created it."""
    seen = await told(Story(fault=fault, verb="create", plot=ends_with("sees", "one", "one")))
    assert seen.starts == 2
    assert seen.writes == ["create configmaps home"]
    assert seen.diary == [SEES_ONE, ("create",), ("sees", "one", "one")]


# lost messages


async def test_a_request_is_lost(told):
    """The client cannot tell it from a lost reply."""
    seen = await told(Story(fault=LostRequest(), verb="create", plot=ends_with("create", "ok")))
    assert seen.writes == ["create configmaps home"] * 2
    assert seen.diary == [SEES_ONE, ("create",), ("create", *BROKEN), SEES_ONE, *CREATED]


async def test_a_reply_is_lost(told):
    seen = await told(Story(fault=LostReply(), verb="create", plot=ends_with("sees", "one", "one")))
    assert seen.writes == ["create configmaps home"]
    assert seen.diary == [SEES_ONE, ("create",), ("create", *BROKEN), ("sees", "one", "one")]


# answers of a server that fails


async def test_the_server_has_too_many_requests(told):
    """In a reconcile, the client does not wait: a worker has other keys."""
    seen = await told(Story(fault=Throttled(), verb="create", plot=ends_with("create", "ok")))
    assert seen.writes == ["create configmaps home"] * 2
    assert seen.diary == [SEES_ONE, ("create",), ("create", "TooManyRequests"), SEES_ONE, *CREATED]


async def test_the_server_fails(told):
    seen = await told(Story(fault=ServerError(), verb="create", plot=ends_with("create", "ok")))
    assert seen.writes == ["create configmaps home"] * 2
    assert seen.diary == [SEES_ONE, ("create",), ("create", "InternalError"), SEES_ONE, *CREATED]


async def test_the_server_takes_too_long_for_itself(told):
    """It has carried out the request nevertheless."""
    seen = await told(Story(fault=ServerTimeout(), verb="create", plot=ends_with("sees", "one", "one")))
    assert seen.writes == ["create configmaps home"]
    assert seen.diary == [SEES_ONE, ("create",), ("create", "OutcomeUnknown"), ("sees", "one", "one")]


async def test_the_server_is_away(told):
    """A load balancer answers in its place; the operator misses nothing of what happens meanwhile."""

    async def plot(audience):
        await until_retitled(audience)
        await audience.until_written("update", "OutcomeUnknown")
        audience.note(await audience.poster())
        await audience.heal()
        await until_updated(audience, 1)
        await audience.retitle("three")
        await until_updated(audience, 2)

    # It ends before the operator tries again. How often it asks for watches meanwhile is chance.
    story = Story(fault=Outage(seconds=AGAIN / 2), verb="update", plot=plot)
    seen = await told(story, watches=False)
    assert seen.notes == [("one",)]
    failed = [("sees", "two", "one"), ("update",), ("update", "OutcomeUnknown")]
    updated = [("sees", "two", "one"), *UPDATED]
    assert seen.diary == [*FIRST, *failed, *updated, ("sees", "three", "two"), *UPDATED]


# other clients


async def test_another_client_writes_first(told):
    async def plot(audience):
        await until_retitled(audience)
        await until_updated(audience, 1)

    seen = await told(Story(fault=InterferingWrite(), verb="update", plot=plot))
    refused = [("sees", "two", "one"), ("update",), ("update", "Conflict")]
    assert seen.diary == [*FIRST, *refused, ("sees", "two", "one"), *UPDATED]


async def test_another_client_deletes_a_child(told):
    async def plot(audience):
        async def created_again():
            return audience.diary.read().count(("create", "ok")) == 2

        await audience.create("one")
        await audience.until(created_again)
        audience.note(await audience.poster())

    seen = await told(Story(fault=ChildDeleted(), verb="create", plot=plot))
    assert seen.diary == [*FIRST, *FIRST]
    assert seen.notes == [("one",)]


async def test_another_client_edits_a_child(told):
    async def plot(audience):
        await audience.create("one")
        await until_updated(audience, 1)
        audience.note(await audience.poster())

    seen = await told(Story(fault=ChildEdited(), verb="create", plot=plot))
    assert seen.diary == [*FIRST, ("sees", "one", "one-edited"), *UPDATED]
    assert seen.notes == [("one",)]


async def test_a_process_is_killed_during_a_deletecollection(told):
    """The server ends the deletion with the connection: the other objects stay."""

    async def plot(audience):
        async def one_is_gone():
            return await audience.scenes() < 4

        await audience.create_scenes()
        await audience.create("end")
        await audience.until(one_is_gone)
        # The server has time to go on, and the next process has not started.
        await audience.sleep(0.5)
        audience.note(await audience.scenes())
        await audience.heal()
        await audience.until_written("clear", "ok")
        audience.note(await audience.scenes())

    seen = await told(Story(fault=CutDeletion(), verb="deletecollection", name="", plot=plot))
    assert seen.starts == 2
    assert seen.notes == [(3,), (0,)]
    assert seen.diary == [("sees", "end", None), ("clear",), ("sees", "end", None), ("clear",), ("clear", "ok")]


# watches


async def test_a_watch_delivers_nothing_for_a_while(told):
    """The operator goes on with what it had read; afterwards it sees every change."""

    async def plot(audience):
        await until_retitled(audience)
        await until_updated(audience, 1)
        await audience.retitle("three")
        await audience.sleep(0.5)
        audience.note(await audience.poster())
        await audience.heal()
        await until_updated(audience, 2)
        audience.note(await audience.poster())

    seen = await told(Story(fault=StaleCache(), verb="update", plot=plot))
    assert seen.notes == [("two",), ("three",)]
    assert seen.diary == [*FIRST, ("sees", "two", "one"), *UPDATED, ("sees", "three", "two"), *UPDATED]


async def test_watches_break(told):
    """They go on where they were: the operator lists nothing again, and misses nothing."""

    async def plot(audience):
        await until_retitled(audience)
        await until_updated(audience, 1)
        await audience.retitle("three")
        await until_updated(audience, 2)

    seen = await told(Story(fault=DroppedWatch(), verb="update", plot=plot))
    assert seen.diary == [*FIRST, ("sees", "two", "one"), *UPDATED, ("sees", "three", "two"), *UPDATED]


async def test_history_is_lost(told):
    """The operator lists again, and sees only the last of several states."""

    async def plot(audience):
        await until_retitled(audience)
        await until_updated(audience, 1)
        await audience.retitle("three")
        await audience.retitle("four")
        await audience.heal()
        await until_updated(audience, 2)

    # On the engine, the operator also asks for the watches that it cannot get.
    seen = await told(Story(fault=Coalesced(), verb="update", plot=plot), watches=False)
    assert seen.diary == [*FIRST, ("sees", "two", "one"), *UPDATED, ("sees", "four", "two"), *UPDATED]


async def test_a_read_that_accepts_any_state_goes_back_in_time(told):
    """Another server, whose cache is behind, does not show what the operator has written."""

    async def plot(audience):
        await audience.create("one")
        await audience.until_written("create", "ok")
        await audience.retitle(RECALL)
        await audience.until_written("recalls", None)
        await audience.heal()
        await audience.until_written("recalls", "one")

    # It ends before the operator looks again.
    seen = await told(Story(fault=LaggingServer(seconds=AGAIN / 2), verb="get", any_version=True, plot=plot))
    looks = ("sees", RECALL, "one")
    assert seen.diary == [*FIRST, looks, ("recalls", None), looks, ("recalls", "one")]


async def test_watches_begin_again_on_a_server_that_is_behind(told):
    """They do not go back: the server delivers what is newer when its cache has it."""

    async def plot(audience):
        await until_retitled(audience)
        await until_updated(audience, 1)
        await audience.retitle("three")
        await audience.sleep(0.5)
        audience.note(await audience.poster())
        await audience.heal()
        await until_updated(audience, 2)
        audience.note(await audience.poster())

    seen = await told(Story(fault=LaggingServer(), verb="update", plot=plot))
    assert seen.notes == [("two",), ("three",)]
    assert seen.watches == {"films": 2, "configmaps": 2}
    assert seen.diary == [*FIRST, ("sees", "two", "one"), *UPDATED, ("sees", "three", "two"), *UPDATED]


def watches_posters(title, bookmarks):
    """A user who lets the operator watch posters, and leaves when it has seen so many bookmarks."""

    async def plot(audience):
        await audience.create("one")
        await audience.until_written("create", "ok")
        await audience.retitle(title)
        await audience.until_written("watched", bookmarks)

    return plot


async def test_a_server_sends_no_bookmarks(told, tmp_path):
    """kube-apiserver sends none in a watch of a second; the embedded server sends one in a longer watch."""
    # The first watch of posters is that of the cache.
    without = {"fault": NoBookmarks(), "verb": "watch", "name": "", "occurrence": 2}
    slow = {"fault": SlowServer(seconds=0.1), "verb": "create"}
    for number, fault in enumerate([slow, without]):
        folder = tmp_path / str(number)
        folder.mkdir()
        story = Story(**fault, plot=watches_posters(WATCH, 1 - number))
        await asyncio.to_thread(in_simulation, story, folder)
    seen = await told(Story(**without, plot=watches_posters(GLANCE, 0)))
    assert seen.diary == [*FIRST, ("sees", GLANCE, "one"), ("watched", 0)]


# time


async def test_the_server_is_slow(told):
    """The write is carried out long before the operator learns of it."""

    async def plot(audience):
        await until_retitled(audience)
        await audience.until_poster("two")
        audience.note(("update", "ok") in audience.diary.read())
        await audience.heal()
        await until_updated(audience, 1)

    seen = await told(Story(fault=SlowServer(), verb="update", plot=plot))
    assert seen.notes == [(False,)]
    assert seen.diary == [*FIRST, ("sees", "two", "one"), *UPDATED]


async def test_the_server_is_slower_than_the_client_waits(told):
    async def plot(audience):
        await until_retitled(audience)
        await audience.until_written("update", *LATE)
        audience.note(await audience.poster())
        await audience.heal()
        await audience.until_written("sees", "two", "two")

    seen = await told(Story(fault=SlowServer(seconds=DEFAULT_TIMEOUT + AGAIN / 2), verb="update", plot=plot))
    assert seen.notes == [("two",)]
    assert seen.diary == [*FIRST, ("sees", "two", "one"), ("update",), ("update", *LATE), ("sees", "two", "two")]


async def test_nothing_passes_for_a_while(told):
    async def plot(audience):
        await until_retitled(audience)
        await audience.until_written("update")
        await audience.sleep(0.5)
        audience.note(await audience.poster())
        await audience.heal()
        await until_updated(audience, 1)

    seen = await told(Story(fault=Partition(), verb="update", plot=plot))
    assert seen.notes == [("one",)]
    assert seen.diary == [*FIRST, ("sees", "two", "one"), *UPDATED]


async def test_nothing_passes_for_longer_than_the_client_waits(told):
    """What was on its way arrives all the same, after the client has given up."""

    async def plot(audience):
        await until_retitled(audience)
        await audience.until_written("update", *LATE)
        audience.note(await audience.poster())
        await audience.heal()
        await audience.until_written("sees", "two", "two")

    seen = await told(Story(fault=Partition(seconds=DEFAULT_TIMEOUT + AGAIN / 2), verb="update", plot=plot))
    assert seen.notes == [("one",)]
    assert seen.diary == [*FIRST, ("sees", "two", "one"), ("update",), ("update", *LATE), ("sees", "two", "two")]


async def test_the_clock_of_a_process_is_wrong(told):
    """Its Lease says so; the server's times do not, and it goes on leading."""

    async def plot(audience):
        async def ahead():
            lease = await audience.client.find(Lease, f"{audience.namespace}/{LEASE}")
            if lease is None or lease.spec is None or lease.spec.renew_time is None:
                return 0.0
            return (lease.spec.renew_time - lease.metadata.creation_timestamp).total_seconds()

        async def is_ahead():
            return await ahead() > 100

        await audience.create("one")
        film = await audience.client.get(Film, audience.key)
        await audience.until_poster("one")
        await audience.until(is_ahead)
        lease = await audience.client.get(Lease, f"{audience.namespace}/{LEASE}")
        apart = abs((lease.metadata.creation_timestamp - film.metadata.creation_timestamp).total_seconds())
        audience.note(100 < await ahead() < 140, apart < 60, lease.spec.lease_transitions or 0)
        await audience.sleep(1.0)
        audience.note((await audience.client.get(Lease, lease.key)).spec.lease_transitions or 0)

    skew, group = ClockSkew(seconds=120.0), "coordination.k8s.io"
    story = Story(fault=skew, verb="update", resource="leases", group=group, name=LEASE, plot=plot, leads=True)
    seen = await told(story)
    assert seen.notes[0][:2] == (True, True)


def test_every_kind_of_fault_has_a_test():
    """A new fault needs a test here: a simulation must not try what cannot happen. Ruff reports an import without one."""
    assert all(globals().get(kind.__name__) is kind for kind in get_args(Fault))
