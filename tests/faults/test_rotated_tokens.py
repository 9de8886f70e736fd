"""A token that is replaced, and revoked, under an operator that leads: kube-apiserver answers 401 to the old one."""

import asyncio
import json

import pytest
from faults.leading import KEYS, leading, now
from faults.workload import until

from steersman import Client, ObjectMeta
from steersman.client import BearerToken, Config, TokenFile
from steersman.errors import Unauthorized
from steersman.kinds.core_v1 import Secret, ServiceAccount
from steersman.kinds.rbac_v1 import ClusterRoleBinding, RoleRef, Subject
from steersman.manager import LeaderElection
from steersman.transport import TlsMaterial

pytestmark = pytest.mark.slow

ACCOUNT = "rotated"


class Tokens:
    """Tokens of one account, in a file as the kubelet writes it. Each ends with the Secret that it is bound to."""

    def __init__(self, engine, client, namespace, folder):
        self._engine = engine
        self._client = client
        self._namespace = namespace
        self._folder = folder
        self._made = 0
        self.file = folder / "token"

    async def new(self) -> str:
        """Make a token that the next call of `revoke` leaves valid."""
        self._made += 1
        anchor = await self._client.create(Secret(metadata=ObjectMeta(name=f"anchor-{self._made}")))
        reference = {"apiVersion": "v1", "kind": "Secret", "name": anchor.key.name, "uid": anchor.metadata.uid}
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600, "boundObjectRef": reference},
        }
        path = f"/api/v1/namespaces/{self._namespace}/serviceaccounts/{ACCOUNT}/token"
        answer = await self._client.request("POST", path, body=json.dumps(body).encode())
        return json.loads(answer)["status"]["token"]

    def publish(self, token: str) -> None:
        """Replace the file, as a whole."""
        new = self._folder / "new"
        new.write_text(token)
        new.replace(self.file)

    async def revoke(self, number: int, token: str) -> None:
        """Return when the server refuses a token; it remembers for ten seconds that a token was good."""
        await self._client.delete(Secret, f"anchor-{number}")
        async with Client.connect(self.config(BearerToken(token))) as old:
            refused = False
            while not refused:
                try:
                    await old.request("GET", "/api")
                except Unauthorized:
                    refused = True
                else:
                    await asyncio.sleep(0.1)

    def config(self, auth, server="") -> Config:
        tls = TlsMaterial(ca_file=str(self._engine.ca_file))
        return Config(server or self._engine.url, tls=tls, auth=auth, namespace=self._namespace)


@pytest.fixture
async def tokens(broken_engine, room, tmp_path):
    async with broken_engine.client(namespace=room, field_manager="user") as client:
        await client.create(ServiceAccount(metadata=ObjectMeta(name=ACCOUNT)))
        binding = ClusterRoleBinding(
            metadata=ObjectMeta(name=room),
            role_ref=RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name="cluster-admin"),
            subjects=[Subject(kind="ServiceAccount", name=ACCOUNT, namespace=room)],
        )
        await client.create(binding)
        yield Tokens(broken_engine, client, room, tmp_path)


async def test_a_token_is_replaced_and_the_old_one_revoked(broken_engine, proxy, room, tokens):
    """The first refusal makes the file be read again; what was refused is sent once more, and no reconcile fails."""
    tokens.publish(first := await tokens.new())
    config = tokens.config(TokenFile(str(tokens.file)), proxy.url)
    # a busy machine needs seconds for each renewal
    election = LeaderElection("operator", lease=40.0, renew=30.0)
    async with leading(broken_engine, config, room, election=election) as leader:
        tokens.publish(await tokens.new())
        begun = now()
        await tokens.revoke(1, first)
        await leader.more(2 * KEYS)
        assert leader.codes(begun)[401] > 0
        assert leader.failures == 0
        # watches that were opened with the old token are opened again with the new one
        proxy.cut()
        await leader.asks(seconds=60.0)
        await leader.tells()
        assert leader.leads_its_first_term()
        # each connection may have had one request under way with the old token, and no more
        assert leader.codes(begun)[401] <= KEYS + 4
        assert leader.silence(begun) < 30


async def test_a_token_is_revoked_before_the_new_one_is_there(broken_engine, proxy, room, tokens):
    """For five seconds every request is refused, the file is empty, then gone; the term outlives that."""
    tokens.publish(first := await tokens.new())
    second = await tokens.new()
    config = tokens.config(TokenFile(str(tokens.file)), proxy.url)
    # a busy machine needs seconds to see that the token is refused
    election = LeaderElection("operator", lease=40.0, renew=30.0)
    async with leading(broken_engine, config, room, election=election) as leader:
        await tokens.revoke(1, first)
        proxy.cut()
        await until(lambda: leader.codes()[401] > 0, "the old token is refused")
        begun = now()
        await until(lambda: now() > begun + 2, "two seconds have passed")
        tokens.publish("")
        await until(lambda: now() > begun + 4, "two more seconds have passed")
        tokens.file.unlink()
        await until(lambda: now() > begun + 5, "one more second has passed")
        ended = now()
        tokens.publish(second)
        await leader.asks(seconds=60.0)
        await leader.tells()
        assert leader.leads_its_first_term()
        # eight keys with a backoff of their own, the watches, the Lease: less than when all is well
        assert leader.rate(begun, ended) < 30
