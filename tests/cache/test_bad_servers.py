"""Servers that misbehave, in virtual time: an informer heals by itself and is never a burden."""

import asyncio
import json
import logging
from itertools import count

import pytest

from samples.virtual_time import run_virtual
from steersman import Client, MergePatch
from steersman.cache import Cache, Informer, KindOptions
from steersman.controller.cached_kinds import CachedKinds
from steersman.controller.writes.write_log import WriteLog
from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import Key, Kind
from steersman.transport import InProcessTransport, ServerResponse

JSON = (("Content-Type", "application/json"),)
UNTYPED = Kind("v1", "ConfigMap")


def status(code, reason, **details):
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return json.dumps(body | {"message": f"planned {reason}", "details": details}).encode()


def config_map(name, version):
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}


def frame(type_, obj):
    return json.dumps({"type": type_, "object": obj}).encode() + b"\n"


def bookmark(version, *, end=False):
    metadata = {"resourceVersion": str(version)}
    if end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return frame("BOOKMARK", {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata})


def page(version, *names, continue_=""):
    metadata = {"resourceVersion": str(version)} | ({"continue": continue_} if continue_ else {})
    items = [config_map(name, version) for name in names]
    return json.dumps({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": items}).encode()


class Server:
    """Answers through a function of the query; keeps what was asked and when."""

    def __init__(self, answer):
        self._answer = answer
        self.asked = []

    async def __call__(self, request):
        query = dict(request.query)
        self.asked.append((asyncio.get_running_loop().time(), query))
        answer = self._answer(query)
        if isinstance(answer, tuple):
            code, body = answer
            return ServerResponse(status=code, headers=JSON, body=body)
        return ServerResponse(status=200, headers=JSON, body=answer)

    @property
    def queries(self):
        return [query for _, query in self.asked]


def is_initial(query):
    return query.get("sendInitialEvents") == "true"


def is_watch(query):
    return query.get("watch") == "true"


async def saying(*pieces, then=None):
    """A stream: bytes are said, numbers are waited for; at the end it stays open unless told otherwise."""
    for piece in pieces:
        if isinstance(piece, bytes):
            yield piece
        else:
            await asyncio.sleep(piece)
    if then is None:
        await asyncio.Event().wait()
    if then == "break":
        raise RuntimeError("the connection breaks")


def run(answer, scenario, *, seed=1, options=None):
    """Let an informer meet a server and a scenario."""
    server = Server(answer)

    async def meet():
        client = Client(InProcessTransport(server), field_manager="tests")
        async with client, Informer(client, ConfigMap, options=options or KindOptions()) as informer:
            return await scenario(informer)

    return server, run_virtual(meet(), seed=seed)[0]


def names(informer):
    return sorted(stored.key.name for stored in informer.store)


async def half_a_minute(informer):
    await asyncio.sleep(30)


def always(code, reason, **details):
    return lambda query: (code, status(code, reason, **details))


def expired_in_stream(query):
    if is_watch(query):
        return saying(frame("ERROR", json.loads(status(410, "Expired"))), then="end")
    return 200, page(5, "a")


def dropped_at_once(query):
    return saying(then="end") if is_watch(query) else (200, page(5, "a"))


def dropped_after_a_bit(query):
    if is_initial(query):
        return saying(bookmark(5, end=True), then="end")
    return saying(bookmark(6), 0.5, then="end") if is_watch(query) else (200, page(5, "a"))


def broken_off(query):
    return saying(b'{"type":"ADD', then="break") if is_watch(query) else (200, page(5, "a"))


def no_initial_events_and_expired(query):
    """Refuses to stream the list, and every watch has expired."""
    if is_initial(query):
        return 422, status(422, "Invalid")
    return (410, status(410, "Expired")) if is_watch(query) else (200, page(5, "a"))


def garbage(query):
    return 200, b"<html>log in</html>"


HOPELESS = {
    "410": always(410, "Expired"),
    "410 in the stream": expired_in_stream,
    "410 at the start of every watch": no_initial_events_and_expired,
    "500": always(500, "InternalError"),
    "503": always(503, "ServiceUnavailable"),
    "429": always(429, "TooManyRequests"),
    "403": always(403, "Forbidden"),
    "404": always(404, "NotFound"),
    "streams that end at once": dropped_at_once,
    "streams that end soon": dropped_after_a_bit,
    "streams that break": broken_off,
    "no API server": garbage,
}


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("answer", HOPELESS.values(), ids=HOPELESS)
def test_a_hopeless_server_is_asked_fewer_than_twenty_times_in_half_a_minute(answer, seed, caplog):
    caplog.set_level(logging.CRITICAL)
    server, _ = run(answer, half_a_minute, seed=seed)
    assert 3 <= len(server.asked) < 20


@pytest.mark.parametrize("answer", HOPELESS.values(), ids=HOPELESS)
def test_a_hopeless_server_is_still_asked_after_hours(answer, caplog):
    caplog.set_level(logging.CRITICAL)

    async def hours(informer):
        await asyncio.sleep(3 * 3600)

    server, _ = run(answer, hours)
    times = [moment for moment, _ in server.asked]
    assert times[-1] > 3 * 3600 - 61
    assert len(times) < 3 * 3600 / 2


@pytest.mark.parametrize("early", [True, False])
def test_a_stream_that_the_server_ends_is_resumed_where_it_stopped(early):
    """Before its time, the server is asked for its version first: it may have stopped to be restored from a backup."""

    def answer(query):
        if is_initial(query):
            lasts = 60.0 if early else float(query["timeoutSeconds"]) - 1.0
            marks = [piece for _ in range(int(lasts // 60)) for piece in (60, bookmark(9))]
            return saying(frame("ADDED", config_map("a", 4)), bookmark(5, end=True), *marks, lasts % 60, then="end")
        return saying(frame("MODIFIED", config_map("a", 12))) if is_watch(query) else (200, page(12))

    async def scenario(informer):
        await informer.wait_reached("12")
        return informer.store.list()[0].resource_version, asyncio.get_running_loop().time()

    server, (version, moment) = run(answer, scenario)
    assert version == "12"
    assert [is_watch(query) for query in server.queries] == ([True, False, True] if early else [True, True])
    assert server.queries[-1]["resourceVersion"] == "9"
    assert moment == pytest.approx(60 if early else float(server.queries[0]["timeoutSeconds"]) - 1, abs=0.5)


def test_an_expired_version_makes_the_collection_be_read_again_at_once(heard):
    expiry = frame("ERROR", json.loads(status(410, "Expired")))
    streams = iter(
        [
            (frame("ADDED", config_map("a", 3)), frame("ADDED", config_map("b", 4)), bookmark(5, end=True), 30, expiry),
            (frame("ADDED", config_map("b", 4)), bookmark(50, end=True)),
        ]
    )

    async def scenario(informer):
        informer.add_handler(heard)
        await heard.until(lambda each: each.type == "vanished", within=3600)
        return asyncio.get_running_loop().time()

    server, moment = run(lambda query: saying(*next(streams)), scenario)
    gone = heard.notifications[-1]
    assert all(map(is_initial, server.queries))
    assert gone.key.name == "a"
    assert not gone.certain
    assert not gone.unbroken
    assert moment == 30


def test_a_silent_stream_is_replaced():
    def answer(query):
        if is_initial(query):
            return saying(bookmark(5, end=True))
        if is_watch(query):
            return saying(frame("ADDED", config_map("late", 7)))
        return 200, page(6)

    async def scenario(informer):
        await informer.wait_reached("7")
        return asyncio.get_running_loop().time()

    server, moment = run(answer, scenario)
    assert moment == 100
    assert [is_watch(query) for query in server.queries] == [True, False, True]
    assert server.queries[1]["limit"] == "1"
    assert server.queries[2]["resourceVersion"] == "5"


def test_a_stream_of_blank_lines_is_replaced():
    """A proxy that sends them to keep a connection would else hide that the server behind it is gone."""

    def answer(query):
        if is_initial(query):
            return saying(bookmark(5, end=True), *(30, b"\n", 30, b" \n") * 60)
        if is_watch(query):
            return saying(frame("ADDED", config_map("late", 7)))
        return 200, page(6)

    async def scenario(informer):
        await informer.wait_reached("7")
        return asyncio.get_running_loop().time()

    assert run(answer, scenario)[1] == 120


def test_unreadable_frames_do_not_fill_the_log(caplog):
    def answer(query):
        return saying(bookmark(5, end=True), *[frame("ADDED", {"metadata": 5}), 0.01] * 2000)

    run(answer, half_a_minute)
    lines = [each for each in caplog.records if "that are not an object" in each.message]
    assert 10 <= len(lines) <= 30


def test_versions_that_have_gone_back_are_a_new_epoch(heard, caplog):
    """An etcd restored from a backup: what was seen after it was made is gone, and so is what we wrote."""
    old, lost = frame("ADDED", config_map("old", 3)), frame("ADDED", config_map("lost", 90))
    streams = iter(
        [
            saying(old, lost, bookmark(100, end=True), 60, then="break"),
            saying(old, bookmark(20, end=True)),
        ]
    )

    async def scenario(informer):
        informer.add_handler(heard)
        await informer.wait_synced()
        written = informer.intake.admit(json.dumps(config_map("old", 120)).encode())
        informer.overlay.record_write(written)
        await heard.until(lambda each: each.type == "vanished", within=3600)
        return names(informer), informer.store.watermark(), len(informer.overlay)

    server, (present, watermark, own) = run(
        lambda query: next(streams) if is_watch(query) else (200, page(20)), scenario
    )
    assert [is_watch(query) for query in server.queries] == [True, False, True]
    assert present == ["old"]
    assert watermark == "20"
    assert own == 0
    assert "restored from a backup" in caplog.text


def test_a_server_that_cannot_stream_lists_is_read_in_pages():
    def answer(query):
        if is_initial(query):
            return 422, status(422, "Invalid")
        if is_watch(query):
            return saying(frame("ADDED", config_map("c", 7)))
        return (200, page(5, "b")) if "continue" in query else (200, page(5, "a", continue_="more"))

    async def scenario(informer):
        await informer.wait_reached("7")
        return names(informer)

    server, present = run(answer, scenario)
    assert present == ["a", "b", "c"]
    assert [query.get("limit") for query in server.queries] == [None, "500", "500", None]
    assert server.queries[-1]["resourceVersion"] == "5"


def test_a_server_that_ignores_the_wish_for_initial_events_is_read_in_pages():
    def answer(query):
        if is_initial(query):
            return saying(30, bookmark(5))
        return saying() if is_watch(query) else (200, page(5, "a"))

    async def scenario(informer):
        await informer.wait_synced()
        return names(informer)

    assert run(answer, scenario)[1] == ["a"]


def test_pages_that_expire_are_read_in_one_answer():
    def answer(query):
        if is_initial(query):
            return 400, status(400, "BadRequest")
        if is_watch(query):
            return saying()
        if "continue" in query:
            return 410, status(410, "Expired")
        return (200, page(6, "a", "b")) if "limit" not in query else (200, page(5, "a", continue_="more"))

    async def scenario(informer):
        await informer.wait_synced()
        return names(informer), informer.store.watermark()

    assert run(answer, scenario)[1] == (["a", "b"], "6")


def test_the_server_says_how_long_to_wait():
    answers = iter([429, 200])

    def answer(query):
        if next(answers, 200) == 429:
            return 429, status(429, "TooManyRequests", retryAfterSeconds=17)
        return saying(bookmark(5, end=True))

    async def scenario(informer):
        await informer.wait_synced()
        return asyncio.get_running_loop().time()

    assert run(answer, scenario)[1] == 17


def test_an_unreadable_frame_is_left_out_and_the_rest_goes_on():
    def answer(query):
        return saying(bookmark(5, end=True), frame("ADDED", {"metadata": 5}), frame("ADDED", config_map("good", 6)))

    async def scenario(informer):
        await informer.wait_synced()
        await asyncio.sleep(1)
        return names(informer), informer.statistics().scopes[0].unreadable

    assert run(answer, scenario)[1] == (["good"], 1)


def secret(name, version):
    return config_map(name, version) | {"kind": "Secret"}


def test_a_frame_of_another_kind_is_left_out_like_an_item_of_a_list():
    """A reader that takes objects of any kind, or only metadata, would get it as an object of this one."""

    def answer(query):
        return saying(bookmark(5, end=True), frame("ADDED", secret("bad", 6)), frame("ADDED", config_map("good", 7)))

    async def scenario(informer):
        await informer.wait_reached("7")
        return names(informer), informer.statistics().scopes[0].unreadable

    assert run(answer, scenario)[1] == (["good"], 1)


def other_kind_streamed(query):
    """Initial objects of another kind; no list."""
    if is_initial(query):
        return saying(frame("ADDED", secret("a", 5)), bookmark(5, end=True))
    return (503, status(503, "ServiceUnavailable"))


@pytest.mark.parametrize("sent", ["bookmark", "object", "page"])
def test_a_version_of_thousands_of_digits_is_no_number(sent):
    """It ended the informer, and with it the program."""
    version = "1" * 5000

    def answer(query):
        if sent == "page":
            return page(version, "a") if not is_watch(query) else (400, status(400, "BadRequest"))
        return saying(
            bookmark(5, end=True), bookmark(version) if sent == "bookmark" else frame("ADDED", config_map("a", version))
        )

    async def scenario(informer):
        await asyncio.sleep(10)
        return names(informer)

    assert run(answer, scenario)[1] == ([] if sent == "bookmark" else ["a"])


@pytest.mark.parametrize("verb", ["delete", "patch"])
def test_an_unreadable_answer_to_a_write_is_no_failure_of_it(verb):
    """The write has happened: the reconcile goes on, and its next read sees it."""
    there = config_map("a", 5)
    ended = {"deletionTimestamp": "2030-01-01T00:00:00Z", "deletionGracePeriodSeconds": "soon"}
    answers = {
        "DELETE": b'{"kind":"Status","status":"Success","metadata":{},"details":{"uid":"\xff"}}',
        "PATCH": json.dumps(there | {"metadata": there["metadata"] | ended | {"resourceVersion": "7"}}).encode(),
    }

    async def handle(request):
        query = dict(request.query)
        if is_watch(query):
            body = saying(frame("ADDED", there), bookmark(5, end=True))
        elif request.path == "/api/v1":
            served = {"name": "configmaps", "kind": "ConfigMap", "namespaced": True, "verbs": ["list"]}
            body = json.dumps({"kind": "APIResourceList", "groupVersion": "v1", "resources": [served]}).encode()
        else:
            body = answers.get(request.method, page(7))
        return ServerResponse(status=200, headers=JSON, body=body)

    async def write():
        async with Client(InProcessTransport(handle), namespace="default") as client, Cache(client) as cache:
            await cache.informer(UNTYPED).wait_synced()
            observed = CachedKinds(cache).client_for(client)(WriteLog())
            if verb == "delete":
                await observed.delete(UNTYPED, "a")
            else:
                await observed.patch(UNTYPED, "a", MergePatch({}))
            return [each.metadata["resourceVersion"] for each in await observed.list(UNTYPED)]

    assert run_virtual(write())[0] == ([] if verb == "delete" else ["7"])


def test_a_server_that_ignores_field_selectors_does_not_answer_for_another_object():
    """As some aggregated API servers do: a read after an unknown outcome took the first object for the one asked for."""

    def answer(query):
        if is_initial(query):
            return saying(frame("ADDED", config_map("a", 4)), frame("ADDED", config_map("b", 5)), bookmark(5, end=True))
        return page(7, "a", "b")

    async def read():
        async with (
            Client(InProcessTransport(Server(answer)), namespace="default") as client,
            Cache(client) as cache,
        ):
            await cache.informer(ConfigMap).wait_synced()
            cache.record_unknown(ConfigMap, Key("default", "b"))
            found = await cache.reader().get(ConfigMap, "b")
            return found.metadata.name, found.metadata.resource_version

    assert run_virtual(read())[0] == ("b", "7")


def test_an_object_of_another_namespace_is_left_out():
    """Reads of a namespace would find it, and no later list would remove it."""

    def answer(query):
        stray = config_map("stray", 6)
        stray["metadata"]["namespace"] = "other"
        return saying(bookmark(5, end=True), frame("ADDED", stray), frame("ADDED", config_map("good", 7)))

    async def scenario(informer):
        await informer.wait_synced()
        await asyncio.sleep(1)
        return names(informer)

    assert run(answer, scenario, options=KindOptions(namespaces=("default",)))[1] == ["good"]


def listing(answer):
    """A server without initial events; ``answer`` gets the number of the page."""
    pages = count()
    return lambda query: (400, status(400, "BadRequest")) if is_watch(query) else (200, answer(next(pages)))


def half_streamed(query):
    """A stream of initial objects with something else among them; no list."""
    if is_initial(query):
        return saying(frame("ADDED", {"metadata": 5}), bookmark(5, end=True))
    return (503, status(503, "ServiceUnavailable"))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (half_streamed, "initial event of 15 bytes is not an object"),
        (other_kind_streamed, "is not an object of this kind"),
        (listing(lambda _: page(5, "a").replace(b'{"name": "a"', b'{"name": 7')), "items[0], "),
        (listing(lambda _: page(5, "a").replace(b"ConfigMapList", b"SecretList")), "SecretList of v1 in place of"),
        (listing(lambda number: page(5, continue_=f"t{number}")), "500 pages in a row without items"),
    ],
)
def test_a_list_that_cannot_be_read_is_never_half_of_one(answer, words):
    """An object that is left out would look deleted. The informer says what is wrong and waits between its attempts."""

    async def scenario(informer):
        errors = set()
        for _ in range(1200):
            await asyncio.sleep(0.1)
            errors.add(informer.statistics().scopes[0].last_error)
        return informer.synced, errors

    server, (synced, errors) = run(answer, scenario)
    assert not synced
    assert any(words in error for error in errors), errors
    assert len(server.asked) < 120 * 50


def test_a_list_that_grows_for_ever_is_given_up_and_tried_again_later():
    """A server with ever new pages cannot fill the memory."""
    endless = listing(lambda number: page(5, *(f"a{number}-{n}" for n in range(500)), continue_=f"t{number}"))

    async def scenario(informer):
        await asyncio.sleep(60)
        return informer.synced, informer.statistics().scopes[0].last_error

    options = KindOptions(max_list_bytes=1024 * 1024)
    server, (synced, error) = run(endless, scenario, options=options)
    assert not synced
    assert "more than 1 MiB; cache fewer objects, or raise KindOptions(max_list_bytes=...)" in error
    begun = sum(is_watch(query) or "continue" not in query for query in server.queries)
    # about 15 pages make 1 MiB, and the attempts are ever further apart
    assert len(server.asked) < begun * 20
    assert begun < 12


def test_initial_events_without_end_are_given_up():
    def answer(query):
        return saying(*(frame("ADDED", config_map(f"a{n}", 5)) for n in range(20_000)))

    async def scenario(informer):
        await asyncio.sleep(10)
        return informer.statistics().scopes[0].last_error

    assert "more than 1 MiB" in run(answer, scenario, options=KindOptions(max_list_bytes=1024 * 1024))[1]


def test_a_slow_handler_gets_the_latest_state_once():
    """A thousand changes while the handler is away are one call for each key."""
    told = []

    def answer(query):
        changes = [frame("MODIFIED", config_map("busy", 6 + number)) for number in range(1000)]
        return saying(frame("ADDED", config_map("busy", 4)), bookmark(5, end=True), 1, b"".join(changes))

    async def scenario(informer):
        registration = informer.add_handler(told.append)
        await registration.wait_synced()
        await informer.wait_reached("1005")
        return registration.pending

    _, pending = run(answer, scenario)
    assert pending <= 1
    assert len(told) < 60


def test_all_objects_are_shown_again_when_asked_for(heard):
    def answer(query):
        if is_initial(query):
            return saying(frame("ADDED", config_map("a", 4)), bookmark(5, end=True), *([60, bookmark(6)] * 20))
        return saying(*([60, bookmark(6)] * 20))

    async def scenario(informer):
        informer.add_handler(heard, resync=600)
        await asyncio.sleep(1250)

    run(answer, scenario)
    assert [each.resync for each in heard.notifications] in ([False, True], [False, True, True])
