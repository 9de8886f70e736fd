"""A source whose mapper fails now and then, against a model that knows only who has to be told."""

import asyncio
import logging
from collections import Counter
from contextlib import asynccontextmanager

from hypothesis import HealthCheck, given, settings, strategies as st

from samples.controllers import view
from samples.virtual_time import run_virtual
from steersman.aio import Supervisor
from steersman.controller import KindSource, ObjectEvent
from steersman.controller.sources.mappers import function_mapper

OWNERS = ["one", "two", "three"]
steps = Counter()
#: which object, what it is to belong to (None: it goes), whether the mapper works from now on, seconds that pass
stories = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from([None, *OWNERS]),
        st.sampled_from([True, False]),
        st.sampled_from([0.0, 0.0, 0.05, 1.0, 30.0]),
    ),
    max_size=16,
)


class Kind:
    @asynccontextmanager
    async def listen(self, handler):
        self.tell = handler
        yield self

    async def wait_synced(self):
        pass


async def tell(story):
    """Let objects come, change and go; check after each step that every owner gets its request in the end."""
    kind, works = Kind(), True
    present: dict[str, object] = {}
    #: owner -> the number of the first step since which it must hear something
    owed: dict[str, int] = {}

    def owner_of(seen):
        if not works:
            raise RuntimeError("no")
        return [f"default/{seen.labels['owner']}"]

    def emit(request, cause, priority):
        owed.pop(request.key.name, None)

    source = KindSource("Secret", kind, function_mapper(owner_of, "test"))
    async with Supervisor() as tasks:
        tasks.start(source.run(emit, lambda: None), name="source")
        await asyncio.sleep(0)
        for number, (name, owner, working, seconds) in enumerate(story):
            steps["taken"] += 1
            works = working
            old = present.pop(name, None)
            if owner is None and old is None:
                continue
            if owner is None:
                event = ObjectEvent("vanished", old=old)
            else:
                new = present[name] = view(f"default/{name}", version=str(number + 2), labels={"owner": owner})
                event = ObjectEvent("changed" if old else "appeared", old=old, new=new)
            for state in event.states:
                owed.setdefault(state.labels["owner"], number)
            kind.tell(event)
            if works:
                assert not {state.labels["owner"] for state in event.states} & owed.keys()
            assert source.statistics().retrying <= 3
            await asyncio.sleep(seconds)
        works = True
        await asyncio.sleep(600.0)
        tasks.cancel()
    return owed, source.statistics()


def test_every_owner_gets_its_request_in_the_end(caplog):
    """Every owner of every state hears of it, at once if the mapper answers, else when it does again."""
    caplog.set_level(logging.CRITICAL, logger="steersman.controller")

    @settings(max_examples=250, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(story=stories)
    def check(story):
        owed, statistics = run_virtual(tell(story))[0]
        assert owed == {}
        assert (statistics.retrying, statistics.given_up) == (0, 0)

    check()
    assert steps["taken"] >= 1_500
