"""What is written by mistake: refused where it is written, or told in words, and never found out by other objects."""

from __future__ import annotations

import re
import types
from datetime import timedelta

import pytest

from samples.postgres import Postgres, PostgresStatus, conditions, managed, postgres, settings, statuses
from steersman import ObjectMeta
from steersman.controller import Done
from steersman.kinds.core_v1 import ConfigMap
from steersman.patterns import Failed, Outputs, StateMachine, Wait, finalizer, generates, reconciles, state
from steersman.testing import eventually


def test_an_option_that_does_not_exist_is_refused():
    with pytest.raises(TypeError) as error:
        generates(Postgres, children=(ConfigMap,), order_deletion=True)
    assert str(error.value) == ("@generates(Postgres) has no option order_deletion=; did you mean ordered_deletion=?")
    with pytest.raises(
        TypeError, match=r"@reconciles\(Postgres\) has no option externals=; the options are children=, "
    ):
        reconciles(Postgres, externals=())
    with pytest.raises(TypeError, match=r"class Typo has no option order_deletion=; did you mean ordered_deletion=\?"):
        types.new_class("Typo", (StateMachine[Postgres],), {"order_deletion": True})


def test_a_state_without_its_condition_is_refused():
    with pytest.raises(TypeError) as error:

        @state
        async def storage(self, pg, out) -> Done:
            return Done()

    assert str(error.value) == '@state needs the name of its condition: write @state(condition="StorageReady")'


@pytest.mark.parametrize("name", ["a" * 60, "état", "_storage", "storage_"])
@pytest.mark.parametrize("kind", ["state", "finalizer"])
def test_a_name_that_is_no_label_is_refused(kind, name):
    async def method(self, pg, out) -> Done:
        return Done()

    async def first(self, pg, out) -> Done:
        return Done()

    marked = {name: state(condition="Made")(method)} if kind == "state" else {name: finalizer(method)}
    marked |= {} if kind == "state" else {"first": state(condition="First")(first)}
    with pytest.raises(TypeError, match=f"{kind} {name}: the name becomes a label value of its children"):
        types.new_class("Machine", (StateMachine[Postgres],), {}, lambda namespace: namespace.update(marked))


@pytest.mark.parametrize("case", ["waits", "raises", "status"])
async def test_words_that_cannot_be_written_are_spelled_out(control_plane, case):
    @reconciles(Postgres)
    async def named(pg: Postgres, out: Outputs) -> Done | Wait:
        if case == "raises":
            raise RuntimeError("no file \udcff")
        if case == "status":
            pg.status = PostgresStatus(endpoint="\ud800")
            return Done()
        return Wait("no file \udcff")

    client = control_plane.client
    async with control_plane.running(managed(named), crashes=True):
        await client.create(postgres())
        found = await eventually(client, Postgres, "pg", lambda pg: pg.status is not None)
        status, _, message = conditions(found)["Ready"]
        assert status == "False"
        assert ("\\ud800" if case == "status" else "no file \\udcff") in message


@pytest.mark.parametrize("case", ["renamed", "shared", "replaced"])
async def test_an_object_that_a_function_changes_is_reported_and_not_mistaken(control_plane, case):
    @generates(Postgres, children=(ConfigMap,), name="careless")
    def careless(pg: Postgres) -> list[ConfigMap]:
        if pg.key.name == "pg-child":
            return []
        if case == "replaced":
            pg.metadata = ObjectMeta(name="pg-child")
        elif case == "renamed":
            pg.metadata.name = "pg-child"
        return [settings("one")] if case != "shared" else [ConfigMap(metadata=pg.metadata)]

    client = control_plane.client
    async with control_plane.running(managed(careless), crashes=True):
        await client.create(postgres("pg-child"))
        await eventually(client, Postgres, "pg-child", has={"status": {"conditions": [{"type": "Ready"}]}})
        await client.create(postgres())
        wrong = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Error"}]}}
        found = await eventually(client, Postgres, "pg", has=wrong)
        words = {
            "shared": "careless used the metadata of Postgres",
        }.get(case, "careless changed the metadata of Postgres")
        assert words in conditions(found)["Ready"][2]
        assert statuses(await client.get(Postgres, "pg-child")) == {"Ready": "True"}
        assert not [each for each in await client.list(ConfigMap) if each.key.name in {"one", "pg"}]


async def test_a_state_that_forgets_an_await_applies_nothing(control_plane):
    @reconciles(Postgres, children=(ConfigMap,))
    async def forgetful(pg: Postgres, out: Outputs) -> Done:
        out.apply(settings("one"))
        out.ctx.client.find(ConfigMap, "other")
        return Done()

    client = control_plane.client
    async with control_plane.running(managed(forgetful), crashes=True):
        await client.create(postgres())
        found = await eventually(client, Postgres, "pg", lambda pg: pg.status is not None)
    status, _, message = conditions(found)["Ready"]
    assert status == "False"
    assert message.startswith(f"MissingAwait: find(...) was called without await at {__file__}:")
    assert not [each for each in await client.list(ConfigMap) if each.key.name == "one"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Wait(30), "Wait(30): the message of a condition is text; write Wait(after=30)"),
        (
            lambda: Failed(OSError("down")),
            "Failed(OSError('down')): the message of a condition is text; write Failed(f\"...\")",
        ),
        (lambda: Wait(after=timedelta(minutes=1)), "after must be a number of seconds; write after=60"),
    ],
)
def test_a_step_with_a_wrong_value_is_refused_where_it_is_made(make, words):
    """Later, the status could not be written at all."""
    with pytest.raises(TypeError, match=re.escape(words)):
        make()


def test_a_finalizer_of_a_generator_says_what_to_write():
    """Only the other operators can have one."""

    @generates(Postgres, children=(ConfigMap,))
    def pages(postgres: Postgres) -> list[ConfigMap]:
        return []

    with pytest.raises(
        AttributeError, match=r"write @reconciles over async def pages\(obj, out\), .* and @pages.finalizer"
    ):
        pages.finalizer(print)
