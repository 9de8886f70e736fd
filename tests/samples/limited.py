"""A program with few rights: a ServiceAccount and one Role, on any API server."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from steersman import Client, Key, MergePatch, ObjectMeta
from steersman.client import BearerToken, load_kubeconfig
from steersman.kinds.authentication_v1 import TokenRequest, TokenRequestSpec
from steersman.kinds.core_v1 import ServiceAccount
from steersman.kinds.rbac_v1 import PolicyRule, Role, RoleBinding, RoleRef, Subject
from steersman.objects.document import to_tree

READ = ["get", "list", "watch"]


def rule(resource: str, *verbs: str, group: str = "", names: list[str] | None = None) -> PolicyRule:
    """A rule for one resource, or for those objects of it with these names; without verbs: get, list and watch."""
    return PolicyRule(api_groups=[group], resources=[resource], verbs=list(verbs) or READ, resource_names=names)


class Limited:
    """A client that may do what its Role in one namespace allows."""

    def __init__(self, client: Client, admin: Client, role: Key) -> None:
        self.client = client
        self._admin = admin
        self._role = role

    async def allow(self, *rules: PolicyRule) -> None:
        """Replace the rules of the Role. The server's authorizer follows a moment later."""
        await self._admin.patch(Role, self._role, MergePatch({"rules": [to_tree(each) for each in rules]}))


@asynccontextmanager
async def limited(api_server: Any, admin: Client, namespace: str, *rules: PolicyRule) -> AsyncGenerator[Limited]:
    """Connect as a new ServiceAccount of a namespace with these rights there."""
    key = Key(namespace, "limited")
    metadata = ObjectMeta(name=key.name, namespace=namespace)
    await admin.create(ServiceAccount(metadata=metadata))
    await admin.create(Role(metadata=metadata, rules=list(rules)))
    await admin.create(
        RoleBinding(
            metadata=metadata,
            role_ref=RoleRef(api_group="rbac.authorization.k8s.io", kind="Role", name=key.name),
            subjects=[Subject(kind="ServiceAccount", name=key.name, namespace=namespace)],
        )
    )
    asked = TokenRequest(metadata=ObjectMeta(), spec=TokenRequestSpec(audiences=[]))
    answer = await admin.create_subresource(ServiceAccount, key, "token", asked, returns=TokenRequest)
    config = load_kubeconfig(api_server.kubeconfig)
    # without the certificate of the administrator
    tls = dataclasses.replace(config.tls, certificate_data=None, certificate_file=None, key_data=None, key_file=None)
    config = dataclasses.replace(config, auth=BearerToken(answer.status.token), tls=tls)
    async with Client.connect(config, namespace=namespace, field_manager="limited") as client:
        yield Limited(client, admin, key)
