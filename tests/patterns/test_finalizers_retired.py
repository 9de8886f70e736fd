"""A machine that is called otherwise than before: what it set under its old name goes with the rest."""

from __future__ import annotations

import pytest

from samples.postgres import GROUP, Postgres, managed, postgres
from steersman import MergePatch
from steersman.controller import Done
from steersman.patterns import Outputs, StateMachine, finalizer, reconciles, state
from steersman.testing import eventually

OLD, NEW = f"{GROUP}/databases.postgres", f"{GROUP}/databases.databases"


class First(StateMachine[Postgres]):
    def __init__(self):
        self.cleaned = []

    @state(condition="Made")
    async def make(self, pg: Postgres, out: Outputs) -> Done:
        return Done()

    @finalizer
    async def clean_up(self, pg: Postgres, out: Outputs) -> Done:
        self.cleaned.append(pg.key.name)
        return Done()


class Second(First, name="databases", retired_finalizers=(OLD,)):
    """The same under another name."""


@reconciles(Postgres, name="databases", retired_finalizers=(OLD,))
async def without(pg: Postgres, out: Outputs) -> Done:
    """Nothing to clean up any more."""
    return Done()


async def test_an_old_finalizer_goes_from_what_stays_and_from_what_goes(control_plane):
    client = control_plane.client
    async with control_plane.running(managed(First())) as operator:
        await client.create(postgres("stays"))
        await client.create(postgres("goes"))
        await operator.drained()
    await client.delete(Postgres, "goes")
    machine = Second()
    async with control_plane.running(managed(machine)) as operator:
        await operator.drained()
        assert await client.find(Postgres, "goes") is None
        assert machine.cleaned == ["goes"]
        assert (await client.get(Postgres, "stays")).metadata.finalizers == [NEW]
        await client.delete(Postgres, "stays")
        await operator.drained()
        assert await client.find(Postgres, "stays") is None
        assert machine.cleaned == ["goes", "stays"]


async def test_a_retired_finalizer_is_removed_once_while_the_old_release_adds_it_again(control_plane):
    """Otherwise both releases send requests without end."""
    client = control_plane.client
    async with control_plane.running(managed(First())) as old:
        await client.create(postgres())
        await old.drained()
        async with control_plane.running(managed(Second())) as new:
            await eventually(client, Postgres, "pg", lambda pg: NEW in pg.metadata.finalizers)
            both = {OLD, NEW}
            await eventually(client, Postgres, "pg", lambda pg: set(pg.metadata.finalizers) == both)
            await old.drained()
            await new.drained()
            with control_plane.writes() as writes:
                await client.patch(Postgres, "pg", MergePatch({"metadata": {"labels": {"look": "again"}}}))
                await old.drained()
                await new.drained()
            assert [each for each in writes.by("databases") if each.verb == "patch"] == []
            assert set((await client.get(Postgres, "pg")).metadata.finalizers) == both


async def test_a_machine_that_needs_none_takes_the_old_one_away(control_plane):
    client = control_plane.client
    async with control_plane.running(managed(First())) as operator:
        await client.create(postgres())
        await operator.drained()
    async with control_plane.running(managed(without)) as operator:
        await operator.drained()
        assert not (await client.get(Postgres, "pg")).metadata.finalizers


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (OLD, 'retired_finalizers= must be a tuple of names; write retired_finalizers=("'),
        (
            ("old",),
            "retired_finalizers= contains 'old', which is not a finalizer; write a name such as example.com/storage",
        ),
        ((NEW,), f"retired_finalizers= contains {NEW}, which is the current finalizer; remove it"),
    ],
)
def test_names_that_cannot_be_retired_are_refused(names, words):
    with pytest.raises(TypeError) as error:

        @reconciles(Postgres, name="databases", finalizer=NEW, retired_finalizers=names)
        async def wrong(pg: Postgres, out: Outputs) -> Done:
            return Done()

    assert words in str(error.value)
