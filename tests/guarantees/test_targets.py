"""What an index or a mapper returns: one value or several, and what names no object is refused with words."""

import pytest

from samples.site import Site, site
from steersman import ObjectMeta
from steersman.cache import KindOptions
from steersman.controller import ChannelSource, Done, generation_changed
from steersman.kinds.core_v1 import Secret
from steersman.manager import Manager
from steersman.objects import Key


def manager_of(client, namespace):
    only = KindOptions(namespaces=(namespace,))
    return Manager(client, name="targets", kinds={Site: only, Secret: only})


def secret(name, namespace):
    return Secret(metadata=ObjectMeta(name=name, namespace=namespace))


@pytest.mark.parametrize(
    "values",
    [lambda site: site.spec.image, lambda site: [site.spec.image], lambda site: (each for each in [site.spec.image])],
    ids=["string", "list", "generator"],
)
async def test_an_index_may_return_one_string(client, namespace, sites, running, until, values):
    found = {}

    async def reconcile(ctx, request):
        for value in ("nginx", "n"):
            found[value] = [each.key.name for each in await ctx.client.by_index(Site, "image", value)]
        return Done()

    manager = manager_of(client, namespace)
    manager.index(Site, "image", values)
    manager.index(Site, "nothing", lambda site: None)
    manager.controller(Site).run_with(reconcile)
    await client.create(site("web", namespace, image="nginx"))
    async with running(manager):
        await until(lambda: found)
        assert manager.informers[0].statistics().index_failures == 0
    assert found == {"nginx": ["web"], "n": []}


@pytest.mark.parametrize(
    "target",
    [lambda view: view.key, lambda view: str(view.key), lambda view: [view.key], lambda view: iter([str(view.key)])],
    ids=["key", "string", "list", "iterator"],
)
async def test_a_mapper_may_return_one_target(client, namespace, sites, running, until, target):
    ran = []

    async def reconcile(ctx, request):
        ran.append(request.key)
        return Done()

    manager = manager_of(client, namespace)
    manager.controller(Site).watches(Secret, map=target).run_with(reconcile)
    async with running(manager):
        await client.create(secret("one", namespace))
        await until(lambda: ran)
    assert ran == [Key(namespace, "one")]


async def test_a_key_without_a_namespace_is_refused_with_what_to_write(client, namespace, sites, running, until):
    """For a namespaced kind, wherever the name comes from: a mapper, a source or a program."""
    ran = []

    async def reconcile(ctx, request):
        ran.append(request.key)
        return Done()

    def bare_name(view):
        return [view.key.name]

    source = ChannelSource("outside")
    manager = manager_of(client, namespace)
    manager.controller(Site).watches(Secret, map=bare_name).on(source).run_with(reconcile)
    async with running(manager):
        await client.create(secret("one", namespace))
        source.send("two")
        source.send(f"{namespace}/three")
        await until(lambda: ran)

        def failures():
            return {each.name: each.last_failure for each in manager.controllers[0].statistics().sources}

        await until(lambda: all(failures()[name] for name in ("Secret (bare_name)", "outside")))
        said = failures()
    assert ran == [Key(namespace, "three")]
    assert f"mapper bare_name on Secret {namespace}/one" in said["Secret (bare_name)"]
    assert 'write Key(namespace, "one")' in said["Secret (bare_name)"]
    assert 'write Key(namespace, "two")' in said["outside"]


async def test_a_resync_passes_a_predicate_of_change(client, namespace, sites, running, until):
    causes = []

    async def reconcile(ctx, request):
        causes.extend(cause.what for cause in ctx.causes)
        return Done()

    manager = manager_of(client, namespace)
    manager.controller(Site).when(generation_changed(), resync=0.2).run_with(reconcile)
    await client.create(site("web", namespace))
    async with running(manager):
        await until(lambda: causes.count("resync") >= 2)
