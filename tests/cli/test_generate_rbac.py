"""``steersman generate rbac``: what it writes is enough for the manager that it was read from, and for no more."""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from steersman import Client, Kind, ObjectMeta, Unstructured
from steersman.aio import Supervisor
from steersman.cli import main
from steersman.client import Added, Modified
from steersman.controlplane import ControlPlane
from steersman.errors import Forbidden
from steersman.kinds.core_v1 import ConfigMap, Namespace, Secret
from steersman.manifests import load_manifests
from steersman.testing import eventually
from steersman.webhooks import WebhookRegistration

MODULE = '''
from steersman import Context, Done, LeaderElection, Manager, ObjectMeta, Request, Resource, Spec, Status
from steersman.kinds.core_v1 import ConfigMap
from steersman.kinds.rbac_v1 import RoleBinding
from steersman.manager import Shards
from steersman.patterns import Outputs, reconciles
from steersman.webhooks import WebhookEndpoint, mutates

class PageSpec(Spec):
    text: str

class PageStatus(Status):
    published: bool = False

class Page(Resource[PageSpec, PageStatus], group="rbac.example.com", version="v1"):
    """A page."""

async def reconcile(ctx: Context, request: Request) -> Done:
    page = await ctx.client.find(Page, request.key)
    if page is None or page.deleting:
        return Done()
    copy = ConfigMap(metadata=ObjectMeta(name=page.key.name, namespace=page.key.namespace), data={"text": page.spec.text})
    await ctx.client.apply(copy, owner=page)
    page.status = PageStatus(published=True)
    await ctx.client.save(page)
    return Done()

async def generate(page: Page, out: Outputs) -> Done:
    """The same, declared."""
    out.apply(ConfigMap(metadata=ObjectMeta(name=page.key.name), data={"text": page.spec.text}))
    page.status = PageStatus(published=True)
    return Done()

manager = Manager(name="page-operator", leader=LeaderElection("page-operator"))
manager.controller(Page).owns(ConfigMap).run_with(reconcile)

new = Manager(name="page-operator", formerly=("old-operator",))
new.add(reconciles(Page, children=(ConfigMap,))(generate))

shared = Manager(name="page-operator", shards=Shards("page-operator"))
shared.add(reconciles(Page, children=(ConfigMap,))(generate))

hooked = Manager(name="page-operator", webhook_endpoint=WebhookEndpoint(service="page-operator/hooks", port=0, leaving=0))

@mutates(Page)
def defaults(page: Page) -> Page:
    return page

hooked.add(defaults)

binds = Manager(name="page-operator")
binds.controller(Page).owns(RoleBinding).run_with(reconcile)

async def make(client): ...
nameless = Manager()
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "rbac_pages", raising=False)
    (tmp_path / "rbac_pages.py").write_text(MODULE)
    return lambda: __import__("rbac_pages")


@asynccontextmanager
async def granted(kind: type, roles: str, *, asked: list[str] | None = None, **options: Any):
    """A server with these roles: the administrator's client, the operator's, and the requests that are refused.

    ``asked`` receives the paths of all requests.
    """
    refused: list[dict] = []

    def audit(event: dict) -> None:
        if asked is not None:
            asked.append(event["requestURI"])
        if event["responseStatus"]["code"] == 403:
            refused.append(event)

    plane = ControlPlane(resources=[kind], authorizer="rbac", audit=audit, **options)
    account = "system:serviceaccount:page-operator:page-operator"
    async with plane, Client(plane.transport(account), namespace="page-operator") as operator:
        await plane.client.create(Namespace(metadata=ObjectMeta(name="page-operator")))
        for role in load_manifests(roles):
            await plane.client.create(role)
        yield plane.client, operator, refused


async def test_a_manager_runs_with_what_was_generated_and_may_do_no_more(module, tmp_path: Path):
    assert main(["generate", "rbac", "rbac_pages:manager", "-o", "rbac.yaml"]) == 0
    assert main(["generate", "rbac", "rbac_pages:manager", "-o", "rbac.yaml", "--check"]) == 0
    pages = module()
    async with granted(pages.Page, (tmp_path / "rbac.yaml").read_text()) as (admin, operator, refused):
        await admin.create(pages.Page(metadata=ObjectMeta(name="home", namespace="default"), spec={"text": "hello"}))
        async with Supervisor() as tasks:
            tasks.start(pages.manager.run(operator), name="operator")
            async with asyncio.timeout(60), admin.watch(pages.Page, namespace="default") as events:
                async for event in events:
                    if isinstance(event, (Added, Modified)) and event.object.status and event.object.status.published:
                        break
            assert (await admin.get(ConfigMap, ("default", "home"))).data == {"text": "hello"}
            pages.manager.stop()
        assert refused == []
        with pytest.raises(Forbidden):
            await operator.list(Secret)


async def test_replicas_with_shards_may_ask_for_their_shards(module, tmp_path: Path):
    """A server that refuses the question would send every object to every replica."""
    assert main(["generate", "rbac", "rbac_pages:shared", "-o", "rbac.yaml"]) == 0
    pages = module()
    asked: list[str] = []
    roles, gates = (tmp_path / "rbac.yaml").read_text(), {"ShardedListAndWatch": True}
    async with granted(pages.Page, roles, asked=asked, feature_gates=gates) as (admin, operator, refused):
        metadata = ObjectMeta(name="home", namespace="default")
        home = await admin.create(pages.Page(metadata=metadata, spec={"text": "hello"}))
        async with Supervisor() as tasks:
            tasks.start(pages.shared.run(operator), name="operator")
            await eventually(admin, pages.Page, home.key, has={"status": {"published": True}})
            pages.shared.stop()
        assert refused == []
    watches = [each for each in asked if each.startswith("/apis/rbac.example.com/v1/pages?") and "watch=" in each]
    assert watches
    assert all("shardSelector=" in each for each in watches)


async def test_a_renamed_manager_may_take_over_what_it_wrote(module, tmp_path: Path):
    """``formerly=`` patches managedFields of children and of the reconciled kind itself."""
    assert main(["generate", "rbac", "rbac_pages:new", "-o", "rbac.yaml"]) == 0
    pages = module()
    async with granted(pages.Page, (tmp_path / "rbac.yaml").read_text()) as (admin, operator, refused):
        metadata = ObjectMeta(name="home", namespace="default")
        home = await admin.create(pages.Page(metadata=metadata, spec={"text": "hello"}))
        before = admin.with_transport(lambda inner: inner, field_manager="old-operator")
        await before.apply(ConfigMap(metadata=metadata, data={"text": "hello", "author": "ada"}), owner=home)
        reported = pages.Page.only(metadata=metadata, status=pages.PageStatus(published=True))
        await before.apply(reported, subresource="status", field_manager="old-operator/page")
        async with Supervisor() as tasks:
            tasks.start(pages.new.run(operator), name="operator")
            ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
            home = await eventually(admin, pages.Page, home.key, has=ready)
            pages.new.stop()
        copy = await admin.get(ConfigMap, home.key)
        assert copy.data == {"text": "hello"}
        for each in (home, copy):
            assert not any("old-operator" in entry.manager for entry in each.metadata.managed_fields)
        assert refused == []


def test_mistakes_are_sentences(module, capsys):
    assert main(["generate", "rbac", "rbac_pages:make"]) == 1
    assert "makes its manager from a client, which is not available here; name a Manager" in capsys.readouterr().err
    assert main(["generate", "rbac", "rbac_pages:nameless"]) == 1
    assert 'has no name, which the ServiceAccount needs; write Manager(name="...")' in capsys.readouterr().err
    assert main(["generate", "rbac", "rbac_pages:manager", "--also", "secrets"]) == 2
    assert "write RESOURCE[.GROUP]=VERB,... such as secrets=get,create" in capsys.readouterr().err
    for also, said in (
        ("pods=lst", "lst is not a verb of RBAC; did you mean list?"),
        ("jobs.bacth=create", "there is no API group bacth; did you mean batch?"),
        ("roles.rbac.authorizaton.k8s.io=bind", "did you mean rbac.authorization.k8s.io?"),
        (
            "clusterroles.rbac.authorization.k8s.io/admin=bind",
            "write --also clusterroles.rbac.authorization.k8s.io:admin=bind",
        ),
    ):
        assert main(["generate", "rbac", "rbac_pages:manager", "--also", also]) == 2
        assert said in capsys.readouterr().err
    assert main(["generate", "rbac", "rbac_pages:manager", "-n", "My Shop"]) == 2
    assert "the namespace: 'My Shop' cannot name the objects: " in capsys.readouterr().err
    assert main(["generate", "rbac", "rbac_pages:manager", "--check"]) == 2
    assert "--check compares with a file; name the file with -o" in capsys.readouterr().err


def test_permissions_of_one_option_add_up(module, capsys):
    also = (
        "--also",
        "pods=get",
        "--also",
        "pods=list",
        "--also",
        "secrets:pw=get",
        "--also",
        "snaps.storage.example.com=get",
    )
    assert main(["generate", "rbac", "rbac_pages:manager", *also]) == 0
    rules = [rule for each in yaml.safe_load_all(capsys.readouterr().out) for rule in each.get("rules", ())]
    assert {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]} in rules
    assert {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["pw"], "verbs": ["get"]} in rules


def test_children_that_grant_permissions_need_more(module, capsys):
    """The server refuses such a child, and only the function knows which roles it names."""
    assert main(["generate", "rbac", "rbac_pages:binds"]) == 0
    assert "--also clusterroles.rbac.authorization.k8s.io:NAME=bind" in capsys.readouterr().err
    bind = "clusterroles.rbac.authorization.k8s.io:admin=bind"
    assert main(["generate", "rbac", "rbac_pages:binds", "--also", bind]) == 0
    found = capsys.readouterr()
    assert found.err == ""
    assert "resourceNames: [admin]" in found.out


async def test_a_manager_with_webhooks_runs_with_what_was_generated(module, tmp_path: Path):
    """It creates and watches its Secret, and sets the caBundle; it can read no other Secret and change no other webhook."""
    assert main(["generate", "rbac", "rbac_pages:hooked", "-o", "rbac.yaml"]) == 0
    pages = module()
    registration = WebhookRegistration(pages.hooked.webhooks.hooks, pages.hooked.webhook_endpoint, name="page-operator")
    async with granted(pages.Page, (tmp_path / "rbac.yaml").read_text()) as (admin, operator, refused):
        (wanted,) = registration.configurations()
        await admin.create(Unstructured(wanted))
        kind = Kind(wanted["apiVersion"], wanted["kind"])
        async with Supervisor() as tasks:
            tasks.start(pages.hooked.run(operator), name="operator")

            def has_bundle(found: Unstructured) -> bool:
                return bool(found["webhooks"][0]["clientConfig"].get("caBundle"))

            await eventually(admin, kind, "page-operator", has_bundle)
            await admin.apply(Unstructured(wanted), force=True, field_manager="a-deployment")
            live = await admin.get(kind, "page-operator")
            live["webhooks"][0]["clientConfig"].pop("caBundle")
            await admin.update(live)
            await eventually(admin, kind, "page-operator", has_bundle)
            pages.hooked.stop()
        assert refused == []
        await admin.create(Secret(metadata=ObjectMeta(name="other", namespace="page-operator"), string_data={"a": "b"}))
        for denied in (
            operator.get(Secret, "other"),
            operator.list(Secret),
            operator.update(await admin.get(Secret, "page-operator/other")),
            operator.get(kind, "other"),
        ):
            with pytest.raises(Forbidden):
                await denied
