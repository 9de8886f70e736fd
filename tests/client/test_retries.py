"""Trying again: what is repeated, how often, after how long; and credentials that are renewed on the way.

Time is the loop's, and here it jumps: half a minute of patience takes none.
"""

import asyncio

import pytest

from samples.raw_server import always, answer, config_map, cut, failure, head
from samples.virtual_time import run_virtual
from steersman import Client, MergePatch, ObjectMeta
from steersman.client import RateLimit, RetryPolicy, TokenFile
from steersman.errors import (
    ConnectionFailed,
    GatewayTimeout,
    OutcomeUnknown,
    ServiceUnavailable,
    TooManyRequests,
    Unauthorized,
)
from steersman.errors.status import ApiStatus, encode_status
from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import encode
from steersman.telemetry import Registry, expose
from steersman.transport import InProcessTransport, ServerResponse
from steersman.transport.measurements import RequestMeasurements

GOOD = encode(ConfigMap(metadata=ObjectMeta(name="a", namespace="default", resource_version="1")))


def config(name="a"):
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data={"key": "value"})


def refusal(code, reason="", *headers):
    """An answer of the API server itself, or of a gateway before it if there is no reason."""
    body = encode_status(ApiStatus(status="Failure", code=code, reason=reason, message="no")) if reason else b"sorry"
    return ServerResponse(status=code, headers=headers, body=body)


class Server:
    """Gives its answers in turn, the last one for ever, and notes when it was asked for what."""

    def __init__(self, *answers):
        self.answers = answers
        self.seen = []
        self.times = []

    async def __call__(self, request):
        self.seen.append((request.method, request.body))
        self.times.append(asyncio.get_running_loop().time())
        return self.answers[min(len(self.seen), len(self.answers)) - 1]


def ask(server, work, *, seed=1, **options):
    """Run ``work(client)`` on a loop in virtual time; its result and how long it took."""

    async def run():
        async with Client(InProcessTransport(server), **options) as client:
            return await work(client)

    return run_virtual(run(), seed=seed)


def get(client):
    return client.get(ConfigMap, "a")


def create(client):
    return client.create(config())


OK = ServerResponse(status=200, body=GOOD)


@pytest.mark.parametrize("work", [get, create])
@pytest.mark.parametrize(
    ("code", "reason"), [(429, "TooManyRequests"), (429, ""), (503, "ServiceUnavailable"), (503, "")]
)
def test_retry_after_is_honored(work, code, reason):
    """The server said it did not process the request and when to come again: any verb may."""
    server = Server(refusal(code, reason, ("Retry-After", "7")), OK)
    obj, elapsed = ask(server, work)
    assert obj.metadata.name == "a"
    assert 7 <= elapsed < 17
    assert server.seen[0] == server.seen[1]
    assert len(server.seen) == 2


def test_retry_after_in_the_status_counts_too():
    status = answer(failure(429, "TooManyRequests", "busy", retryAfterSeconds=9)).partition(b"\r\n\r\n")[2]
    server = Server(ServerResponse(status=429, body=status), OK)
    _, elapsed = ask(server, create)
    assert 9 <= elapsed < 19


@pytest.mark.parametrize("code", [429, 503])
def test_patience_is_bounded(code):
    """Five attempts, and then the last answer is the error."""
    server = Server(refusal(code, "", ("Retry-After", "30")))

    async def work(client):
        with pytest.raises((TooManyRequests, ServiceUnavailable, OutcomeUnknown)):
            await create(client)

    _, elapsed = ask(server, work)
    assert len(server.seen) == 5
    assert 120 <= elapsed < 160


@pytest.mark.parametrize("patience", ["31", "3600", "999999999", "99999999999999999999"])
def test_a_server_that_asks_for_too_much_is_not_waited_for(patience):
    server = Server(refusal(503, "ServiceUnavailable", ("Retry-After", patience)))

    async def work(client):
        with pytest.raises((ServiceUnavailable, OutcomeUnknown)):
            await create(client)

    _, elapsed = ask(server, work)
    assert (len(server.seen), elapsed) == (1, 0)


@pytest.mark.parametrize("patience", ["soon", "-5", "0", "1.5", "Fri, 31 Dec 1999 23:59:59 GMT", "٣", "", "1" * 5000])
def test_a_retry_after_that_cannot_be_read_is_none(patience):
    """A 429 was not processed, so it is repeated with our own patience."""
    server = Server(refusal(429, "", ("Retry-After", patience)), OK)
    _, elapsed = ask(server, create)
    assert 0 < elapsed <= 1


def test_a_read_is_repeated_without_being_told_when():
    server = Server(refusal(503), refusal(503), OK)
    _, elapsed = ask(server, get)
    assert len(server.seen) == 3
    assert 0 < elapsed <= 1


@pytest.mark.parametrize(("reason", "kind"), [("ServiceUnavailable", ServiceUnavailable), ("", OutcomeUnknown)])
def test_a_write_is_not_repeated_without_being_told_to(reason, kind):
    """The server's own Status says that it was not done; a gateway's words do not."""
    server = Server(refusal(503, reason))

    async def work(client):
        with pytest.raises(kind):
            await create(client)

    ask(server, work)
    assert len(server.seen) == 1


@pytest.mark.parametrize("answered", [refusal(504, "Timeout"), refusal(504), refusal(502)])
def test_a_gateway_that_gave_up_leaves_a_write_unknown(answered):
    server = Server(answered)

    async def work(client):
        with pytest.raises(OutcomeUnknown, match="may or may not have happened") as unknown:
            await client.patch(ConfigMap, "a", MergePatch({"data": {}}))
        assert unknown.value.__cause__.code == answered.status

    ask(server, work)
    assert len(server.seen) == 1


def test_a_gateway_that_gave_up_on_a_read():
    server = Server(refusal(504, "Timeout"))

    async def work(client):
        with pytest.raises(GatewayTimeout):
            await get(client)

    ask(server, work)


def test_the_pauses_grow_up_to_a_bound_and_differ():
    """Clients that failed together do not come back together."""

    def pauses(seed):
        server = Server(refusal(429))
        policy = RetryPolicy(attempts=8, initial_delay=1.0, maximum_delay=4.0)

        async def work(client):
            with pytest.raises(TooManyRequests):
                await get(client)

        ask(server, work, seed=seed, retry=policy)
        return [after - before for before, after in zip(server.times, server.times[1:], strict=False)]

    first, second = pauses(1), pauses(2)
    assert len(first) == 7
    assert all(0.5 * bound <= pause <= bound for pause, bound in zip(first, [1, 2, 4, 4, 4, 4, 4], strict=True))
    assert first != second
    assert first == pauses(1)


@pytest.mark.parametrize(
    "wrong", [{"attempts": 0}, {"initial_delay": 0}, {"initial_delay": 11}, {"maximum_delay": float("inf")}]
)
def test_a_policy_that_makes_no_sense_is_refused_at_once(wrong):
    with pytest.raises(ValueError, match="retry policy needs"):
        RetryPolicy(**wrong)


def test_one_attempt_means_one():
    server = Server(refusal(429, "", ("Retry-After", "1")))

    async def work(client):
        with pytest.raises(TooManyRequests):
            await get(client)

    _, elapsed = ask(server, work, retry=RetryPolicy(attempts=1))
    assert (len(server.seen), elapsed) == (1, 0)


def test_a_pause_can_be_cancelled():
    server = Server(refusal(429, "", ("Retry-After", "30")))

    async def work(client):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await create(client)

    _, elapsed = ask(server, work)
    assert (len(server.seen), elapsed) == (1, 3)


def test_a_rate_limit_spreads_requests_and_repetitions():
    server = Server(refusal(429), OK)

    async def work(client):
        for _ in range(5):
            await get(client)

    ask(server, work, rate_limit=RateLimit(per_second=0.1, burst=2))
    assert server.times[1] < 1
    assert server.times[2:] == pytest.approx([10, 20, 30, 40])


@pytest.mark.parametrize("first", [b"", b"HTTP/1.1 200", head(length=500) + b'{"kind":', head(length=500)])
async def test_a_read_is_repeated_after_a_lost_connection(serve, reach, first):
    """Wherever the first answer was cut off."""

    async def script(talk):
        await talk.request()
        await talk.say(first if talk.number == 1 else answer(config_map()))

    server = await serve(script)
    client = await reach(server, retry=RetryPolicy(initial_delay=0.01))
    assert (await client.get(ConfigMap, "a")).metadata.name == "a"
    assert server.connections == 2


async def test_a_read_is_not_repeated_for_ever(serve, reach, refused):
    server = await serve(cut(b""))
    client = await reach(server, retry=RetryPolicy(attempts=3, initial_delay=0.01))
    await refused(ConnectionFailed, client.get(ConfigMap, "a"))
    assert server.connections == 3


DENIED = answer(failure(401, "Unauthorized", "Unauthorized"), status="401 Unauthorized")


@pytest.mark.parametrize("work", [get, create], ids=["get", "create"])
async def test_an_expired_token_is_read_again(serve, reach, tmp_path, work):
    """A request that was refused for its token was not processed, so that any verb may be repeated."""
    file = tmp_path / "token"
    file.write_text("old-OPENSESAME")
    server = await serve(always(DENIED, answer(config_map())))
    client = await reach(server, auth=TokenFile(str(file)))
    await client.pipeline.server.sender._credentials.headers()  # the token is held now
    file.write_text("new-OPENSESAME")
    assert (await work(client)).metadata.name == "a"
    tokens = [seen.headers["authorization"] for seen in server.requests]
    assert tokens == ["Bearer old-OPENSESAME", "Bearer new-OPENSESAME"]


async def test_a_renewed_token_that_is_refused_too(serve, reach, refused, tmp_path):
    file = tmp_path / "token"
    file.write_text("old-OPENSESAME")
    server = await serve(always(DENIED))
    client = await reach(server, auth=TokenFile(str(file)), retry=RetryPolicy())
    await client.pipeline.server.sender._credentials.headers()
    file.write_text("new-OPENSESAME")
    error = await refused(Unauthorized, client.get(ConfigMap, "a"))
    assert "expired" in str(error)
    assert len(server.requests) == 2


async def test_a_token_that_was_not_renewed_is_not_sent_again(serve, reach, refused, tmp_path):
    file = tmp_path / "token"
    file.write_text("OPENSESAME")
    server = await serve(always(DENIED))
    client = await reach(server, auth=TokenFile(str(file)), retry=RetryPolicy())
    await refused(Unauthorized, client.create(config()))
    assert len(server.requests) == 1


async def test_a_fixed_token_that_is_refused(serve, reach, refused):
    server = await serve(always(DENIED))
    await refused(Unauthorized, (await reach(server, retry=RetryPolicy())).list(ConfigMap))
    assert len(server.requests) == 1


async def test_a_watch_with_an_expired_token(serve, reach, tmp_path):
    file = tmp_path / "token"
    file.write_text("old-OPENSESAME")
    server = await serve(always(DENIED, head("200 OK", "Connection: close", length=0)))
    client = await reach(server, auth=TokenFile(str(file)))
    await client.pipeline.server.sender._credentials.headers()
    file.write_text("new-OPENSESAME")
    async with client.watch(ConfigMap) as events:
        assert [event async for event in events] == []
    assert [seen.headers["authorization"] for seen in server.requests] == [
        "Bearer old-OPENSESAME",
        "Bearer new-OPENSESAME",
    ]


def test_retries_and_waits_are_counted():
    registry = Registry()
    server = Server(refusal(429, "TooManyRequests"), refusal(503, "ServiceUnavailable", ("Retry-After", "1")), OK)

    async def work(client):
        measured = client.with_transport(
            lambda inner: inner, observer=RequestMeasurements(registry, "https://here:6443")
        )
        await measured.get(ConfigMap, "a")
        await measured.get(ConfigMap, "a")

    ask(server, work, rate_limit=RateLimit(per_second=0.1, burst=1))
    text = expose(registry)[1].decode()
    assert 'rest_client_request_retries_total{code="429",verb="GET",host="here:6443"} 1' in text
    assert 'rest_client_request_retries_total{code="503",verb="GET",host="here:6443"} 1' in text
    # four requests, of which the first found a token
    assert 'rest_client_rate_limiter_duration_seconds_count{verb="GET",host="here:6443"} 4' in text
    assert 'rest_client_rate_limiter_duration_seconds_bucket{verb="GET",host="here:6443",le="5.0"} 1' in text
