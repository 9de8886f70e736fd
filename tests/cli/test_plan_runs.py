"""How ``steersman plan`` goes on and ends: what waits, what is refused, what fails, and what cannot begin."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import pty
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from samples.planned import installed, plan, site, write
from samples.servers import Embedded
from steersman import MergePatch, ObjectMeta
from steersman.cli import main
from steersman.kinds.apps_v1 import Deployment
from steersman.kinds.core_v1 import ConfigMap, Namespace, Secret
from steersman.objects import Unstructured

GROUP = "plans.test.steersman.dev"

HEAD = '''
import asyncio
from steersman import *
from steersman.controller import *
from steersman.kinds.core_v1 import ConfigMap, Namespace, Secret
from steersman.patterns import *

class SiteSpec(Spec):
    image: str = ""

class Site(Resource[SiteSpec, Status], group="plans.test.steersman.dev", version="v1"):
    """A web site."""

manager = Manager(name="site-operator")

def page(site, name="page", **data):
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=site.key.namespace), data=data)
'''


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory to write modules into."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in [name for name in sys.modules if name.startswith("plan_")]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Embedded]:
    with Embedded.start(tmp_path / "server") as server:
        yield server


async def planned(server: Embedded, here: Path, code: str, *arguments: str, sites: int = 1) -> int:
    """Plan an operator of these lines, with so many sites there."""
    async with server.client(field_manager="tests") as client:
        await installed(client, GROUP)
        for number in range(sites):
            await client.create(site(GROUP, f"web{number}", "default", image="nginx:1.27"))
    return await plan(server, write(here, "plan_operator", HEAD + code), "default", *arguments)


async def test_an_operator_that_goes_on_when_it_is_called_again_is_called_again(server, here, capsys) -> None:
    """It sees its own plans: the finalizer in the next run, and the page that it made, by name and in a list."""
    code = """
async def reconcile(ctx, request):
    site = await ctx.client.get(Site, request.key)
    if not site.metadata.finalizers:
        site.metadata.finalizers = ["example.com/site"]
        await ctx.client.save(site)
        return Done()
    if await ctx.client.find(ConfigMap, f"{site.key.namespace}/page") is None:
        await ctx.client.create(page(site, a="1"), owner=site)
        return RequeueAfter(30)
    made = await ctx.client.get(ConfigMap, f"{site.key.namespace}/page")
    assert [each.key.name for each in await ctx.client.owned_by(ConfigMap, site)] == ["page"]
    made.data["b"] = "2"
    await ctx.client.update(made)
    await ctx.client.patch(ConfigMap, made.key, MergePatch({"data": {"a": None}}))
    return RequeueAfter(30)

manager.controller(Site).owns(ConfigMap).run_with(reconcile)
"""
    assert await planned(server, here, code) == 2
    assert (
        capsys.readouterr().out
        == """\
change Site default/web0
    metadata:
  +   finalizers:
  +     - example.com/site

create ConfigMap default/page (not tried: the object does not exist yet), for Site default/web0
  + data:
  +   b: "2"

Site default/web0 then waits: it is reconciled again after 30 s

1 to create, 1 to change
"""
    )


async def test_what_is_deleted_and_made_anew(server, here, capsys) -> None:
    async with server.client(field_manager="tests") as client:
        await client.create(ConfigMap(metadata=ObjectMeta(name="page", namespace="default"), data={"a": "0"}))
        await client.create(
            ConfigMap(metadata=ObjectMeta(name="held", namespace="default", finalizers=["example.com/hold"]))
        )
    code = """
async def reconcile(ctx, request):
    site = await ctx.client.get(Site, request.key)
    await ctx.client.delete(ConfigMap, "default/page")
    assert await ctx.client.find(ConfigMap, "default/page") is None
    await ctx.client.create(page(site, a="1"))
    await ctx.client.delete(ConfigMap, "default/held")
    await ctx.client.create(page(site, "brief"))
    await ctx.client.delete(ConfigMap, "default/brief")
    return Done()

manager.controller(Site).owns(ConfigMap).run_with(reconcile)
"""
    assert await planned(server, here, code) == 2
    assert (
        capsys.readouterr().out
        == """\
change ConfigMap default/page (deleted and created again, not tried: the object to be deleted still exists), for Site default/web0
    data:
  -   a: "0"
  +   a: "1"

delete ConfigMap default/held (waits for its finalizers: example.com/hold), for Site default/web0

1 to change, 1 to delete, 1 object unchanged
"""
    )


async def test_what_goes_into_a_namespace_that_is_not_there_yet(server, here, capsys) -> None:
    code = """
@reconciles(Site, children=(Namespace, child(ConfigMap, across_namespaces=True)))
async def sites(site, out):
    space = out.apply(Namespace(metadata=ObjectMeta(name="team")), wait=False)
    out.apply(ConfigMap(metadata=ObjectMeta(name="page", namespace="team"), data={"a": "1"}))
    return Done()

manager.add(sites)
"""
    assert await planned(server, here, code, "-n", "team") == 2
    told = capsys.readouterr().out
    assert "create Namespace team" in told
    assert "create ConfigMap team/page (not tried: its namespace does not exist yet), for Site default/web0" in told
    assert "  +     - plans.test.steersman.dev/site-operator.site\n" in told


async def test_a_refusal_is_shown_in_the_words_of_the_server(server, here, capsys) -> None:
    code = """
async def reconcile(ctx, request):
    site = await ctx.client.get(Site, request.key)
    await ctx.client.apply(page(site, **{"not a key": "1"}))
    return Done()

manager.controller(Site).run_with(reconcile)
"""
    assert await planned(server, here, code) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith('rejected: apply ConfigMap default/page: ConfigMap "page" is invalid: data[not a key]: ')
    assert lines[1].startswith("failed: Site default/web0: Invalid: ")
    assert lines[-1] == "1 object unchanged; 1 rejected, 1 failed"


async def test_who_may_only_read_learns_what_the_operator_may_not(server, here, capsys) -> None:
    async with server.client(field_manager="tests") as client:
        rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]
        api = "rbac.authorization.k8s.io/v1"
        reader = {"kind": "ClusterRole", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}
        alice = {"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}
        meta = {"metadata": {"name": "reader"}}
        await client.create(Unstructured({"apiVersion": api, "kind": "ClusterRole", **meta, "rules": rules}))
        binding = {"apiVersion": api, "kind": "ClusterRoleBinding", **meta, "roleRef": reader, "subjects": [alice]}
        await client.create(Unstructured(binding))
    code = """
async def reconcile(ctx, request):
    site = await ctx.client.get(Site, request.key)
    await ctx.client.create(page(site))
    return Done()

manager.controller(Site).run_with(reconcile)
"""
    configuration = yaml.safe_load(server.kubeconfig.read_text())
    for user in configuration["users"]:
        user["user"]["as"] = "alice"
    (here / "alice").write_text(yaml.safe_dump(configuration))
    assert await planned(server, here, code, "--kubeconfig", str(here / "alice")) == 1
    told = capsys.readouterr().out
    assert 'rejected: create ConfigMap default/page: configmaps is forbidden: User "alice" cannot create' in told


async def test_json_says_what_waits_and_what_fails(server, here, capsys) -> None:
    code = """
async def reconcile(ctx, request):
    if request.key.name == "web0":
        raise RuntimeError("no luck")
    return Requeue()

manager.controller(Site).run_with(reconcile)
"""
    assert await planned(server, here, code, "--json", sites=2) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["failed"] == [{"what": "Site default/web0", "message": "RuntimeError: no luck"}]
    assert found["waits"] == [{"what": "Site default/web1", "message": "it is requeued"}]
    assert (found["unchanged"], found["changes"], found["rejected"]) == (2, [], [])


async def test_what_does_not_end_is_named(server, here, capsys) -> None:
    code = """
async def reconcile(ctx, request):
    if request.key.name == "web0":
        await asyncio.Event().wait()
    return Done()

manager.controller(Site).run_with(reconcile)
"""
    assert await planned(server, here, code, "--timeout", "1.5", sites=2) == 1
    assert "failed: Site default/web0: its reconcile did not end within 1.5 s\n" in capsys.readouterr().out


async def run_plan(server: Embedded, here: Path, module: str, *arguments: str) -> tuple[int, str]:
    """As a process of its own: exit code and stderr."""
    command = [sys.executable, "-m", "steersman", "plan", module, "--kubeconfig", str(server.kubeconfig), *arguments]
    process = await asyncio.create_subprocess_exec(
        *command, cwd=here, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(60):
            _, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode is not None
    return process.returncode, said.decode()


async def test_a_reconcile_that_swallows_its_cancellation_is_named(server, here) -> None:
    """Python cannot end it, and the command must not hang with it."""
    async with server.client(field_manager="tests") as client:
        await installed(client, GROUP)
        await client.create(site(GROUP, "web", "default"))
    code = """
async def reconcile(ctx, request):
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass

manager.controller(Site).run_with(reconcile)
"""
    module = write(here, "plan_operator", HEAD + code)
    exit_code, said = await run_plan(server, here, module, "--timeout", "1")
    assert exit_code == 1
    line = [each for each in said.splitlines() if each.startswith("steersman: ")][-1]
    assert line.startswith("steersman: the reconcile of default/web in controller site at ")
    assert "plan_operator.py:" in line
    assert line.endswith("did not end within 5 s after its cancellation; it must let asyncio.CancelledError pass")


@pytest.mark.slow
async def test_a_reconcile_that_blocks_the_event_loop_is_named(server, here) -> None:
    async with server.client(field_manager="tests") as client:
        await installed(client, GROUP)
        await client.create(site(GROUP, "web", "default"))
    code = """
import time

async def reconcile(ctx, request):
    while True:
        time.sleep(1)

manager.controller(Site).run_with(reconcile)
"""
    module = write(here, "plan_operator", HEAD + code)
    exit_code, said = await run_plan(server, here, module, "--timeout", "1")
    assert exit_code == 1
    assert "steersman: the plan did not end within 11 s; it is at " in said
    assert "in reconcile" in said


async def test_nothing_is_done_outside(server, here, capsys) -> None:
    """The world outside is looked at, and not touched."""
    code = """
class Buckets:
    calls = []
    async def find(self, key):
        self.calls.append("find")
        return {"id": "b-1"} if key.key.name == "web1" else None
    async def create(self, key, obj):
        self.calls.append("create")
        return {}
    async def delete(self, key, found):
        self.calls.append("delete")

class Storage(StateMachine[Site], children=(ConfigMap,)):
    def __init__(self):
        self.buckets = External(Buckets(), name="bucket", keep=True)

    @state(condition="BucketReady")
    async def bucket(self, site, out) -> Next | Wait:
        match self.buckets.ensure(site):
            case Present():
                return Next()
            case Working(message) | Broken(message):
                return Wait(message)

    @state(condition="PageReady")
    async def publish(self, site, out) -> Done:
        out.apply(page(site, site.key.name))
        return Done()

manager.add(Storage())
"""
    assert await planned(server, here, code, sites=2) == 2
    told = capsys.readouterr().out
    calls = sys.modules["plan_operator"].Buckets.calls
    assert set(calls) == {"find"}
    assert "create ConfigMap default/web1, for Site default/web1" in told
    assert "create ConfigMap default/web0" not in told
    assert "Site default/web0 then waits: bucket is being created\n" in told


async def test_a_kind_that_is_not_served(server, here, capsys) -> None:
    module = write(here, "plan_operator", HEAD + "\nmanager.add(generates(Site, children=())(lambda site: []))\n")
    assert await plan(server, module, "default") == 1
    assert capsys.readouterr().err == (
        "steersman: the server does not serve Site: install the definitions first (steersman generate crds), then plan\n"
    )


async def test_only_the_namespaces_that_were_asked_for(server, here, capsys) -> None:
    async with server.client(field_manager="tests") as client:
        await installed(client, GROUP)
        for name in ("one", "two", "three"):
            await client.create(Namespace(metadata=ObjectMeta(name=name)))
            await client.create(site(GROUP, "web", name))
    code = "\nmanager.add(generates(Site, children=(ConfigMap,))(lambda site: [page(site)]))\n"
    module = write(here, "plan_operator", HEAD + code)
    assert await plan(server, module, "one", "-n", "two") == 2
    told = capsys.readouterr().out
    assert "create ConfigMap one/page" in told
    assert "create ConfigMap two/page" in told
    assert "three" not in told


async def test_colors_are_for_terminals(server, here) -> None:
    async with server.client(field_manager="tests") as client:
        await installed(client, GROUP)
        await client.create(site(GROUP, "web", "default"))
    code = "\nmanager.add(generates(Site, children=(ConfigMap,))(lambda site: [page(site, a='\\x1b[2J')]))\n"
    module = write(here, "plan_operator", HEAD + code)
    outer, inner = pty.openpty()
    command = [sys.executable, "-c", "import sys; from steersman.cli import main; sys.exit(main())", "plan", module]
    process = await asyncio.create_subprocess_exec(
        *command, "--kubeconfig", str(server.kubeconfig), cwd=here, stdout=inner, env={**os.environ, "TERM": "xterm"}
    )
    os.close(inner)
    async with asyncio.timeout(30):
        assert await process.wait() == 2
    shown = os.read(outer, 1 << 16).decode()
    os.close(outer)
    assert "\x1b[1;32mcreate ConfigMap default/page\x1b[0m" in shown
    assert '\x1b[32m+   a: "\\u001b[2J"\x1b[0m' in shown
    assert "\x1b[2J" not in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["plan_nowhere"], "cannot import plan_nowhere: No module named 'plan_nowhere'"),
        (["plan_empty"], "plan_empty has no manager; write `manager = Manager("),
        (["plan_idle", "--kubeconfig", "absent"], "no such file"),
    ],
)
def test_mistakes_are_sentences(here, capsys, arguments: list[str], said: str) -> None:
    write(here, "plan_empty", "")
    write(here, "plan_idle", "from steersman import Manager\nmanager = Manager(name='idle')\n")
    assert main(["plan", *arguments]) == 1
    told = capsys.readouterr()
    assert said in told.err
    assert told.out == ""


@pytest.mark.parametrize("seconds", ["0", "-1", "soon", "inf", "nan"])
def test_a_time_that_is_none(capsys, seconds: str) -> None:
    with pytest.raises(SystemExit) as end:
        main(["plan", "m", "--timeout", seconds])
    assert end.value.code == 2
    assert "write a positive number of seconds" in capsys.readouterr().err


PENDING = '''
from steersman import Manager, ObjectMeta, Resource, Spec, Status
from steersman.kinds.apps_v1 import Deployment, DeploymentSpec
from steersman.kinds.core_v1 import Container, PodSpec, PodTemplateSpec, Secret
from steersman.kinds.meta_v1 import LabelSelector
from steersman.patterns import generates

class ShopSpec(Spec):
    image: str = "nginx:1.27"
    till: bool = True

class Shop(Resource[ShopSpec, Status], group="pending-plans.test.steersman.dev", version="v1"):
    """A web shop."""

@generates(Shop, children=(Deployment, Secret))
def shops(shop):
    labels = {"shop": shop.key.name}
    pod = PodSpec(containers=[Container(name="web", image=shop.spec.image)])
    template = PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=pod)
    spec = DeploymentSpec(selector=LabelSelector(match_labels=labels), template=template)
    children = [Deployment(metadata=ObjectMeta(name=shop.key.name), spec=spec)]
    if shop.spec.till:
        children.append(Secret(metadata=ObjectMeta(name="till"), string_data={"key": "hush"}))
    return children

manager = Manager(name="shops")
manager.add(shops)
'''


async def test_a_child_that_goes_when_the_others_are_ready_is_planned_and_counted(control_plane, here, capsys) -> None:
    """The image changes and a child is dropped at once: the deletion comes later, and would be missed otherwise."""
    write(here, "plan_shops", PENDING)
    sys.path.insert(0, str(here))
    shops = importlib.import_module("plan_shops")
    client, namespace = control_plane.client, control_plane.namespace
    async with control_plane.running(shops.manager) as operator:
        await client.create(shops.Shop(metadata=ObjectMeta(name="home"), spec=shops.ShopSpec()))
        await operator.drained()
        counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1)
        rollout = MergePatch({"status": {"observedGeneration": 1, **counts}})
        await client.patch(Deployment, "home", rollout, subresource="status")
        await operator.drained()
    await client.patch(shops.Shop, "home", MergePatch({"spec": {"image": "nginx:1.28", "till": False}}))

    assert await plan(control_plane, "plan_shops", namespace) == 2
    told = capsys.readouterr().out.replace(namespace, "NS")
    assert "\ndelete when ready Secret NS/till (no longer declared), for Shop NS/home\n" in told
    waits = "Shop NS/home then waits: Deployment NS/home: its controller has not seen the last change yet"
    assert waits.replace("NS/home: its", "home: its") in told
    assert told.endswith("\n1 to change, 1 to delete when ready, 1 status to write\n"), told

    assert await plan(control_plane, "plan_shops", namespace, "--json") == 2
    report = json.loads(capsys.readouterr().out)
    assert report["deleteWhenReady"] == 1
    (later,) = [each for each in report["changes"] if each["action"] == "deleteWhenReady"]
    assert (later["kind"], later["name"], later["before"]["data"]) == ("Secret", "till", {"key": "(hidden)"})
    assert await client.find(Secret, "till") is not None


async def test_a_look_outside_that_fails_fails_the_plan(server, here, capsys) -> None:
    """What cannot be looked for is not known, so the plan is not whole."""
    code = """
class Buckets:
    async def find(self, key):
        raise ConnectionError("the cloud is down")
    async def create(self, key, obj): ...
    async def delete(self, key, found): ...

class Storage(StateMachine[Site]):
    def __init__(self):
        self.buckets = External(Buckets(), name="bucket", keep=True)

    @state(condition="BucketReady")
    async def bucket(self, site, out) -> Done | Wait:
        match self.buckets.ensure(site):
            case Present():
                return Done()
            case Working(message) | Broken(message):
                return Wait(message)

manager.add(Storage())
"""
    assert await planned(server, here, code) == 1
    told = capsys.readouterr().out
    assert "failed: bucket of Site default/web0: " in told
    assert "the cloud is down" in told
    assert told.endswith("; 1 failed\n")
