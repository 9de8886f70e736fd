"""What may leave the process of a plan: reads, and writes that the server takes for dry runs."""

from __future__ import annotations

import json

import pytest

from steersman.errors import ConnectionFailed
from steersman.plan.dry_runs import WritesNothing, dry_run_of, only_dry_runs, place_of, tree_of
from steersman.plan.planned_objects import PlannedObjects
from steersman.plan.transport import PlanTransport
from steersman.transport import HttpTransport, InProcessTransport, ServerResponse
from steersman.transport.request_gate import gate
from steersman.wire import HttpRequest

PODS = "/api/v1/namespaces/default/pods"
DRY = (("dryRun", "All"),)
GONE = b'{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}'

READS = [
    HttpRequest("GET", PODS, (("watch", "1"),)),
    HttpRequest("GET", f"{PODS}/proxy"),
    HttpRequest("GET", f"{PODS}/web/log"),
    HttpRequest("GET", "/version"),
    HttpRequest("GET", "/openapi/v3/apis/web.example.com/v1"),
    HttpRequest("HEAD", "/readyz"),
    HttpRequest("OPTIONS", PODS),
]
TRIED = [
    HttpRequest("POST", PODS, DRY),
    HttpRequest("PUT", f"{PODS}/web", DRY),
    HttpRequest("PATCH", f"{PODS}/web/status", (("fieldManager", "a"), *DRY)),
    HttpRequest("DELETE", f"{PODS}/web", DRY, body=GONE),
]
STOPPED = [
    HttpRequest("POST", PODS),
    HttpRequest("POST", PODS, (("dryRun", "all"),)),
    HttpRequest("POST", PODS, (("dryrun", "All"),)),
    HttpRequest("POST", PODS, (*DRY, ("dryRun", "None"))),
    HttpRequest("POST", PODS, (*DRY, *DRY)),
    HttpRequest("POST", f"{PODS}?a=b", DRY),
    HttpRequest("POST", f"{PODS}#", DRY),
    HttpRequest("post", PODS, DRY),
    HttpRequest("TRACE", PODS, DRY),
    HttpRequest("POST", f"{PODS}/web/eviction", DRY),
    HttpRequest("POST", f"{PODS}/web/exec", DRY),
    HttpRequest("POST", "/api/v1/namespaces/default/serviceaccounts/a/token", DRY),
    HttpRequest("POST", "/api/v1/namespaces/default/services/web/proxy/pay", DRY),
    HttpRequest("POST", "/metrics/reset", DRY),
    HttpRequest("PUT", "/api/v1/namespaces/default/finalize", DRY),
    HttpRequest("DELETE", f"{PODS}/web", DRY),
    HttpRequest("DELETE", f"{PODS}/web", DRY, body=b'{"kind":"DeleteOptions","apiVersion":"v1"}'),
    HttpRequest("DELETE", f"{PODS}/web", DRY, body=GONE[:-1] + b',"dryRun":[]}'),
    HttpRequest("DELETE", f"{PODS}/web", DRY, body=GONE[:-1] + b',"dry\\u0052un":[]}'),
    HttpRequest("DELETE", f"{PODS}/web", DRY, body=b"k8s\x00"),
    HttpRequest("DELETE", PODS, DRY, body=GONE),
    HttpRequest("GET", f"{PODS}/web/exec", (("command", "rm"),)),
    HttpRequest("GET", f"{PODS}/web/attach"),
    HttpRequest("GET", f"{PODS}/web/portforward"),
    HttpRequest("GET", "/api/v1/nodes/one/proxy/run"),
    HttpRequest("GET", "/api/v1/namespaces/default/services/web/proxy/pay"),
    HttpRequest("GET", "/api/v1/namespaces/default/services/web/%70roxy/pay"),
    HttpRequest("GET", "/x/../api/v1/nodes/one/proxy"),
    HttpRequest("GET", PODS, headers=(("X-HTTP-Method-Override", "DELETE"),)),
]


@pytest.mark.parametrize("request_", [*READS, *TRIED], ids=lambda each: f"{each.method} {each.target}")
def test_reads_and_dry_runs_pass(request_: HttpRequest) -> None:
    only_dry_runs(request_)


@pytest.mark.parametrize("request_", STOPPED, ids=lambda each: f"{each.method} {each.target} {each.body!r}")
def test_nothing_else_passes(request_: HttpRequest) -> None:
    with pytest.raises(WritesNothing, match="not sent, because a plan changes nothing"):
        only_dry_runs(request_)


async def test_the_gate_stands_before_every_connection() -> None:
    """Nothing listens there: what passes fails to connect, what does not fails before."""
    async with HttpTransport("http://127.0.0.1:1") as transport:
        with gate(only_dry_runs):
            with pytest.raises(WritesNothing):
                await transport.send(HttpRequest("POST", PODS))
            with pytest.raises(ConnectionFailed):
                await transport.send(HttpRequest("POST", PODS, DRY))
        with pytest.raises(ConnectionFailed):
            await transport.send(HttpRequest("POST", PODS))


@pytest.mark.parametrize(
    "request_",
    [
        HttpRequest("POST", PODS, (("dryRun", "None"), ("dryrun", "x"), ("fieldManager", "a")), body=b'{"kind":"Pod"}'),
        HttpRequest("PATCH", f"{PODS}/web", (), (("Content-Type", "application/merge-patch+json"),), b"{}"),
        HttpRequest(
            "DELETE", f"{PODS}/web", (), (("content-type", "text/plain"),), b'{"dryRun":[],"gracePeriodSeconds":0}'
        ),
        HttpRequest("DELETE", f"{PODS}/web"),
    ],
    ids=lambda each: each.method,
)
def test_a_write_is_made_a_dry_run_that_passes(request_: HttpRequest) -> None:
    made = dry_run_of(request_, place_of(request_), tree_of(request_))
    only_dry_runs(made)
    assert made.query.count(("dryRun", "All")) == 1
    if request_.method == "DELETE":
        assert made.header("Content-Type") == "application/json"
        assert {**json.loads(request_.body or b"{}"), "dryRun": ["All"]}.items() <= json.loads(made.body or b"").items()


async def test_a_server_that_does_not_know_dry_runs_is_not_asked() -> None:
    """Another server than Kubernetes' own may serve a group; it might store what says dryRun=All."""
    asked: list[str] = []

    async def foreign(request: HttpRequest) -> ServerResponse:
        asked.append(f"{request.method} {request.path}")
        return ServerResponse(status=200, body=b'{"paths": {"/apis/cake.example.com/v1/cakes": {"post": {}}}}')

    planned = PlannedObjects()
    transport = PlanTransport(InProcessTransport(foreign), planned)
    for _ in range(2):
        answer = await transport.send(HttpRequest("POST", "/apis/cake.example.com/v1/cakes", body=b'{"kind": "Cake"}'))
        assert answer.status == 405
    assert asked == ["GET /openapi/v3/apis/cake.example.com/v1"]
    assert planned.rejections[0].words == (
        "the server of cake.example.com/v1 does not declare support for dry runs, and a plan sends nothing else"
    )
    await transport.close()
