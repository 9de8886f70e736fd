"""``@generates`` and ``@reconciles``: an operator that is one function, with and without a server."""

from __future__ import annotations

import re

import pytest

from samples.site import Site, SiteSpec
from steersman import MergePatch, ObjectMeta
from steersman.controller import Done
from steersman.kinds.apps_v1 import Deployment, DeploymentSpec, DeploymentStatus
from steersman.kinds.core_v1 import (
    ConfigMap,
    Container,
    PodSpec,
    PodTemplateSpec,
    Secret,
    Service,
    ServicePort,
    ServiceSpec,
)
from steersman.kinds.meta_v1 import LabelSelector
from steersman.manager import Manager
from steersman.objects import find_condition
from steersman.patterns import Outputs, Wait, generates, reconciles
from steersman.testing import eventually


def home(**spec) -> Site:
    return Site(metadata=ObjectMeta(name="home"), spec=SiteSpec(**({"image": "web:1"} | spec)))


def page(name: str, text: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name), data={"text": text})


def deployment(site: Site) -> Deployment:
    labels = {"app": site.key.name}
    pod = PodTemplateSpec(
        metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[Container(name="web", image=site.spec.image)])
    )
    spec = DeploymentSpec(replicas=site.spec.replicas, selector=LabelSelector(match_labels=labels), template=pod)
    return Deployment(metadata=ObjectMeta(name=site.key.name), spec=spec)


def service(site: Site) -> Service:
    spec = ServiceSpec(selector={"app": site.key.name}, ports=[ServicePort(port=80)])
    return Service(metadata=ObjectMeta(name=site.key.name), spec=spec)


@generates(Site, children=(Deployment, Service))
def web(site: Site):
    """Serves a site."""
    return [deployment(site), service(site)]


def managed(*operators) -> Manager:
    manager = Manager(name="sites")
    for each in operators:
        manager.add(each)
    return manager


async def ready(client, name: str) -> None:
    found = await eventually(client, Deployment, name)
    count = found.spec.replicas
    found.status = DeploymentStatus(
        observed_generation=found.generation,
        replicas=count,
        ready_replicas=count,
        available_replicas=count,
        updated_replicas=count,
    )
    await client.save(found)


async def condition(client, name: str = "home"):
    site = await client.get(Site, name)
    return find_condition(site.status.conditions, "Ready") if site.status else None


# without a server


def test_a_decorated_function_is_still_the_function() -> None:
    made = web(home(replicas=3))
    assert [type(each) for each in made] == [Deployment, Service]
    assert made[0].spec.replicas == 3
    assert made[0].metadata.owner_references is None
    assert (web.__name__, web.__doc__) == ("web", "Serves a site.")


def test_it_says_what_it_is() -> None:
    blueprint = web.blueprint()
    assert (blueprint.name, blueprint.primary) == ("site", Site)
    assert [kind.__name__ for kind in blueprint.kinds()] == ["Site", "Deployment", "Service"]
    graph = web.machine
    assert (graph.name, graph.kind, graph.states[0].words) == ("web", "Site", "Serves a site.")
    assert graph.conditions == ("Ready",)


def test_options_are_those_of_a_machine() -> None:
    told = []
    named = generates(
        Site, children=(ConfigMap,), retired=(Secret,), name="pages", ready="PagesReady", declare=told.append
    )
    blueprint = named(lambda site: []).blueprint()
    assert (blueprint.name, blueprint.conditions) == ("pages", ("PagesReady",))
    assert [kind.__name__ for kind in blueprint.kinds()] == ["Site", "ConfigMap", "Secret"]
    assert len(told) == 1


# with one


async def test_children_are_made_kept_waited_for_and_pruned(plane) -> None:
    client = plane.client
    await plane.install(Site)

    @generates(Site, children=(Deployment, Service))
    async def operator(site: Site):
        made = [deployment(site)]
        return [*made, service(site)] if site.spec.mode == "dynamic" else made

    async with plane.running(managed(operator)) as running:
        site = await client.create(home(mode="dynamic", replicas=2))
        await running.drained()
        told = await condition(client)
        assert (told.status, told.reason) == ("False", "ChildrenNotReady")
        assert told.message == "Deployment home: its controller has not looked at it yet"
        found = await client.get(Deployment, "home")
        assert [each.uid for each in found.metadata.owner_references] == [site.uid]

        await ready(client, "home")
        await running.drained()
        assert (await condition(client)).status == "True"
        assert (await client.get(Site, "home")).status.observed_generation == 1

        await client.patch(Service, "home", MergePatch({"spec": {"selector": {"app": "other"}}}))
        await running.drained()
        assert (await client.get(Service, "home")).spec.selector == {"app": "home"}

        with plane.writes() as writes:
            await client.patch(Site, "home", MergePatch({"metadata": {"labels": {"a": "b"}}}))
            await running.drained()
        assert [each for each in writes if each.manager.startswith("sites")] == []

        await client.patch(Site, "home", MergePatch({"spec": {"mode": "static"}}))
        await running.drained()
        assert await client.find(Service, "home") is None
        assert await client.find(Deployment, "home") is not None


async def test_phases_wait_for_each_other_and_go_in_reverse(control_plane) -> None:
    client = control_plane.client
    await control_plane.install(Site)

    @generates(Site, children=(ConfigMap, Deployment), ordered_deletion=True)
    def operator(site: Site):
        return [[deployment(site)], [page("one", "1"), page("two", "2")]]

    async with control_plane.running(managed(operator)) as running:
        await client.create(home())
        await running.drained()
        assert await client.find(ConfigMap, "one") is None
        await ready(client, "home")
        await running.drained()
        assert await client.find(ConfigMap, "one") is not None
        assert (await condition(client)).status == "True"
        with control_plane.writes() as writes:
            await client.delete(Site, "home")
            await running.drained()
        gone = [str(each.key).partition("/")[2] for each in writes if each.verb == "delete" and each.kind != "Site"]
        assert sorted(gone[:2]) == ["one", "two"]
        assert gone[2:] == ["home"]
        assert await client.find(Site, "home") is None


async def test_a_function_of_one_state_declares_waits_and_cleans_up(control_plane) -> None:
    client = control_plane.client
    await control_plane.install(Site)
    cleaned: list[str] = []

    @reconciles(Site, children=(ConfigMap,))
    async def operator(site: Site, out: Outputs) -> Done | Wait:
        """Publishes a page."""
        first = out.apply(page("home", site.spec.image), how="create")
        current = await out.current(first)
        return Done() if current is not None and site.spec.replicas else Wait("no replica is wanted")

    @operator.finalizer
    async def clean_up(site: Site, out: Outputs) -> Done:
        """Says good-bye."""
        cleaned.append(site.key.name)
        return Done()

    assert (operator.machine.finalizer, operator.machine.finalizer_words) == ("clean_up", "Says good-bye.")
    async with control_plane.running(managed(operator)) as running:
        await client.create(home(replicas=0))
        await running.drained()
        assert (await condition(client)).message == "no replica is wanted"
        assert (await client.get(Site, "home")).metadata.finalizers == ["web.test.steersman.dev/sites.site"]
        await client.patch(Site, "home", MergePatch({"spec": {"replicas": 1, "image": "web:2"}}))
        await running.drained()
        assert (await condition(client)).status == "True"
        assert (await client.get(ConfigMap, "home")).data == {"text": "web:1"}
        await client.delete(Site, "home")
        await running.drained()
        assert cleaned == ["home"]
        assert await client.find(Site, "home") is None


async def test_a_function_of_one_state_can_be_tested_without_a_server() -> None:
    @reconciles(Site, children=(ConfigMap,))
    async def operator(site: Site, out: Outputs) -> Done:
        out.apply(page("home", site.spec.image))
        return Done()

    out = Outputs(home(), operator.children)
    assert await operator(home(), out) == Done()
    assert [each.child.data for each in out.declared] == [{"text": "web:1"}]


# mistakes


def none(site):
    return None


def one(site):
    return page("a", "b")


def secret(site):
    return [Secret(metadata=ObjectMeta(name="a"))]


def text(site):
    return "pages"


def holes(site):
    return [page("a", "b"), None]


def classes(site):
    return [ConfigMap]


def mixed(site):
    return [page("a", "b"), [page("c", "d")]]


def deep(site):
    return [[[page("c", "d")]]]


def words(site):
    return ["page"]


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (none, "@generates(Site): none returned None; return a list of children, [] if there are none"),
        (one, "@generates(Site): one returned one ConfigMap instead of a list; return [ConfigMap(...)]"),
        (text, "@generates(Site): text returned 'pages' instead of a list of children"),
        (
            secret,
            (
                "@generates(Site): secret returned Secret a, and Secret is not in"
                " children=(ConfigMap,); write children=(ConfigMap, Secret)"
            ),
        ),
        (holes, "@generates(Site): holes returned None in its list; leave out children that should not exist"),
        (
            classes,
            ("@generates(Site): classes returned the class ConfigMap in its list; create an object: ConfigMap(...)"),
        ),
        (
            mixed,
            (
                "@generates(Site): mixed returned both objects and lists; for phases, return only lists: "
                "[[first], [second, third]]"
            ),
        ),
        (
            deep,
            (
                "@generates(Site): deep returned lists that are nested too deeply; phases are one level:"
                " [[first], [second, third]]"
            ),
        ),
        (
            words,
            (
                "@generates(Site): words returned 'page' in its list, which is not an object;"
                " build one of steersman.kinds or of your own types, or Unstructured({...})"
            ),
        ),
    ],
)
async def test_what_is_returned_wrongly_is_said(function, said: str) -> None:
    operator = generates(Site, children=(ConfigMap,))(function)
    site = home()
    with pytest.raises(TypeError, match=f"^{re.escape(said)}$"):
        await operator.declare(site)


async def test_what_is_returned_wrongly_is_in_the_condition(control_plane) -> None:
    client = control_plane.client
    await control_plane.install(Site)
    async with control_plane.running(managed(generates(Site, children=(ConfigMap,))(none)), crashes=True):
        await client.create(home())
        site = await eventually(client, Site, "home", lambda found: found.status is not None)
        told = find_condition(site.status.conditions, "Ready")
        assert (told.status, told.reason) == ("False", "Error")
        assert told.message == (
            "TypeError: @generates(Site): none returned None; return a list of children, [] if there are none"
        )


def yields(site):
    yield page("a", "b")


def two(site, client):
    return []


def with_self(self, site, out):
    return []


@pytest.mark.parametrize(
    ("decorate", "said"),
    [
        (
            lambda: generates(Site, children=(ConfigMap,))(yields),
            "@generates(Site): yields yields its children; return them in a list",
        ),
        (
            lambda: generates(Site, children=(ConfigMap,))(two),
            (
                "@generates(Site): two(site, client) cannot be called with the resource alone; write"
                " def two(resource), or use @reconciles for a function that needs a client or outputs"
            ),
        ),
        (
            lambda: generates(Site, children=(ConfigMap,))(Secret),
            ("@generates(Site) decorates a function, but class Secret is not one: write def site_operator(site)"),
        ),
        (
            lambda: generates(Site, children=(ConfigMap,))(7),
            "@generates(Site) decorates a function, but 7 is not one: write def site_operator(site)",
        ),
        (
            lambda: generates(none, children=()),
            "@generates needs a kind: write @generates(Site, children=(...))",
        ),
        (
            lambda: generates("Site", children=()),
            "@generates('Site') needs a kind, a class declared with group= and version=",
        ),
        (
            lambda: generates(Site, children=ConfigMap),
            "@generates(Site): children=ConfigMap is one kind; write children=(ConfigMap,)",
        ),
        (
            lambda: reconciles(Site)(none),
            "@reconciles(Site): none is not async; write async def none(site, out) -> Done | Wait",
        ),
        (
            lambda: reconciles(none),
            "@reconciles needs a kind: write @reconciles(Site, children=(...))",
        ),
    ],
)
def test_what_is_decorated_wrongly_is_said_at_once(decorate, said: str) -> None:
    with pytest.raises(TypeError, match=f"^{re.escape(said)}$"):
        decorate()


def test_a_second_finalizer_is_refused() -> None:
    @reconciles(Site)
    async def operator(site: Site, out: Outputs) -> Done:
        return Done()

    async def first(site: Site, out: Outputs) -> Done:
        return Done()

    operator.finalizer(first)
    with pytest.raises(
        TypeError,
        match=r"^@operator\.finalizer, first: first is already its finalizer; write one function that calls the other$",
    ):
        operator.finalizer(first)
