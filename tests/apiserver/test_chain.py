"""The chain of handlers: limits, authentication, impersonation, authorization and audit."""

import asyncio
import json
import re

import pytest

from samples.embedded import Answer
from steersman.apiserver import ApiServer, MemoryStorage, User
from steersman.apiserver.bootstrap import create_objects
from steersman.apiserver.chain import AuditFile, Authentication, Decision, Rbac, RequestLimits, Reviews, chain
from steersman.transport import InProcessTransport
from steersman.wire import HttpRequest, parse_query

TOKENS = {name: User(name=name) for name in ("kim", "lee", "jane")} | {
    "root": User(name="root", uid="0", groups=("system:masters",)),
    "robot": User(
        name="system:serviceaccount:default:robot", groups=("system:serviceaccounts", "system:serviceaccounts:default")
    ),
}
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ASK = "/apis/authorization.k8s.io/v1"
WHO = "/apis/authentication.k8s.io/v1"
CLUSTER, TEAM = "at the cluster scope", 'in the namespace "team"'


class As:
    """Requests with a token and headers."""

    def __init__(self, server):
        self._server = server

    async def __call__(self, user, method, target, body=None, headers=()):
        path, _, query = target.partition("?")
        own = (("Authorization", f"Bearer {user}"),) if user else ()
        sent = (*own, *headers, ("Content-Type", "application/json"))
        data = None if body is None else json.dumps(body).encode()
        return Answer(await self._server.handle(HttpRequest(method, path, parse_query(query), sent, data)))


def role(name, *rules, kind="Role"):
    return {"kind": kind, "metadata": {"name": name}, "rules": list(rules)}


def binding(name, role_name, *subjects, kind="Role"):
    named = [
        {"kind": sort, "name": who, **({"namespace": "default"} if sort == "ServiceAccount" else {})}
        for sort, who in subjects
    ]
    for subject in named:
        if subject["kind"] != "ServiceAccount":
            subject["apiGroup"] = "rbac.authorization.k8s.io"
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role_name}
    return {"metadata": {"name": name}, "roleRef": ref, "subjects": named}


READS = {"apiGroups": ["", "apps"], "resources": ["configmaps", "*/scale", "pods/log"], "verbs": ["get", "list"]}
ONE = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"], "verbs": ["*"]}


@pytest.fixture
async def ask():
    async with MemoryStorage() as storage:
        rbac, authentication = Rbac(storage), Authentication(tokens=TOKENS)
        server = ApiServer(
            kinds=["v1", "apps/v1", "rbac.authorization.k8s.io/v1"],
            storage=storage,
            definitions=Reviews(rbac, authentication).definitions(),
            chain=chain(authorizer=rbac, authentication=authentication),
        )
        async with server:
            await create_objects(server.registry, server.storage, policy=True)
            ask = As(server)
            await ask("root", "POST", "/api/v1/namespaces", {"metadata": {"name": "team"}})
            await ask("root", "POST", f"{RBAC}/namespaces/team/roles", role("r", READS, ONE))
            bindings = f"{RBAC}/namespaces/team/rolebindings"
            await ask("root", "POST", bindings, binding("r", "r", ("User", "kim")))
            yield ask


async def test_a_refusal_has_the_words_of_the_engine(ask):
    rows = [
        ("GET", "/api/v1/namespaces/team/pods", "pods", "list", "pods", "", TEAM),
        ("GET", "/api/v1/namespaces/team/pods/a", 'pods "a"', "get", "pods", "", TEAM),
        ("GET", "/api/v1/configmaps", "configmaps", "list", "configmaps", "", CLUSTER),
        ("GET", "/api/v1/configmaps?watch=1", "configmaps", "watch", "configmaps", "", CLUSTER),
        ("GET", "/api/v1/watch/pods", "pods", "watch", "pods", "", CLUSTER),
        ("GET", "/api/v1/nodes/n", 'nodes "n"', "get", "nodes", "", CLUSTER),
        ("GET", "/api/v1/namespaces/team", 'namespaces "team"', "get", "namespaces", "", TEAM),
        ("POST", "/api/v1/namespaces", "namespaces", "create", "namespaces", "", CLUSTER),
        ("DELETE", "/api/v1/namespaces/team/pods", "pods", "deletecollection", "pods", "", TEAM),
        (
            "PUT",
            "/apis/apps/v1/namespaces/team/deployments/x/status",
            'deployments.apps "x"',
            "update",
            "deployments/status",
            "apps",
            TEAM,
        ),
        (
            "GET",
            "/apis/no.example.com/v1/things/x",
            'things.no.example.com "x"',
            "get",
            "things",
            "no.example.com",
            CLUSTER,
        ),
        ("GET", "/api/v1/namespaces/team/pods?fieldSelector=metadata.name%3Da", 'pods "a"', "list", "pods", "", TEAM),
        ("OPTIONS", "/api/v1/namespaces/team/pods/x", 'pods "x"', "", "pods", "", TEAM),
    ]
    for method, target, subject, verb, resource, group, where in rows:
        answer = await ask("jane", method, target)
        words = (
            f'{subject} is forbidden: User "jane" cannot {verb} resource "{resource}" in API group "{group}" {where}'
        )
        assert (answer.code, answer.body["message"], answer.body["reason"]) == (403, words, "Forbidden"), target
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    answer = await ask("jane", "POST", "/nothing", {})
    assert answer.body["message"] == 'forbidden: User "jane" cannot post path "/nothing"'
    assert answer.body["details"] == {}
    assert (await ask("jane", "GET", "/apis/apps/v1/namespaces/a/deployments/x")).body["details"] == {
        "name": "x",
        "group": "apps",
        "kind": "deployments",
    }


async def test_rules_allow_what_they_name_and_nothing_else(ask):
    allowed = {
        "/api/v1/namespaces/team/configmaps": 200,
        "/apis/apps/v1/namespaces/team/deployments/x/scale": 404,
        "/api/v1/namespaces/team/pods/x/log": 404,
        "/api/v1/namespaces/team/secrets/one": 404,
        "/api/v1/namespaces/team/secrets?fieldSelector=metadata.name%3Done": 200,
        "/api/v1/namespaces/team/secrets/two": 403,
        "/api/v1/namespaces/team/secrets": 403,
        "/api/v1/namespaces/team/configmaps?watch=1": 403,
        "/api/v1/namespaces/default/configmaps": 403,
        "/api/v1/configmaps": 403,
        "/apis/apps/v1/namespaces/team/deployments/x": 403,
    }
    for target, code in allowed.items():
        assert (await ask("kim", "GET", target)).code == code, target
    assert (await ask("kim", "POST", "/api/v1/namespaces/team/configmaps", {})).code == 403


async def test_a_name_that_is_given_twice_authorizes_what_it_selects(ask):
    """A second selector would otherwise open all Secrets to a user who may read one of them."""
    for name in ("one", "two"):
        await ask("root", "POST", "/api/v1/namespaces/team/secrets", {"metadata": {"name": name}})
    rows = {
        "fieldSelector=metadata.name%3Done": ["one"],
        "fieldSelector=metadata.name%3Done&fieldSelector=": ["one"],
        "fieldSelector=metadata.name%3Done&fieldSelector=metadata.name%3Dtwo": ["one"],
        "fieldSelector=&fieldSelector=metadata.name%3Done": None,
        "fieldSelector=metadata.namespace%3Dteam&fieldSelector=metadata.name%3Done": None,
        "fieldSelector=metadata.name%3Done&limit=x": None,
        "fieldSelector=metadata.name%3Done&labelSelector=%2C%2C": None,
        "watch=1&fieldSelector=&fieldSelector=metadata.name%3Done": None,
    }
    for query, names in rows.items():
        answer = await ask("kim", "GET", f"/api/v1/namespaces/team/secrets?{query}")
        assert (answer.code, answer.names if names else None) == (200 if names else 403, names), query


async def test_a_binding_counts_at_once_and_no_longer_than_it_is_there(ask):
    await ask("root", "POST", f"{RBAC}/clusterroles", role("reader", READS, kind="ClusterRole"))
    given = binding("reader", "reader", ("ServiceAccount", "robot"), ("Group", "staff"), kind="ClusterRole")
    assert (await ask("robot", "GET", "/api/v1/configmaps")).code == 403
    assert (await ask("root", "POST", f"{RBAC}/clusterrolebindings", given)).code == 201
    assert (await ask("robot", "GET", "/api/v1/configmaps")).code == 200
    assert (await ask("jane", "GET", "/api/v1/configmaps")).code == 403
    nulls = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": None, "verbs": ["list"]}
    wide = role("reader", nulls, kind="ClusterRole")
    assert (await ask("root", "PUT", f"{RBAC}/clusterroles/reader", wide)).code == 200
    assert (await ask("robot", "GET", "/api/v1/configmaps")).code == 200
    nothing = {"kind": "ClusterRole", "metadata": {"name": "reader"}, "rules": None}
    assert (await ask("root", "PUT", f"{RBAC}/clusterroles/reader", nothing)).code == 200
    assert (await ask("robot", "GET", "/api/v1/configmaps")).code == 403


async def test_a_role_that_is_missing_is_named(ask):
    await ask("root", "POST", f"{RBAC}/namespaces/team/rolebindings", binding("b", "gone", ("User", "lee")))
    await ask("root", "POST", f"{RBAC}/clusterrolebindings", binding("b", "gone", ("User", "lee"), kind="ClusterRole"))
    cluster, local = (f'{kind}.rbac.authorization.k8s.io "gone" not found' for kind in ("clusterrole", "role"))
    answer = await ask("lee", "GET", "/api/v1/namespaces/team/pods")
    assert answer.body["message"].endswith(f'in the namespace "team": RBAC: [{cluster}, {local}]')
    answer = await ask("lee", "GET", "/nothing")
    assert answer.body["message"] == f'forbidden: User "lee" cannot get path "/nothing": RBAC: {cluster}'


async def test_reviews_say_what_a_request_would_be_answered(ask):
    async def may(user, **spec):
        answer = await ask(user, "POST", f"{ASK}/selfsubjectaccessreviews", {"spec": spec})
        assert answer.code == 201
        return answer.body["status"]

    in_team = {"namespace": "team", "resource": "configmaps"}
    assert await may("root", resourceAttributes={"verb": "get", "resource": "pods"}) == {"allowed": True}
    because = 'RBAC: allowed by RoleBinding "r/team" of Role "r" to User "kim"'
    assert await may("kim", resourceAttributes={"verb": "list", **in_team}) == {"allowed": True, "reason": because}
    assert await may("kim", resourceAttributes={"verb": "watch", **in_team}) == {"allowed": False}
    scale = {"verb": "get", "group": "apps", "resource": "deployments", "subresource": "scale", "namespace": "team"}
    assert (await may("kim", resourceAttributes=scale))["allowed"]
    discovery = (
        'ClusterRoleBinding "system:discovery" of ClusterRole "system:discovery" to Group "system:authenticated"'
    )
    assert await may("kim", nonResourceAttributes={"path": "/version", "verb": "get"}) == {
        "allowed": True,
        "reason": f"RBAC: allowed by {discovery}",
    }
    of_kim = {"user": "kim", "resourceAttributes": {"verb": "get", **in_team}}
    answer = await ask("root", "POST", f"{ASK}/subjectaccessreviews", {"spec": of_kim})
    assert (answer.code, answer.body["status"]) == (201, {"allowed": True, "reason": because})
    assert answer.body["spec"] == of_kim
    local = f"{ASK}/namespaces/team/localsubjectaccessreviews"
    answer = await ask("root", "POST", local, {"spec": of_kim})
    assert answer.body["metadata"]["namespace"] == "team"
    assert answer.body["status"]["allowed"]
    assert (await ask("kim", "POST", f"{ASK}/subjectaccessreviews", {"spec": of_kim})).code == 403
    assert (await ask("root", "GET", f"{ASK}/subjectaccessreviews")).code == 405


async def test_reviews_that_make_no_sense_are_refused_as_the_engine_does(ask):
    both = {"resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"path": "/"}}
    other = {"user": "kim", "resourceAttributes": {"verb": "get", "namespace": "other"}}
    path = {"user": "kim", "nonResourceAttributes": {"path": "/", "verb": "get"}}
    local = "namespaces/team/localsubjectaccessreviews"
    one_of = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
    rows = [
        ("selfsubjectaccessreviews", {}, f"spec: Invalid value: null: {one_of}"),
        (
            "selfsubjectaccessreviews",
            both,
            f'spec: Invalid value: {{"Path":"/","Verb":""}}: {one_of}',
        ),
        (
            "subjectaccessreviews",
            {"resourceAttributes": {"verb": "get"}},
            'spec.user: Invalid value: "": at least one of user or group must be specified',
        ),
        (local, other, 'spec.resourceAttributes.namespace: Invalid value: "other": must match metadata.namespace'),
        (
            local,
            path,
            'spec.nonResourceAttributes: Invalid value: {"Path":"/","Verb":"get"}: disallowed on this kind of request',
        ),
    ]
    for kind, spec, words in rows:
        answer = await ask("root", "POST", f"{ASK}/{kind}", {"spec": spec})
        assert (answer.code, answer.body["message"]) == (422, f'.authorization.k8s.io "" is invalid: {words}')
        assert answer.body["details"]["group"] == "authorization.k8s.io"
    answer = await ask("root", "POST", f"{ASK}/selfsubjectrulesreviews", {"spec": {"namespace": ""}})
    assert (answer.code, answer.body["message"]) == (400, "no namespace on request")


async def test_rules_of_oneself(ask):
    answer = await ask("kim", "POST", f"{ASK}/selfsubjectrulesreviews", {"spec": {"namespace": "team"}})
    status = answer.body["status"]
    assert status["resourceRules"][-2:] == [READS, ONE]
    assert {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]} in status[
        "resourceRules"
    ]
    assert [rule["nonResourceURLs"][0] for rule in status["nonResourceRules"]] == ["/api", "/healthz"]
    assert (status["incomplete"], answer.body["spec"]) == (False, {})
    answer = await ask("root", "POST", f"{ASK}/selfsubjectrulesreviews", {"spec": {"namespace": "team"}})
    assert {"verbs": ["*"], "nonResourceURLs": ["*"]} in answer.body["status"]["nonResourceRules"]


async def test_tokens_are_reviewed(ask):
    async def review(**spec):
        return await ask("root", "POST", f"{WHO}/tokenreviews", {"spec": spec})

    assert (await review(token="wrong")).body["status"] == {"user": {}, "error": "invalid bearer token"}
    assert (await review(token="root")).body["status"] == {
        "authenticated": True,
        "user": {"username": "root", "uid": "0", "groups": ["system:masters", "system:authenticated"]},
        "audiences": ["https://kubernetes.default.svc"],
    }
    assert "error" in (await review(token="root", audiences=["other"])).body["status"]
    answer = await review(token="")
    assert (answer.code, answer.body["message"]) == (400, "token is required for TokenReview in authentication")


async def whoami(ask, user, *headers):
    answer = await ask(user, "POST", f"{WHO}/selfsubjectreviews", {}, headers)
    return answer.body["status"]["userInfo"] if answer.code == 201 else answer.body["message"]


async def test_an_administrator_can_impersonate_any_user(ask):
    assert await whoami(ask, "root") == {
        "username": "root",
        "uid": "0",
        "groups": ["system:masters", "system:authenticated"],
    }
    assert await whoami(ask, "root", ("Impersonate-User", "x")) == {"username": "x", "groups": ["system:authenticated"]}
    assert await whoami(
        ask,
        "root",
        ("Impersonate-User", "x"),
        ("Impersonate-Uid", "77"),
        ("Impersonate-Group", "a"),
        ("impersonate-group", "b"),
        ("Impersonate-Extra-Acme.com%2Fproject", "v"),
        ("Impersonate-Extra-Acme.com%2Fproject", "w"),
    ) == {
        "username": "x",
        "uid": "77",
        "groups": ["a", "b", "system:authenticated"],
        "extra": {"acme.com/project": ["v", "w"]},
    }
    assert (await whoami(ask, "root", ("Impersonate-User", "system:serviceaccount:ns:n")))["groups"] == [
        "system:serviceaccounts",
        "system:serviceaccounts:ns",
        "system:authenticated",
    ]
    for headers in (
        [("Impersonate-User", "system:anonymous")],
        [("Impersonate-User", "x"), ("Impersonate-Group", "system:unauthenticated")],
    ):
        assert "cannot create resource" in await whoami(ask, "root", *headers)


async def test_impersonation_is_a_matter_of_permission(ask):
    async def told(*headers):
        return (await ask("robot", "GET", "/api/v1/namespaces", headers=headers)).body["message"]

    robot = 'User "system:serviceaccount:default:robot" cannot'
    bob = ("Impersonate-User", "bob")
    for name, mode in (
        ("bob", "user-info"),
        ("system:serviceaccount:kube-system:x", "serviceaccount"),
        ("system:node:x", "arbitrary-node"),
        ("system:serviceaccount:Kube:x", "user-info"),
        ("system:serviceaccount:kube:x:y", "user-info"),
        ("system:node:", "user-info"),
    ):
        assert await told(("Impersonate-User", name)) == (
            f'namespaces is forbidden: {robot} impersonate-on:{mode}:list resource "namespaces" in API group "" {CLUSTER}'
        )
    rule = {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"], "resourceNames": ["bob"]}
    await ask("root", "POST", f"{RBAC}/clusterroles", role("imp", rule, kind="ClusterRole"))
    given = binding("imp", "imp", ("ServiceAccount", "robot"), kind="ClusterRole")
    await ask("root", "POST", f"{RBAC}/clusterrolebindings", given)
    assert (
        await told(bob)
        == f'namespaces is forbidden: User "bob" cannot list resource "namespaces" in API group "" {CLUSTER}'
    )
    rows = [
        (("Impersonate-Group", "g"), 'groups "g"', "groups", ""),
        (("Impersonate-Uid", "u"), 'uids.authentication.k8s.io "u"', "uids", "authentication.k8s.io"),
        (
            ("Impersonate-Extra-Acme.com%2Fproject", "v"),
            'userextras.authentication.k8s.io "v"',
            "userextras/acme.com/project",
            "authentication.k8s.io",
        ),
    ]
    for header, subject, resource, group in rows:
        words = f'{subject} is forbidden: {robot} impersonate resource "{resource}" in API group "{group}" {CLUSTER}'
        assert await told(bob, header) == words


async def test_parts_of_an_identity_without_a_user_are_refused(ask):
    rows = {
        ("Impersonate-Group", "x"): 'UID:"", Groups:[]string{"x"}, Extra:map[string][]string(nil)',
        ("Impersonate-Uid", "x"): 'UID:"x", Groups:[]string(nil), Extra:map[string][]string(nil)',
        ("Impersonate-Extra-a", "x"): 'UID:"", Groups:[]string(nil), Extra:map[string][]string{"a":[]string{"x"}}',
    }
    for header, words in rows.items():
        answer = await ask("root", "GET", "/api/v1/namespaces", headers=(header,))
        told = f'requested &user.DefaultInfo{{Name:"", {words}}} without impersonating a user name'
        assert (answer.code, answer.body["message"]) == (400, told)


async def test_tokens_name_users_and_no_token_is_the_administrator_of_this_process(ask):
    answer = await ask("wrong", "GET", "/api/v1/namespaces")
    assert (answer.code, answer.body) == (
        401,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "Unauthorized",
            "reason": "Unauthorized",
            "code": 401,
        },
    )
    assert (await ask("", "GET", "/api/v1/namespaces")).code == 200
    answer = await ask("", "GET", "/api/v1/namespaces", headers=(("Authorization", "bearer kim"),))
    assert answer.code == 403


async def test_an_authorizer_may_be_any_function():
    async def only_reading(access):
        return Decision(access.verb in {"get", "list"}, f"{access.user.name} only reads")

    async with ApiServer(kinds=["v1"], chain=chain(authorizer=only_reading)) as server:
        ask = As(server)
        assert (await ask("", "GET", "/api/v1/namespaces")).code == 200
        answer = await ask("", "DELETE", "/api/v1/namespaces/default")
        assert answer.body["message"].endswith('in the namespace "default": system:admin only reads')


async def test_requests_end_in_time_and_watches_do_not():
    forever = asyncio.Event()

    async def stuck(request, next_):
        if request.info.resource == "pods":
            await forever.wait()
        return await next_(request)

    async with ApiServer(kinds=["v1"], chain=[RequestLimits(timeout=0.02), stuck]) as server:
        ask = As(server)
        answer = await ask("", "GET", "/api/v1/pods")
        assert (answer.code, answer.headers["Content-Type"]) == (504, "text/plain; charset=utf-8")
        assert answer.body == {
            "metadata": {},
            "status": "Failure",
            "message": "Timeout: request did not complete within the allotted timeout",
            "reason": "Timeout",
            "details": {},
            "code": 504,
        }
        assert (await ask("", "GET", "/api/v1/pods?timeout=100h")).code == 504
        assert (await ask("", "GET", "/api/v1/namespaces?timeout=-1s")).code == 200
        answer = await ask("", "GET", "/api/v1/namespaces?timeout=abc")
        words = 'invalid timeout specified in the request URL - time: invalid duration "abc"'
        assert (answer.code, answer.body["message"]) == (400, words)
        forever.set()
        async with InProcessTransport(server.handler) as transport:
            request = HttpRequest("GET", "/api/v1/namespaces", (("watch", "1"), ("timeoutSeconds", "1")))
            async with await transport.send(request, stream=True) as response:
                assert b"ADDED" in await response.read()


async def test_one_request_too_many_gets_a_retry_after():
    go_on, inside = asyncio.Event(), asyncio.Queue()

    async def slow(request, next_):
        inside.put_nowait(request.info.verb)
        await go_on.wait()
        return await next_(request)

    limits = RequestLimits(reading=2, writing=1)
    async with ApiServer(kinds=["v1"], chain=[limits, slow]) as server, asyncio.TaskGroup() as tasks:
        ask = As(server)
        under_way = [tasks.create_task(ask("", "GET", "/api/v1/namespaces")) for _ in range(2)]
        assert [await inside.get(), await inside.get()] == ["list", "list"]
        answer = await ask("", "GET", "/api/v1/namespaces")
        assert (answer.code, answer.headers["Retry-After"], answer.body["reason"]) == (429, "1", "TooManyRequests")
        under_way.append(tasks.create_task(ask("", "POST", "/api/v1/namespaces", {"metadata": {"name": "a"}})))
        assert await inside.get() == "create"
        assert (await ask("", "DELETE", "/api/v1/namespaces/a")).code == 429
        go_on.set()
        assert sorted([(await each).code for each in under_way]) == [200, 200, 201]
        assert (await ask("", "GET", "/api/v1/namespaces")).code == 200


async def test_one_user_cannot_take_all_places():
    go_on, inside = asyncio.Event(), asyncio.Queue()

    async def slow(request, next_):
        inside.put_nowait(request.user.name)
        await go_on.wait()
        return await next_(request)

    handlers = chain(authentication=Authentication(tokens=TOKENS), limits=RequestLimits(writing=4))
    async with ApiServer(kinds=["v1"], chain=[*handlers, slow]) as server, asyncio.TaskGroup() as tasks:
        ask = As(server)

        def create(token: str, name: str) -> asyncio.Task:
            return tasks.create_task(ask(token, "POST", "/api/v1/namespaces", {"metadata": {"name": name}}))

        under_way = [create("kim", "a"), create("kim", "b")]
        assert {await inside.get(), await inside.get()} == {"kim"}
        assert (await ask("kim", "POST", "/api/v1/namespaces", {"metadata": {"name": "c"}})).code == 429
        under_way.append(create("root", "d"))
        assert await inside.get() == "root"
        go_on.set()
        assert [(await each).code for each in under_way] == [201, 201, 201]
        assert (await ask("kim", "POST", "/api/v1/namespaces", {"metadata": {"name": "e"}})).code == 201


async def test_a_token_in_a_query_is_not_audited():
    events = []
    handlers = chain(authentication=Authentication(tokens=TOKENS), audit=events.append)
    async with ApiServer(kinds=["v1"], chain=handlers) as server:
        ask = As(server)
        query = "limit=1&access_token=hidden1&Token=hidden2&api-key=hidden3&client_secret=hidden%34"
        assert (await ask("root", "GET", f"/api/v1/namespaces?{query}")).code == 200
        assert (await ask("wrong", "GET", f"/api/v1/namespaces?{query}")).code == 401
    assert len(events) == 2
    assert "hidden" not in json.dumps(events)
    assert all(event["requestURI"].startswith("/api/v1/namespaces?limit=1&access_token=") for event in events)


async def test_a_deletion_without_an_answer_is_audited(tmp_path):
    """It is stored all the same: ``?timeout=1us`` would hide it from the audit log."""
    events = []
    handlers = chain(authentication=Authentication(tokens=TOKENS), audit=events.append)
    async with ApiServer(kinds=["v1"], chain=handlers, storage=tmp_path) as server:
        ask = As(server)
        path = "/api/v1/namespaces/default/secrets"
        await ask("root", "POST", path, {"metadata": {"name": "s"}})
        assert (await ask("root", "DELETE", f"{path}/s?timeout=1us")).code == 504
        # Answered once the deletion is stored.
        assert (await ask("root", "POST", path, {"metadata": {"name": "s"}})).code == 201
    deleted = events[1]
    assert (deleted["verb"], deleted["stage"], deleted["user"]["username"]) == ("delete", "ResponseComplete", "root")
    assert (deleted["responseStatus"]["code"], deleted["responseStatus"]["reason"]) == (504, "Timeout")


async def test_a_grace_period_is_a_number_as_go_reads_it():
    async with ApiServer(kinds=["v1"]) as server:
        for text in ("1_0", "%201", "+-1"):
            answer = await As(server)("", "DELETE", f"/api/v1/namespaces/default/pods/x?gracePeriodSeconds={text}")
            assert (answer.code, answer.body["reason"]) == (400, "BadRequest")


def test_a_planted_audit_file_is_not_written(tmp_path):
    mine = tmp_path / "mine"
    mine.touch(mode=0o600)
    link = tmp_path / "link"
    link.symlink_to(mine)
    shared = tmp_path / "shared"
    shared.touch()
    shared.chmod(0o644)
    for path in (link, shared):
        with pytest.raises(PermissionError, match=r"symbolic link|other users can read it"):
            AuditFile(path)
    with AuditFile(mine) as hook:
        hook({"kind": "Event"})
    assert mine.read_text() == '{"kind":"Event"}\n'


async def test_the_audit_log_has_every_request_without_bodies_and_tokens(tmp_path):
    path = tmp_path / "audit.log"

    async def deny_deletes(access):
        return Decision(access.verb != "delete", "deletes are denied")

    with AuditFile(path) as hook:
        handlers = chain(authorizer=deny_deletes, authentication=Authentication(tokens=TOKENS), audit=hook)
        async with ApiServer(kinds=["v1"], chain=handlers) as server:
            ask = As(server)
            secret = {"metadata": {"name": "s"}, "stringData": {"k": "hidden"}}
            made = await ask("root", "POST", "/api/v1/namespaces/default/secrets", secret)
            refused = await ask(
                "root", "DELETE", "/api/v1/namespaces/default/secrets/s", headers=(("Impersonate-User", "kim"),)
            )
            async with InProcessTransport(server.handler) as transport:
                request = HttpRequest("GET", "/api/v1/namespaces", (("watch", "1"),), (("Audit-ID", "mine"),))
                async with await transport.send(request, stream=True) as response:
                    await anext(response.chunks())
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text()
    assert "hidden" not in text
    assert "Bearer" not in text
    created, deleted, started, ended = map(json.loads, text.splitlines())
    assert created["auditID"] == made.headers["Audit-Id"]
    times = [created.pop(name) for name in ("requestReceivedTimestamp", "stageTimestamp")]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", each) for each in times)
    assert created == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": created["auditID"],
        "stage": "ResponseComplete",
        "requestURI": "/api/v1/namespaces/default/secrets",
        "verb": "create",
        "user": {"username": "root", "uid": "0", "groups": ["system:masters", "system:authenticated"]},
        "sourceIPs": [],
        "objectRef": {"resource": "secrets", "namespace": "default", "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 201},
        "annotations": {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": "deletes are denied"},
    }
    assert deleted["auditID"] == refused.headers["Audit-Id"]
    assert deleted["impersonatedUser"] == {"username": "kim", "groups": ["system:authenticated"]}
    assert deleted["user"]["username"] == "root"
    assert deleted["responseStatus"]["reason"] == "Forbidden"
    assert deleted["annotations"]["authorization.k8s.io/decision"] == "forbid"
    assert [(each["auditID"], each["stage"]) for each in (started, ended)] == [
        ("mine", "ResponseStarted"),
        ("mine", "ResponseComplete"),
    ]
