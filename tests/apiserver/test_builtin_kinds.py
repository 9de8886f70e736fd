"""Built-in kinds behave as on the engine: what is filled in, what is refused in which words, what may change, and what tables show.

The bodies, changes and rows in ``data`` are played against both servers; every answer must be the same.
"""

import asyncio
import json
import re
from pathlib import Path

import pytest
from conformance.servers import engine_server

from samples.embedded import TABLE, Raw
from steersman.aio import name_suffix
from steersman.apiserver import ApiServer
from steersman.kinds import resources_of
from steersman.objects import GroupVersion
from steersman.wire import HttpRequest, parse_query

DATA = Path(__file__).parent / "data"
AT_ONCE = 16
UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
OWN = ("uid", "creationTimestamp", "managedFields", "resourceVersion", "selfLink")


def lines(name):
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


def kind_of(body):
    return f"{body['apiVersion']} {body['kind']}"


BODIES = lines("bodies.jsonl")
CHANGES = lines("changes.jsonl")
ROWS = lines("rows.jsonl")


def path_of(body):
    group, _, version = body["apiVersion"].rpartition("/")
    for resource in resources_of(GroupVersion(group, version)):
        if resource["kind"] == body["kind"] and "/" not in resource["name"]:
            namespace = body["metadata"].get("namespace", "default")
            scope = f"/namespaces/{namespace}" if resource["namespaced"] else ""
            return f"/{'apis' if group else 'api'}/{body['apiVersion']}{scope}/{resource['name']}"
    raise LookupError(kind_of(body))


class Engine:
    """Requests to the engine, answered as those to the embedded server are."""

    def __init__(self, transport):
        self._transport = transport

    async def send(self, method, path, body=None, accept="application/json"):
        path, _, query = path.partition("?")
        headers = (("Accept", accept), ("Content-Type", "application/json"))
        raw = None if body is None else json.dumps(body).encode()
        request = HttpRequest(method=method, path=path, query=parse_query(query), headers=headers, body=raw)
        async with await self._transport.send(request) as response:
            return (200 if response.status == 201 else response.status), json.loads(await response.read())


class Embedded:
    """Requests to the embedded server."""

    def __init__(self, handler):
        self._raw = Raw(handler)

    async def send(self, method, path, body=None, accept="application/json"):
        answer = await self._raw.send(method, path, body, accept=accept)
        return (200 if answer.code == 201 else answer.code), answer.body


@pytest.fixture
async def theirs(engine):
    async with engine_server(engine) as server:
        yield Engine(server.transport)


@pytest.fixture
async def ours():
    async with ApiServer() as server:
        yield Embedded(server.handler)


def given_out(spec):
    """Names for addresses and ports that either server chooses."""
    if spec.get("clusterIP", "").startswith("10.0.0."):
        spec["clusterIP"] = "address"
        spec["clusterIPs"] = ["address"]
    names = {}
    for port in spec.get("ports") or ():
        if "nodePort" in port:
            port["nodePort"] = names.setdefault(port["nodePort"], f"port-{len(names)}")
    if "healthCheckNodePort" in spec:
        spec["healthCheckNodePort"] = "health"


def without_chance(text):
    """A refusal without the uids and addresses that either server chose."""
    return re.sub(r"10\.0\.0\.\d+", "address", UID.sub("uid", text))


def compared(code, answer):
    """An answer without what differs between any two requests."""
    if code != 200:
        causes = json.loads(without_chance(json.dumps(answer["details"].get("causes"))))
        return code, answer["reason"], without_chance(answer["message"].partition(" is invalid: ")[2]), causes
    plain = json.loads(UID.sub("uid", json.dumps(answer)))
    for field in OWN:
        plain["metadata"].pop(field, None)
    for condition in (plain.get("status") or {}).get("conditions") or ():
        condition.pop("lastTransitionTime", None)
    if plain["kind"] == "Service":
        given_out(plain["spec"])
    return code, plain


async def both(theirs, ours, method, path, body):
    engine, embedded = await theirs.send(method, path, body), await ours.send(method, path, body)
    return compared(*engine), compared(*embedded)


@pytest.mark.parametrize("kind", sorted({kind_of(body) for body in BODIES}))
async def test_a_new_object_is_filled_in_or_refused_as_on_the_engine(kind, theirs, ours):
    turns = asyncio.Semaphore(AT_ONCE)

    async def play(body):
        async with turns:
            return await both(theirs, ours, "POST", f"{path_of(body)}?dryRun=All", body)

    bodies = [body for body in BODIES if kind_of(body) == kind]
    answers = await asyncio.gather(*map(play, bodies))
    for body, (engine, embedded) in zip(bodies, answers, strict=True):
        assert embedded == engine, json.dumps(body)


def changed(obj, part, change):
    new = json.loads(json.dumps(obj))
    new["metadata"].pop("managedFields", None)
    if part == "top":
        return new | change
    target = new if part in {"spec", "status"} else new["metadata"]
    target[part] = target.get(part, {}) | change
    return new


@pytest.mark.parametrize("kind", sorted({kind_of(body) for body, _ in CHANGES}))
async def test_a_change_is_taken_or_refused_as_on_the_engine(kind, theirs, ours):
    for number, (body, changes) in enumerate(CHANGES):
        if kind_of(body) == kind:
            await play_changes(f"change-{number}-{name_suffix()}", body, changes, (theirs, ours))


async def play_changes(name, body, changes, servers):
    body = body | {"metadata": body["metadata"] | {"name": name}}
    path = f"{path_of(body)}/{name}"
    stored = []
    for server in servers:
        code, obj = await server.send("POST", path_of(body), body)
        assert code == 200, obj
        stored.append(obj)
    for part, change in changes:
        target = f"{path}{'/status' if part == 'status' else ''}?dryRun=All"
        engine, embedded = [
            compared(*await server.send("PUT", target, changed(obj, part, change)))
            for server, obj in zip(servers, stored, strict=True)
        ]
        assert embedded == engine, (part, change)
    await remove(servers[0], path)


async def remove(server, path):
    options = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
    await server.send("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1"} | options)


@pytest.mark.parametrize("kind", sorted({kind_of(body) for body, _ in ROWS}))
async def test_a_table_shows_what_it_shows_on_the_engine(kind, theirs, ours):
    for number, (body, status) in enumerate(ROWS):
        if kind_of(body) != kind:
            continue
        name = f"row-{number}-{name_suffix()}"
        named = body | {"metadata": body["metadata"] | {"name": name}}
        path = f"{path_of(body)}/{name}"
        engine, embedded = [await table_of(server, path, named, status) for server in (theirs, ours)]
        assert embedded["columnDefinitions"] == engine["columnDefinitions"]
        assert cells(embedded) == cells(engine)
        await remove(theirs, path)


async def table_of(server, path, body, status):
    code, obj = await server.send("POST", path_of(body), body)
    assert code == 200, obj
    if status is not None:
        obj["status"] = obj.get("status", {}) | status
        code, obj = await server.send("PUT", f"{path}/status", obj)
        assert code == 200, obj
    return (await server.send("GET", path, accept=TABLE))[1]


def cells(table):
    """The cells of the only row; ages of a few seconds, addresses, ports and moments are whatever they are."""
    shown = []
    for column, cell in zip(table["columnDefinitions"], table["rows"][0]["cells"], strict=True):
        text = re.sub(r"^10\.0\.0\.\d+$", "address", UID.sub("uid", str(cell)))
        text = re.sub(r":3\d{4}/", ":port/", text)
        young = column["name"] in {"Age", "Created At", "Duration", "Last Seen", "First Seen"} and not re.search(
            "[dy]", text
        )
        shown.append("now" if young and "<" not in text else text)
    return shown
