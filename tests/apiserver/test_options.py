"""Options of an ApiServer: authentication, storage, and the errors for combinations that make no sense."""

import pydoc

import pytest

from samples.embedded import Raw
from samples.site import GROUP, Site, site
from steersman import Client, Resource, Spec, apiserver
from steersman.apiserver import ApiServer, User
from steersman.apiserver.chain import Authentication, chain
from steersman.controlplane import ControlPlane
from steersman.errors import ApiError, Forbidden, Invalid
from steersman.kinds.authentication_v1 import SelfSubjectReview
from steersman.kinds.core_v1 import ConfigMap
from steersman.markers import Rule
from steersman.objects import ObjectMeta

SITES = f"/apis/{GROUP}/v1/namespaces/default/sites"
CONFIG_MAP = ConfigMap(metadata=ObjectMeta(name="a"))


async def who(server, user=None):
    async with Client(server.transport(user)) as client:
        found = (await client.create(SelfSubjectReview(metadata=ObjectMeta()))).status.user_info
    return found.username, tuple(found.groups or ())


@pytest.mark.parametrize("name", apiserver.__all__)
def test_every_public_name_can_be_asked_for_help(name):
    assert pydoc.render_doc(getattr(apiserver, name))


# who sends a request


async def test_a_transport_is_the_administrators_or_a_users():
    async with ApiServer(kinds=["v1", "authentication.k8s.io/v1"]) as server:
        assert await who(server) == ("system:admin", ("system:masters", "system:authenticated"))
        assert await who(server, "kim") == ("kim", ("system:authenticated",))
        assert await who(server, User(name="kim", groups=("staff",))) == ("kim", ("staff", "system:authenticated"))
        assert await who(server, "system:serviceaccount:shop:robot") == (
            "system:serviceaccount:shop:robot",
            ("system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"),
        )


async def test_rbac_brings_its_kinds_and_denies_everything_until_a_role_allows_it():
    server = ApiServer(kinds=["v1"], authorizer="rbac")
    async with server, Client(server.transport("kim")) as kim, Client(server.transport()) as admin:
        with pytest.raises(Forbidden, match='User "kim" cannot create resource "configmaps"'):
            await kim.create(CONFIG_MAP)
        raw = Raw(server.handler)
        rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
        rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}
        await raw.post(f"{rbac}/roles", {"metadata": {"name": "r"}, "rules": [rule]})
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "kim"}
        binding = {"metadata": {"name": "r"}, "roleRef": ref, "subjects": [subject]}
        assert (await raw.post(f"{rbac}/rolebindings", binding)).code == 201
        await kim.create(CONFIG_MAP)
        with pytest.raises(Forbidden):
            await kim.get(ConfigMap, "a")
        await admin.get(ConfigMap, "a")


async def test_tokens_and_an_audit_need_no_chain():
    told = []
    tokens = {"secret": User(name="kim")}
    async with ApiServer(kinds=["v1"], tokens=tokens, audit=told.append) as server:
        raw = Raw(server.handler)
        await raw.get("/api/v1/configmaps")
        async with Client(server.transport()) as client:
            await client.list(ConfigMap)
    assert [event["user"]["username"] for event in told] == ["system:admin", "system:admin"]
    with pytest.raises(ValueError, match="pass them to chain"):
        ApiServer(kinds=["v1"], tokens=tokens, chain=chain(authentication=Authentication()))


async def test_a_function_admits():
    async def stamp(attributes):
        if attributes.obj["metadata"].get("name") == "b":
            raise attributes.refused("so says the function")
        attributes.obj["metadata"]["labels"] = {"seen": attributes.operation}
        attributes.warn("seen")

    async with ApiServer(kinds=["v1"], admission=[stamp]) as server:
        raw = Raw(server.handler)
        path = "/api/v1/namespaces/default/configmaps"
        made = await raw.post(path, {"metadata": {"name": "a"}})
        assert made.body["metadata"]["labels"] == {"seen": "CREATE"}
        assert made.headers["Warning"] == '299 - "seen"'
        refused = await raw.post(path, {"metadata": {"name": "b"}})
        assert (refused.code, refused.body["message"]) == (403, 'configmaps "b" is forbidden: so says the function')
        assert (await raw.delete(f"{path}/a")).code == 200


def test_a_misspelled_option_is_rejected():
    """It would have no effect, and the program would not find out."""
    for make in (ApiServer, ControlPlane):
        with pytest.raises(TypeError, match="resource is not an option of ApiServer; did you mean resources"):
            make(resource=[Site])


# where objects are


async def test_a_folder_keeps_objects(tmp_path):
    for expected in ([], ["a"]):
        async with ApiServer(kinds=["v1"], storage=tmp_path / "data") as server, Client(server.transport()) as client:
            assert [found.key.name for found in await client.list(ConfigMap)] == expected
            if not expected:
                await client.create(CONFIG_MAP)


# kinds of one's own


async def test_a_resource_class_is_judged_by_its_schema(client, raw):
    sent = {"apiVersion": f"{GROUP}/v1", "kind": "Site", "metadata": {"name": "a"}}
    made = await raw.post(SITES, sent | {"spec": {"image": "i", "color": "red"}})
    assert made.code == 201
    assert made.body["spec"] == {"image": "i", "replicas": 1, "mode": "static"}
    assert made.headers["Warning"] == '299 - "unknown field \\"spec.color\\""'
    refused = await raw.post(SITES, sent | {"metadata": {"name": "b"}, "spec": {"replicas": 51, "mode": "x"}})
    assert refused.code == 422
    assert refused.causes == [
        ("spec.replicas", "FieldValueInvalid"),
        ("spec.mode", "FieldValueNotSupported"),
        ("spec.image", "FieldValueRequired"),
    ]
    assert (await raw.patch(f"{SITES}/a", {"spec": {"replicas": -1}})).code == 422
    assert (await raw.patch(f"{SITES}/a/status", {"status": {"readyReplicas": "many"}})).code == 422
    with pytest.raises(Invalid):
        await client.create(site("c", "default", replicas=99))


async def test_rules_are_evaluated():
    class BoatSpec(Spec, rules=(Rule(rule="self.masts > 0", message="no masts"),)):
        masts: int

    class Boat(Resource[BoatSpec, None], group="boats.example.com", version="v1"):
        """Something to steer."""

    async with ApiServer(kinds=[], resources=[Boat]) as server:
        refused = await Raw(server.handler).post(
            "/apis/boats.example.com/v1/namespaces/default/boats",
            {
                "apiVersion": "boats.example.com/v1",
                "kind": "Boat",
                "metadata": {"name": "raft"},
                "spec": {"masts": 0},
            },
        )
    assert (refused.code, refused.causes) == (422, [("spec", "FieldValueInvalid")])
    assert refused.body["details"]["causes"][0]["message"] == "Invalid value: no masts"


# what cannot be meant


class OtherSpec(Spec):
    image: str


class Other(Resource[OtherSpec, None], group=GROUP, version="v1", kind="Other", plural="sites"):
    """Another kind of the same name."""


class Newer(Resource[OtherSpec, None], group=GROUP, version="v2", kind="Site", plural="sites"):
    """The same kind once more."""


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"kinds": ["nope/v1"]}, ValueError, "'nope/v1' is not a built-in group-version; available: admission"),
        ({"kinds": ["app/v1"]}, ValueError, "'app/v1' is not a built-in group-version; did you mean apps/v1"),
        ({"kinds": "v1"}, TypeError, r"write kinds=\['v1'\]"),
        ({"resources": Site}, TypeError, r"write resources=\[Site\]"),
        ({"resources": ["Site"]}, TypeError, "'Site' declares no kind"),
        ({"resources": [ObjectMeta]}, TypeError, "ObjectMeta declares no kind"),
        ({"resources": [Site, Other]}, ValueError, "Site and Other are both sites.web.test.steersman.dev"),
        (
            {"resources": [Site, Newer]},
            TypeError,
            r"exactly one version must be the storage version, but Site \(v1\), Newer \(v2\) are",
        ),
        (
            {"resources": [ConfigMap]},
            ValueError,
            "ConfigMap is one of Kubernetes' own kinds, which kinds=\\['v1'\\] serves",
        ),
        ({"authorizer": "abac"}, TypeError, 'authorizer must be "rbac" or a function'),
        (
            {"enable_admission_plugins": ["ServiceAcount"]},
            ValueError,
            "'ServiceAcount' is not an admission plugin of this server; did you mean ServiceAccount\\? available: Nam",
        ),
        ({"disable_admission_plugins": "Priority"}, TypeError, r"write disable_admission_plugins=\['Priority'\]"),
        (
            {"enable_admission_plugins": ["Priority"], "disable_admission_plugins": ["Priority"]},
            ValueError,
            "Priority is in enable_admission_plugins and in disable_admission_plugins",
        ),
    ],
)
def test_mistakes_are_named(options, error, words):
    with pytest.raises(error, match=words):
        ApiServer(**options)


def test_the_same_class_twice_is_once():
    assert ApiServer(kinds=[], resources=[Site, Site]).registry.find(GROUP, "v1", "sites") is not None


async def test_a_server_runs_once_at_a_time_and_can_begin_again():
    server = ApiServer(kinds=["v1"])
    async with server:
        with pytest.raises(RuntimeError, match="is already running"):
            await server.__aenter__()
    async with server, Client(server.transport()) as client:
        await client.create(CONFIG_MAP)


async def test_before_and_after_its_block_it_says_that_it_does_not_run():
    server = ApiServer(kinds=["v1"])
    async with Client(server.transport()) as client:
        with pytest.raises(ApiError, match="is not running"):
            await client.get(ConfigMap, "a")
        async with server:
            await client.create(CONFIG_MAP)
        with pytest.raises(ApiError, match="is not running"):
            await client.get(ConfigMap, "a")
