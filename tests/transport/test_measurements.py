"""Requests that are counted, timed and traced, and are otherwise what they were."""

import asyncio

import pytest

from samples.spans import collected_spans
from steersman.errors import ConnectionFailed, DeadlineExceeded
from steersman.telemetry import Registry, expose, names, span
from steersman.transport import ServerResponse
from steersman.transport.measurements import MeasuredTransport
from steersman.wire import HttpRequest

HOST = "10.0.0.1:6443"
PATH = "/apis/apps/v1/namespaces/web/deployments/site"


class NotNow(Exception):
    pass


@pytest.fixture
def registry():
    return Registry()


@pytest.fixture
def measured(connect, registry):
    async def make(handler, **options):
        return MeasuredTransport(await connect(handler, **options), registry, f"https://{HOST}/prefix")

    return make


async def answer(request):
    return ServerResponse(status=404 if request.path == "/gone" else 200, body=request.body or b"nothing")


def values(registry, declared):
    return {labels: series.value for labels, series in registry.counter(declared).series().items()}


def observed(registry, declared):
    return {labels: (series.count, series.sum) for labels, series in registry.histogram(declared).series().items()}


async def test_requests_are_counted_by_status_method_and_host(measured, registry):
    transport = await measured(answer)
    for request in (HttpRequest("GET", PATH), HttpRequest("GET", "/gone"), HttpRequest("PUT", PATH, body=b"12345")):
        async with await transport.send(request) as response:
            assert await response.read() == (request.body or b"nothing")
    assert values(registry, names.CLIENT_REQUESTS) == {
        ("200", "GET", HOST): 1,
        ("404", "GET", HOST): 1,
        ("200", "PUT", HOST): 1,
    }
    assert observed(registry, names.CLIENT_REQUEST_SIZE) == {("PUT", HOST): (1, 5)}
    assert observed(registry, names.CLIENT_RESPONSE_SIZE) == {("GET", HOST): (2, 14), ("PUT", HOST): (1, 5)}
    assert {labels: count for labels, (count, _) in observed(registry, names.CLIENT_REQUEST_DURATION).items()} == {
        ("GET", HOST): 2,
        ("PUT", HOST): 1,
    }
    assert b'rest_client_requests_total{code="404",method="GET",host="10.0.0.1:6443"} 1.0' in expose(registry)[1]


async def test_an_answer_that_is_not_read_counts_once(measured, registry):
    transport = await measured(answer)
    response = await transport.send(HttpRequest("GET", PATH))
    await response.close()
    await response.close()
    assert [count for count, _ in observed(registry, names.CLIENT_REQUEST_DURATION).values()] == [1]
    assert observed(registry, names.CLIENT_RESPONSE_SIZE) == {}


async def test_a_stream_is_timed_to_its_head_and_lives_on(measured, registry):
    more = asyncio.Event()

    async def pieces():
        yield b"first"
        await more.wait()
        yield b"last"

    async def handler(request):
        return ServerResponse(status=200, body=pieces())

    transport = await measured(handler)
    async with await transport.send(HttpRequest("GET", PATH, (("watch", "true"),)), stream=True) as response:
        chunks = response.chunks(idle_timeout=30)
        assert await anext(chunks) == b"first"
        assert [
            (labels, count) for labels, (count, _) in observed(registry, names.CLIENT_REQUEST_DURATION).items()
        ] == [(("WATCH", HOST), 1)]
        more.set()
        assert await anext(chunks) == b"last"
    assert values(registry, names.CLIENT_REQUESTS) == {("200", "GET", HOST): 1}


async def test_a_body_read_in_pieces_ends_with_its_last_piece(measured, registry):
    transport = await measured(answer)
    async with await transport.send(HttpRequest("POST", PATH, body=b"x" * 100)) as response:
        assert b"".join([piece async for piece in response.chunks()]) == b"x" * 100
        assert observed(registry, names.CLIENT_RESPONSE_SIZE) == {("POST", HOST): (1, 100)}


async def test_what_fails_is_counted_and_raised_as_it_was(measured, registry):
    async def never(request):
        await asyncio.get_running_loop().create_future()

    transport = await measured(never)
    with pytest.raises(DeadlineExceeded):
        await transport.send(HttpRequest("GET", PATH), timeout=0.01)
    await transport.close()
    with pytest.raises(ConnectionFailed) as closed:
        await transport.send(HttpRequest("GET", PATH))
    assert closed.value.sent is False
    assert values(registry, names.CLIENT_REQUESTS) == {("<error>", "GET", HOST): 2}


async def test_the_last_check_before_sending_is_the_inner_transports(measured, registry):
    served = []

    async def handler(request):
        served.append(request.method)
        return ServerResponse(status=200)

    transport = await measured(handler)

    def refuse():
        raise NotNow

    with pytest.raises(NotNow):
        await transport.send(HttpRequest("PUT", PATH, body=b"{}"), before_send=refuse)
    assert served == []


async def test_a_request_is_a_span_inside_of_the_work_that_made_it(measured):
    seen = []

    async def handler(request):
        seen.append(request.header("traceparent"))
        return ServerResponse(status=409 if request.method == "PUT" else 200, body=b"{}")

    transport = await measured(handler)
    with collected_spans() as finished:
        with span("reconcile"):
            for request in (
                HttpRequest("GET", PATH, (("secret", "x"),)),
                HttpRequest("PUT", f"{PATH}/status", body=b"{}"),
            ):
                async with await transport.send(request) as response:
                    await response.read()
        get, put, reconcile = finished()
    async with await transport.send(HttpRequest("GET", PATH)) as response:
        await response.read()
    assert (get.name, put.name) == ("GET deployments", "PUT deployments/status")
    assert {get.parent.span_id, put.parent.span_id} == {reconcile.context.span_id}
    assert dict(get.attributes) == {
        "http.request.method": "GET",
        "server.address": HOST,
        "url.path": PATH,
        "k8s.resource": "deployments.apps",
        "k8s.namespace.name": "web",
        "k8s.object.name": "site",
        "http.response.status_code": 200,
    }
    assert get.kind.name == "CLIENT"
    assert put.attributes["http.response.status_code"] == 409
    assert not put.status.is_ok
    # The server can join its own spans; who is not traced sends nothing.
    assert seen[0].split("-")[1:3] == [f"{get.context.trace_id:032x}", f"{get.context.span_id:016x}"]
    assert seen[2] is None
