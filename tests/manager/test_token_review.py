"""Who may read metrics and the debug page with token review: the API server's own RBAC decides."""

import asyncio
import dataclasses
from collections import Counter

import pytest

from steersman import Client, Key, ObjectMeta
from steersman.client import BearerToken, Config, load_kubeconfig
from steersman.kinds.authentication_v1 import TokenRequest, TokenRequestSpec
from steersman.kinds.authorization_v1 import NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec
from steersman.kinds.core_v1 import ServiceAccount
from steersman.kinds.rbac_v1 import ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject
from steersman.manager import Manager
from steersman.manager.endpoints import token_review
from steersman.manager.endpoints.handler import EndpointHandler
from steersman.manager.endpoints.token_review import Reviewer
from steersman.transport import HttpListener, HttpTransport, Peer
from steersman.transport.peer import set_peer
from steersman.wire import HttpRequest

pytestmark = pytest.mark.both_servers("the server reviews tokens and permissions")


class Counted:
    """A transport that counts."""

    def __init__(self, inner) -> None:
        self._inner = inner
        self.paths: list[str] = []

    async def send(self, request, **options):
        self.paths.append(request.path.rpartition("/")[2])
        return await self._inner.send(request, **options)

    async def close(self) -> None:
        await self._inner.close()


@pytest.fixture
async def client(api_server, namespace):
    async with api_server.client(field_manager="tests", namespace=namespace) as client:
        yield client


async def token_of(client: Client, name: str, *audiences: str) -> str:
    await client.create(ServiceAccount(metadata=ObjectMeta(name=name, namespace=client.namespace)))
    asked = TokenRequest(metadata=ObjectMeta(), spec=TokenRequestSpec(audiences=[*audiences]))
    key = Key(client.namespace, name)
    return (await client.create_subresource(ServiceAccount, key, "token", asked, returns=TokenRequest)).status.token


async def bind(client: Client, role: str, account: str) -> None:
    await client.create(
        ClusterRoleBinding(
            metadata=ObjectMeta(name=f"{client.namespace}-{account}"),
            role_ref=RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=role),
            subjects=[Subject(kind="ServiceAccount", name=account, namespace=client.namespace)],
        )
    )


async def allow(client: Client, account: str, *paths: str) -> None:
    rules = [PolicyRule(non_resource_urls=list(paths), verbs=["get"])]
    await client.create(ClusterRole(metadata=ObjectMeta(name=f"{client.namespace}-{account}"), rules=rules))
    await bind(client, f"{client.namespace}-{account}", account)
    user = f"system:serviceaccount:{client.namespace}:{account}"
    wanted = SubjectAccessReviewSpec(
        user=user, non_resource_attributes=NonResourceAttributes(path=paths[0], verb="get")
    )
    async with asyncio.timeout(60):
        # kube-apiserver reads a new binding with a delay
        while not (await client.create(SubjectAccessReview(metadata=ObjectMeta(), spec=wanted))).status.allowed:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def get(transport, path: str, token: str = "") -> tuple[int, str]:
    headers = (("Authorization", f"Bearer {token}"),) if token else ()
    async with await transport.send(HttpRequest("GET", path, headers=headers)) as response:
        assert ("WWW-Authenticate" in response.headers) == (response.status == 401)
        return response.status, (await response.read()).decode()


async def test_a_service_account_with_the_role_is_let_in_and_others_are_not(client):
    scraper, stranger = await token_of(client, "scraper"), await token_of(client, "stranger")
    await allow(client, "scraper", "/metrics")
    counted: list[Counted] = []
    observed = client.with_transport(lambda inner: counted.append(Counted(inner)) or counted[0])
    handler = EndpointHandler(Manager(name="guarded"), Reviewer(observed))
    async with HttpListener(handler) as listener, HttpTransport(listener.address) as transport:
        assert (await get(transport, "/metrics", scraper))[0] == 200
        status, words = await get(transport, "/debug", scraper)
        assert status == 403
        assert words.startswith(
            f"system:serviceaccount:{client.namespace}:scraper may not get /debug: bind a ClusterRole"
        )
        assert (await get(transport, "/metrics", stranger))[0] == 403
        status, words = await get(transport, "/metrics", "no-such-token")
        assert (status, words) == (401, "the API server does not recognize this token, or it has expired\n")
        assert (await get(transport, "/metrics"))[0] == 401
        # health is open to the kubelet
        assert (await get(transport, "/healthz"))[0] == 200
        assert (await get(transport, "/readyz"))[0] in {200, 500}
        # a scrape every few seconds costs the API server nothing
        before = len(counted[0].paths)
        for _ in range(5):
            assert (await get(transport, "/metrics", scraper))[0] == 200
            assert (await get(transport, "/metrics", stranger))[0] == 403
        assert len(counted[0].paths) == before
        assert set(counted[0].paths) == {"tokenreviews", "subjectaccessreviews"}


async def test_an_address_of_this_machine_is_no_token(client):
    """A sidecar of a service mesh forwards every stranger from the loopback address."""
    handler = EndpointHandler(Manager(name="guarded"), Reviewer(client))
    async with HttpListener(handler) as listener, HttpTransport(listener.address) as transport:
        for host in ("localhost", "127.0.0.1:8080", "[::1]:8080", "10.244.1.7:8080", "operator.shop.svc"):
            for path in ("/metrics", "/debug", "/debug/statistics.json", "/debug/explain.json"):
                async with await transport.send(HttpRequest("GET", path, headers=(("Host", host),))) as response:
                    assert response.status == 401, (host, path)


async def test_a_second_token_is_not_read_instead_of_the_first(client):
    """A proxy that checks one of two headers would vouch for the other."""
    scraper = await token_of(client, "scraper")
    await allow(client, "scraper", "/metrics")
    handler = EndpointHandler(Manager(name="guarded"), Reviewer(client))
    async with HttpListener(handler) as listener, HttpTransport(listener.address) as transport:
        one = ("Authorization", f"Bearer {scraper}")
        for headers in ((one, ("Authorization", "Bearer x")), (("Authorization", "Basic x"), one)):
            async with await transport.send(HttpRequest("GET", "/metrics", headers=headers)) as response:
                assert response.status in {400, 401}


async def test_a_wildcard_covers_the_debug_pages(client):
    oncall = await token_of(client, "oncall")
    await allow(client, "oncall", "/debug", "/debug/*")
    handler = EndpointHandler(Manager(name="guarded"), Reviewer(client))
    async with HttpListener(handler) as listener, HttpTransport(listener.address) as transport:
        assert (await get(transport, "/debug", oncall))[0] == 200
        assert (await get(transport, "/debug/statistics.json", oncall))[0] == 200
        assert (await get(transport, "/metrics", oncall))[0] == 403


async def test_a_program_without_the_right_to_review_says_what_to_bind(client, api_server):
    own, scraper = await token_of(client, "operator"), await token_of(client, "scraper")
    await allow(client, "scraper", "/metrics")
    config = load_kubeconfig(api_server.kubeconfig)
    # without the certificate of the administrator
    tls = dataclasses.replace(config.tls, certificate_data=None, certificate_file=None, key_data=None, key_file=None)
    config = dataclasses.replace(config, auth=BearerToken(own), tls=tls)
    async with Client.connect(config, namespace=client.namespace) as weak:
        handler = EndpointHandler(Manager(name="guarded"), Reviewer(weak))
        async with HttpListener(handler) as listener, HttpTransport(listener.address) as transport:
            status, words = await get(transport, "/metrics", scraper)
            assert status == 500
            assert "bind the ClusterRole system:auth-delegator to its ServiceAccount" in words
            await bind(client, "system:auth-delegator", "operator")
            status = 0
            while status != 200:  # RBAC reads its own cache
                status, _ = await get(transport, "/metrics", scraper)


async def test_an_api_server_that_does_not_answer_denies_every_request():
    async with Client.connect(Config("http://127.0.0.1:1", tls=None, auth=None, proxy_url=None), timeout=1.0) as client:
        verdict = await Reviewer(client).review("Bearer anything", "/metrics")
    assert verdict.status == 503
    assert not verdict.allowed


class Held(Counted):
    """A transport that holds back reviews while `gate` is closed."""

    gate = None

    async def send(self, request, **options):
        if self.gate is not None:
            await self.gate.wait()
        return await super().send(request, **options)


@pytest.fixture
def no_rate(monkeypatch):
    """Unknown tokens are reviewed at any rate: what else bounds them shows."""
    monkeypatch.setattr(token_review, "_BURST", 1000)
    monkeypatch.setattr(token_review, "_BURST_OF_ALL", 1000)


async def statuses(reviewer: Reviewer, host: str, tokens: list[str]) -> Counter[int]:
    """How the reviewer answers a client at this address."""
    set_peer(Peer(host=host, port=1))
    return Counter([(await reviewer.review(f"Bearer {token}", "/metrics")).status for token in tokens])


async def test_unknown_tokens_are_reviewed_at_a_bounded_rate(client):
    """A client without credentials could otherwise have this program ask the API server as often as it likes."""
    scraper = await token_of(client, "scraper")
    await allow(client, "scraper", "/metrics")
    counted: list[Counted] = []
    reviewer = Reviewer(client.with_transport(lambda inner: counted.append(Counted(inner)) or counted[0]))
    assert await statuses(reviewer, "192.0.2.1", [scraper]) == {200: 1}
    began = asyncio.get_running_loop().time()
    flood = await statuses(reviewer, "192.0.2.1", [f"made-up-{number}" for number in range(300)])
    seconds = asyncio.get_running_loop().time() - began
    reviews = counted[0].paths.count("tokenreviews") - 1
    assert flood == {401: reviews, 429: 300 - reviews}
    assert reviews <= 9 + seconds + 1
    # neither the known token nor a client elsewhere is held up
    assert await statuses(reviewer, "192.0.2.1", [scraper]) == {200: 1}
    fresh = await statuses(reviewer, "192.0.2.2", ["unknown"])
    assert fresh == {401: 1}
    many = Counter()
    for number in range(200):
        many += await statuses(reviewer, f"198.51.100.{number}", [f"from-{number}"])
    seconds = asyncio.get_running_loop().time() - began
    assert counted[0].paths.count("tokenreviews") <= 1 + 50 + 10 * seconds + 1
    assert many[429] > 0


async def test_unknown_tokens_do_not_evict_an_allowed_one(client, no_rate):
    """A stranger who sends many made-up tokens would make every scrape cost two reviews."""
    scraper = await token_of(client, "scraper")
    await allow(client, "scraper", "/metrics")
    counted: list[Counted] = []
    reviewer = Reviewer(client.with_transport(lambda inner: counted.append(Counted(inner)) or counted[0]))
    assert (await reviewer.review(f"Bearer {scraper}", "/metrics")).status == 200
    for number in range(300):
        assert (await reviewer.review(f"Bearer made-up-{number}", "/metrics")).status == 401
    before = len(counted[0].paths)
    assert (await reviewer.review(f"Bearer {scraper}", "/metrics")).status == 200
    assert len(counted[0].paths) == before


async def test_a_flood_of_unknown_tokens_delays_no_scrape(client, monkeypatch, no_rate):
    """Those beyond the bound are turned away, and a token that was allowed before does not wait behind the others."""
    monkeypatch.setattr(token_review, "ALLOWED_SECONDS", 0.0)
    scraper = await token_of(client, "scraper")
    await allow(client, "scraper", "/metrics")
    held: list[Held] = []
    reviewer = Reviewer(client.with_transport(lambda inner: held.append(Held(inner)) or held[0]))
    assert (await reviewer.review(f"Bearer {scraper}", "/metrics")).status == 200
    gate = held[0].gate = asyncio.Event()
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        flood = [tasks.create_task(reviewer.review(f"Bearer made-up-{n}", "/metrics")) for n in range(500)]
        await asyncio.sleep(0)
        assert sum(each.done() for each in flood) >= 400
        # The four reviews that were sent wait for the API server; the scraper's own review need not.
        held[0].gate = None
        assert (await reviewer.review(f"Bearer {scraper}", "/metrics")).status == 200
        gate.set()
    assert {each.result().status for each in flood} == {401, 503}


async def test_a_revoked_token_is_refused_after_the_answer_has_expired(client, monkeypatch):
    """Deleting the service account revokes its tokens."""
    monkeypatch.setattr(token_review, "ALLOWED_SECONDS", 0.2)
    scraper = await token_of(client, "scraper")
    await allow(client, "scraper", "/metrics")
    reviewer = Reviewer(client)
    assert (await reviewer.review(f"Bearer {scraper}", "/metrics")).status == 200
    await client.delete(ServiceAccount, Key(client.namespace, "scraper"))
    async with asyncio.timeout(30):
        while (verdict := await reviewer.review(f"Bearer {scraper}", "/metrics")).status == 200:  # noqa: ASYNC110 - it expires
            await asyncio.sleep(0.05)
    assert verdict.status == 401


async def test_a_token_for_another_audience_is_refused(client):
    """A token that was made for another program proves nothing here."""
    scraper = await token_of(client, "scraper", "vault.example.com")
    await allow(client, "scraper", "/metrics")
    assert (await Reviewer(client).review(f"Bearer {scraper}", "/metrics")).status == 401


@pytest.mark.parametrize("token", ["\udcff", "é", "a\udc80b"])
async def test_a_token_that_is_not_ascii_is_refused(client, token):
    """It cannot be valid, and cannot be sent to the API server as JSON."""
    assert (await Reviewer(client).review(f"Bearer {token}", "/metrics")).status == 401
