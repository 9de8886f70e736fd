"""Random bytes, and good answers with random damage: nothing but an `ApiError` ever comes out.

Each example talks to a real server on loopback. What is decoded in spite of the damage can be used: it has a key, it
can be shown, and written back it is what was read.
"""

import asyncio
import contextlib
import logging

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from samples.raw_server import answer, config_map, failure, head, list_of
from steersman import Key, Kind
from steersman.client.bindings import bind_kind
from steersman.client.results import Added, Bookmark, Deleted, ListOf, Modified
from steersman.errors import ApiError, DecodeError
from steersman.kinds.apps_v1 import Deployment
from steersman.objects import Unstructured, as_read, to_json

relaxed = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)

DEPLOYMENT = {
    "kind": "Deployment",
    "apiVersion": "apps/v1",
    "metadata": {
        "name": "web",
        "namespace": "default",
        "uid": "u",
        "resourceVersion": "5",
        "generation": 2,
        "creationTimestamp": "2026-01-31T12:00:00Z",
        "labels": {"app": "web"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Site", "name": "s", "uid": "u2", "controller": True}],
        "finalizers": ["a/b"],
        "managedFields": [
            {"manager": "m", "operation": "Update", "time": "2026-01-31T12:00:00Z", "fieldsV1": {"f:spec": {"f:a": {}}}}
        ],
    },
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [
                    {
                        "name": "c",
                        "image": "i",
                        "ports": [{"containerPort": 80, "protocol": "TCP"}],
                        "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}},
                        "newField": {"deep": [1, None, {"x": 1.5}]},
                    }
                ],
                "volumes": [{"name": "v", "emptyDir": {}}],
            },
        },
    },
    "status": {"conditions": [{"type": "Available", "status": "True", "lastUpdateTime": "2026-01-31T12:00:00Z"}]},
}


def deployments(*items):
    """A list of Deployments as a server sends it."""
    return list_of(*items) | {"kind": "DeploymentList", "apiVersion": "apps/v1"}


UNTYPED = Kind("apps/v1", "Deployment")


async def watched(client, kind):
    async with client.watch(kind, idle_timeout=3) as watch:
        return [event async for event in watch]


VERBS = {
    "get": lambda client: client.get(Deployment, "web"),
    "get untyped": lambda client: client.get(UNTYPED, "web"),
    "get metadata": lambda client: client.metadata.get(Deployment, "web"),
    "list": lambda client: client.list(Deployment),
    "list untyped": lambda client: client.list(UNTYPED),
    "watch": lambda client: watched(client, Deployment),
    "watch untyped": lambda client: watched(client, UNTYPED),
    "delete": lambda client: client.delete(Deployment, "web"),
}
reads = st.sampled_from(sorted(set(VERBS) - {"delete"}))


@pytest.fixture
async def asked(serve, reach, caplog):
    """Ask for what a server answers with the given bytes: ``await asked(data, verb)``; None if it was an error."""
    caplog.set_level(logging.ERROR)  # hundreds of examples would fill the log
    said = b""

    async def script(talk):
        await talk.request()
        await talk.say(said)

    client = await reach(await serve(script))
    client.pipeline.kinds._bindings[UNTYPED] = bind_kind(UNTYPED, "deployments", namespaced=True)

    async def ask(data, verb):
        nonlocal said
        said = data
        try:
            async with asyncio.timeout(60):
                return await VERBS[verb](client)
        except ApiError as error:
            return str(error) and None

    return ask


def objects_in(result):
    """The objects of an answer, of whichever verb."""
    if isinstance(result, ListOf):
        return result.items
    if isinstance(result, list):
        return [event.object for event in result if isinstance(event, (Added, Modified, Deleted))]
    return [] if result is None else [result]


def check_usable(result):
    """What was decoded can be shown, has a key, and is written back as it was read."""
    for obj in objects_in(result):
        assert repr(obj)
        assert isinstance(obj.key, Key)
        if not isinstance(obj, Unstructured):
            # bytes that are no UTF-8 may lie in a field that no type knows: those cannot be written, and that is said
            with contextlib.suppress(DecodeError):
                assert to_json(obj) == as_read(obj)


@relaxed
@given(data=st.binary(max_size=300), verb=st.sampled_from(sorted(VERBS)))
async def test_random_bytes(asked, data, verb):
    check_usable(await asked(data, verb))


@relaxed
@given(data=st.binary(max_size=300), code=st.integers(100, 999), verb=st.sampled_from(sorted(VERBS)))
async def test_random_bytes_after_a_good_first_line(asked, data, code, verb):
    check_usable(await asked(b"HTTP/1.1 %d X\r\n" % code + data, verb))


@relaxed
@given(
    data=st.binary(max_size=300), code=st.sampled_from([200, 201, 302, 400, 401, 404, 409, 429, 500, 503]), verb=reads
)
async def test_random_bodies(asked, data, code, verb):
    check_usable(await asked(answer(data, status=f"{code} X"), verb))


def watch_answer(*events):
    frames = b"".join(msgspec.json.encode({"type": kind, "object": obj}) + b"\n" for kind, obj in events)
    return head("200 OK", length=len(frames)) + frames


GOOD = {
    "get": answer(DEPLOYMENT),
    "get untyped": answer(DEPLOYMENT),
    "get metadata": answer(DEPLOYMENT | {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}),
    "list": answer(deployments(DEPLOYMENT, DEPLOYMENT)),
    "list untyped": answer(deployments(DEPLOYMENT, DEPLOYMENT)),
    "watch": watch_answer(("ADDED", DEPLOYMENT), ("BOOKMARK", DEPLOYMENT), ("DELETED", DEPLOYMENT)),
    "watch untyped": watch_answer(("ADDED", DEPLOYMENT), ("ERROR", failure(410, "Expired", "old"))),
    "delete": answer(failure(409, "Conflict", "no", causes=[{"reason": "a", "field": "b"}]), status="409 Conflict"),
}


@st.composite
def damaged(draw):
    """A good answer with some pieces of it replaced, removed, repeated or moved."""
    verb = draw(st.sampled_from(sorted(GOOD)))
    data = GOOD[verb]
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 40)))
        piece = draw(
            st.one_of(
                st.binary(max_size=20),
                st.sampled_from(
                    [b"", data[start:end] * 2, b"null", b"{", b"]", b'"', b"\n", b"\r\n\r\n", b"-1", b"1e999"]
                ),
            )
        )
        data = data[:start] + piece + data[end:]
    return verb, data


@relaxed
@given(case=damaged())
async def test_damaged_answers(asked, case):
    verb, data = case
    check_usable(await asked(data, verb))


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from([2**63, -(2**63) - 1, 10**40, "2026-01-31T12:00:00Z", "10Gi", "\x7forigin", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def places(tree, path=()):
    """Every place inside a tree."""
    yield path
    children = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for name, child in children:
        yield from places(child, (*path, name))


def altered(tree, path, value):
    """The tree with another value in one place."""
    if not path:
        return value
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    copy[path[0]] = altered(tree[path[0]], path[1:], value)
    return copy


PLACES = list(places(DEPLOYMENT))


@st.composite
def altered_objects(draw):
    """An object that says something else than its type expects, anywhere."""
    tree = DEPLOYMENT
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(PLACES))
        value = draw(anything)
        try:
            tree = altered(tree, path, value)
        except (LookupError, TypeError):
            continue  # an earlier change removed the place
    return tree


@relaxed
@given(
    obj=altered_objects(),
    verb=st.sampled_from(["get", "get untyped", "list", "list untyped", "watch", "watch untyped"]),
)
async def test_objects_that_say_something_else(asked, obj, verb):
    """One object is never more than one failure, and what is accepted is kept as it is."""
    whole = {
        "get": lambda: answer(obj),
        "list": lambda: answer(deployments(DEPLOYMENT, obj, DEPLOYMENT)),
        "watch": lambda: watch_answer(("ADDED", DEPLOYMENT), ("MODIFIED", obj), ("DELETED", DEPLOYMENT)),
    }
    result = await asked(whole[verb.partition(" ")[0]](), verb)
    check_usable(result)
    if verb.startswith("list"):
        assert len(result.items) + len(result.undecodable) == 3
        assert len(result.items) >= 2
    if verb.startswith("watch"):
        assert [type(event) for event in result[::2]] == [Added, Deleted]


@pytest.mark.parametrize("field", ["name", "namespace", "uid", "resourceVersion"])
async def test_an_untyped_object_with_a_number_for_an_identity_is_one_failure(asked, field):
    strange = altered(DEPLOYMENT, ("metadata", field), 1)
    listed = await asked(answer(deployments(DEPLOYMENT, strange, DEPLOYMENT)), "list untyped")
    assert len(listed.items) == 2
    assert f"metadata.{field} must be a string (got 1)" in str(listed.undecodable[0].error)
    assert await asked(answer(strange), "get untyped") is None


@relaxed
@given(mark=anything)
async def test_bookmarks_that_say_something_else(asked, mark):
    for obj in (
        mark,
        {"metadata": mark},
        {"metadata": {"resourceVersion": mark}},
        {"metadata": {"resourceVersion": "1", "annotations": mark}},
    ):
        result = await asked(watch_answer(("BOOKMARK", obj)), "watch")
        assert result is None or isinstance(result[0], Bookmark)


@relaxed
@given(status=anything, code=st.sampled_from([400, 401, 403, 404, 409, 410, 422, 429, 500, 503, 504]))
async def test_failures_that_say_something_else(asked, status, code):
    good = failure(
        code, "Conflict", "no", name="a", causes=[{"reason": "a", "message": "b", "field": "c"}], retryAfterSeconds=0
    )
    for field in (*good, "details"):
        assert await asked(answer(good | {field: status}, status=f"{code} X"), "get") is None
    for field in good["details"]:
        strange = good | {"details": good["details"] | {field: status}}
        assert await asked(answer(strange, status=f"{code} X"), "delete") is None


@pytest.fixture
async def described(serve, reach):
    """Look for a kind on a server that describes its resources so: ``await described(resources)``."""
    listing = {}

    async def script(talk):
        while True:
            seen = await talk.request()
            await talk.say(answer(config_map(kind="Thing") if seen.target.endswith("/a") else listing))

    server = await serve(script)

    async def find(resources, **others):
        listing.update({"kind": "APIResourceList", "groupVersion": "v1", "resources": resources} | others)
        client = await reach(server)
        with contextlib.suppress(ApiError):
            assert (await client.get(Kind("v1", "Thing"), "a")).kind == "Thing"
        await client.close()

    return find


@relaxed
@given(value=anything)
async def test_discovery_that_says_something_else(described, value):
    """A kind is found, or it is a typed error."""
    good = {"name": "things", "kind": "Thing", "namespaced": True, "verbs": ["get"], "singularName": "thing"}
    for field in good:
        await described([good | {field: value}])
    await described([value, good])
    await described(value)
    await described([good], groupVersion=value)
