"""Answers that no Kubernetes API server gives: each is a typed error, in time, and nothing of it is left or shown.

Every test ends with the tasks and sockets it began with, and no error or log line shows a planted secret: see the
fixtures ``ports`` and ``refused``.
"""

import asyncio
import gzip
import socket

import pytest

from samples.raw_server import always, answer, config_map, cut, failure, head, list_of, open_files
from steersman import Client, ObjectMeta
from steersman.client import RetryPolicy
from steersman.errors import (
    ConnectionFailed,
    DeadlineExceeded,
    DecodeError,
    Expired,
    Forbidden,
    InternalError,
    KindNotServed,
    NotFound,
    OutcomeUnknown,
    ProtocolError,
    StatusError,
)
from steersman.kinds.core_v1 import ConfigMap, Secret

MARK = b"OPENSESAME"
CHUNKED = "Transfer-Encoding: chunked"


def secret():
    """What the tests write: if a part of a request shows up anywhere, it is this."""
    return Secret(metadata=ObjectMeta(name="a", namespace="default"), string_data={"key": MARK.decode()})


#: Answers that are HTTP, but no answers of this API.
STRANGE = {
    "nothing": answer(b""),
    "a login page": answer(b"<html><title>Log in</title>" + MARK + b"</html>"),
    "binary": answer(bytes(range(256)) + MARK),
    "an array": answer(b'["' + MARK + b'"]'),
    "null": answer(b"null"),
    "a number": answer(b"1e5"),
    "an empty object": answer(b"{}"),
    "half of an object": answer(b'{"kind":"ConfigMap","metadata":{"name":"' + MARK),
    "an object without metadata": answer({"kind": "ConfigMap", "apiVersion": "v1", "data": {"a": MARK.decode()}}),
    "metadata that are null": answer(config_map(metadata=None)),
    "an object of another kind": answer(config_map(kind="Pod", data={"a": MARK.decode()})),
    "a success without an object": answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}),
    "a hundred thousand levels": answer(b'{"metadata":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}"),
    "a hundred thousand levels of lists": answer(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b',"metadata":{}}'),
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "another protocol": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: spdy\r\nConnection: upgrade\r\n\r\n",
}

#: Bytes that are no HTTP.
GARBLED = {
    "another service": b"SSH-2.0-OpenSSH_9.6 " + MARK + b"\r\n",
    "a TLS alert": b"\x15\x03\x01\x00\x02\x02F",
    "an unknown version": b"HTTP/9.9 200 OK\r\n\r\n",
    "no code": b"HTTP/1.1 abc OK " + MARK + b"\r\n\r\n",
    "a negative length": head("200 OK", "Content-Length: -5") + MARK,
    "a length that is no number": head("200 OK", f"Content-Length: {MARK.decode()}") + b"{}",
    "two lengths": head("200 OK", "Content-Length: 2", "Content-Length: 7") + b"{}" + MARK,
    "a length and chunks": head("200 OK", CHUNKED, "Content-Length: 5") + b"2\r\n{}\r\n0\r\n\r\n",
    "chunks of no size": head("200 OK", CHUNKED) + MARK + b"\r\n{}\r\n0\r\n\r\n",
    "a negative chunk": head("200 OK", CHUNKED) + b"-5\r\n{}",
    "a chunk without bound": head("200 OK", CHUNKED) + b"f" * 20 + b"\r\n{}",
    "a huge header": head("200 OK", f"X: {MARK.decode() * 10_000}", length=2) + b"{}",
    "ten thousand headers": head("200 OK", *[f"X-{n}: {MARK.decode()}" for n in range(10_000)], length=2) + b"{}",
    "a huge first line": b"HTTP/1.1 200 " + MARK * 10_000,
    "more than it can hold": head(length=1 << 40) + MARK,
}

#: Connections that end too early.
CUT = {
    "no byte": b"",
    "a part of the head": b"HTTP/1.1 200 OK\r\nContent-",
    "a head only": head(length=100),
    "a part of the body": head(length=100) + b'{"kind":"ConfigMap",' + MARK,
    "a part of a chunk": head("200 OK", CHUNKED) + b"ff\r\n" + MARK,
    "no last chunk": head("200 OK", CHUNKED) + b"2\r\n{}\r\n",
    "an interim answer only": b"HTTP/1.1 100 Continue\r\n\r\n",
}


async def test_the_checks_find_what_they_look_for(serve, ports, refused):
    """A socket that stays open is seen, and so is a secret behind an error that looks clean."""
    server = await serve(always(answer(b"")))
    before = open_files(ports)
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    assert open_files(ports) - before
    writer.close()
    await writer.wait_closed()

    async def leak():
        try:
            int(MARK)
        except ValueError:
            raise ProtocolError("clean") from None

    with pytest.raises(AssertionError):
        await refused(ProtocolError, leak())
    with pytest.raises(pytest.fail.Exception, match="nothing happened"):
        await refused(ProtocolError, asyncio.Event().wait(), within=0.01)


READS = {
    "get": lambda client: client.get(ConfigMap, "a"),
    "list": lambda client: client.list(ConfigMap),
    "get metadata": lambda client: client.metadata.get(ConfigMap, "a"),
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("what", STRANGE)
async def test_a_strange_answer_to_a_read(serve, reach, refused, what, read):
    """Something else than the Kubernetes API answers: that is what the error says."""
    server = await serve(cut(STRANGE[what]))
    error = await refused(ProtocolError, READS[read](await reach(server)))
    assert str(error).startswith(f"{read.split()[0]} ConfigMap")


@pytest.mark.parametrize("what", STRANGE)
async def test_a_strange_answer_to_a_write(serve, reach, refused, what):
    """The code says success, the body says nothing: whether it happened is not known."""
    server = await serve(cut(STRANGE[what]))
    error = await refused(OutcomeUnknown, (await reach(server)).create(secret()))
    assert isinstance(error.__cause__, ProtocolError)
    assert len(server.requests) == 1


@pytest.mark.parametrize("what", ["nothing", "a login page", "an array", "half of an object"])
async def test_a_strange_answer_to_a_deletion(serve, reach, refused, what):
    """A login page is no confirmation that something was deleted."""
    client = await reach(await serve(always(STRANGE[what])))
    await refused(OutcomeUnknown, client.delete(ConfigMap, "a"))
    await refused(OutcomeUnknown, client.delete_collection(ConfigMap, namespace="default"))


@pytest.mark.parametrize("what", GARBLED)
async def test_what_is_no_http(serve, reach, refused, what):
    """The bytes that came are not shown: out of step, a connection carries bodies where heads should be."""
    client = await reach(await serve(cut(GARBLED[what])))
    await refused(ProtocolError, client.get(ConfigMap, "a"))
    await refused(ProtocolError, client.list(ConfigMap))
    await refused(OutcomeUnknown, client.create(secret()))


@pytest.mark.parametrize("what", CUT)
async def test_an_answer_that_is_cut_off(serve, reach, refused, what):
    client = await reach(await serve(cut(CUT[what])))
    await refused(ConnectionFailed, client.get(ConfigMap, "a"))
    await refused(ConnectionFailed, client.list(ConfigMap))
    await refused(OutcomeUnknown, client.create(secret()))


async def test_an_endless_head(serve, reach, refused):
    async def script(talk):
        await talk.request()
        await talk.say(b"HTTP/1.1 200 OK\r\n")
        while True:
            await talk.say(b"X-Padding: and so on\r\n" * 100)

    client = await reach(await serve(script))
    await refused(ProtocolError, client.get(ConfigMap, "a"))


async def test_a_body_shorter_than_it_is_does_not_spoil_the_next_answer(serve, reach, refused):
    """Bytes after the announced length belong to no answer, least of all to the next request's."""
    body = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"first","namespace":"default"}}'
    stray = answer(config_map("stray", data={"key": MARK.decode()}))
    good = answer(config_map("second"))
    client = await reach(await serve(always(head(length=len(body)) + body + stray, good)), retry=RetryPolicy())
    assert (await client.get(ConfigMap, "first")).metadata.name == "first"
    assert (await client.get(ConfigMap, "second")).metadata.name == "second"


async def test_a_failure_that_calls_itself_a_success(serve, reach, refused):
    """Some proxies turn every code into 200: the Status inside counts."""
    client = await reach(await serve(always(answer(failure(403, "Forbidden", "no way")))))
    await refused(Forbidden, client.get(ConfigMap, "a"))
    await refused(Forbidden, client.list(ConfigMap))
    await refused(Forbidden, client.create(secret()))
    await refused(Forbidden, client.delete(ConfigMap, "a"))


@pytest.mark.parametrize("code", [300, 301, 302, 304, 307, 308])
async def test_a_redirect_is_not_followed(serve, reach, refused, code):
    """A client that follows would send the token to a stranger; and the write certainly did not happen."""
    server = await serve(always(answer(b"", "Location: http://127.0.0.1:1/", status=f"{code} Elsewhere")))
    client = await reach(server)
    assert "redirects" in str(await refused(ProtocolError, client.get(ConfigMap, "a")))
    await refused(ProtocolError, client.create(secret()))
    assert len(server.requests) == 2


@pytest.mark.parametrize("body", [b"", b"<html>" + MARK, b"{", b"[]", b"\xff" + MARK, b"[" * 100_000])
@pytest.mark.parametrize(
    ("code", "kind"), [(403, Forbidden), (404, KindNotServed), (500, InternalError), (999, StatusError)]
)
async def test_a_refusal_without_a_status(serve, reach, refused, code, kind, body):
    """The code says what happened, even if the body says nothing."""
    client = await reach(await serve(always(answer(body, status=f"{code} Sorry"))))
    assert (await refused(kind, client.get(ConfigMap, "a"))).code == code
    assert (await refused((kind, NotFound), client.create(secret()))).code == code


@pytest.mark.parametrize("rest", [b"", b'{"kind":"Sta', MARK * 5])
async def test_a_refusal_whose_reason_is_cut_off(serve, reach, refused, rest):
    """A write that was refused did not happen, however little else is known."""
    server = await serve(cut(head("403 Forbidden", length=1000) + rest))
    client = await reach(server)
    await refused(Forbidden, client.get(ConfigMap, "a"))
    await refused(Forbidden, client.create(secret()))
    assert len(server.requests) == 2


@pytest.mark.parametrize("verb", ["get", "list", "watch"])
async def test_a_refusal_whose_reason_never_comes(serve, reach, refused, verb):
    async def script(talk):
        await talk.request()
        await talk.say(head("403 Forbidden", length=1000))
        await talk.listen()

    server = await serve(script)
    client = await reach(server, timeout=0.2)

    async def watch():
        async with client.watch(ConfigMap) as events:
            return [event async for event in events]

    work = {"get": lambda: client.get(ConfigMap, "a"), "list": lambda: client.list(ConfigMap), "watch": watch}[verb]
    await refused((Forbidden, DeadlineExceeded), work())
    async with asyncio.timeout(60):
        await server.hung_up.wait()


async def test_a_server_that_never_answers(serve, reach, refused):
    async def script(talk):
        await talk.request()
        await talk.listen()

    server = await serve(script)
    client = await reach(server, timeout=0.2)
    await refused(DeadlineExceeded, client.get(ConfigMap, "a"))
    async with asyncio.timeout(60):
        await server.hung_up.wait()
    await refused(OutcomeUnknown, client.create(secret()))
    await refused(DeadlineExceeded, client.watch(ConfigMap).__aenter__())


async def test_a_server_that_stops_in_the_middle_of_a_list(serve, reach, refused):
    async def script(talk):
        await talk.request()
        await talk.say(head("200 OK", CHUNKED), b'd\r\n{"metadata":{\r\n')
        await talk.listen()

    server = await serve(script)
    await refused(DeadlineExceeded, (await reach(server, timeout=0.2)).list(ConfigMap))
    async with asyncio.timeout(60):
        await server.hung_up.wait()


@pytest.mark.parametrize("whole", [answer(config_map()), head("200 OK", CHUNKED) + b"1\r\n{\r\n" * 1000])
async def test_a_server_that_drips(serve, reach, refused, whole):
    """A byte now and then keeps a connection alive, but not a request."""

    async def script(talk):
        await talk.request()
        for byte in whole:
            await talk.say(bytes([byte]))
            await asyncio.sleep(0.02)

    client = await reach(await serve(script), timeout=0.3)
    await refused(DeadlineExceeded, client.get(ConfigMap, "a"))
    await refused(OutcomeUnknown, client.create(secret()))


async def test_a_closed_port(reach, refused):
    """A refused connection is reported at once, and nothing was sent."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        client = await reach(f"http://127.0.0.1:{held.getsockname()[1]}")
        error = await refused(ConnectionFailed, client.get(ConfigMap, "a"), within=40)
        assert not error.sent
        error = await refused(ConnectionFailed, client.create(secret()), within=40)
        assert not error.sent
        assert "is it running?" in str(error)


async def test_a_patient_client_of_a_closed_port(reach, refused):
    """With the usual retries a read gives up within seconds."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        client = await reach(f"http://127.0.0.1:{held.getsockname()[1]}", retry=RetryPolicy())
        await refused(ConnectionFailed, client.get(ConfigMap, "a"), within=40)


async def test_the_server_hangs_up_before_it_reads(serve, reach, refused):
    async def script(talk):
        talk.writer.close()

    client = await reach(await serve(script))
    await refused(ConnectionFailed, client.get(ConfigMap, "a"))
    await refused(OutcomeUnknown, client.create(secret()))


async def test_the_server_resets_before_it_reads(serve, reach, refused):
    async def script(talk):
        talk.reset()

    client = await reach(await serve(script))
    await refused(ConnectionFailed, client.get(ConfigMap, "a"))
    await refused((ConnectionFailed, OutcomeUnknown), client.create(secret()))


async def test_an_unknown_encoding_is_no_hang(serve, reach, refused):
    client = await reach(await serve(cut(head("200 OK", "Content-Encoding: gzip", length=5) + b"abcde")))
    await refused((ConnectionFailed, ProtocolError), client.get(ConfigMap, "a"))


async def test_an_answer_that_is_packed_unasked(serve, reach):
    packed = gzip.compress(b'{"kind":"ConfigMap","metadata":{"name":"packed"}}')
    client = await reach(await serve(always(answer(packed, "Content-Encoding: gzip"))))
    assert (await client.get(ConfigMap, "a")).metadata.name == "packed"


async def test_text_that_is_no_utf8(serve, reach, refused):
    """One object cannot be decoded; nothing of it is shown."""
    broken = b'{"metadata":{"name":"a"},"type":"\xff' + MARK + b'"}'
    mismatched = b'{"metadata":{"name":5},"type":"\xff' + MARK + b'"}'
    for body in (broken, mismatched):
        client = await reach(await serve(always(answer(body))))
        await refused(DecodeError, client.get(Secret, "a"))
        await refused(DecodeError, client.create(secret()))


async def test_one_bad_item_does_not_spoil_a_list(serve, reach, caplog):
    items = [
        config_map("good"),
        config_map("text", data=MARK.decode()),
        config_map("nameless", metadata=None),
        {"metadata": {"name": "list", "namespace": "default", "labels": ["no", "map"]}},
        "no object",
        None,
        config_map("better"),
    ]
    client = await reach(await serve(always(answer(list_of(*items)))))
    listed = await client.list(ConfigMap)
    assert [item.metadata.name for item in listed] == ["good", "better"]
    keys = [failure.key.name for failure in listed.undecodable]
    assert keys == ["text", "", "list", "", ""]
    assert "default/text" in str(listed.undecodable[0].error)
    assert MARK.decode() not in f"{listed.undecodable}{[str(failure.error) for failure in listed.undecodable]}"
    with pytest.raises(DecodeError):
        _ = [item async for item in client.iterate(ConfigMap)]


async def test_one_unreadable_item_does_not_spoil_a_list(serve, reach):
    """Bytes that are no UTF-8 are an error of the item that holds them."""
    items = b'{"metadata":{"name":"good"}},{"metadata":{"name":"bad"},"data":{"key":"\xff"}}'
    body = b'{"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"items":[' + items + b"]}"
    listed = await (await reach(await serve(always(answer(body))))).list(ConfigMap)
    assert [item.metadata.name for item in listed] == ["good"]
    assert [failure.key.name for failure in listed.undecodable] == ["bad"]


async def test_pages_that_never_end(serve, reach, refused):
    """A server that leads in a circle is left."""
    page = answer(list_of(config_map(), **{"continue": "again"}))
    server = await serve(always(page))
    await refused(ProtocolError, (await reach(server)).list(ConfigMap))
    assert len(server.requests) == 2


async def test_pages_that_the_server_forgot_are_read_again_in_one(serve, reach):
    server = await serve(
        always(
            answer(list_of(config_map("a"), **{"continue": "next"})),
            answer(failure(410, "Expired", "too old"), status="410 Gone"),
            answer(list_of(config_map("a"), config_map("b"))),
        )
    )
    listed = await (await reach(server)).list(ConfigMap)
    assert [item.metadata.name for item in listed] == ["a", "b"]
    assert ["limit" in seen.target for seen in server.requests] == [True, True, False]


async def test_pages_that_are_always_forgotten(serve, reach, refused):
    server = await serve(always(answer(failure(410, "Expired", "too old"), status="410 Gone")))
    await refused(Expired, (await reach(server)).list(ConfigMap))
    assert len(server.requests) == 2


async def test_cancelling_a_request_closes_its_connection(serve, reach):
    arrived = asyncio.Event()

    async def script(talk):
        await talk.request()
        arrived.set()
        await talk.listen()

    server = await serve(script)
    client = await reach(server, timeout=60)
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        for work in (client.get(ConfigMap, "a"), client.create(secret())):
            arrived.clear()
            server.hung_up.clear()
            task = tasks.create_task(work)
            await arrived.wait()
            task.cancel()
            await server.hung_up.wait()
            with pytest.raises(asyncio.CancelledError):
                await task


async def test_closing_the_client_fails_what_is_under_way(serve, reach, refused):
    arrived = asyncio.Event()

    async def script(talk):
        await talk.request()
        arrived.set()
        await talk.listen()

    server = await serve(script)
    client = await reach(server, timeout=60)

    async def close_when_asked():
        await arrived.wait()
        await client.close()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(close_when_asked())
        await refused(ConnectionFailed, client.get(ConfigMap, "a"))
    await refused(ConnectionFailed, client.get(ConfigMap, "a"))


async def test_every_warning_is_surfaced(serve, reach):
    """One header for each unknown field: none is dropped."""
    seen = []
    headers = [f'Warning: 299 - "unknown field \\"spec.{name}\\""' for name in ("one", "two")]
    client = await reach(await serve(always(answer(config_map(), *headers))), on_warning=seen.append)
    await client.get(ConfigMap, "a")
    assert [warning.text for warning in seen] == ['unknown field "spec.one"', 'unknown field "spec.two"']


async def test_a_failing_listener_of_warnings_leaks_nothing(serve, reach):
    def on_warning(warning):
        raise RuntimeError(warning.text)

    server = await serve(always(answer(config_map(), 'Warning: 299 - "careful"')))
    with pytest.raises(RuntimeError, match="careful"):
        await (await reach(server, on_warning=on_warning)).get(ConfigMap, "a")


async def test_a_query_is_sent_as_it_was_written(serve, reach):
    server = await serve(always(answer(list_of())))
    await (await reach(server)).request("GET", "/api/v1/configmaps?labelSelector=a%3Db%2Cc&limit=5")
    assert server.requests[0].target == "/api/v1/configmaps?labelSelector=a%3Db%2Cc&limit=5"


async def test_a_client_shows_no_secret(serve, reach):
    client = await reach(await serve(always(answer(config_map()))))
    await client.get(ConfigMap, "a")
    assert isinstance(client, Client)
    assert MARK.decode() not in repr(client)
