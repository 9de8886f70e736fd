"""Events, and that recording them costs a controller nothing, whatever the server does."""

from __future__ import annotations

import asyncio
import json

import pytest

from samples.virtual_time import run_virtual
from steersman import Client, Key, ObjectMeta
from steersman.client import EventRecorder
from steersman.kinds.core_v1 import ConfigMap, Namespace, ObjectReference
from steersman.kinds.events_v1 import Event
from steersman.objects import Unstructured
from steersman.transport import InProcessTransport, ServerResponse


def recorder(client: Client) -> EventRecorder:
    return EventRecorder(client, controller="example.com/site-operator", instance="site-operator-0")


async def events_in(client: Client, namespace: str) -> list[Event]:
    return (await client.list(Event, namespace=namespace)).items


@pytest.fixture
async def subject(client, namespace) -> ConfigMap:
    return await client.create(ConfigMap(metadata=ObjectMeta(namespace=namespace, name="web")))


async def test_an_event_says_who_did_what_to_which_object(client, namespace, subject) -> None:
    async with recorder(client) as events:
        events.record(subject, "Warning", "NoImage", "Deploying", "the image is not there", related=subject)
    [event] = await events_in(client, namespace)
    assert event.metadata.name.startswith("web.")
    assert (event.type, event.reason, event.action) == ("Warning", "NoImage", "Deploying")
    assert event.note == "the image is not there"
    assert (event.reporting_controller, event.reporting_instance) == ("example.com/site-operator", "site-operator-0")
    assert (event.regarding.kind, event.regarding.name, event.regarding.uid) == (
        "ConfigMap",
        "web",
        subject.metadata.uid,
    )
    assert event.related.name == "web"
    assert event.event_time.tzinfo is not None
    assert event.series is None
    assert events.statistics().written == 1


async def test_kubectl_shows_it(api_server, client, namespace, subject) -> None:
    async with recorder(client) as events:
        events.record(subject, "Normal", "Deployed", "Deploying", "all replicas are ready")
    assert "all replicas are ready" in await api_server.kubectl("describe", "configmap", "web", "-n", namespace)


async def test_alike_events_become_one_with_a_count(client, namespace, subject) -> None:
    """Notes may differ: it is the object, the reason and the action that make them alike."""
    async with recorder(client) as events:
        for number in range(30):
            events.record(subject, "Warning", "BackOff", "Restarting", f"attempt {number}")
        events.record(subject, "Normal", "Started", "Restarting", "up again")
    backoff, started = sorted(await events_in(client, namespace), key=lambda event: event.reason)
    assert backoff.series.count == 30
    assert backoff.series.last_observed_time > backoff.event_time
    assert backoff.note == "attempt 0"
    assert started.series is None
    assert events.statistics().written == 4
    assert events.statistics().counted == 28


async def test_no_object_is_flooded(client, namespace, subject) -> None:
    async with recorder(client) as events:
        for number in range(40):
            events.record(subject, "Normal", f"Reason{number}", "Working", "")
    assert len(await events_in(client, namespace)) == 25
    assert events.statistics().dropped == 15


async def test_an_event_that_expired_is_written_anew(client, namespace, subject) -> None:
    async with recorder(client) as events:
        events.record(subject, "Normal", "Working", "Working", "first")
        async with asyncio.timeout(60), client.watch(Event, namespace=namespace) as changes:
            created = await anext(aiter(changes))
        await client.delete(created.object)
        events.record(subject, "Normal", "Working", "Working", "second")
    [event] = await events_in(client, namespace)
    assert event.series.count == 2
    assert events.statistics().dropped == 0


async def test_events_about_cluster_scoped_objects_are_in_the_default_namespace(client, namespace) -> None:
    subject = await client.get(Namespace, Key("", namespace))
    async with recorder(client) as events:
        events.record(subject, "Normal", "Labeled", "Labeling", "")
    told = [event for event in await events_in(client, "default") if event.regarding.name == namespace]
    assert [event.reason for event in told] == ["Labeled"]


@pytest.mark.parametrize(
    "name", ["system:controller:ship", "UPPER", "a" * 253, "ship." + "-" * 100], ids=["colons", "upper", "long", "end"]
)
async def test_any_object_can_be_spoken_of(client, namespace, name) -> None:
    """Its name may be none that an event could have, and the words may be too long."""
    reference = ObjectReference(api_version="v1", kind="Thing", namespace=namespace, name=name)
    async with recorder(client) as events:
        events.record(reference, "Normal", "R" * 200, "A" * 200, "ü" * 1000)
    [event] = await events_in(client, namespace)
    assert event.regarding.name == name
    assert events.statistics().dropped == 0


async def test_untyped_objects_and_other_threads(client, namespace, subject) -> None:
    tree = {"apiVersion": "v1", "kind": "Thing", "metadata": {"namespace": namespace, "name": "x", "uid": "u"}}
    async with recorder(client) as events:
        await asyncio.to_thread(events.record, Unstructured(tree), "Normal", "Seen", "Looking", "from a thread")
        await asyncio.sleep(0)
    [event] = await events_in(client, namespace)
    assert (event.regarding.uid, event.note) == ("u", "from a thread")


async def test_wrong_use_is_logged_and_not_raised(client, subject, caplog) -> None:
    async with recorder(client) as events:
        events.record(subject, "Bad", "Reason", "Acting", "")
        events.record(subject, "Normal", "", "Acting", "")
        events.record(None, "Normal", "Reason", "Acting", "")
    events.record(subject, "Normal", "Reason", "Acting", "too late")
    assert events.statistics().dropped == 4
    assert 'must be "Normal" or "Warning"' in caplog.text


async def test_a_refusal_of_the_server_is_said_once(client, caplog) -> None:
    """A namespace that is gone is no reason to try again, nor to fail."""
    async with recorder(client) as events:
        for number in range(3):
            reference = ObjectReference(api_version="v1", kind="Thing", namespace="nowhere", name=f"x{number}")
            events.record(reference, "Normal", "Seen", "Looking", "")
    assert events.statistics().dropped == 3
    assert len([message for message in caplog.messages if "dropped event" in message]) == 1


SUBJECT = ObjectReference(api_version="v1", kind="Thing", namespace="a", name="b")


def test_a_server_that_never_answers_costs_events_and_nothing_else() -> None:
    async def never(request) -> ServerResponse:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async def scenario() -> tuple[float, int]:
        loop = asyncio.get_running_loop()
        async with InProcessTransport(never) as transport:
            async with recorder(Client(transport)) as events:
                for number in range(2000):
                    events.record(SUBJECT, "Normal", f"Reason{number}", "Working", "")
                recorded = loop.time()
                assert events.statistics().waiting == 1000
            return recorded, events.statistics().dropped

    (recorded, dropped), elapsed = run_virtual(scenario())
    assert recorded == 0.0
    assert dropped == 1000
    assert elapsed == pytest.approx(3.0)


def test_a_server_that_is_down_for_a_moment_costs_nothing() -> None:
    requests: list[str] = []

    async def sick(request) -> ServerResponse:
        requests.append(request.method)
        if len(requests) < 3:
            return ServerResponse(status=500, body=b"")
        return ServerResponse(status=201, body=request.body)

    async def scenario() -> int:
        async with InProcessTransport(sick) as transport, recorder(Client(transport)) as events:
            events.record(SUBJECT, "Normal", "Reason", "Working", "")
            await asyncio.sleep(60)
            return events.statistics().written

    assert run_virtual(scenario())[0] == 1
    assert requests == ["POST"] * 3


def test_a_long_series_is_sent_now_and_then() -> None:
    """Once a minute for two hours: a creation, a beginning, a refresh every half hour, and the end."""
    told: list[int] = []

    async def keep(request) -> ServerResponse:
        tree = json.loads(request.body)
        told.append(tree.get("series", {}).get("count", 1))
        body = {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"namespace": "a", "name": "x"}}
        return ServerResponse(status=200, body=json.dumps({**body, **tree}).encode())

    async def scenario() -> None:
        async with InProcessTransport(keep) as transport, recorder(Client(transport)) as events:
            for _ in range(120):
                events.record(SUBJECT, "Normal", "Reason", "Working", "")
                await asyncio.sleep(60)
            await asyncio.sleep(600)

    run_virtual(scenario())
    assert told[:2] == [1, 2]
    assert len(told) == 6
    assert told[-1] == 120


def test_names_that_events_cannot_have_are_refused() -> None:
    async def scenario() -> None:
        async with InProcessTransport(None) as transport:
            for controller in ("", "with space", "a/b/c", "x" * 64):
                with pytest.raises(ValueError, match="invalid controller name"):
                    EventRecorder(Client(transport), controller=controller, instance="x")
            with pytest.raises(ValueError, match="instance"):
                EventRecorder(Client(transport), controller="x", instance="")

    run_virtual(scenario())
