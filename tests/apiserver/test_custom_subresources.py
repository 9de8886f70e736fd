"""A program's own subresources, validators and paths: who may call them, and how they answer and fail."""

import asyncio

import pytest

from samples.embedded import Raw
from samples.site import Site, site
from steersman import Client
from steersman.apiserver import ApiServer, CustomSubresource, User, serve
from steersman.errors import ApiStatus, BadRequest, Forbidden, Invalid
from steersman.objects.field_problems import FieldProblem

SITES = "/apis/web.test.steersman.dev/v1/namespaces/default/sites"


async def echo(request):
    return {
        "verb": request.verb,
        "namespace": request.namespace,
        "name": request.name,
        "query": request.query,
        "body": request.body.decode(),
        "user": request.user,
        "image": request.obj["spec"]["image"],
    }


def served(handler, **options):
    own = CustomSubresource(kind=Site, name="log", handler=handler, **options)
    return ApiServer(kinds=["v1"], resources=[Site], subresources=[own])


async def started(server):
    async with Client(server.transport()) as client:
        await client.create(site("front", "default"))
    return Raw(server.handler)


@pytest.mark.parametrize("kinds", [["v1"], None])
async def test_a_handler_gets_the_object_and_the_request(kinds):
    """With stored definitions and without."""
    own = CustomSubresource(kind=Site, name="log", handler=echo, verbs=("get", "create"))
    async with ApiServer(kinds=kinds, resources=[Site], subresources=[own]) as server:
        raw = await started(server)
        read = await raw.get(f"{SITES}/front/log?tail=3&follow=")
        made = await raw.post(f"{SITES}/front/log", {"a": 1})
    assert read.code == 200
    assert read.headers["Content-Type"] == "application/json"
    assert read.body == {
        "verb": "get",
        "namespace": "default",
        "name": "front",
        "query": {"tail": "3", "follow": ""},
        "body": "",
        "user": "system:admin",
        "image": "nginx:1.27",
    }
    assert (made.body["verb"], made.body["body"]) == ("create", '{"a": 1}')


async def test_other_verbs_objects_and_paths_are_refused():
    async with served(echo) as server:
        raw = await started(server)
        codes = [
            (await raw.post(f"{SITES}/front/log", {})).code,
            (await raw.get(f"{SITES}/missing/log")).code,
            (await raw.get(f"{SITES}/front/log/below")).code,
            (await raw.get(f"{SITES}/front/other")).code,
        ]
    assert codes == [405, 404, 404, 404]


async def test_bytes_and_streams_keep_their_content_type():
    async def stream(request):
        async def pieces():
            yield b"one\n"
            yield b"two\n"

        return pieces() if "stream" in request.query else b"whole"

    async with served(stream, content_type="text/csv") as server:
        raw = await started(server)
        streamed, whole = await raw.get(f"{SITES}/front/log?stream"), await raw.get(f"{SITES}/front/log")
    assert (streamed.text, streamed.headers["Content-Type"]) == (b"one\ntwo\n", "text/csv")
    assert (whole.text, whole.headers["Content-Type"]) == (b"whole", "text/csv")


async def test_a_handler_that_raises_is_a_500_with_its_message(caplog):
    async def fail(request):
        raise RuntimeError("the disk is gone")

    async with served(fail) as server:
        answer = await (await started(server)).get(f"{SITES}/front/log")
    assert answer.code == 500
    assert answer.body["reason"] == "InternalError"
    assert answer.body["message"] == "Internal error occurred: sites/log of front failed: the disk is gone"
    assert "sites/log of front failed" in caplog.text


async def test_a_handler_chooses_its_error():
    async def fail(request):
        raise BadRequest(ApiStatus(code=400, reason="BadRequest", status="Failure", message="tail must be a number"))

    async with served(fail) as server:
        answer = await (await started(server)).get(f"{SITES}/front/log")
    assert (answer.code, answer.body["message"]) == (400, "tail must be a number")


async def test_it_is_in_discovery():
    async with served(echo, verbs=("get", "create")) as server:
        listed = (await Raw(server.handler).get("/apis/web.test.steersman.dev/v1")).body["resources"]
    found = next(each for each in listed if each["name"] == "sites/log")
    assert found == {
        "name": "sites/log",
        "singularName": "",
        "namespaced": True,
        "kind": "Site",
        "verbs": ["create", "get"],
    }


async def test_rbac_allows_it_by_its_name_before_the_handler_runs():
    called = []

    async def note(request):
        called.append(request.user)
        return {}

    own = CustomSubresource(kind=Site, name="log", handler=note)
    async with ApiServer(resources=[Site], subresources=[own], authorizer="rbac") as server:
        raw = await started(server)
        roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
        rule = {"apiGroups": ["web.test.steersman.dev"], "resources": ["sites/log"], "verbs": ["get"]}
        await raw.post(f"{roles}/roles", {"metadata": {"name": "logs"}, "rules": [rule]})
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "logs"}
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "kim"}
        await raw.post(
            f"{roles}/rolebindings", {"metadata": {"name": "logs"}, "roleRef": reference, "subjects": [subject]}
        )
        codes = {}
        for user in ("kim", "lee"):
            async with Client(server.transport(user)) as client:
                try:
                    await client.request("GET", f"{SITES}/front/log")
                    codes[user] = 200
                except Forbidden as error:
                    codes[user] = error.code
    assert codes == {"kim": 200, "lee": 403}
    assert called == ["kim"]


async def test_a_slow_reader_is_not_read_ahead_for():
    made = 0

    async def endless(request):
        async def pieces():
            nonlocal made
            while True:
                made += 1
                yield b"x" * 65536

        return pieces()

    async with served(endless) as server:
        await started(server)
        async with (
            asyncio.timeout(60),
            Client(server.transport()) as client,
            client.stream(f"{SITES}/front/log") as pieces,
        ):
            async for _ in pieces:
                break
    assert made < 10


@pytest.mark.parametrize("kinds", [["v1"], None])
async def test_a_validator_finds_problems_with_field_causes(kinds):
    def frozen(old, new):
        if old is None:
            return [FieldProblem("spec.image", "must have a tag")] if ":" not in new["spec"]["image"] else []
        if old["spec"]["image"] != new["spec"]["image"]:
            return [FieldProblem("spec.image", "cannot change: create another Site", "FieldValueForbidden")]
        return []

    async with (
        ApiServer(kinds=kinds, resources=[Site], validators={Site: frozen}) as server,
        Client(server.transport()) as client,
    ):
        bare = site("bare", "default")
        bare.spec.image = "nginx"
        with pytest.raises(Invalid, match="must have a tag"):
            await client.create(bare)
        made = await client.create(site("front", "default"))
        made.spec.replicas = 3
        made = await client.update(made)
        made.spec.image = "nginx:2"
        with pytest.raises(Invalid) as refused:
            await client.update(made)
    (cause,) = refused.value.causes
    assert (cause.field, cause.reason) == ("spec.image", "FieldValueForbidden")
    assert cause.message == "cannot change: create another Site"


async def test_paths_are_answered_after_authorization():
    async def admin(request):
        return {"method": request.method, "body": request.body.decode(), "user": request.user}

    async with ApiServer(kinds=["v1"], authorizer="rbac", paths={"/admin/x": admin}) as server:
        raw = Raw(server.handler)
        read = await raw.get("/admin/x")
        other = await raw.get("/admin/y")
        async with Client(server.transport(User(name="lee"))) as client:
            with pytest.raises(Forbidden, match="cannot get path"):
                await client.request("GET", "/admin/x")
    assert read.body == {"method": "GET", "body": "", "user": "system:admin"}
    assert other.code == 404


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"name": "status"}, "cannot be the name"),
        ({"name": "a/b"}, "cannot be the name"),
        ({"name": "log", "verbs": ("watch",)}, "must be among"),
    ],
)
def test_an_impossible_subresource_is_refused_at_once(own, words):
    with pytest.raises(ValueError, match=words):
        ApiServer(kinds=["v1"], resources=[Site], subresources=[CustomSubresource(kind=Site, handler=echo, **own)])


async def test_only_chosen_kinds_are_served():
    async with ApiServer(kinds=["v1 Event"], resources=[Site]) as server:
        raw = Raw(server.handler)
        core = (await raw.get("/api/v1")).body["resources"]
        groups = (await raw.get("/apis")).body["groups"]
        event = await raw.post(
            "/api/v1/namespaces/default/events",
            {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}, "reason": "Made"},
        )
    assert [each["name"] for each in core] == ["events"]
    assert [each["name"] for each in groups] == ["web.test.steersman.dev"]
    assert event.code == 201


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="v1 has no kind 'Evnt'"):
        ApiServer(kinds=["v1 Evnt"])


async def test_a_handler_uses_a_client_of_the_same_server_while_it_answers_over_a_port():
    """The request in this process has the program as its sender, not the client of the port."""
    clients = []

    async def read_again(request):
        return {"name": (await clients[0].get(Site, "default/front")).metadata.name}

    own = CustomSubresource(kind=Site, name="log", handler=read_again)
    server = ApiServer(kinds=["v1"], resources=[Site], subresources=[own])
    async with serve(server) as served, Client(server.transport()) as inside:
        clients.append(inside)
        await inside.create(site("front", "default"))
        async with Client.connect(kubeconfig=served.kubeconfig) as outside:
            assert await outside.request("GET", f"{SITES}/front/log") == b'{"name":"front"}\n'
