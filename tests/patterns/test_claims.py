"""Objects that belong to an owner by their labels: adopted as orphans, released when the labels change, never stolen."""

import asyncio
import logging
from contextlib import asynccontextmanager

import pytest
from patterns.declaring import own

from samples.site import Site
from steersman import Done, Manager, MergePatch, ObjectMeta
from steersman.aio import Supervisor
from steersman.cache import KindOptions
from steersman.controller import claim, claiming
from steersman.errors import Conflict, OwnershipError
from steersman.kinds.core_v1 import ConfigMap, Namespace
from steersman.objects import Key, PartialObjectMetadata, Selector, controller_of, owner_reference
from steersman.patterns import Outputs, child, reconciles
from steersman.testing import eventually

MARK = "steersman.dev/claimed"


@pytest.fixture
async def home(client, sites, namespace):
    return await own(client, "home", namespace, image="web")


def labels_of(site: Site) -> dict[str, str]:
    return {"app": site.spec.image}


def page(name, namespace, app="web", **metadata):
    return ConfigMap(
        metadata=ObjectMeta(name=name, namespace=namespace, labels={"app": app}, **metadata), data={"a": "b"}
    )


@reconciles(Site, children=(child(ConfigMap, claims=labels_of),))
async def pages(site: Site, out: Outputs) -> Done:
    names = ", ".join(sorted(each.key.name for each in out.claimed(ConfigMap)))
    out.apply(ConfigMap(metadata=ObjectMeta(name=f"{site.key.name}-index"), data={"pages": names}))
    return Done()


@asynccontextmanager
async def managing(client, namespace, *, name="pages", add=None, kinds=None):
    own_client = client.with_transport(lambda inner: inner, field_manager=name)
    manager = Manager(own_client, name=name, namespaces=[namespace], grace=1, kinds=kinds)
    manager.add(pages) if add is None else add(manager)
    async with Supervisor() as tasks:
        tasks.start(manager.run(signals=False), name="manager")
        try:
            yield manager
        finally:
            manager.stop()


def listed(names):
    return lambda index: index.data == {"pages": names}


async def test_orphans_are_adopted_and_released_and_never_pruned(client, home, namespace):
    index = Key(namespace, "home-index")
    await client.create(page("early", namespace))
    await client.create(page("other", namespace, app="mail"))
    async with managing(client, namespace) as manager:
        await eventually(client, ConfigMap, index, listed("early"))
        await eventually(lambda: not manager.controllers[0].busy)
        # one that appears later wakes the owner, although nothing on it names the owner
        await client.create(page("late", namespace, annotations={"mine": "stays"}))
        await eventually(client, ConfigMap, index, listed("early, late"))
        late = await client.get(ConfigMap, (namespace, "late"))
        assert (controller_of(late).uid, late.metadata.annotations) == (home.uid, {"mine": "stays", MARK: "true"})
        await client.patch(ConfigMap, late.key, MergePatch({"metadata": {"labels": {"app": "mail"}}}))
        await eventually(client, ConfigMap, index, listed("early"))
        released = await client.get(ConfigMap, late.key)
        assert (released.uid, released.metadata.owner_references) == (late.uid, None)
        assert released.metadata.annotations == {"mine": "stays"}
        # another owner's selector: what was claimed stays, and is let go of
        await client.patch(Site, home.key, MergePatch({"spec": {"image": "mail"}}))
        await eventually(client, ConfigMap, index, listed("late, other"))
        await eventually(lambda: not manager.controllers[0].busy)
        assert controller_of(await client.get(ConfigMap, (namespace, "early"))) is None


async def test_an_owner_whose_labels_cannot_be_selected_holds_up_no_other(client, home, namespace):
    """Its name may be longer than a label value; it would keep orphans from every owner in its namespace."""
    await own(client, "bad", namespace, image="not a label value")
    index = Key(namespace, "home-index")
    async with managing(client, namespace):
        await eventually(client, ConfigMap, index, listed(""))
        await client.create(page("late", namespace))
        await eventually(client, ConfigMap, index, listed("late"))
        bad = await client.get(Site, Key(namespace, "bad"))
        assert "must be at most 63 letters" in bad.status.conditions[0].message


async def test_what_another_owner_controls_is_never_taken(client, home, namespace):
    other = await own(client, "other", namespace, image="elsewhere")
    theirs = await client.create(page("theirs", namespace, owner_references=[owner_reference(other)]))
    spoofed = page("spoofed", namespace, owner_references=[owner_reference(other)], annotations={MARK: "true"})
    await client.create(spoofed)
    await client.create(page("free", namespace))
    async with managing(client, namespace):
        await eventually(client, ConfigMap, Key(namespace, "home-index"), listed("free"))
        assert controller_of(await client.get(ConfigMap, theirs.key)).uid == other.uid


async def test_an_adopted_orphan_keeps_its_other_owners(client, home, namespace):
    librarian = await own(client, "librarian", namespace, image="elsewhere")
    shared = owner_reference(librarian)
    shared.controller = None
    orphan = await client.create(page("shared", namespace, owner_references=[shared]))
    async with managing(client, namespace):
        await eventually(client, ConfigMap, Key(namespace, "home-index"), listed("shared"))
        adopted = await client.get(ConfigMap, orphan.key)
        assert {each.uid for each in adopted.metadata.owner_references} == {librarian.uid, home.uid}
        assert controller_of(adopted).uid == home.uid
        await client.patch(ConfigMap, orphan.key, MergePatch({"metadata": {"labels": {"app": "mail"}}}))
        await eventually(client, ConfigMap, Key(namespace, "home-index"), listed(""))
        released = await client.get(ConfigMap, orphan.key)
        assert [each.uid for each in released.metadata.owner_references] == [librarian.uid]


async def test_two_owners_of_one_orphan_one_gets_it(client, home, namespace):
    await own(client, "twin", namespace, image="web")
    for number in range(5):
        await client.create(page(f"page-{number}", namespace))
    async with managing(client, namespace) as manager:
        everything = {f"page-{number}" for number in range(5)}

        async def shared_out():
            found = [await client.find(ConfigMap, Key(namespace, f"{name}-index")) for name in ("home", "twin")]
            names = [name for each in found if each for name in each.data["pages"].split(", ") if name]
            return sorted(names) == sorted(everything)

        await eventually(shared_out)
        await eventually(lambda: not manager.controllers[0].busy)


@asynccontextmanager
async def reconciling(client, namespace, home):
    """A context of a reconcile of the bare runtime, which lasts as long as the block."""
    begun, ended = asyncio.get_running_loop().create_future(), asyncio.Event()

    async def reconcile(ctx, request):
        if request.key == home.key and not begun.done():
            begun.set_result(ctx)
            await ended.wait()
        return Done()

    def add(manager):
        manager.controller(Site).owns(ConfigMap).options(timeout=None).run_with(reconcile)

    async with managing(client, namespace, add=add):
        try:
            yield await asyncio.wait_for(begun, 60)
        finally:
            ended.set()


async def seen(ctx, key, question):
    async with asyncio.timeout(60):
        while not question(await ctx.client.find(ConfigMap, key)):  # noqa: ASYNC110 - there is nothing to wait on
            await asyncio.sleep(0.01)


class Overtaken:
    """A transport before whose first patch of an object something else happens on the server."""

    def __init__(self, inner, name, first):
        self._inner, self._name, self._first = inner, name, first

    async def send(self, request, **options):
        if request.method == "PATCH" and request.path.endswith(f"/{self._name}") and self._first is not None:
            first, self._first = self._first, None
            await first()
        return await self._inner.send(request, **options)

    async def close(self):
        await self._inner.close()


async def test_an_orphan_that_was_replaced_meanwhile_is_another_one(client, home, namespace):
    old = await client.create(page("page", namespace))

    async def replace():
        await client.delete(old)
        await client.create(page("page", namespace, app="mail"))

    overtaken = client.with_transport(lambda inner: Overtaken(inner, "page", replace))
    async with reconciling(overtaken, namespace, home) as ctx:
        await seen(ctx, old.key, lambda found: found is not None)
        with pytest.raises(Conflict):
            await claim(ctx, home, ConfigMap, {"app": "web"})
    new = await client.get(ConfigMap, old.key)
    assert (new.uid != old.uid, controller_of(new)) == (True, None)


async def test_an_orphan_that_changed_meanwhile_is_looked_at_again(client, home, namespace):
    """As when another owner adopts it, or its labels change: what was seen does not count any more."""
    orphan = await client.create(page("page", namespace))

    async def relabel():
        await client.patch(ConfigMap, orphan.key, MergePatch({"metadata": {"labels": {"app": "mail"}}}))

    overtaken = client.with_transport(lambda inner: Overtaken(inner, "page", relabel))
    async with reconciling(overtaken, namespace, home) as ctx:
        await seen(ctx, orphan.key, lambda found: found is not None)
        with pytest.raises(Conflict):
            await claim(ctx, home, ConfigMap, {"app": "web"})
        await seen(ctx, orphan.key, lambda found: found.metadata.labels == {"app": "mail"})
        assert await claim(ctx, home, ConfigMap, {"app": "web"}) == []
    assert controller_of(await client.get(ConfigMap, orphan.key)) is None


async def test_an_owner_that_is_gone_or_going_adopts_nothing(client, home, namespace):
    orphan = await client.create(page("page", namespace))
    async with reconciling(client, namespace, home) as ctx:
        await seen(ctx, orphan.key, lambda found: found is not None)
        await client.delete(home)
        again = await own(client, "home", namespace, image="web")
        # the reconcile still has the owner that is gone
        assert await claim(ctx, home, ConfigMap, {"app": "web"}) == []
        assert again.uid != home.uid
        held = MergePatch({"metadata": {"finalizers": ["test.dev/hold"]}})
        going = await client.patch(Site, home.key, held)
        await client.delete(Site, home.key)
        assert await claim(ctx, going, ConfigMap, {"app": "web"}) == []
        await client.patch(Site, home.key, MergePatch({"metadata": {"finalizers": None}}))
    assert controller_of(await client.get(ConfigMap, orphan.key)) is None


@pytest.mark.parametrize("metadata_only", [False, True], ids=["whole", "metadata"])
async def test_the_bare_runtime_claims_too(client, home, namespace, metadata_only, caplog):
    """A claim needs only metadata, so a controller that caches nothing else of the kind can claim too."""
    got, forms = [], set()
    caplog.set_level(logging.INFO, "steersman")

    async def reconcile(ctx, request):
        site = await ctx.client.find(Site, request.key)
        if site is not None:
            claimed = await claim(ctx, site, ConfigMap, labels_of(site))
            forms.update(type(each) for each in claimed)
            got.append(sorted(each.key.name for each in claimed))
        return Done()

    def add(manager):
        builder = manager.controller(Site).owns(ConfigMap, metadata_only=metadata_only)
        builder.watches(ConfigMap, map=claiming(Site, labels_of), metadata_only=metadata_only).run_with(reconcile)

    async with managing(client, namespace, add=add):
        await client.create(page("one", namespace))
        await eventually(lambda: got and got[-1] == ["one"])
        await client.create(page("two", namespace))
        await eventually(lambda: got and got[-1] == ["one", "two"])
        await client.patch(ConfigMap, (namespace, "one"), MergePatch({"metadata": {"labels": {"app": "mail"}}}))
        await eventually(lambda: got and got[-1] == ["two"])
    assert (await client.get(ConfigMap, (namespace, "one"))).metadata.owner_references is None
    assert forms == {PartialObjectMetadata if metadata_only else ConfigMap}
    assert f"adopted ConfigMap {namespace}/one" in caplog.text


async def test_a_pattern_claims_objects_of_a_kind_that_is_cached_as_metadata(client, home, namespace):
    got = []

    @reconciles(Site, children=(child(ConfigMap, claims=labels_of),))
    async def readers(site: Site, out: Outputs) -> Done:
        got.append([(type(each), each.key.name) for each in out.claimed(ConfigMap)])
        return Done()

    kinds = {ConfigMap: KindOptions(metadata_only=True, namespaces=(namespace,))}
    async with managing(client, namespace, add=lambda manager: manager.add(readers), kinds=kinds):
        orphan = await client.create(page("one", namespace))
        await eventually(lambda: got and got[-1] == [(PartialObjectMetadata, "one")])
        assert controller_of(await client.get(ConfigMap, orphan.key)).uid == home.uid
        await client.patch(ConfigMap, orphan.key, MergePatch({"metadata": {"labels": {"app": "mail"}}}))
        await eventually(lambda: got[-1] == [])
    assert (await client.get(ConfigMap, orphan.key)).metadata.owner_references is None


async def test_mistakes_are_named(client, home, namespace):
    async with reconciling(client, namespace, home) as ctx:
        with pytest.raises(ValueError, match="empty labels would adopt every ConfigMap"):
            await claim(ctx, home, ConfigMap, {})
        with pytest.raises(OwnershipError, match="Namespace, which is cluster-scoped"):
            await claim(ctx, home, Namespace, {"a": "b"})
    for wrong, words in (
        ((child(Namespace, claims=labels_of),), "cluster-scoped, so Site cannot own it"),
        ((child(ConfigMap, claims={"a": "b"}),), "a function from the owner to labels"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            reconciles(Site, children=wrong)
    with pytest.raises(ValueError, match="needs the labels to select"):
        Outputs(home, pages.children).claimed(Namespace)


@pytest.mark.parametrize("nothing", [{}, "", None, Selector()], ids=repr)
def test_labels_that_are_always_empty_are_refused_where_they_are_declared(nothing):
    """They would adopt every object: a reconcile is too late to find out, and in a test without orphans nothing happens."""
    words = "empty labels would adopt every object of the kind; return at least one label"
    with pytest.raises(ValueError, match=words) as caught:
        reconciles(Site, children=(child(ConfigMap, claims=lambda site: nothing),))
    assert str(caught.value) == f"@reconciles(Site): child(ConfigMap, claims=...): {words}"
    with pytest.raises(ValueError, match=words) as caught:
        claiming(Site, lambda site: nothing)
    assert str(caught.value) == f"claiming(Site, ...): {words}"


def test_labels_that_depend_on_their_owner_are_declared_without_it():
    """Whether they are empty is not known before there is an owner; a constant that is not empty is one of them."""

    def cautious(site):
        try:
            return site.metadata.labels or {}
        except Exception:  # noqa: BLE001 - as careful programs do
            return {}

    def typed(site):
        return {"app": "web"} if isinstance(site, Site) else {}

    for labels in (cautious, typed, lambda site: {"app": "web"}, lambda site: getattr(site, "chosen", {})):
        assert reconciles(Site, children=(child(ConfigMap, claims=labels),))
        assert claiming(Site, labels)
