"""The objects that a server has from its start: those of kube-apiserver, complete again after each restart."""

import json
import runpy
from pathlib import Path

import pytest

from samples.embedded import MERGE, Raw
from samples.site import GROUP, Site
from steersman import Client
from steersman.apiserver import ApiServer, MemoryStorage, User, serve
from steersman.apiserver.bootstrap.policy import complete
from steersman.kinds.core_v1 import ConfigMap, Endpoints, Service
from steersman.kinds.discovery_v1 import EndpointSlice
from steersman.testing import eventually
from steersman.transport import InProcessTransport
from steersman.wire import HttpRequest

RBAC = "/apis/rbac.authorization.k8s.io/v1"
API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
TOOL = Path(__file__).parents[2] / "tools" / "bootstrap-objects"
AGGREGATED = {"admin", "edit", "view"}


def comparable(tree):
    """An object without what kube-controller-manager adds: the tool reads it too, the engine of a run has none."""
    if tree["kind"] == "ClusterRole" and tree["metadata"]["name"] in AGGREGATED:
        managers = [each for each in tree["metadata"]["managedFields"] if each["manager"] == "kube-apiserver"]
        return tree | {"rules": None, "metadata": tree["metadata"] | {"managedFields": managers}}
    return tree


async def test_the_data_is_what_the_engine_creates(engine):
    tool = runpy.run_path(str(TOOL))
    async with engine.client(field_manager="tests") as client:
        for file in ("objects", "policy"):
            stored = json.loads((tool["DATA"] / f"{file}.json").read_text())

            async def is_same(file: str = file, stored: dict = stored) -> bool:
                found = await tool["read"](client, file)
                # Other tests add objects: only those of the server are compared.
                lacking = [
                    tree["metadata"]["name"]
                    for resource, trees in stored.items()
                    for tree in trees
                    if comparable(tree) not in map(comparable, found[resource])
                ]
                return not lacking

            # The engine completes some of them after it is ready.
            await eventually(is_same, within=30)


async def test_every_server_has_the_objects_of_its_kinds_and_roles_only_with_rbac():
    async with ApiServer() as server:
        raw = Raw(server.handler)
        assert (await raw.get("/api/v1/namespaces")).names == [
            "default",
            "kube-node-lease",
            "kube-public",
            "kube-system",
        ]
        assert (await raw.get("/api/v1/services")).names == ["kubernetes"]
        assert (await raw.get("/apis/scheduling.k8s.io/v1/priorityclasses")).names == [
            "system-cluster-critical",
            "system-node-critical",
        ]
        assert (await raw.get("/apis/networking.k8s.io/v1/servicecidrs")).names == ["kubernetes"]
        assert "v1.apps" in (await raw.get(API_SERVICES)).names
        assert {"exempt", "catch-all"} <= set((await raw.get(f"{FLOW}/flowschemas")).names)
        for resource in ("clusterroles", "clusterrolebindings", "roles", "rolebindings"):
            assert (await raw.get(f"{RBAC}/{resource}")).names == []
        uids = [each["metadata"]["uid"] for each in (await raw.get(API_SERVICES)).body["items"]]
        assert len(set(uids)) == len(uids)
    async with ApiServer(kinds=["v1 Namespace", "apiregistration.k8s.io/v1"], authorizer="rbac") as server:
        raw = Raw(server.handler)
        assert (await raw.get(API_SERVICES)).names == [
            "v1.",
            "v1.rbac.authorization.k8s.io",
        ]
        assert "cluster-admin" in (await raw.get(f"{RBAC}/clusterroles")).names


async def test_the_address_of_the_own_service_is_taken():
    async with ApiServer() as server:
        spec = {"clusterIP": "10.0.0.1", "ports": [{"port": 80}]}
        answer = await Raw(server.handler).post(
            "/api/v1/namespaces/default/services", {"metadata": {"name": "a"}, "spec": spec}
        )
        assert answer.code == 422
        assert "provided IP is already allocated" in answer.body["message"]


async def test_a_restart_completes_roles_and_keeps_what_was_added(tmp_path):
    roles, bindings = f"{RBAC}/clusterroles", f"{RBAC}/clusterrolebindings"
    own = {"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["boats"]}
    async with ApiServer(authorizer="rbac", storage=tmp_path / "a") as server:
        raw = Raw(server.handler)
        before = (await raw.get(f"{roles}/system:basic-user")).body
        revision = (await raw.get(roles)).version
        await raw.send("DELETE", f"{roles}/system:discovery")
        await raw.send("PATCH", f"{roles}/system:basic-user", {"rules": [own]}, content_type=MERGE)
        protected = {
            "metadata": {"annotations": {"rbac.authorization.kubernetes.io/autoupdate": "false"}},
            "rules": [own],
        }
        await raw.send("PATCH", f"{roles}/system:monitoring", protected, content_type=MERGE)
        await raw.send("PATCH", f"{bindings}/system:basic-user", {"subjects": []}, content_type=MERGE)
        await raw.send("DELETE", "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical")
    async with ApiServer(authorizer="rbac", storage=tmp_path / "a") as server:
        raw = Raw(server.handler)
        assert (await raw.get(f"{roles}/system:discovery")).code == 200
        rules = (await raw.get(f"{roles}/system:basic-user")).body["rules"]
        assert rules[0] == own
        told = {(each["resources"][0], *each["verbs"]) for each in rules[1:]}
        assert told == {(name, "create") for rule in before["rules"] for name in rule["resources"]}
        assert (await raw.get(f"{roles}/system:monitoring")).body["rules"] == [own]
        subjects = (await raw.get(f"{bindings}/system:basic-user")).body["subjects"]
        assert [each["name"] for each in subjects] == ["system:authenticated"]
        assert (await raw.get("/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical")).code == 200
        completed = (await raw.get(roles)).version
        assert completed > revision
    async with ApiServer(authorizer="rbac", storage=tmp_path / "a") as server:
        # Nothing was missing.
        assert (await Raw(server.handler).get(roles)).version == completed


def test_only_what_a_role_lacks_is_added():
    rule = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "pods/log"]}
    stored = {"metadata": {"name": "a", "labels": {"x": "y"}}, "rules": [rule | {"resources": ["pods", "*/log"]}]}
    assert not complete(stored, {"metadata": {"name": "a"}, "rules": [rule]})
    wanted = rule | {"verbs": ["get", "watch"]}
    assert complete(stored, {"metadata": {"name": "a", "labels": {"x": "z", "b": "c"}}, "rules": [wanted]})
    assert stored["metadata"]["labels"] == {"x": "y", "b": "c"}
    added = [{"verbs": ["watch"], "apiGroups": [""], "resources": [name]} for name in ("pods", "pods/log")]
    assert stored["rules"][1:] == added


async def test_a_port_is_found_in_the_own_service_and_its_endpoints(tmp_path):
    for _ in range(2):
        async with (
            serve(ApiServer(storage=tmp_path / "store"), folder=tmp_path / "a") as served,
            Client.connect(kubeconfig=served.kubeconfig, on_warning=lambda _: None) as client,
        ):
            service = await client.get(Service, "default/kubernetes")
            assert [(each.port, each.target_port) for each in service.spec.ports] == [(443, served.port)]
            endpoints = await client.get(Endpoints, "default/kubernetes")
            assert [(each.addresses[0].ip, each.ports[0].port) for each in endpoints.subsets] == [
                ("127.0.0.1", served.port)
            ]
            found = await client.list(EndpointSlice, labels={"kubernetes.io/service-name": "kubernetes"})
            assert [(each.endpoints[0].addresses, each.ports[0].port) for each in found] == [
                (["127.0.0.1"], served.port)
            ]
            trust = await client.get(ConfigMap, "kube-system/extension-apiserver-authentication")
            assert trust.data == {"client-ca-file": served.authority.decode()}


async def test_api_services_follow_definitions():
    name = f"{API_SERVICES}/v1.{GROUP}"
    async with MemoryStorage() as storage, ApiServer(resources=[Site], storage=storage) as server:
        raw = Raw(server.handler)
        found = await raw.get(name)
        assert found.body["spec"] == {
            "group": GROUP,
            "version": "v1",
            "groupPriorityMinimum": 1000,
            "versionPriority": 100,
        }
        assert found.body["status"]["conditions"][0]["status"] == "True"
        await raw.send("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/sites.{GROUP}")

        async def is_gone() -> bool:
            return (await raw.get(name)).code == 404

        await eventually(is_gone, within=30)


@pytest.fixture
async def classified():
    """The names of the FlowSchema and the priority level of a request, by user."""
    async with ApiServer() as server:
        raw = Raw(server.handler)

        async def ask(user: User, path: str = "/api/v1/pods") -> tuple[str, str]:
            names = {}
            for resource in ("flowschemas", "prioritylevelconfigurations"):
                for each in (await raw.get(f"{FLOW}/{resource}")).body["items"]:
                    names[each["metadata"]["uid"]] = each["metadata"]["name"]
            headers = dict((await server.handle(HttpRequest("GET", path), user=user)).headers)
            told = [headers[f"X-Kubernetes-Pf-{what}-Uid"] for what in ("Flowschema", "Prioritylevel")]
            return names[told[0]], names[told[1]]

        yield raw, ask


async def test_a_new_flow_schema_classifies_requests(classified):
    raw, ask = classified
    kim = User(name="kim", groups=("system:authenticated",))
    assert await ask(kim) == ("global-default", "global-default")
    assert await ask(User(name="a", groups=("system:masters",))) == ("exempt", "exempt")
    rules = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}]
    of_kim = {"subjects": [{"kind": "User", "user": {"name": "kim"}}], "resourceRules": rules}
    spec = {"matchingPrecedence": 500, "priorityLevelConfiguration": {"name": "own"}, "rules": [of_kim]}
    await raw.post(f"{FLOW}/flowschemas", {"metadata": {"name": "of-kim"}, "spec": spec})
    # Its level is missing.
    assert await ask(kim) == ("global-default", "global-default")

    async def condition() -> str:
        status = (await raw.get(f"{FLOW}/flowschemas/of-kim")).body.get("status", {})
        return status.get("conditions", [{}])[0].get("message", "")

    async def is_dangling() -> bool:
        return "but there is no such object" in await condition()

    await eventually(is_dangling, within=30)
    limited = {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}}
    level = {"metadata": {"name": "own"}, "spec": {"type": "Limited", "limited": limited}}
    await raw.post(f"{FLOW}/prioritylevelconfigurations", level)

    async def is_classified() -> bool:
        return await ask(kim) == ("of-kim", "own")

    await eventually(is_classified, within=30)
    assert '"own" and it exists' in await condition()
    assert await ask(kim, "/nothing") == ("global-default", "global-default")


async def test_a_flow_schema_may_name_a_namespace(classified):
    """Decisions are kept for each namespace that a FlowSchema names, and for all others together."""
    raw, ask = classified
    kim = User(name="kim", groups=("system:authenticated",))
    pods = "/api/v1/namespaces/{}/pods"
    assert await ask(kim, pods.format("shop")) == await ask(kim, pods.format("other"))
    rules = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["shop"]}]
    of_kim = {"subjects": [{"kind": "User", "user": {"name": "kim"}}], "resourceRules": rules}
    spec = {"matchingPrecedence": 500, "priorityLevelConfiguration": {"name": "exempt"}, "rules": [of_kim]}
    await raw.post(f"{FLOW}/flowschemas", {"metadata": {"name": "of-kim"}, "spec": spec})

    async def is_classified() -> bool:
        return await ask(kim, pods.format("shop")) == ("of-kim", "exempt")

    await eventually(is_classified, within=30)
    for place in (pods.format("other"), pods.format("third"), "/api/v1/pods"):
        assert await ask(kim, place) == ("global-default", "global-default"), place
    assert await is_classified()


async def test_rejections_are_classified_too():
    async with ApiServer(authorizer="rbac") as server, InProcessTransport(server.handler):
        answer = await server.handle(HttpRequest("GET", "/api/v1/pods"), user=User(name="kim"))
        assert answer.status == 403
        assert {"X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid"} <= dict(answer.headers).keys()
