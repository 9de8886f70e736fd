"""An operator that got another name takes over what it made: fields, children, labels and its part of the status."""

from contextlib import asynccontextmanager

import pytest
from patterns.declaring import Told, own

from samples.eventually import eventually as until
from samples.site import Site, SiteStatus
from steersman import Done, Manager, MergePatch, ObjectMeta
from steersman.aio import Supervisor, name_suffix
from steersman.errors import ConfigError
from steersman.kinds.core_v1 import ConfigMap
from steersman.kinds.rbac_v1 import ClusterRole
from steersman.objects import Key
from steersman.patterns import Outputs, reconciles
from steersman.testing import eventually

OLD, NEW, NEWEST = "blog-operator", "blogs", "web-logs"


@pytest.fixture
async def home(client, sites, namespace):
    return await own(client, "home", namespace, replicas=1)


def page(name, **data):
    return ConfigMap(metadata=ObjectMeta(name=name), data=data)


def pages(role):
    @reconciles(Site, children=(ConfigMap, ClusterRole))
    async def pages(site: Site, out: Outputs) -> Done:
        """One page with a line that may go, one that may go, a role that only a label holds, a password, one to keep."""
        more = {"extra": "line"} if site.spec.replicas else {}
        out.apply(page("index", image=site.spec.image, **more))
        out.apply(ClusterRole(metadata=ObjectMeta(name=role)))
        out.apply(page("shared", image=site.spec.image), owner=False)
        out.apply(page("password", secret="x"), how="create")
        if site.spec.replicas:
            out.apply(page("robots", all="yes"))
            out.apply(page("archive", kept="yes"), prune=False)
            site.status = site.status or SiteStatus()
            site.status.ready_replicas = site.spec.replicas
        return Done()

    return pages


@asynccontextmanager
async def managing(client, namespace, operator, name, *formerly):
    """The operator at work under a name; what it wrote, by method and name."""
    writes = []
    writing = client.with_transport(lambda inner: Told(inner, writes, []), field_manager=name)
    manager = Manager(writing, name=name, formerly=formerly, namespaces=[namespace], grace=1)
    manager.add(operator)
    async with Supervisor() as tasks:
        tasks.start(manager.run(signals=False), name=f"manager {name}")
        await until(lambda: manager.phase == "running" and manager.controllers and not manager.controllers[0].busy)
        try:
            yield manager, writes
        finally:
            manager.stop()


def owners(obj):
    """Who owns fields of an object, but the test itself."""
    return {each.manager for each in obj.metadata.managed_fields or () if each.manager != "tests"}


async def drained(client, manager, key, generation):
    await eventually(client, Site, key, lambda site: site.status and site.status.observed_generation == generation)
    await until(lambda: not manager.controllers[0].busy)


async def test_a_new_name_takes_over_fields_children_labels_and_status(client, home, namespace):
    role = f"role-{name_suffix()}"
    operator, key = pages(role), home.key
    async with managing(client, namespace, operator, OLD) as (manager, _):
        await drained(client, manager, key, 1)
    async with managing(client, namespace, operator, NEW, OLD) as (manager, writes):
        found = await client.list(ConfigMap, namespace=namespace)
        assert {each.key.name: owners(each) for each in found if each.key.name != "kube-root-ca.crt"} == {
            **{name: {NEW} for name in ("index", "password", "robots")},
            "shared": {f"{NEW}/shared-for-{home.gvk().group_kind}:{home.key.namespace}:{home.key.name}"},
            "archive": {f"{NEW}/kept-children"},
        }
        assert owners(await client.get(ClusterRole, role)) == {NEW}
        await client.patch(Site, key, MergePatch({"spec": {"replicas": 0, "image": "new"}}))
        await drained(client, manager, key, 2)
        assert (await client.get(ConfigMap, (namespace, "index"))).data == {"image": "new"}
        assert (await client.get(ConfigMap, (namespace, "shared"))).data == {"image": "new"}
        assert await client.find(ConfigMap, (namespace, "robots")) is None
        assert await client.find(ConfigMap, (namespace, "archive")) is not None
        site = await client.get(Site, key)
        assert site.status.conditions[0].status == "True"
        # what the states set in the status under the old name stays what they set
        assert site.status.ready_replicas == 1
        assert not any(name.startswith(OLD) for name in owners(site) if "/" in name), site.metadata.managed_fields
    # everything is the new name's by now, so that the old one need not be named any more
    async with managing(client, namespace, operator, NEW) as (manager, writes):
        assert writes == []
        await client.delete(Site, key)
        await eventually(client, ClusterRole, role, gone=True)


async def test_two_names_in_a_row(client, home, namespace):
    role = f"role-{name_suffix()}"
    operator, key = pages(role), home.key
    async with managing(client, namespace, operator, OLD) as (manager, _):
        await drained(client, manager, key, 1)
    # the second program never saw some children: it was stopped at once, or they were not its own
    await client.with_transport(lambda inner: inner, field_manager=NEW).apply(
        ConfigMap(metadata=ObjectMeta(name="index", namespace=namespace), data={"extra": "line"}), force=True
    )
    async with managing(client, namespace, operator, NEWEST, NEW, OLD) as (manager, _):
        index = await client.get(ConfigMap, (namespace, "index"))
        assert owners(index) == {NEWEST}
        await client.patch(Site, key, MergePatch({"spec": {"replicas": 0}}))
        await drained(client, manager, key, 2)
        assert "extra" not in (await client.get(ConfigMap, (namespace, "index"))).data
        assert await client.find(ConfigMap, (namespace, "robots")) is None
    await client.delete(ClusterRole, role)


async def test_both_names_at_once_come_to_rest(client, home, namespace):
    """As in a rolling update without leader election: both own the fields, and none of them takes from the other."""
    role = f"role-{name_suffix()}"
    operator, key = pages(role), home.key
    async with managing(client, namespace, operator, OLD) as (old, old_writes):
        await drained(client, old, key, 1)
        async with managing(client, namespace, operator, NEW, OLD) as (new, new_writes):
            for generation, image in ((2, "a"), (3, "b")):
                await client.patch(Site, key, MergePatch({"spec": {"image": image}}))
                await until(lambda: not old.controllers[0].busy and not new.controllers[0].busy)
                await drained(client, new, key, generation)
            await until(lambda: not old.controllers[0].busy and not new.controllers[0].busy)
            index = await client.get(ConfigMap, (namespace, "index"))
            assert index.data == {"image": "b", "extra": "line"}
            # a few answers to each change, and no fight
            assert max(writes.count("PATCH index") for writes in (old_writes, new_writes)) < 12
    async with managing(client, namespace, operator, NEW, OLD):
        assert owners(await client.get(ConfigMap, (namespace, "index"))) == {NEW}
        await client.delete(Site, key)
        await eventually(client, ClusterRole, role, gone=True)


async def test_a_name_that_is_not_said_stays_a_stranger(client, home, namespace):
    role = f"role-{name_suffix()}"
    operator, key = pages(role), home.key
    async with managing(client, namespace, operator, OLD) as (manager, _):
        await drained(client, manager, key, 1)
    async with managing(client, namespace, operator, NEW, "another") as (manager, _):
        await client.patch(Site, key, MergePatch({"spec": {"replicas": 0}}))
        stranger = lambda site: site.status.conditions[0].reason == "NotOurs"  # noqa: E731
        refused = await eventually(client, Site, key, stranger)
        assert f"ClusterRole {role} exists and has the label of this owner" in refused.status.conditions[0].message
        assert owners(await client.get(ClusterRole, role)) == {OLD}
        assert await client.find(ConfigMap, (namespace, "robots")) is not None
    await client.delete(ClusterRole, role)


class Races:
    """A transport that changes an object once, just before a PATCH of it whose body has certain words."""

    def __init__(self, inner, outside, kind, key, words, change):
        self._inner, self._outside, self._kind, self._key = inner, outside, kind, key
        self._words, self._change = words, change

    async def send(self, request, **options):
        here = request.method == "PATCH" and request.path.endswith(f"/{self._key.name}")
        if self._change is not None and here and self._words in (request.body or b""):
            change, self._change = self._change, None
            await self._outside.patch(self._kind, self._key, change)
        return await self._inner.send(request, **options)

    async def close(self):
        await self._inner.close()


async def test_a_takeover_that_failed_is_repeated(client, home, namespace):
    """A conflict would otherwise leave a child to its old name until the program starts again."""
    role = f"role-{name_suffix()}"
    operator, password = pages(role), Key(namespace, "password")
    async with managing(client, namespace, operator, OLD) as (manager, _):
        await drained(client, manager, home.key, 1)
    change = MergePatch({"metadata": {"annotations": {"raced": "yes"}}})
    racing = client.with_transport(lambda inner: Races(inner, client, ConfigMap, password, b"managedFields", change))
    async with managing(racing, namespace, operator, NEW, OLD):
        raced = {"metadata": {"annotations": {"raced": "yes"}}}
        await eventually(client, ConfigMap, password, lambda found: NEW in owners(found), has=raced)
    await client.delete(ClusterRole, role)


async def test_a_finalizer_is_given_up_again_after_a_failure(client, home, namespace):
    """A conflict would otherwise leave the old finalizer on the object until the program starts again."""

    @reconciles(Site)
    async def guarded(site: Site, out: Outputs) -> Done:
        return Done()

    @guarded.finalizer
    async def clean_up(site: Site, out: Outputs) -> Done:
        return Done()

    async with managing(client, namespace, guarded, OLD) as (manager, _):
        await drained(client, manager, home.key, 1)
    change = MergePatch({"metadata": {"finalizers": ["example.com/first", f"{Site.gvk().group}/{OLD}.site"]}})
    racing = client.with_transport(lambda inner: Races(inner, client, Site, home.key, b'"remove"', change))
    async with managing(racing, namespace, guarded, NEW, OLD):
        ours = {"example.com/first", f"{Site.gvk().group}/{NEW}.site"}
        await eventually(client, Site, home.key, lambda site: set(site.metadata.finalizers or ()) == ours)
    await client.patch(Site, home.key, MergePatch({"metadata": {"finalizers": None}}))


async def test_the_bare_runtime_takes_over_what_it_applied(client, home, namespace):
    async def reconcile(ctx, request):
        site = await ctx.client.find(Site, request.key)
        more = {"extra": "line"} if site.spec.replicas else {}
        index = ConfigMap(metadata=ObjectMeta(name="index", namespace=namespace), data={"image": "a", **more})
        await ctx.client.apply(index, owner=site)
        return Done()

    for name, formerly in ((OLD, ()), (NEW, (OLD,))):
        manager = Manager(
            client.with_transport(lambda inner: inner, field_manager=name),
            name=name,
            formerly=formerly,
            namespaces=[namespace],
        )
        manager.controller(Site).owns(ConfigMap).run_with(reconcile)
        async with Supervisor() as tasks:
            tasks.start(manager.run(signals=False), name="manager")
            key = Key(namespace, "index")
            await eventually(client, ConfigMap, key, lambda found, name=name: owners(found) == {name})
            if name == NEW:
                await client.patch(Site, home.key, MergePatch({"spec": {"replicas": 0}}))
                await eventually(client, ConfigMap, key, lambda found: found.data == {"image": "a"})
            manager.stop()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "new", "formerly": "old"}, 'formerly="old" is one name; write formerly=\\("old",\\)'),
        ({"formerly": ("old",)}, "also needs the current name"),
        ({"name": "new", "formerly": ("new",)}, "'new' is not an earlier name"),
        ({"name": "new", "formerly": ("",)}, "'' is not an earlier name"),
        ({"name": "new/site", "formerly": ("new",)}, "'new' is not an earlier name"),
        ({"name": "new", "formerly": (5,)}, "5 is not an earlier name of manager new"),
        ({"name": "new", "formerly": None}, "formerly=None: pass the earlier names"),
    ],
)
def test_a_mistake_is_said_at_once(options, words):
    with pytest.raises((TypeError, ValueError), match=words):
        Manager(**options)


async def test_an_operator_without_a_name_is_refused_before_it_writes(api_server, client, home, namespace):
    """A name that follows from a file would orphan all children when the file is renamed."""
    words = 'controller site applies objects: write Manager\\(name="site-operator"\\)'
    async with api_server.client(field_manager="") as nameless:
        manager = Manager(nameless, namespaces=[namespace])
        manager.add(pages("role"))
        with pytest.raises(ConfigError, match=words):
            await manager.run(signals=False)
    assert await client.find(ConfigMap, (namespace, "index")) is None
