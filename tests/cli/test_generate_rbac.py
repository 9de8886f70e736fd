"""``steersman generate rbac``: what it writes is enough for the manager that it was read from, and for no more."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
import yaml

from steersman import Client, Forbidden, ObjectMeta, Unstructured
from steersman.aio import Supervisor
from steersman.cli import main
from steersman.client import Added, Modified
from steersman.controlplane import ControlPlane
from steersman.kinds.core_v1 import ConfigMap, Namespace, Secret

MODULE = '''
from steersman import Context, Done, LeaderElection, Manager, ObjectMeta, Request, Resource, Spec, StatusOf
from steersman.kinds.core_v1 import ConfigMap

class PageSpec(Spec):
    text: str

class PageStatus(StatusOf):
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

manager = Manager(name="page-operator", leader=LeaderElection("page-operator"))
manager.controller(Page).owns(ConfigMap).run_with(reconcile)

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


async def test_a_manager_runs_with_what_was_generated_and_may_do_no_more(module, tmp_path: Path):
    assert main(["generate", "rbac", "rbac_pages:manager", "-o", "rbac.yaml"]) == 0
    assert main(["generate", "rbac", "rbac_pages:manager", "-o", "rbac.yaml", "--check"]) == 0
    pages = module()
    refused: list[dict] = []

    def audit(event: dict) -> None:
        if event["responseStatus"]["code"] == 403:
            refused.append(event)

    plane = ControlPlane(resources=[pages.Page], authorizer="rbac", audit=audit)
    account = "system:serviceaccount:page-operator:page-operator"
    async with plane, Client(plane.transport(account), namespace="page-operator") as operator:
        admin = plane.client
        await admin.create(Namespace(metadata=ObjectMeta(name="page-operator")))
        for document in yaml.safe_load_all((tmp_path / "rbac.yaml").read_text()):
            await admin.create(Unstructured(document))
        await admin.create(pages.Page(metadata=ObjectMeta(name="home", namespace="default"), spec={"text": "hello"}))
        async with Supervisor() as tasks:
            tasks.start(pages.manager.run(operator), name="operator")
            async with asyncio.timeout(20), admin.watch(pages.Page, namespace="default") as events:
                async for event in events:
                    if isinstance(event, (Added, Modified)) and event.object.status and event.object.status.published:
                        break
            assert (await admin.get(ConfigMap, ("default", "home"))).data == {"text": "hello"}
            pages.manager.stop()
        assert refused == []
        with pytest.raises(Forbidden):
            await operator.list(Secret)


def test_mistakes_are_sentences(module, capsys):
    assert main(["generate", "rbac", "rbac_pages:make"]) == 1
    assert "makes its manager of a client, which there is none of here; name a Manager" in capsys.readouterr().err
    assert main(["generate", "rbac", "rbac_pages:nameless"]) == 1
    assert 'has no name, and the ServiceAccount needs one; write Manager(name="...")' in capsys.readouterr().err
    assert main(["generate", "rbac", "rbac_pages:manager", "--also", "secrets"]) == 2
    assert "write RESOURCE[.GROUP]=VERB,... such as secrets=get,create" in capsys.readouterr().err
    assert main(["generate", "rbac", "rbac_pages:manager", "--check"]) == 2
    assert "--check compares with a file; name it with -o" in capsys.readouterr().err
