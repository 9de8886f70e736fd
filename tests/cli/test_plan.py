"""``steersman plan``: what an operator would do, on both servers, while nothing is written."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from samples.planned import installed, plan, site, write
from steersman import Client, MergePatch
from steersman.cli import main
from steersman.kinds.apiextensions_v1 import CustomResourceDefinition
from steersman.kinds.apps_v1 import Deployment
from steersman.kinds.coordination_v1 import Lease
from steersman.kinds.core_v1 import ConfigMap, Event, Namespace, Pod, Secret, Service, ServiceAccount
from steersman.objects import Kind, ObjectMeta, Unstructured
from steersman.testing import Engine

both = pytest.mark.parametrize("api_server", ["embedded", "engine"], indirect=True)

OPERATOR = '''
from steersman import Context, Done, LeaderElection, Manager, ObjectMeta, Request, Resource, Spec, Status
from steersman.kinds.core_v1 import ConfigMap, Secret, Service, ServicePort, ServiceSpec

class SiteSpec(Spec):
    image: str
    port: int = 80

class SiteStatus(Status):
    image: str = ""

class Site(Resource[SiteSpec, SiteStatus], group="GROUP", version="v1"):
    """A web site."""

async def reconcile(ctx: Context, request: Request) -> Done:
    site = await ctx.client.find(Site, request.key)
    if site is None:
        return Done()
    name, namespace = site.key.name, site.key.namespace
    meta = ObjectMeta(name=name, namespace=namespace)
    await ctx.client.apply(ConfigMap(metadata=meta, data={"image": site.spec.image, "page": "one\\ntwo\\n" + site.spec.image}), owner=site, force=True)
    service = ServiceSpec(selector={"app": name}, ports=[ServicePort(name="http", port=site.spec.port)])
    await ctx.client.apply(Service(metadata=meta, spec=service), owner=site, force=True)
    await ctx.client.apply(Secret(metadata=meta, string_data={"key": "hush-" + site.spec.image}), owner=site, force=True)
    for each in await ctx.client.owned_by(ConfigMap, site):
        if each.key.name != name:
            await ctx.client.delete(each)
    site.status = site.status or SiteStatus()
    site.status.image = site.spec.image
    await ctx.client.save(site)
    return Done()

manager = Manager(name="site-operator", leader=LeaderElection("site-operator"))
manager.controller(Site).owns(ConfigMap).owns(Service).owns(Secret).run_with(reconcile)
'''


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory to write modules into."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in [name for name in sys.modules if name.startswith("plan_")]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


#: Every kind of which a test or its operator could write an object.
KINDS = (ConfigMap, Secret, Service, ServiceAccount, Pod, Lease, Event, Namespace, CustomResourceDefinition)


async def everything(client: Client, *kinds: Any, namespace: str | None = None) -> dict[str, str]:
    """The version of each object that there is."""
    found: dict[str, str] = {}
    for kind in (*KINDS, *kinds):
        for each in await client.list(
            kind, namespace=None if kind in (Namespace, CustomResourceDefinition) else namespace
        ):
            metadata = each.tree["metadata"] if isinstance(each, Unstructured) else each.metadata
            version = metadata["resourceVersion"] if isinstance(metadata, dict) else metadata.resource_version
            found[f"{each.kind} {each.key}"] = version
    return found


@both
async def test_a_plan_shows_what_would_be_created(api_server, here, namespace, crd_group, capsys) -> None:
    module = write(here, "plan_operator", OPERATOR.replace("GROUP", crd_group))
    async with api_server.client(field_manager="tests") as client:
        kind = await installed(client, crd_group)
        await client.create(site(crd_group, "web", namespace, image="nginx:1.27"))
        before = await everything(client, kind, namespace=namespace)
        assert await plan(api_server, f"{module}:manager", namespace) == 2
        assert await everything(client, kind, namespace=namespace) == before
    said = capsys.readouterr()
    assert said.err == ""
    assert (
        said.out.replace(namespace, "NS")
        == """\
create ConfigMap NS/web, for Site NS/web
  + data:
  +   image: nginx:1.27
  +   page: |
  +     one
  +     two
  +     nginx:1.27

create Secret NS/web, for Site NS/web
  + data:
  +   key: (hidden)
  + type: Opaque

create Service NS/web (and 9 fields set by the server), for Site NS/web
  + spec:
  +   ports:
  +     - name: http
  +       port: 80
  +   selector:
  +     app: web

status of Site NS/web
    status:
  +   image: nginx:1.27

3 to create, 1 status to write
"""
    )


async def converged(client: Client, group: str, namespace: str) -> None:
    """As the operator leaves it."""
    owner = await client.create(site(group, "web", namespace, image="nginx:1.27"))
    reference = {
        "apiVersion": f"{group}/v1",
        "kind": "Site",
        "name": "web",
        "uid": owner.tree["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    head = {"metadata": {"name": "web", "namespace": namespace, "ownerReferences": [reference]}}
    data = {"image": "nginx:1.27", "page": "one\ntwo\nnginx:1.27"}
    ports = [{"name": "http", "port": 80}]
    for tree in (
        {"apiVersion": "v1", "kind": "ConfigMap", **head, "data": data},
        {"apiVersion": "v1", "kind": "Service", **head, "spec": {"selector": {"app": "web"}, "ports": ports}},
        {"apiVersion": "v1", "kind": "Secret", **head, "stringData": {"key": "hush-nginx:1.27"}},
    ):
        await client.apply(Unstructured(tree), field_manager="site-operator", force=True)
    status = {"status": {"image": "nginx:1.27"}}
    await client.patch(Kind(f"{group}/v1", "Site"), owner.key, MergePatch(status), subresource="status")


@both
async def test_what_is_as_it_should_be_is_counted_and_the_code_is_0(
    api_server, here, namespace, crd_group, capsys
) -> None:
    module = write(here, "plan_operator", OPERATOR.replace("GROUP", crd_group))
    async with api_server.client(field_manager="tests") as client:
        await installed(client, crd_group)
        await converged(client, crd_group, namespace)
    assert await plan(api_server, module, namespace) == 0
    assert capsys.readouterr().out == "4 objects unchanged\n"


@both
async def test_a_plan_shows_what_would_change_and_go(api_server, here, namespace, crd_group, capsys) -> None:
    module = write(here, "plan_operator", OPERATOR.replace("GROUP", crd_group))
    async with api_server.client(field_manager="tests") as client:
        kind = await installed(client, crd_group)
        await converged(client, crd_group, namespace)
        web = await client.get(ConfigMap, f"{namespace}/web")
        old = ConfigMap(metadata=ObjectMeta(name="old", namespace=namespace), data={"image": "nginx:1.0"})
        old.metadata.owner_references = web.metadata.owner_references
        await client.create(old)
        key = f"{namespace}/web"
        await client.patch(kind, key, MergePatch({"spec": {"image": "nginx:1.28", "port": 8080}}))
        before = await everything(client, kind, namespace=namespace)
        assert await plan(api_server, module, namespace) == 2
        assert await everything(client, kind, namespace=namespace) == before
    assert (
        capsys.readouterr().out.replace(namespace, "NS")
        == """\
change ConfigMap NS/web, for Site NS/web
    data:
  -   image: nginx:1.27
  +   image: nginx:1.28
      page: |
        one
        two
  -     nginx:1.27
  +     nginx:1.28

change Secret NS/web, for Site NS/web
    data:
  -   key: (hidden)
  +   key: (changed)

change Service NS/web, for Site NS/web
    spec:
      ports:
        - name: http
  -       port: 80
  +       port: 8080
  -       targetPort: 80
  +       targetPort: 8080

delete ConfigMap NS/old (pruned), for Site NS/web

status of Site NS/web
    status:
  -   image: nginx:1.27
  +   image: nginx:1.28

3 to change, 1 to delete, 1 status to write
"""
    )


async def test_json_holds_all_of_it_and_no_secret(engine, here, namespace, crd_group, capsys) -> None:
    module = write(here, "plan_operator", OPERATOR.replace("GROUP", crd_group))
    async with engine.client(field_manager="tests") as client:
        kind = await installed(client, crd_group)
        await converged(client, crd_group, namespace)
        await client.patch(kind, f"{namespace}/web", MergePatch({"spec": {"image": "nginx:1.28"}}))
        assert await plan(engine, module, namespace, "--json") == 2
    said = capsys.readouterr().out
    found = json.loads(said)
    assert (found["create"], found["change"], found["delete"], found["status"]) == (0, 2, 0, 1)
    assert [(each["action"], each["kind"], each["name"]) for each in found["changes"]] == [
        ("change", "ConfigMap", "web"),
        ("change", "Secret", "web"),
        ("status", "Site", "web"),
    ]
    page, secret, status = found["changes"]
    assert page["before"]["data"]["image"] == "nginx:1.27"
    assert page["after"]["data"]["image"] == "nginx:1.28"
    assert page["for"] == [f"Site {namespace}/web"]
    assert (secret["before"]["data"], secret["after"]["data"]) == ({"key": "(hidden)"}, {"key": "(changed)"})
    assert status["after"] == {"image": "nginx:1.28"}
    for value in ("hush-nginx:1.28", "hush-nginx:1.27"):
        assert value not in said
        assert base64.b64encode(value.encode()).decode() not in said


# it cannot write

HOSTILE = '''
import asyncio
import steersman.kinds.core_v1 as v1
from steersman import Client, Context, Done, JsonPatch, Manager, MergePatch, ObjectMeta, Request
from steersman.client import StrategicPatch
from steersman.kinds.apps_v1 import Deployment
from steersman.kinds.autoscaling_v1 import Scale, ScaleSpec
from steersman.kinds.authentication_v1 import TokenRequest, TokenRequestSpec
from steersman.kinds.coordination_v1 import Lease
from steersman.kinds.policy_v1 import Eviction
from steersman.patches.json_patch import replace
from steersman.wire import HttpRequest as Wire

tried = []

async def attempt(work):
    try:
        await work
        tried.append("answered")
    except Exception as error:
        tried.append(f"{type(error).__name__}: {error}")

async def reconcile(ctx: Context, request: Request) -> Done:
    if request.key.name != "victim":
        return Done()
    c, ns = ctx.client, request.key.namespace
    key = f"{ns}/victim"
    victim = await c.get(v1.ConfigMap, key)
    def meta(name): return ObjectMeta(name=name, namespace=ns)
    await attempt(c.create(v1.ConfigMap(metadata=meta("made"))))
    await attempt(c.create(v1.ConfigMap(metadata=ObjectMeta(generate_name="made-", namespace=ns))))
    await attempt(c.create(v1.Event(metadata=meta("e"), involved_object=v1.ObjectReference(name="x", namespace=ns))))
    await attempt(c.create(Lease(metadata=meta("l"))))
    await attempt(c.create(v1.Namespace(metadata=ObjectMeta(name=f"{ns}-2"))))
    await attempt(c.create(v1.ConfigMap(metadata=ObjectMeta(name="inside", namespace=f"{ns}-2"))))
    await attempt(c.apply(v1.ConfigMap(metadata=meta("applied"), data={"a": "b"})))
    await attempt(c.apply(v1.ConfigMap(metadata=meta("victim"), data={"a": "b"}), force=True))
    await attempt(c.patch(v1.ConfigMap, key, MergePatch({"data": {"a": "c"}})))
    await attempt(c.patch(v1.ConfigMap, key, StrategicPatch({"data": {"a": "c"}})))
    await attempt(c.patch(v1.ConfigMap, key, JsonPatch.of(replace("/data", {}))))
    victim.data = {"a": "d"}
    await attempt(c.update(victim))
    await attempt(c.save(victim))
    pod = f"{ns}/pod"
    await attempt(c.patch(v1.Pod, pod, MergePatch({"status": {"phase": "Failed"}}), subresource="status"))
    await attempt(c.patch(v1.Pod, pod, MergePatch({"metadata": {"finalizers": ["x.y/z"]}})))
    await attempt(c.create_subresource(v1.Pod, pod, "eviction", Eviction(metadata=meta("pod")), returns=None))
    await attempt(c.create_subresource(v1.Pod, pod, "binding", v1.Binding(metadata=meta("pod"), target=v1.ObjectReference(name="n", kind="Node")), returns=None))
    await attempt(c.create_subresource(v1.ServiceAccount, f"{ns}/robot", "token", TokenRequest(metadata=ObjectMeta(), spec=TokenRequestSpec(audiences=["x"])), returns=TokenRequest))
    await attempt(c.update_subresource(Deployment, f"{ns}/web", "scale", Scale(metadata=meta("web"), spec=ScaleSpec(replicas=7))))
    await attempt(c.delete(v1.ConfigMap, key))
    await attempt(c.delete(v1.Pod, pod, grace_period_seconds=0))
    await attempt(c.delete(v1.Namespace, ns))
    await attempt(c.delete_collection(v1.Secret, namespace=ns))
    await attempt(c.live.delete_collection(v1.Secret, namespace=ns, dry_run=True))
    await around(c, ns)
    return Done()

async def around(c, ns):
    """What goes around the verbs."""
    secrets, body = f"/api/v1/namespaces/{ns}/secrets", b'{"apiVersion":"v1","kind":"Secret","metadata":{"name":"raw"}}'
    head = (("Content-Type", "application/json"), ("Accept", "application/json"))
    options = b'{"apiVersion":"v1","kind":"DeleteOptions"}'
    wires = [
        Wire("POST", secrets, (), head, body),
        Wire("POST", f"{secrets}?fieldManager=x", (("a", "b"),), head, body),
        Wire("POST", secrets, (("dryRun", ""),), head, body),
        Wire("POST", secrets, (("dryrun", "All"),), head, body),
        Wire("post", secrets, (), head, body),
        Wire("DELETE", f"{secrets}/s", (("dryRun", "All"),), head, options),
        Wire("DELETE", f"{secrets}/s", (("dryRun", "All"),), head, options[:-1] + b',"dryRun":["All"],"dryRun":[]}'),
        Wire("DELETE", secrets, (("dryRun", "All"),), head, options),
        Wire("DELETE", f"{secrets}/s", (), (), b"k8s\\x00\\n"),
        Wire("PUT", f"/api/v1/namespaces/{ns}/finalize", (), head, b'{"metadata":{"name":"' + ns.encode() + b'"}}'),
        Wire("GET", secrets, (), (*head, ("X-HTTP-Method-Override", "DELETE"))),
        Wire("GET", f"/api/v1/namespaces/{ns}/pods/pod/exec", (("command", "rm"),), head),
        Wire("POST", f"/api/v1/namespaces/{ns}/services/web/proxy/delete", (), head, b"{}"),
        Wire("POST", "/logs", (), head, b"{}"),
    ]
    signed = c.pipeline.server.sender._credentials
    for wire in wires:
        wire = wire.with_headers(*await signed.headers())
        await attempt(c.pipeline.server.sender.transport.send(wire))
    import os
    async with Client.connect(kubeconfig=os.environ["HOSTILE_KUBECONFIG"], field_manager="hostile") as own:
        await attempt(own.create(v1.Secret(metadata=ObjectMeta(name="own", namespace=ns))))
        await attempt(own.delete(v1.Secret, f"{ns}/s"))
        for wire in wires:
            await attempt(own._sender.transport.send(wire.with_headers(*await own._sender._credentials.headers())))

manager = Manager(name="hostile")
manager.controller(v1.ConfigMap).run_with(reconcile)
'''

TRIED = 54
REFUSED = (
    "create Lease NS/l: a plan does not take part in leader election and holds no Lease",
    "create pods/eviction NS/pod: POST of pods/eviction has no dry run",
    "create serviceaccounts/token NS/robot: POST of serviceaccounts/token has no dry run",
    "delete secrets NS/s: the body is not JSON, and a plan sends only what it can parse",
    "GET pods/exec NS/pod: GET of pods/exec has no dry run",
    "POST /logs: the path is not a resource of the Kubernetes API, and a plan changes nothing",
)

#: What the API server counts of requests that are no reads and no dry runs; its own leases are its own business.
_WRITTEN = re.compile(
    r'^apiserver_request_total\{(?=[^}]*dry_run="")(?![^}]*,resource="(leases|events)?")'
    r'(?=[^}]*verb="(POST|PUT|PATCH|APPLY|DELETE|DELETECOLLECTION|CONNECT)")[^}]*\} (\S+)$',
    re.MULTILINE,
)


async def written(client: Client) -> float:
    return sum(float(each[-1]) for each in _WRITTEN.findall((await client.request("GET", "/metrics")).decode()))


async def at_rest(client: Client) -> float:
    """How much was written when nothing is any more: an engine that has just started still sets itself up."""
    before, found = -1.0, await written(client)
    async with asyncio.timeout(60):
        while found != before:
            await asyncio.sleep(1.0)
            before, found = found, await written(client)
    return found


@pytest.fixture
def quiet_engine() -> Iterator[Engine]:
    """An engine without other writers: what an earlier test left behind ends late."""
    with Engine.start() as engine:
        yield engine


async def test_nothing_is_written_whatever_a_reconcile_tries(quiet_engine, here, capsys, monkeypatch) -> None:
    engine, namespace = quiet_engine, "hostile"
    monkeypatch.setenv("HOSTILE_KUBECONFIG", str(engine.kubeconfig))
    module = write(here, "plan_hostile", HOSTILE)
    async with engine.client(field_manager="tests") as client:
        await client.create(Namespace(metadata=ObjectMeta(name=namespace)))
        await client.create(ConfigMap(metadata=ObjectMeta(name="victim", namespace=namespace), data={"a": "a"}))
        await client.create(Secret(metadata=ObjectMeta(name="s", namespace=namespace)))
        await client.create(ServiceAccount(metadata=ObjectMeta(name="robot", namespace=namespace)))
        container = {"name": "a", "image": "a"}
        head = {"namespace": namespace}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "pod", **head},
            "spec": {"containers": [container]},
        }
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
        spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        await client.create(Unstructured(pod))
        web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", **head}, "spec": spec}
        await client.create(Unstructured(web))
        writes = await at_rest(client)
        before = await everything(client, Deployment, namespace=namespace)
        code = await plan(engine, module, namespace)
        assert await written(client) == writes
        assert await everything(client, Deployment, namespace=namespace) == before
        nothing = await everything(client, Deployment, namespace=f"{namespace}-2")
    assert code == 1
    assert not [each for each in nothing if f"{namespace}-2" in each]
    said = capsys.readouterr().out
    tried = sys.modules[module].tried
    assert len(tried) == TRIED, "the reconcile did not get through"
    assert len([each for each in tried if each.startswith("WritesNothing: ")]) == 16, (
        "its own connection is closed to it"
    )
    assert "12 rejected" in said.splitlines()[-1]
    for each in ("create ConfigMap NS/made", "create ConfigMap NS/made-(generated)", "change Deployment NS/web"):
        assert each in said.replace(namespace, "NS")
    for words in REFUSED:
        assert f"rejected: {words}" in said.replace(namespace, "NS")


def test_a_server_that_does_not_answer_is_one_sentence(here: Path, unused_tcp_port: int, capsys) -> None:
    """The caches of a plan would retry, with a warning for each kind, until its time is over."""
    target = write(here, "plan_refused", OPERATOR.replace("GROUP", "refused.test.steersman.dev"))
    cluster = {"name": "a", "cluster": {"server": f"http://127.0.0.1:{unused_tcp_port}"}}
    context = {"name": "a", "context": {"cluster": "a", "user": "a"}}
    config = {
        "clusters": [cluster],
        "users": [{"name": "a", "user": {}}],
        "contexts": [context],
        "current-context": "a",
    }
    (here / "config").write_text(json.dumps(config), encoding="utf-8")
    assert main(["plan", target, "--kubeconfig", str(here / "config"), "--timeout", "20"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert f"cannot reach http://127.0.0.1:{unused_tcp_port}: connection refused; is it running?" in said[0]
