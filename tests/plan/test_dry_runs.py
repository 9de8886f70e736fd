"""What may leave the process of a plan: reads, and writes that the server takes for dry runs."""

from __future__ import annotations

import json

import pytest

from steersman.errors import ConnectionFailed
from steersman.plan.dry_runs import WritesNothing, dry_run_of, only_dry_runs, place_of, tree_of
from steersman.plan.planned_objects import PlannedObjects
from steersman.plan.transport import PlanTransport
from steersman.transport import HttpTransport, InProcessTransport, ServerResponse
from steersman.transport.gate import gate
from steersman.wire import Request

PODS = "/api/v1/namespaces/default/pods"
DRY = (("dryRun", "All"),)
GONE = b'{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}'

READS = [
    Request("GET", PODS, (("watch", "1"),)),
    Request("GET", f"{PODS}/proxy"),
    Request("GET", f"{PODS}/web/log"),
    Request("GET", "/version"),
    Request("GET", "/openapi/v3/apis/web.example.com/v1"),
    Request("HEAD", "/readyz"),
    Request("OPTIONS", PODS),
]
TRIED = [
    Request("POST", PODS, DRY),
    Request("PUT", f"{PODS}/web", DRY),
    Request("PATCH", f"{PODS}/web/status", (("fieldManager", "a"), *DRY)),
    Request("DELETE", f"{PODS}/web", DRY, body=GONE),
]
STOPPED = [
    Request("POST", PODS),
    Request("POST", PODS, (("dryRun", "all"),)),
    Request("POST", PODS, (("dryrun", "All"),)),
    Request("POST", PODS, (*DRY, ("dryRun", "None"))),
    Request("POST", PODS, (*DRY, *DRY)),
    Request("POST", f"{PODS}?a=b", DRY),
    Request("POST", f"{PODS}#", DRY),
    Request("post", PODS, DRY),
    Request("TRACE", PODS, DRY),
    Request("POST", f"{PODS}/web/eviction", DRY),
    Request("POST", f"{PODS}/web/exec", DRY),
    Request("POST", "/api/v1/namespaces/default/serviceaccounts/a/token", DRY),
    Request("POST", "/api/v1/namespaces/default/services/web/proxy/pay", DRY),
    Request("POST", "/metrics/reset", DRY),
    Request("PUT", "/api/v1/namespaces/default/finalize", DRY),
    Request("DELETE", f"{PODS}/web", DRY),
    Request("DELETE", f"{PODS}/web", DRY, body=b'{"kind":"DeleteOptions","apiVersion":"v1"}'),
    Request("DELETE", f"{PODS}/web", DRY, body=GONE[:-1] + b',"dryRun":[]}'),
    Request("DELETE", f"{PODS}/web", DRY, body=GONE[:-1] + b',"dry\\u0052un":[]}'),
    Request("DELETE", f"{PODS}/web", DRY, body=b"k8s\x00"),
    Request("DELETE", PODS, DRY, body=GONE),
    Request("GET", f"{PODS}/web/exec", (("command", "rm"),)),
    Request("GET", f"{PODS}/web/attach"),
    Request("GET", f"{PODS}/web/portforward"),
    Request("GET", "/api/v1/nodes/one/proxy/run"),
    Request("GET", "/api/v1/namespaces/default/services/web/proxy/pay"),
    Request("GET", "/api/v1/namespaces/default/services/web/%70roxy/pay"),
    Request("GET", "/x/../api/v1/nodes/one/proxy"),
    Request("GET", PODS, headers=(("X-HTTP-Method-Override", "DELETE"),)),
]


@pytest.mark.parametrize("request_", [*READS, *TRIED], ids=lambda each: f"{each.method} {each.target}")
def test_reads_and_dry_runs_pass(request_: Request) -> None:
    only_dry_runs(request_)


@pytest.mark.parametrize("request_", STOPPED, ids=lambda each: f"{each.method} {each.target} {each.body!r}")
def test_nothing_else_passes(request_: Request) -> None:
    with pytest.raises(WritesNothing, match="not sent, because a plan changes nothing"):
        only_dry_runs(request_)


async def test_the_gate_stands_before_every_connection() -> None:
    """Nothing listens there: what passes fails to connect, what does not fails before."""
    async with HttpTransport("http://127.0.0.1:1") as transport:
        with gate(only_dry_runs):
            with pytest.raises(WritesNothing):
                await transport.send(Request("POST", PODS))
            with pytest.raises(ConnectionFailed):
                await transport.send(Request("POST", PODS, DRY))
        with pytest.raises(ConnectionFailed):
            await transport.send(Request("POST", PODS))


@pytest.mark.parametrize(
    "request_",
    [
        Request("POST", PODS, (("dryRun", "None"), ("dryrun", "x"), ("fieldManager", "a")), body=b'{"kind":"Pod"}'),
        Request("PATCH", f"{PODS}/web", (), (("Content-Type", "application/merge-patch+json"),), b"{}"),
        Request(
            "DELETE", f"{PODS}/web", (), (("content-type", "text/plain"),), b'{"dryRun":[],"gracePeriodSeconds":0}'
        ),
        Request("DELETE", f"{PODS}/web"),
    ],
    ids=lambda each: each.method,
)
def test_a_write_is_made_a_dry_run_that_passes(request_: Request) -> None:
    made = dry_run_of(request_, place_of(request_), tree_of(request_))
    only_dry_runs(made)
    assert made.query.count(("dryRun", "All")) == 1
    if request_.method == "DELETE":
        assert made.header("Content-Type") == "application/json"
        assert {**json.loads(request_.body or b"{}"), "dryRun": ["All"]}.items() <= json.loads(made.body or b"").items()


async def test_a_server_that_does_not_know_dry_runs_is_not_asked() -> None:
    """Another server than Kubernetes' own may serve a group; it might store what says dryRun=All."""
    asked: list[str] = []

    async def foreign(request: Request) -> ServerResponse:
        asked.append(f"{request.method} {request.path}")
        return ServerResponse(status=200, body=b'{"paths": {"/apis/cake.example.com/v1/cakes": {"post": {}}}}')

    planned = PlannedObjects()
    transport = PlanTransport(InProcessTransport(foreign), planned)
    for _ in range(2):
        answer = await transport.send(Request("POST", "/apis/cake.example.com/v1/cakes", body=b'{"kind": "Cake"}'))
        assert answer.status == 405
    assert asked == ["GET /openapi/v3/apis/cake.example.com/v1"]
    assert planned.rejections[0].words == (
        "the server of cake.example.com/v1 does not declare support for dry runs, and a plan sends nothing else"
    )
    await transport.close()
