"""A manager that caches only those Secrets to which reconciled objects refer."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from samples.eventually import eventually
from steersman import Done, Key, Kind, LeaderElection, Manager, MergePatch, ObjectMeta
from steersman.aio import Supervisor
from steersman.cache import KindOptions
from steersman.kinds.core_v1 import ConfigMap, Namespace, Secret
from steersman.manager import PermissionRule, permissions_of

pytestmark = pytest.mark.both_servers("watches by name are the server's")


def names_of(settings):
    """The Secrets that a ConfigMap names, separated by spaces."""
    return (settings.object.data or {}).get("secrets", "").split()


class Seen:
    """Reads what a ConfigMap names, and remembers the values."""

    def __init__(self):
        self.values = {}
        self.runs = 0

    async def reconcile(self, ctx, request):
        self.runs += 1
        settings = await ctx.client.find(ConfigMap, request.key)
        if settings is None:
            self.values.pop(request.key.name, None)
            return Done()
        found = [
            await ctx.client.find(Secret, Key(request.key.namespace, name))
            for name in (settings.data or {}).get("secrets", "").split()
        ]
        self.values[request.key.name] = [(each.data or {}).get("value") if each else None for each in found]
        return Done()


def settings(namespace, name, secrets):
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace), data={"secrets": secrets})


def secret(namespace, name, value):
    return Secret(metadata=ObjectMeta(name=name, namespace=namespace), string_data={"value": value})


@asynccontextmanager
async def running(manager):
    async with asyncio.timeout(90), Supervisor() as tasks:
        tasks.start(manager.run(signals=False), name="manager")
        yield
        manager.stop()


def cached(manager):
    found = next(each for each in manager.statistics(keys=0).informers if each.kind == "v1 Secret")
    return found.objects, found.referenced, found.outside_reads


async def test_owners_follow_what_they_refer_to(client, namespace):
    for name in ("one", "two", "other"):
        await client.create(secret(namespace, name, "1"))
    await client.create(settings(namespace, "app", "one"))
    seen = Seen()
    manager = Manager(client, name="refers", namespaces=(namespace,))
    manager.controller(ConfigMap).refers_to(Secret, by=names_of).run_with(seen)
    async with running(manager):
        await eventually(lambda: seen.values.get("app") == [b"1"])
        assert cached(manager)[1] == 1
        await client.patch(Secret, Key(namespace, "one"), MergePatch({"stringData": {"value": "2"}}))
        await eventually(lambda: seen.values["app"] == [b"2"])
        await client.patch(ConfigMap, Key(namespace, "app"), MergePatch({"data": {"secrets": "one two late"}}))
        await eventually(lambda: seen.values["app"] == [b"2", b"1", None])
        await client.create(secret(namespace, "late", "3"))
        await eventually(lambda: seen.values["app"] == [b"2", b"1", b"3"])
        await client.delete(Secret, Key(namespace, "two"))
        await eventually(lambda: seen.values["app"] == [b"2", None, b"3"])
        await client.patch(ConfigMap, Key(namespace, "app"), MergePatch({"data": {"secrets": "two"}}))
        await eventually(lambda: seen.values["app"] == [None] and cached(manager)[1] == 1)
        before = seen.runs
        await client.patch(Secret, Key(namespace, "one"), MergePatch({"stringData": {"value": "4"}}))
        await client.create(secret(namespace, "two", "5"))
        await eventually(lambda: seen.values["app"] == [b"5"])
        assert seen.runs == before + 1, "a Secret that is not referred to any more causes nothing"
        await client.delete(ConfigMap, Key(namespace, "app"))
        await eventually(lambda: cached(manager)[1] == 0)


async def test_a_term_reads_every_name_anew(client, namespace):
    """A leader must not act on what it saw before its term."""
    await client.create(secret(namespace, "one", "1"))
    await client.create(settings(namespace, "app", "one"))
    seen = Seen()
    leader = LeaderElection("refers", namespace=namespace)
    manager = Manager(client, name="refers", namespaces=(namespace,), leader=leader)
    manager.controller(ConfigMap).refers_to(Secret, by=names_of).run_with(seen)
    async with running(manager):
        await eventually(lambda: seen.values.get("app") == [b"1"])
        await client.patch(Secret, Key(namespace, "one"), MergePatch({"stringData": {"value": "2"}}))
        await eventually(lambda: seen.values["app"] == [b"2"])


async def test_a_function_that_fails_keeps_the_former_references(client, namespace, caplog):
    def names(view):
        found = names_of(view)
        if "broken" in found:
            raise LookupError("no such name")
        return found

    await client.create(secret(namespace, "one", "1"))
    await client.create(settings(namespace, "app", "one"))
    seen = Seen()
    manager = Manager(client, name="refers", namespaces=(namespace,))
    manager.controller(ConfigMap).refers_to(Secret, by=names).run_with(seen)
    async with running(manager):
        await eventually(lambda: seen.values.get("app") == [b"1"])
        await client.patch(ConfigMap, Key(namespace, "app"), MergePatch({"data": {"secrets": "one broken"}}))
        await eventually(lambda: seen.values["app"] == [b"1", None])
        await client.patch(Secret, Key(namespace, "one"), MergePatch({"stringData": {"value": "2"}}))
        await eventually(lambda: seen.values["app"] == [b"2", None])
    assert "no such name; it keeps its former references" in caplog.text


async def test_a_bare_name_of_a_kind_without_a_class_that_is_built_in(client, namespace):
    """It is cluster-scoped, as its class says: in the owner's namespace, no object would ever have the name."""
    await client.create(settings(namespace, "app", namespace))
    seen: list[bool] = []

    async def reconcile(ctx, request):
        named = await ctx.client.find(Kind("v1", "Namespace"), namespace)
        seen.append(bool(named and (named.tree["metadata"].get("labels") or {}).get("seen")))
        return Done()

    manager = Manager(client, name="refers", kinds={ConfigMap: KindOptions(namespaces=(namespace,))})
    manager.controller(ConfigMap).refers_to(Kind("v1", "Namespace"), by=names_of).run_with(reconcile)
    async with running(manager):
        await eventually(lambda: seen)
        await client.patch(Namespace, namespace, MergePatch({"metadata": {"labels": {"seen": "yes"}}}))
        await eventually(lambda: seen[-1])


@pytest.mark.parametrize(
    ("target", "returned", "words"),
    [
        (Kind("example.com/v1", "Issuer"), "le", "only the server knows whether Issuer is in a namespace"),
        (Namespace, Key("home", "le"), "each Namespace is in no namespace: return Key('', name)"),
        (Secret, Key("", "le"), "each Secret is in a namespace: return Key(namespace, name)"),
    ],
)
async def test_a_name_that_no_object_can_have_is_an_error(client, namespace, caplog, target, returned, words):
    await client.create(settings(namespace, "app", ""))
    seen = Seen()
    manager = Manager(client, name="refers", kinds={ConfigMap: KindOptions(namespaces=(namespace,))})
    manager.controller(ConfigMap).refers_to(target, by=lambda view: returned, optional=True).run_with(seen)
    async with running(manager):
        await eventually(lambda: words in caplog.text)


async def test_another_controller_that_watches_the_kind_caches_all(client, namespace):
    await client.create(secret(namespace, "one", "1"))
    await client.create(secret(namespace, "two", "1"))
    await client.create(settings(namespace, "app", "one"))
    seen = Seen()
    manager = Manager(client, name="refers", namespaces=(namespace,))
    manager.controller(ConfigMap).refers_to(Secret, by=names_of).run_with(seen)
    manager.controller(Secret).run_with(Seen())
    async with running(manager):
        await eventually(lambda: seen.values.get("app") == [b"1"])
        assert cached(manager) == (2, None, 0)
        await client.patch(Secret, Key(namespace, "one"), MergePatch({"stringData": {"value": "2"}}))
        await eventually(lambda: seen.values["app"] == [b"2"])


async def test_a_controller_that_needs_all_cannot_join_later(client, namespace):
    manager = Manager(client, name="refers", namespaces=(namespace,))
    manager.controller(ConfigMap).refers_to(Secret, by=names_of).run_with(Seen())
    async with running(manager):
        await eventually(lambda: manager.phase == "running")
        with pytest.raises(ValueError, match="cached only those that others refer to since it started"):
            manager.controller(Secret).run_with(Seen())


async def test_options_that_say_less_than_a_controller_needs_are_an_error(client):
    manager = Manager(client, name="refers", kinds={Secret: KindOptions(referenced=True)})
    manager.controller(ConfigMap).owns(Secret).run_with(Seen())
    with pytest.raises(ValueError, match=r"Manager\(kinds=...\) says referenced=True"):
        async with asyncio.timeout(60):
            await manager.run(signals=False)


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (Secret, "is not a function"),
        (lambda one, two: [one, two], "cannot be called with a view"),
        (Seen().reconcile, "it is async"),
    ],
)
def test_a_function_of_another_form_is_an_error(by, message):
    with pytest.raises(TypeError, match=message):
        Manager(name="refers").controller(ConfigMap).refers_to(Secret, by=by)


def test_a_kind_is_referred_to_once():
    builder = Manager(name="refers").controller(ConfigMap).refers_to(Secret, by=names_of)
    with pytest.raises(ValueError, match="return all references from one function"):
        builder.refers_to(Secret, by=names_of)


def test_rights_are_those_of_a_watched_kind():
    """Names are known only at run time; a stricter Role works too."""
    manager = Manager(name="refers", namespaces=("blue",))
    manager.controller(ConfigMap).refers_to(Secret, by=names_of).run_with(Seen())
    assert PermissionRule("", ("secrets",), ("get", "list", "watch")) in permissions_of(manager).rules


async def test_an_owner_in_no_namespace_returns_keys(client, namespace):
    await client.create(secret(namespace, "one", "1"))
    seen = asyncio.Event()

    async def reconcile(ctx, request):
        if request.key.name == namespace:
            await ctx.client.get(Secret, Key(namespace, "one"))
            seen.set()
        return Done()

    manager = Manager(client, name="refers")
    manager.controller(Namespace).refers_to(Secret, by=lambda view: Key(view.key.name, "one")).run_with(reconcile)
    async with running(manager):
        await seen.wait()
        seen.clear()
        await eventually(lambda: cached(manager)[0] >= 1)
        await client.patch(Secret, Key(namespace, "one"), MergePatch({"stringData": {"value": "2"}}))
        await seen.wait()
