"""What people call a resource is found as kubectl finds it; what is not served is explained."""

import asyncio
import re
import subprocess

import pytest

from samples.stage import until
from steersman import Kind, ObjectMeta, Resource, Spec
from steersman.errors import KindNotServed
from steersman.kinds.apiregistration_v1 import APIService, APIServiceSpec, ServiceReference
from steersman.objects import GroupVersion
from steersman.testing.engine.environment import Environment

GROUP = "names.test.steersman.dev"


class Sprocket(Resource[Spec, None], group=GROUP, version="v1", short_names=("spk",)):
    """A name that no other test of the engine uses: a bare name finds the first kind that has it."""


@pytest.fixture
async def sprockets(client):
    await client.install(Sprocket)
    await until(lambda: is_published(client, "spk"))


async def named(client, name):
    try:
        return [str(each.gvr) for each in await client.discovery.find(name)]
    except KindNotServed:
        return []


async def is_published(client, name):
    """Whether a name is found: the engine publishes a new kind a moment after it serves it."""
    return bool(await named(client, name))


async def test_names_of_one_resource(client, sprockets):
    own = ("sprockets", "sprocket", "Sprocket", "spk", "SPROCKET")
    for name in (*own, f"sprockets.{GROUP}", f"spk.{GROUP}", f"sprockets.v1.{GROUP}"):
        assert await named(client, name) == [f"{GROUP}/v1/sprockets"]
    (found,) = await client.discovery.find("deploy")
    assert (found.kind, found.resource, found.namespaced) == ("Deployment", "deployments", True)
    assert (await client.list(found.as_kind(), namespace="default")).undecodable == []


async def test_groups_and_preferred_resources(client):
    groups = await client.discovery.groups()
    assert (groups[""], groups["apps"], groups["autoscaling"][0]) == (("v1",), ("v1",), "v2")
    resources = await client.discovery.preferred_resources()
    scalers = [each.version for each in resources if each.kind == "HorizontalPodAutoscaler"]
    assert scalers == ["v2"]
    cluster = {each.resource for each in await client.discovery.preferred_resources(namespaced=False)}
    spaced = {each.resource for each in await client.discovery.preferred_resources(namespaced=True)}
    assert "nodes" in cluster - spaced
    assert "pods" in spaced - cluster


async def test_openapi_documents(client):
    """v3 of one group and version, v2 of everything."""
    document = await client.discovery.openapi("apps/v1")
    assert "io.k8s.api.apps.v1.Deployment" in document["components"]["schemas"]
    whole = await client.discovery.openapi_v2()
    assert whole["swagger"] == "2.0"
    assert "io.k8s.api.apps.v1.Deployment" in whole["definitions"]


async def test_a_name_that_is_not_served_is_explained(client):
    with pytest.raises(KindNotServed) as caught:
        await client.discovery.find("deploymnts.apps")
    assert "did you mean deployments" in str(caught.value)
    assert "client.install(...)" in str(caught.value)


async def test_a_kind_that_is_not_served_is_explained(client):
    """A misspelled kind, a plural, and a kind that moved to another group."""
    for kind in ("Deploymnt", "deployments"):
        with pytest.raises(
            KindNotServed, match=r"did you mean Deployment \(apps/v1\)\? If not, apply its CRD with client.install"
        ):
            await client.list(Kind("apps/v1", kind))
    with pytest.raises(KindNotServed, match=r"did you mean Ingress \(networking.k8s.io/v1\)"):
        await client.list(Kind("extensions/v1beta1", "Ingress"))
    with pytest.raises(KindNotServed, match=r"did you mean Pod \(v1\)"):
        await client.list(Kind("v1", "Podd"))


async def test_a_kind_installed_later_is_found_by_name(client, crd_group, install):
    """Names are cached, and a missing one is looked up again."""

    class Latecomer(Resource[Spec, None], group=crd_group, version="v1", short_names=("late",)):
        pass

    assert await named(client, f"late.{crd_group}") == []
    await install(Latecomer)
    await until(lambda: is_published(client, f"late.{crd_group}"))
    assert await named(client, f"late.{crd_group}") == [f"{crd_group}/v1/latecomers"]


@pytest.mark.engine_only("aggregation")
async def test_a_broken_group_hides_no_names(client):
    broken = APIService(
        metadata=ObjectMeta(name="v1.stale.test.steersman.dev"),
        spec=APIServiceSpec(
            group="stale.test.steersman.dev",
            version="v1",
            group_priority_minimum=20_000,
            version_priority=100,
            insecure_skip_tls_verify=True,
            service=ServiceReference(name="missing", namespace="default"),
        ),
    )
    broken = await client.create(broken)

    async def is_listed():
        client.discovery.invalidate()
        return GroupVersion("stale.test.steersman.dev", "v1") in await client.discovery.failures()

    try:
        await until(is_listed)
        assert await named(client, "deploy") == ["apps/v1/deployments"]
        assert (await client.discovery.groups())["stale.test.steersman.dev"] == ("v1",)
        with pytest.raises(KindNotServed, match=r"could not be read: stale.test.steersman.dev/v1"):
            await client.discovery.find("what.stale.test.steersman.dev")
    finally:
        await client.delete(broken)


NAMES = """
deploy deployment Deployment DEPLOYMENT deploy.apps deployments.v1.apps Deployment.apps
events ev.events.k8s.io Event.v1.events.k8s.io hpa horizontalpodautoscalers.v1.autoscaling ingresses.networking
secrets.v1. secrets.v1 Po nothing all
gizmos gizmo gz gizmos.b.GROUP gz.b.GROUP Gizmo.b.GROUP gizmos.b.SHORT gizmos.v1.b.GROUP
trinket Trinket.b.GROUP pods svc parts-SHORT
"""


@pytest.mark.engine_only("kubectl's own answers")
async def test_names_mean_what_they_mean_to_kubectl(client, engine, crd_group, tmp_path):
    """Short names that collide, one plural in two groups, kinds, categories and abbreviated groups."""
    short = crd_group.partition(".")[0]

    class First(Resource[Spec, None], group=f"a.{crd_group}", version="v1", plural="gizmos", short_names=("gz", "ev")):
        pass

    class Gizmo(
        Resource[Spec, None], group=f"b.{crd_group}", version="v1", short_names=("gz",), categories=(f"parts-{short}",)
    ):
        pass

    class Trinket(
        Resource[Spec, None],
        group=f"b.{crd_group}",
        version="v1",
        plural="baubles",
        singular="trinkety",
        short_names=("pods", "trinket"),
        categories=(f"parts-{short}",),
    ):
        pass

    await client.install(First, Gizmo, Trinket)
    program = Environment.read().program("kubectl")

    async def asked(name):
        command = [program, "--kubeconfig", engine.kubeconfig, "--cache-dir", tmp_path, "get", name, "-v=6"]
        done = await asyncio.to_thread(
            subprocess.run, list(map(str, command)), capture_output=True, text=True, check=False
        )
        paths = re.findall(r'url="https?://[^/]+/apis?/([^"?]*)\?limit=', done.stderr)
        return [re.sub(r"/namespaces/[^/]+", "", path) for path in paths]

    await until(lambda: is_published(client, f"trinket.b.{crd_group}"))
    names = NAMES.replace("GROUP", crd_group).replace("SHORT", short).split()
    theirs = {name: await asked(name) for name in names}
    assert {name: await named(client, name) for name in names} == theirs
    assert theirs[f"gz.b.{crd_group}"] == [f"b.{crd_group}/v1/gizmos"]
    assert theirs["nothing"] == []


async def test_a_class_is_found_under_its_own_names(client, sprockets):
    """The names that a class declares are those that people use."""
    options = Sprocket.__resource__
    for name in (options.plural, options.kind, *options.short_names):
        assert await named(client, name) == [f"{GROUP}/v1/sprockets"]
