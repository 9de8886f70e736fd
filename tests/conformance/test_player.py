"""The suite itself: it finds what differs, says so in words, and keeps quiet about what may differ."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conformance.bodies import CM, configmap
from conformance.comparing import Difference, differences
from conformance.known_differences import Known
from conformance.normalization import Normalizer
from conformance.player import Play, Server, play
from conformance.random_requests import random_scenario
from conformance.recording import Recording
from conformance.report import compare, describe
from conformance.scenario import Bindings, Scenario, delete, frames, get, patch, post, scenario, watch
from conformance.servers import engine_server
from conformance.shrinking import shrink
from conformance.stage import Stage
from multidict import CIMultiDict, CIMultiDictProxy

from steersman.transport import InProcessTransport, Response, ServerResponse, Transport, TransportWrapper
from steersman.wire import HttpRequest

ONE = f"{CM}/a"
SMALL = scenario(
    "small",
    "Kinds",
    watch("w", CM),
    post(CM, configmap(), as_="a"),
    patch(ONE, {"data": {"key": "2"}}),
    get(CM),
    frames("w", 2),
    delete(ONE),
    frames("w", 1),
)


class Altered:
    """A server that does as another one, but for the bodies that `alter` changes."""

    def __init__(self, inner: Transport, alter: Callable[[HttpRequest, bytes], bytes]) -> None:
        self._inner = inner
        self._alter = alter

    async def send(self, request: HttpRequest, **options: Any) -> Response:
        response = await self._inner.send(request, **options)
        if options.get("stream"):
            return response
        body = self._alter(request, await response.read())
        answer = ServerResponse(status=response.status, headers=tuple(response.headers.items()), body=body)

        async def handler(_: HttpRequest) -> ServerResponse:
            return answer

        return await InProcessTransport(handler).send(request)

    async def close(self) -> None:
        await self._inner.close()


@pytest.fixture
async def server(engine):
    async with engine_server(engine) as server:
        yield server


def altered(server: Server, alter: Callable[[HttpRequest, bytes], bytes]) -> Server:
    return Server("altered", Altered(server.transport, alter))


async def both(server: Server, other: Server, chosen: Scenario):
    return compare(chosen, await play(server, chosen), await play(other, chosen))


async def test_the_same_server_twice_has_no_difference(server) -> None:
    outcome = await both(server, server, SMALL)
    assert outcome.unexplained == {}
    assert outcome.reference.requests == 6
    assert outcome.reference.frames == 3


async def test_a_planted_difference_is_reported_with_its_request(server) -> None:
    def other_value(request: HttpRequest, body: bytes) -> bytes:
        return body.replace(b'"key":"2"', b'"key":"3"') if request.method == "PATCH" else body

    outcome = await both(server, altered(server, other_value), SMALL)
    assert describe(outcome, "engine", "altered") == (
        "scenario small: 1 differences\n"
        "  step 2: PATCH /api/v1/namespaces/{ns}/configmaps/a\n"
        "      Content-Type: application/merge-patch+json\n"
        '      {"data": {"key": "2"}}\n'
        "    at .body.data.key\n"
        "       engine: 2\n"
        "      altered: 3"
    )


async def test_a_revision_too_many_is_seen(server) -> None:
    """Versions are compared by order: the answer of the patch claims one that no other place shows."""

    def later(request: HttpRequest, body: bytes) -> bytes:
        return (
            re.sub(rb'"resourceVersion":"\d+"', b'"resourceVersion":"99999999"', body)
            if request.method == "PATCH"
            else body
        )

    outcome = await both(server, altered(server, later), SMALL)
    assert [d.path for d in outcome.unexplained[4]] == [".frames[1].object.metadata.resourceVersion"]


async def test_a_write_that_makes_no_revision_is_seen(server) -> None:
    first: list[bytes] = []

    def stuck(request: HttpRequest, body: bytes) -> bytes:
        found = re.search(rb'"resourceVersion":"\d+"', body)
        if request.method == "POST" and found and b'"kind":"ConfigMap"' in body:
            first.append(found[0])
        return re.sub(rb'"resourceVersion":"\d+"', first[-1], body) if request.method == "PATCH" else body

    outcome = await both(server, altered(server, stuck), SMALL)
    assert outcome.unexplained[2] == [
        Difference(".body.metadata.resourceVersion", "<rv of step 2>", "<rv of step 1>"),
    ]


async def test_an_unexpected_frame_is_seen(server) -> None:
    short = Scenario("short", SMALL.steps[:-1])
    told = await play(server, short)
    assert [one["frame"]["type"] for one in told.answers[-1]["unexpected frames"]] == ["DELETED"]


async def test_a_random_difference_is_shrunk_to_what_causes_it(server) -> None:
    """The altered server answers another number whenever a deployment is scaled."""

    def miscounting(request: HttpRequest, body: bytes) -> bytes:
        if not request.path.endswith("/scale") or b'"kind":"Scale"' not in body:
            return body
        tree = json.loads(body)
        tree["spec"] = {"replicas": 77}
        return json.dumps(tree).encode()

    other = altered(server, miscounting)

    async def differs(fewer: Scenario) -> bool:
        return bool((await both(server, other, fewer)).unexplained)

    number = 0
    while not await differs(found := random_scenario(7, number, kinds=("deployment",), length=15)):
        number += 1
    shrunk = await shrink(found, differs)
    assert len(shrunk.steps) == 2
    # made by whichever request makes it
    assert [step.path.rsplit("/", 1)[-1] == "scale" for step in shrunk.steps] == [False, True]


async def test_a_recording_stands_in_for_the_server(server, tmp_path: Path) -> None:
    recording = Recording()
    recording.add(SMALL, await play(server, SMALL))
    recording.write(tmp_path / "recorded.json")
    recorded = Recording.read(tmp_path / "recorded.json").play(SMALL)
    assert compare(SMALL, recorded, await play(server, SMALL)).unexplained == {}
    changed = Scenario("small", SMALL.steps[:-1])
    with pytest.raises(LookupError, match="record again"):
        Recording.read(tmp_path / "recorded.json").play(changed)


async def test_a_server_that_fails_is_reported_as_a_difference(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(request: HttpRequest) -> ServerResponse:
        raise RuntimeError("the server has a bug")

    async with InProcessTransport(broken) as transport:
        told = await play(Server("broken", transport), SMALL)
    assert "no answer" in told.answers[1]


def test_known_differences_are_explained_and_counted() -> None:
    small = Scenario("theme/small", SMALL.steps[:1])
    left, right = (Play([{"body": {"items": [{"a": value, "b": value}]}}, {}]) for value in (1, 2))
    known = (Known("theme/*", ".body.items[[]*].a", "not used"), Known("theme/*", ".body.items[0].a", "meant"))
    outcome = compare(small, left, right, known)
    assert [d.path for d in outcome.unexplained[0]] == [".body.items[0].b"]
    assert (outcome.explained, [entry.reason for entry in outcome.used]) == (1, ["meant"])


@pytest.mark.parametrize(
    ("left", "right", "paths"),
    [
        ({"a": 1}, {"a": 1.0}, [".a"]),
        ({"a": True}, {"a": 1}, [".a"]),
        ({"a": None}, {}, [".a"]),
        ({}, {"x-y": ""}, ["['x-y']"]),
        ([1, 2], [2, 1], ["[0]", "[1]"]),
        ([1], [1, 2], ["[1]"]),
        ({"a": [{"b": {}}]}, {"a": [{"b": []}]}, [".a[0].b"]),
        ({"a": [{"b": {}}]}, {"a": [{"b": {}}]}, []),
    ],
)
def test_differences_have_paths(left: Any, right: Any, paths: list[str]) -> None:
    assert [difference.path for difference in differences(left, right)] == paths


def normalized(body: Any, literals: str = "") -> Any:
    return Normalizer(Bindings("abcde").names, literals).body(3, json.dumps(body).encode(), "application/json")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"metadata": {"namespace": "ns-abcde"}}, {"metadata": {"namespace": "{ns}"}}),
        (
            {"metadata": {"managedFields": [{"manager": "b", "time": "2001-01-01T00:00:00Z"}, {"manager": "a"}]}},
            {"metadata": {"managedFields": [{"manager": "a"}, {"manager": "b", "time": "2001-01-01T00:00:00Z"}]}},
        ),
        ({"a": "2001-01-01T00:00:00Z"}, {"a": "2001-01-01T00:00:00Z"}),
        ({"metadata": {"resourceVersion": "7"}}, {"metadata": {"resourceVersion": "<rv of step 3>"}}),
        ({"metadata": {"resourceVersion": ""}}, {"metadata": {"resourceVersion": ""}}),
        ({"involvedObject": {"resourceVersion": "7"}}, {"involvedObject": {"resourceVersion": "7"}}),
        (
            {"spec": {"clusterIP": "None", "clusterIPs": ["None"]}},
            {"spec": {"clusterIP": "None", "clusterIPs": ["None"]}},
        ),
        (
            {"clusterIP": "10.0.0.7", "m": "10.0.0.7 is taken"},
            {"clusterIP": "<address of step 3>", "m": "<address of step 3> is taken"},
        ),
        ({"ports": [{"nodePort": 30001}]}, {"ports": [{"nodePort": "<node port of step 3>"}]}),
        ({"rows": [{"cells": ["a", "12s", "1"]}]}, {"rows": [{"cells": ["a", "<age>", "1"]}]}),
    ],
)
def test_only_what_may_differ_is_taken_out(body: Any, told: Any) -> None:
    assert normalized(body) == told


def test_what_a_scenario_sends_is_not_taken_out() -> None:
    sent = {"uid": "11111111-2222-3333-4444-555555555555", "nodePort": 30001, "clusterIP": "10.0.0.7"}
    assert normalized(sent, repr(sent)) == sent


def test_an_older_version_differs_from_a_newer_one() -> None:
    normalizer = Normalizer(Bindings("abcde").names, "")
    versions = []
    for step, version in enumerate(("5", "9", "7", "5")):
        body = json.dumps({"metadata": {"resourceVersion": version}}).encode()
        versions.append(normalizer.body(step, body, "application/json")["metadata"]["resourceVersion"])
    assert versions == ["<rv of step 0>", "<rv of step 1>", "<rv of step 2, older than rv of step 1>", "<rv of step 0>"]


def test_headers_that_matter_are_compared() -> None:
    headers = CIMultiDictProxy(
        CIMultiDict([("date", "now"), ("Audit-Id", "x"), ("warning", "299 - a"), ("Warning", "299 - b"), ("Etag", "x")])
    )
    told = Normalizer(Bindings("abcde").names, "").head(200, headers.items())
    assert told == {"status": 200, "headers": {"Warning": ["299 - a", "299 - b"], "ETag": "<present>"}}


class Forgetful(TransportWrapper):
    """A server that stores no configuration of webhooks, although it says so."""

    async def send(self, request: HttpRequest, **options: Any) -> Response:
        if request.method == "POST" and "webhookconfigurations" in request.path:
            request = msgspec.structs.replace(request, query=(("dryRun", "All"),))
        return await super().send(request, **options)


async def test_a_stage_that_does_not_settle_fails_what_plays_alone(server, monkeypatch) -> None:
    """Otherwise a webhook of an earlier scenario would show as a difference of another one, or hide one."""
    monkeypatch.setattr("conformance.player.PATIENCE", 0.1)
    alone = scenario("alone", "Kinds", get(CM), alone=True)
    stage = Stage(Recording(), Server("forgetful", Forgetful(server.transport)))
    outcome = (await stage.outcomes([alone]))["alone"]
    assert isinstance(outcome, AssertionError)
    assert str(outcome).startswith("forgetful has not settled: until 418: POST /api/v1/namespaces/{ns}/configmaps")
