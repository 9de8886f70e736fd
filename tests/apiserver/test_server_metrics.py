"""The server's metrics have kube-apiserver's names, labels and kinds: dashboards and alerts work on both."""

import asyncio
import re
import ssl

import aiohttp
import pytest

from samples.embedded import Raw
from samples.eventually import eventually
from steersman.apiserver import ApiServer
from steersman.apiserver.discovery.metrics import nominal_seats
from steersman.wire import HttpRequest

CMS = "/api/v1/namespaces/default/configmaps"
_SERIES = re.compile(r"(\w+?)(?:_bucket|_sum|_count)?\{(.*?)\} ")


@pytest.fixture
async def server():
    async with ApiServer(kinds=["v1", "apps/v1"]) as server:
        yield server


@pytest.fixture
def raw(server):
    return Raw(server.handler)


async def read(raw):
    answer = await raw.get("/metrics")
    assert answer.code == 200
    return answer.text.decode()


def value(text, name, **labels):
    """The value of one series."""
    for line in text.splitlines():
        if line.startswith(f"{name}{{") and all(f'{label}="{said}"' in line for label, said in labels.items()):
            return float(line.rpartition(" ")[2])
    return None


async def test_requests_are_counted_by_what_they_did(raw):
    await raw.post(CMS, {"metadata": {"name": "a"}})
    await raw.post(CMS, {"metadata": {"name": "a"}})
    await raw.post(f"{CMS}?dryRun=All", {"metadata": {"name": "b"}})
    await raw.get(f"{CMS}/a")
    await raw.get(CMS)
    await raw.get("/api/v1/configmaps")
    await raw.get("/livez")
    text = await read(raw)

    def count(**labels):
        return value(text, "apiserver_request_total", **labels)

    assert count(verb="POST", resource="configmaps", scope="resource", code="201", dry_run="") == 1
    assert count(verb="POST", resource="configmaps", scope="resource", code="409") == 1
    assert count(verb="POST", resource="configmaps", dry_run="All", code="201") == 1
    assert count(verb="GET", resource="configmaps", scope="resource", code="200") == 1
    assert count(verb="LIST", resource="configmaps", scope="namespace", code="200") == 1
    assert count(verb="LIST", resource="configmaps", scope="cluster", code="200") == 1
    assert count(verb="GET", subresource="/livez", code="200") == 1
    assert value(text, "apiserver_request_duration_seconds_count", verb="GET", resource="configmaps") == 1
    step = "apiserver_admission_step_admission_duration_seconds_count"
    assert value(text, step, type="admit", operation="CREATE", rejected="false") >= 3
    assert value(text, "apiserver_resource_objects", group="", resource="configmaps") == 1
    assert value(text, "apiserver_resource_objects", group="apps", resource="deployments") == 0
    assert value(text, "apiserver_current_inflight_requests", request_kind="readOnly") == 1
    assert value(text, "apiserver_current_inflight_requests", request_kind="mutating") == 0


async def test_clients_cannot_add_series(raw):
    """A client that asks for made-up resources must not fill the memory of the server."""
    for number in range(5):
        await raw.get(f"/api/v1/things{number}")
        await raw.get(f"{CMS}/a/part{number}")
        await raw.get(f"/path{number}")
    text = await read(raw)
    assert not re.search(r"things\d|part\d|path\d", text)


async def test_watches_are_counted_while_they_run(server, raw):
    version = (await raw.get(CMS)).body["metadata"]["resourceVersion"]
    query = (("watch", "true"), ("resourceVersion", version))
    answer = await server.handle(HttpRequest("GET", CMS, query))
    stream = aiter(answer.body)
    await raw.post(CMS, {"metadata": {"name": "a"}})
    async with asyncio.timeout(30):
        await anext(stream)
    text = await read(raw)
    assert value(text, "apiserver_watch_events_total", resource="configmaps") == 1
    assert value(text, "apiserver_longrunning_requests", verb="WATCH", resource="configmaps") == 1
    await stream.aclose()
    assert value(await read(raw), "apiserver_longrunning_requests", verb="WATCH", resource="configmaps") == 0


def families(text):
    """Kind and help of each metric."""
    found = {}
    for line in text.splitlines():
        if line.startswith(("# HELP", "# TYPE")):
            _, word, name, rest = line.split(" ", 3)
            found.setdefault(name, {})[word] = re.sub(r"^\[\w+\] (\(Deprecated since [\d.]+\) )?", "", rest)
    return found


def labels(text):
    """The labels of each metric."""
    return {
        found[1]: {part.partition("=")[0] for part in re.findall(r'\w+="', found[2])} - {"le"}
        for found in _SERIES.finditer(text)
    }


async def test_names_labels_and_kinds_are_the_engines(engine, raw):
    trust = ssl.create_default_context(cafile=str(engine.ca_file))
    trust.load_cert_chain(engine.admin_cert_file, engine.admin_key_file)
    async with (
        aiohttp.ClientSession(engine.url, connector=aiohttp.TCPConnector(ssl=trust)) as session,
        session.get("/metrics") as answer,
    ):
        theirs = await answer.text()
    await raw.get(CMS)
    ours = await read(raw)
    told, known = families(ours), families(theirs)
    assert {name: known.get(name) for name in told} == told
    known_labels = labels(theirs)
    assert {name: known_labels[name] for name in labels(ours) if name in known_labels} == {
        name: found for name, found in labels(ours).items() if name in known_labels
    }


LEVELS = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"


def seats(text):
    """The seats by priority level."""
    found = re.findall(
        r'^apiserver_flowcontrol_nominal_limit_seats\{priority_level="(.*?)"\} (.*)$', text, re.MULTILINE
    )
    return {level: float(count) for level, count in found}


async def test_priority_levels_share_the_seats():
    """Programs that wait until a priority level is in use would wait forever without its seats."""
    async with ApiServer() as server:
        raw = Raw(server.handler)
        before = seats(await read(raw))
        limited = {"nominalConcurrencyShares": 55, "limitResponse": {"type": "Reject"}}
        level = {"metadata": {"name": "mine"}, "spec": {"type": "Limited", "limited": limited}}
        assert (await raw.post(LEVELS, level)).code == 201
        after = seats(await read(raw))
        assert (await raw.delete(f"{LEVELS}/mine")).code == 200
        assert seats(await read(raw)) == before
    assert before == {
        "catch-all": 13,
        "exempt": 0,
        "global-default": 49,
        "leader-election": 25,
        "node-high": 98,
        "system": 74,
        "workload-high": 98,
        "workload-low": 245,
    }
    assert (after["mine"], after["workload-low"]) == (110, 200)


async def test_the_engine_divides_its_seats_alike(engine):
    trust = ssl.create_default_context(cafile=str(engine.ca_file))
    trust.load_cert_chain(engine.admin_cert_file, engine.admin_key_file)
    async with (
        aiohttp.ClientSession(engine.url, connector=aiohttp.TCPConnector(ssl=trust)) as session,
        session.get(LEVELS) as listed,
        session.get("/metrics") as answer,
    ):
        levels = (await listed.json())["items"]
        theirs = seats(await answer.text())
    shares = {
        each["metadata"]["name"]: (each["spec"].get("limited") or each["spec"]["exempt"])["nominalConcurrencyShares"]
        for each in levels
    }
    ours = nominal_seats(shares)
    assert {name: theirs.get(name) for name in ours} == ours


async def test_any_number_of_priority_levels_is_bounded_in_the_response():
    """A client that creates many levels would make every response longer, and other clients wait for it."""
    async with ApiServer() as server:
        raw = Raw(server.handler)
        stored, _ = await server.storage.get("flowcontrol.apiserver.k8s.io/prioritylevelconfigurations/system")
        for number in range(1_500):
            name = f"level{number:04}"
            value = stored.value.replace(b'"name":"system"', b'"name":"%s"' % name.encode())
            await server.storage.put(stored.key.replace("system", name), value, expect=0)
        shown = seats(await read(raw))
    assert len(shown) == 1_000
    # catch-all, exempt and global-default, leader-election, then these
    assert {"catch-all", "level0000", "level0995"} < set(shown)
    assert set(shown.values()) <= {0.0, 1.0, 2.0}


async def test_a_deleted_definition_takes_its_number_of_objects_along():
    """A dashboard would show the objects of a resource that no client can list any more."""
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}
    async with ApiServer() as server:
        raw = Raw(server.handler)
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        assert (await raw.post(crds, {"metadata": {"name": "things.example.com"}, "spec": spec})).code == 201
        await eventually(lambda: server.registry.find("example.com", "v1", "things"))
        text = await read(raw)
        assert value(text, "apiserver_resource_objects", group="example.com", resource="things") == 0
        assert (await raw.delete(f"{crds}/things.example.com")).code == 200
        await eventually(lambda: server.registry.find("example.com", "v1", "things") is None)
        text = await read(raw)
    assert value(text, "apiserver_resource_objects", group="example.com", resource="things") is None
    assert value(text, "apiserver_resource_objects", group="", resource="configmaps") is not None
