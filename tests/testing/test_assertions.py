"""`eventually` and `consistently`: what they wait for, and what they say, word for word."""

from __future__ import annotations

import asyncio
import re
from textwrap import dedent

import pytest

from samples.page_operator import Page, manager, page
from steersman import Kind, MergePatch, ObjectMeta
from steersman.errors import ApiError
from steersman.kinds.core_v1 import ConfigMap, Event, ObjectReference, Secret
from steersman.testing import consistently, eventually


def words(failed, control_plane) -> str:
    """What was said, without what is never the same twice."""
    text = str(failed.value).replace(control_plane.namespace, "NS")
    text = re.sub(r"\d\d:\d\d:\d\d\.\d\d\d", "TIME", text)
    text = re.sub(r"in (<1|\d+) ms;", "in N ms;", text)
    text = re.sub(r"'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ'", "'THEN'", text)
    text = re.sub(r"uid: \S+", "uid: UID", text)
    text = re.sub(r"resourceVersion: '\d+'", "resourceVersion: 'RV'", text)
    return re.sub(r"\(\d+ states? seen\)", "(N states seen)", text)


async def told(control_plane, waiting) -> str:
    with pytest.raises(AssertionError) as failed:
        await waiting
    return words(failed, control_plane)


@pytest.mark.parametrize("waits", [eventually, consistently])
async def test_what_can_never_hold_is_refused_at_once(control_plane, waits):
    async def holds() -> bool:
        return True

    name = waits.__name__
    with pytest.raises(TypeError, match=rf"write {name}\(control_plane.client, KIND, NAME\)"):
        await waits(control_plane, ConfigMap, "x")
    with pytest.raises(TypeError, match=f"{name}: .*ConfigMap.* is not a client"):
        await waits(ConfigMap, "x")
    with pytest.raises(TypeError, match=rf"a coroutine runs once; write {name}\(lambda: holds\(\.\.\.\)\)"):
        await waits(holds())


async def test_it_gives_the_object_as_soon_as_it_is_as_expected(control_plane):
    client = control_plane.client

    async def later() -> None:
        for step in ("one", "two", "three"):
            await asyncio.sleep(0.01)
            await client.patch(ConfigMap, "x", MergePatch({"data": {"step": step}}))

    await client.create(ConfigMap(metadata=ObjectMeta(name="x")))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(later())
        # a state that lasted for a moment only is seen
        found = await eventually(client, ConfigMap, "x", lambda found: found.data["step"] == "two")
    assert found.data == {"step": "two"}
    tree = await eventually(
        client, Kind("v1", "ConfigMap"), f"{control_plane.namespace}/x", has={"data": {"step": ...}}
    )
    assert tree.get("data", "step") == "three"
    await client.delete(ConfigMap, "x")
    assert await eventually(client, ConfigMap, "x", gone=True) is None


async def test_what_is_expected_may_be_an_object(control_plane):
    made = ConfigMap(metadata=ObjectMeta(name="x", labels={"a": "b"}), data={"c": "d", "e": "f"})
    await control_plane.client.create(made)
    only = ConfigMap(metadata=ObjectMeta(labels={"a": "b"}), data={"e": "f"})
    await eventually(control_plane.client, ConfigMap, "x", has=only)


async def test_the_failure_tells_the_difference_the_object_and_the_reconciles(control_plane):
    client = control_plane.client
    async with control_plane.running(manager) as operator:
        await client.create(page())
        await operator.drained()
        expected = {"spec": {"title": "bye"}, "status": {"ready": True, "checks": 3, "phase": ...}}
        text = await told(control_plane, eventually(client, Page, "home", has=expected, within=0.05))
    assert text == dedent("""\
        Page NS/home did not become as expected within 50 ms (N states seen):
            spec.title: expected "bye", found "hello"
            status.checks: expected 3, found 0
            status.phase: expected "anything", found nothing

        It is now:
            apiVersion: pages.test.steersman.dev/v1
            kind: Page
            metadata:
              resourceVersion: 'RV'
              name: home
              namespace: NS
              uid: UID
              creationTimestamp: 'THEN'
              generation: 1
            spec:
              title: hello
              behavior: ''
            status:
              checks: 0
              ready: true

        There are no events about it.

        Controller page reconciled Page NS/home 1 time; it runs next when something changes:
            TIME  done, 2 writes, in N ms; because Page NS/home appeared (generation 1)""")


async def test_the_failure_tells_why_reconciles_failed_and_what_events_say(control_plane):
    client = control_plane.client
    about = ObjectReference(api_version="pages.test.steersman.dev/v1", kind="Page", name="home")
    about.namespace = control_plane.namespace
    async with control_plane.running(manager) as operator:
        await client.create(page(behavior="fail"))
        event = Event(metadata=ObjectMeta(name="home.1"), involved_object=about, type="Warning")
        event.reason, event.message, event.count = "Fire", "the printer is hot", 3
        await client.create(event)
        await eventually(lambda: operator.runs)
        text = await told(control_plane, eventually(client, Page, "home", lambda page: page.status.ready, within=0.01))
    assert "    the check failed with AttributeError: 'NoneType' object has no attribute 'ready'\n" in text
    assert "Events about it:\n    Warning Fire: the printer is hot (3 times)\n" in text
    first = text.index("    TIME  failed, 0 writes, in N ms; because Page NS/home appeared (generation 1)\n")
    assert "                  ConnectionError: the printer is on fire" in text[first:]
    assert re.search(r"Controller page reconciled Page NS/home \d+ times?; it runs next (in \d+ ms|now):", text)


async def test_the_failure_of_a_child_tells_the_reconciles_of_its_owner(control_plane):
    client = control_plane.client
    async with control_plane.running(manager) as operator:
        await client.create(page())
        await operator.drained()
        text = await told(
            control_plane, eventually(client, ConfigMap, "home", has={"data": {"title": "x"}}, within=0.01)
        )
        assert "Controller page reconciled Page NS/home 1 time" in text
        text = await told(control_plane, eventually(client, ConfigMap, "other", within=0.01))
    assert text == dedent("""\
        ConfigMap NS/other did not become as expected within 10 ms (N states seen):
            it does not exist

        There are no events about it.

        No controller of this test reconciles ConfigMap NS/other or an owner of it. The latest reconciles:
            page NS/home  TIME  done, 2 writes, in N ms; because Page NS/home appeared (generation 1)""")


async def test_a_python_name_in_has_is_answered_with_the_wire_name(control_plane):
    """``has`` is a part of the YAML; the names of Python's fields are the usual mistake."""
    client = control_plane.client
    await client.create(ConfigMap(metadata=ObjectMeta(name="x"), data={"a_b": "1"}))
    expected = {"metadata": {"owner_references": [{"block_owner": True}]}, "data": {"b_c": "1"}}
    text = await told(control_plane, eventually(client, ConfigMap, "x", has=expected, within=0.01))
    assert "metadata.owner_references: expected " in text
    assert ", found nothing; has= takes the names of the YAML: ownerReferences\n" in text
    assert '    data.b_c: expected "1", found nothing\n' in text  # a key, not a field


async def test_an_object_with_an_owner_does_not_report_that_it_lacks_one(control_plane):
    client = control_plane.client
    owner = await client.create(ConfigMap(metadata=ObjectMeta(name="owner")))
    await client.create(ConfigMap(metadata=ObjectMeta(name="x")), owner=owner)
    text = await told(control_plane, eventually(client, ConfigMap, "x", gone=True, within=0.01))
    assert "it still exists: it has not been deleted\n" in text


async def test_what_does_not_go_says_what_it_waits_for(control_plane):
    client = control_plane.client
    held = ConfigMap(metadata=ObjectMeta(name="x", finalizers=["example.com/printer"]))
    await client.create(held)
    text = await told(control_plane, eventually(client, ConfigMap, "x", gone=True, within=0.01))
    assert text.startswith(
        "ConfigMap NS/x was not deleted within 10 ms (N states seen):\n"
        "    it still exists: it has not been deleted, and it has no owner with which it would be deleted\n"
    )
    assert text.endswith("No operator runs in this test.")
    await client.delete(ConfigMap, "x")
    text = await told(control_plane, eventually(client, ConfigMap, "x", gone=True, within=0.01))
    assert "it still exists: it is being deleted and waits for example.com/printer\n" in text


async def test_secrets_are_not_shown(control_plane):
    client = control_plane.client
    await client.create(Secret(metadata=ObjectMeta(name="x"), string_data={"password": "correct horse"}))
    text = await told(control_plane, eventually(client, Secret, "x", lambda found: False, within=0.01))
    assert "password: (hidden)" in text
    assert "correct horse" not in text


async def test_differences_and_writes_hide_secrets(control_plane):
    """The report of a failed test ends in the log of a CI system, which many can read."""
    client = control_plane.client
    await client.create(Secret(metadata=ObjectMeta(name="keys"), string_data={"a": "hunter2", "b": "same"}))
    for expected in ({"data": {"a": "eA=="}}, {"data": None}, {"data": {"a": {"b": "hunter2"}}}):
        text = await told(control_plane, eventually(client, Secret, "keys", has=expected, within=0.05))
        assert "(hidden)" in text
        assert not any(each in text for each in ("hunter2", "aHVudGVyMg", "eA=="))
    with control_plane.writes() as writes:
        await client.patch(Secret, "keys", MergePatch({"stringData": {"a": "hunter3", "c": "hunter4"}}))
        with pytest.raises(ApiError):
            await client.patch(Secret, "keys", MergePatch({"data": {"a": ["hunter5"]}}))
    assert "data.a: (hidden) -> (hidden)" in str(writes)
    assert not any(each in repr(writes) for each in ("hunter", "aHVudGVy"))


async def test_what_stays_and_what_does_not(control_plane):
    client = control_plane.client
    await client.create(ConfigMap(metadata=ObjectMeta(name="x"), data={"a": "b"}))
    await consistently(client, ConfigMap, "x", has={"data": {"a": "b"}}, during=0.05)
    await consistently(client, ConfigMap, "y", gone=True, during=0.01)

    async def later() -> None:
        await asyncio.sleep(0.02)
        await client.patch(ConfigMap, "x", MergePatch({"data": {"a": "c"}}))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(later())
        waiting = consistently(client, ConfigMap, "x", has={"data": {"a": "b"}}, during=10)
        text = await told(control_plane, waiting)
    assert re.match(
        r'ConfigMap NS/x did not stay as expected for 10 s; after \d+ ms:\n    data.a: expected "b", found "c"\n', text
    )
    text = await told(control_plane, consistently(client, ConfigMap, "x", gone=True))
    assert text.startswith(
        "ConfigMap NS/x did not stay as expected for 1.0 s; from the beginning:\n    it still exists"
    )


async def test_any_condition_can_be_waited_for(control_plane):
    seen: list[int] = []

    def three() -> bool:
        seen.append(1)
        return len(seen) >= 3

    assert await eventually(three) is True

    async def never() -> str:
        raise LookupError("nothing in the drawer")

    text = await told(control_plane, eventually(never, within=0.01))
    assert text == "never did not hold within 10 ms: it failed with LookupError: nothing in the drawer"
    await consistently(lambda: len(seen) == 3, during=0.01)
    text = await told(control_plane, consistently(lambda: len(seen) == 4, during=0.01))
    assert text == "the check did not hold for 10 ms: from the beginning, it returned False"

    def not_five() -> bool:
        seen.append(1)
        return len(seen) != 5

    text = await told(control_plane, consistently(not_five, during=10))
    assert re.fullmatch(r"not_five did not hold for 10 s: after \d+ ms, it returned False", text)


async def test_a_condition_that_hangs_ends_with_the_time(control_plane):
    """A test whose condition waits for ever fails with a reason, not by the limit of the whole run."""
    looks: list[int] = []

    async def hangs() -> bool:
        looks.append(1)
        if len(looks) == 2:
            await asyncio.Event().wait()
        return False

    looks.append(1)
    text = await told(control_plane, eventually(hangs, within=0.05))
    assert text == "hangs did not hold within 50 ms: it did not return"
    looks.clear()
    text = await told(control_plane, eventually(hangs, within=0.2))
    assert text == "hangs did not hold within 200 ms: it returned False"

    async def times_out() -> bool:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        await eventually(times_out)


async def test_what_cannot_be_meant_is_refused(control_plane):
    with pytest.raises(TypeError, match="remove check and has"):
        await eventually(control_plane.client, ConfigMap, "x", has={}, gone=True)
