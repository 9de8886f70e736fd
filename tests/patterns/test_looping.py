"""An object that never converges says so in a condition, and the condition is not part of the loop."""

import pytest

from samples.postgres import Postgres, conditions, managed, postgres
from steersman import MergePatch
from steersman.controller import Done, RequeueAfter
from steersman.patterns import Outputs, StateMachine, state

#: A loop for each: that of the session has tasks of others, whose time would be skipped too.
pytestmark = pytest.mark.asyncio(loop_scope="function")


class Stamps(StateMachine[Postgres]):
    """Writes another annotation in every run, for as long as it is hot."""

    hot = True
    runs = 0

    @state(condition="Stamped")
    async def stamped(self, pg: Postgres, out: Outputs) -> Done | RequeueAfter:
        self.runs += 1
        if self.hot:
            patch = MergePatch({"metadata": {"annotations": {"at": str(self.runs)}}})
            await out.ctx.client.patch(Postgres, pg.key, patch)
        return Done()


def said(pg):
    return conditions(pg).get("Looping", ("", "", ""))


async def test_a_loop_is_a_condition_while_it_lasts(control_plane, clock):
    client, stamps = control_plane.client, Stamps()
    async with control_plane.running(managed(stamps)) as operator:
        await client.create(postgres())
        await clock.advance(60)
        first = await client.get(Postgres, "pg")
        status, reason, message = said(first)
        assert (status, reason) == ("True", "Looping")
        assert "metadata.annotations.at" in message
        assert conditions(first)["Ready"][0] == "True"

        before = stamps.runs
        await clock.advance(600)
        # A run each minute, and all that it writes is the annotation: the status stays as it is, word for word.
        assert 5 <= stamps.runs - before <= 15
        later = await client.get(Postgres, "pg")
        assert later.status == first.status

        stamps.hot = False
        await clock.advance(300)
        calm = await client.get(Postgres, "pg")
        assert "Looping" not in conditions(calm)
        await clock.advance(3600)
        await operator.drained()
        assert (await client.get(Postgres, "pg")).metadata.resource_version == calm.metadata.resource_version


async def test_a_loop_of_runs_that_look_again_is_found_too(control_plane, clock):
    """A reconcile that writes, wakes itself and asks to run again later is throttled like others."""

    class Polls(Stamps):
        @state(condition="Stamped")
        async def stamped(self, pg: Postgres, out: Outputs) -> RequeueAfter:
            await super().stamped(pg, out)
            return RequeueAfter(3600)

    polls = Polls()
    async with control_plane.running(managed(polls)):
        await control_plane.client.create(postgres())
        await clock.advance(60)
        assert polls.runs < 30
        assert said(await control_plane.client.get(Postgres, "pg"))[0] == "True"
