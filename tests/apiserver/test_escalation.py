"""Roles and bindings grant only what their writer holds. `tests/conformance` compares the answers with the engine's."""

import asyncio
import json

import pytest

from samples.embedded import Answer
from steersman.apiserver import ApiServer, Attributes, Decision, User
from steersman.apiserver.chain.rbac import Rule
from steersman.apiserver.chain.rbac_coverage import COMBINATIONS_MAX, TooManyCombinations, missing
from steersman.wire import HttpRequest

RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"
KIM = User(name="kim", groups=("system:authenticated",))
ALL = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
READS = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
WRITES_ROLES = {"apiGroups": [GROUP], "resources": ["*"], "verbs": ["create", "update", "patch"]}


async def send(server, method, path, body, *, user=None, content="application/json"):
    request = HttpRequest(method, path, (), (("Content-Type", content),), json.dumps(body).encode())
    return Answer(await server.handle(request, user=user))


def role(name, *rules, kind="Role"):
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name}, "rules": list(rules)}


def binding(name, ref, user="kim", kind="ClusterRole"):
    subject = {"kind": "User", "apiGroup": GROUP, "name": user}
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": ref},
        "subjects": [subject],
    }


@pytest.fixture
async def server():
    """A server on which kim may write roles and bindings, and get ConfigMaps."""
    async with ApiServer(authorizer="rbac") as server:
        made = await send(server, "POST", f"{RBAC}/clusterroles", role("kim", WRITES_ROLES, READS, kind="ClusterRole"))
        assert made.code == 201
        assert (await send(server, "POST", f"{RBAC}/clusterrolebindings", binding("kim", "kim"))).code == 201
        yield server


async def test_the_right_to_write_bindings_is_not_the_right_to_everything(server):
    """Otherwise every user who may bind roles is an administrator."""
    escalation = await send(server, "POST", f"{RBAC}/clusterrolebindings", binding("me", "cluster-admin"), user=KIM)
    assert escalation.code == 403
    assert escalation.body["message"] == (
        f'clusterrolebindings.{GROUP} "me" is forbidden: user "kim" (groups=["system:authenticated"]) is attempting to '
        'grant RBAC permissions not currently held:\n{APIGroups:["*"], Resources:["*"], Verbs:["*"]}\n'
        '{NonResourceURLs:["*"], Verbs:["*"]}'
    )
    assert (await send(server, "GET", "/api/v1/secrets", {}, user=KIM)).code == 403
    own = f"{RBAC}/namespaces/default"
    assert (await send(server, "POST", f"{own}/rolebindings", binding("me", "cluster-admin"), user=KIM)).code == 403
    assert (await send(server, "POST", f"{own}/roles", role("all", ALL), user=KIM)).code == 403
    assert (await send(server, "POST", f"{own}/roles", role("some", READS), user=KIM)).code == 201
    assert (await send(server, "PUT", f"{own}/roles/some", role("some", ALL), user=KIM)).code == 403
    merge = "application/merge-patch+json"
    patched = await send(server, "PATCH", f"{own}/roles/some", {"rules": [ALL]}, user=KIM, content=merge)
    assert patched.code == 403
    applied = "application/apply-patch+yaml"
    path = f"{own}/roles/some"
    request = HttpRequest(
        "PATCH",
        path,
        (("fieldManager", "m"), ("force", "true")),
        (("Content-Type", applied),),
        json.dumps(role("some", ALL)).encode(),
    )
    assert (await server.handle(request, user=KIM)).status == 403


async def test_what_an_admission_plugin_adds_counts_too():
    """Otherwise a plugin that completes roles hands out what their writer lacks."""

    async def widen(attributes: Attributes) -> None:
        if attributes.definition.resource == "roles" and attributes.obj is not None:
            attributes.obj["rules"] = [ALL]

    async with ApiServer(authorizer="rbac", admission=[widen]) as server:
        await send(server, "POST", f"{RBAC}/clusterroles", role("kim", WRITES_ROLES, READS, kind="ClusterRole"))
        await send(server, "POST", f"{RBAC}/clusterrolebindings", binding("kim", "kim"))
        made = await send(server, "POST", f"{RBAC}/namespaces/default/roles", role("a", READS), user=KIM)
        assert made.code == 403


async def test_an_authorizer_of_ones_own_decides_who_escalates_and_binds():
    """A program that has its own rules for users has them for roles as well."""
    asked = []

    async def judge(access):
        asked.append((access.verb, access.resource, access.name))
        return Decision(allowed=access.verb != "bind")

    async with ApiServer(authorizer=judge) as server:
        roles, bindings = (f"{RBAC}/namespaces/default/{kind}" for kind in ("roles", "rolebindings"))
        assert (await send(server, "POST", roles, role("a", ALL), user=KIM)).code == 201
        assert (await send(server, "POST", bindings, binding("a", "a", kind="Role"), user=KIM)).code == 403
    assert ("escalate", "roles", "") in asked
    assert ("bind", "roles", "a") in asked


async def test_a_server_of_roles_alone_guards_them():
    """The guard must not depend on kinds that the server does not serve."""

    async def judge(access):
        return Decision(allowed=access.verb != "escalate")

    async with ApiServer(kinds=["v1", f"{GROUP}/v1 Role"], authorizer=judge) as server:
        path = f"{RBAC}/namespaces/default/roles"
        assert (await send(server, "POST", path, role("a", ALL), user=KIM)).code == 403


async def test_many_rules_are_not_compared_with_many_others(server):
    """Otherwise one request of a user with many rules stops the server for minutes."""
    own = [READS | {"resourceNames": [f"n{number}"]} for number in range(3000)]
    roles = f"{RBAC}/namespaces/default/roles"
    assert (await send(server, "POST", roles, role("own", *own), user=KIM)).code == 201
    bound = await send(server, "POST", roles.replace("roles", "rolebindings"), binding("own", "own", kind="Role"))
    assert bound.code == 201
    lacking = [READS | {"resources": [f"r{number}"]} for number in range(3000)]
    refused = await send(server, "POST", roles, role("more", *lacking), user=KIM)
    assert refused.code == 403
    assert "takes too long" in refused.body["message"]
    # a rule that covers them all is compared first
    assert (await send(server, "POST", f"{RBAC}/clusterroles", role("all", ALL, kind="ClusterRole"))).code == 201
    assert (await send(server, "POST", f"{RBAC}/clusterrolebindings", binding("all", "all"))).code == 201
    assert (await send(server, "POST", roles, role("more", *lacking), user=KIM)).code == 201


async def test_a_role_with_endless_combinations_is_refused_and_not_spelled_out(server):
    """A body of kilobytes would otherwise be compared combination by combination, for minutes."""
    many = [f"x{number}" for number in range(1000)]
    wide = {"apiGroups": many, "resources": many, "verbs": many, "resourceNames": many}
    made = await send(server, "POST", f"{RBAC}/clusterroles", role("wide", wide, kind="ClusterRole"), user=KIM)
    assert made.code == 403
    assert f"more than {COMBINATIONS_MAX} combinations" in made.body["message"]
    # The administrator writes any role, and one rule that covers all of it needs no combinations.
    assert (await send(server, "POST", f"{RBAC}/clusterroles", role("wide", wide, kind="ClusterRole"))).code == 201
    everything = Rule(verbs=("*",), api_groups=("*",), resources=("*",))
    named = Rule(verbs=(*many,), api_groups=(*many,), resources=(*many,))
    assert missing([everything], [named]) == []
    with pytest.raises(TooManyCombinations):
        missing([], [named])


async def test_a_custom_resource_named_like_bindings_grants_nothing(server):
    """A definition of clusterrolebindings in namespaces would make rights in one namespace rights in all of them."""
    names = {"plural": "clusterrolebindings", "singular": "shadow", "kind": "Shadow", "listKind": "ShadowList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v2", "served": True, "storage": True, "schema": schema}
    approved = {"api-approved.kubernetes.io": "unapproved, a test"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"clusterrolebindings.{GROUP}", "annotations": approved},
        "spec": {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [version]},
    }
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert (await send(server, "POST", definitions, definition)).code == 201
    shadow = {**binding("x", "cluster-admin"), "apiVersion": f"{GROUP}/v2", "kind": "Shadow"}
    path = f"/apis/{GROUP}/v2/namespaces/default/clusterrolebindings"
    assert (await send(server, "POST", path, shadow, user=KIM)).code == 403
    assert (await send(server, "POST", path, shadow)).code == 201
    assert (await send(server, "GET", "/api/v1/secrets", {}, user=KIM)).code == 403
    # Its end is not that of the bindings of the cluster.
    before = (await send(server, "GET", f"{RBAC}/clusterrolebindings", {})).names
    assert "x" not in before
    assert (await send(server, "DELETE", f"{definitions}/clusterrolebindings.{GROUP}", {})).code == 200
    async with asyncio.timeout(30):
        while (await send(server, "GET", f"{definitions}/clusterrolebindings.{GROUP}", {})).code != 404:  # noqa: ASYNC110 - the server tells watchers alone
            await asyncio.sleep(0.01)
    assert (await send(server, "GET", f"{RBAC}/clusterrolebindings", {})).names == before


async def test_a_field_in_other_letters_is_no_rule(server):
    """What the check does not see must not be stored."""
    body = {**role("folded", kind="ClusterRole"), "Rules": [ALL], "RULES": [ALL]}
    made = await send(server, "POST", f"{RBAC}/clusterroles", body, user=KIM)
    assert (made.code, made.body["rules"]) == (201, None)
