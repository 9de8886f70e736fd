"""The life of a release with helm 3 and 4 on both servers: installed, upgraded, rolled back and removed, and no data lost."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from charts.checked_release import chart_of, checked_release
from charts.clusters import Cluster, embedded_cluster, engine_cluster
from charts.programs import Major
from charts.releases import write_release

from samples.portions import ALL
from samples.raw_api import MERGE, raw_api
from steersman.aio import name_suffix
from steersman.testing import Engine

WHOLE = pytest.mark.skipif(not ALL, reason="a sample of the servers and versions of helm is enough; .ci/full runs all")
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def places(*sample: tuple[str, Major]) -> list[Any]:
    """Both servers with both versions of helm; only these in a short run."""
    every: list[tuple[str, Major]] = [("engine", 3), ("embedded", 4), ("engine", 4), ("embedded", 3)]
    return [
        pytest.param(each, id=f"{each[0]}-helm{each[1]}", marks=[] if each in sample else [WHOLE]) for each in every
    ]


@pytest.fixture(params=places(("engine", 3), ("embedded", 4)))
async def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Cluster]:
    """A server whose API is all that a test needs."""
    server, major = request.param
    if server == "embedded":
        async with embedded_cluster(major, tmp_path) as running:
            yield running
    else:
        engine: Engine = request.getfixturevalue("engine")
        async with raw_api(engine.kubeconfig) as api:
            yield Cluster(engine.kubeconfig, api, major, tmp_path, {})


@pytest.fixture(params=places(("embedded", 4)))
async def calling_cluster(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Cluster]:
    """A server that calls Services."""
    server, major = request.param
    async with {"engine": engine_cluster, "embedded": embedded_cluster}[server](major, tmp_path) as running:
        yield running


@pytest.fixture
def name() -> str:
    return f"sites-{name_suffix()}"


@pytest.fixture
def group(name: str) -> str:
    return f"{name}.test.steersman.dev"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


class Life:
    """A release, and the objects of its users."""

    def __init__(self, cluster: Cluster, name: str, group: str) -> None:
        self._api = cluster.api
        self._name = name
        self._group = group
        self._sites = f"/apis/{group}/v1/namespaces/default/sites"

    async def deployment(self) -> dict[str, Any]:
        path = f"/apis/apps/v1/namespaces/{self._name}/deployments/{self._name}"
        return (await self._api.made("GET", path))["spec"]

    async def restart(self) -> None:
        """Restart the Pods of the running release."""
        path = f"/apis/apps/v1/namespaces/{self._name}/deployments/{self._name}"
        restarted = {"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}}}
        await self._api.made("PATCH", path, restarted, content_type=MERGE)

    async def readable(self) -> str:
        found = (await self.deployment())["template"]["metadata"]["annotations"]["steersman.dev/readable-versions"]
        return found.replace(f"sites.{self._group}/", "")

    async def may_convert(self) -> bool:
        """Whether the operator may update the definition, as only the third release does."""
        role = await self._api.made("GET", f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{self._name}")
        return any("customresourcedefinitions" in rule["resources"] for rule in role["rules"])

    async def definition(self) -> dict[str, Any]:
        return await self._api.made("GET", f"{CRDS}/sites.{self._group}")

    async def serve(self, version: str, *, served: bool) -> None:
        """Let the definition serve a version, or serve it no longer."""
        versions = (await self.definition())["spec"]["versions"]
        changed = [each | {"served": served} if each["name"] == version else each for each in versions]
        path = f"{CRDS}/sites.{self._group}"
        await self._api.made("PATCH", path, {"spec": {"versions": changed}}, content_type=MERGE)

    async def fields(self) -> set[str]:
        (first, *_) = (await self.definition())["spec"]["versions"]
        return set(first["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"])

    async def create(self, name: str, **spec: Any) -> None:
        tree = {"apiVersion": f"{self._group}/v1", "kind": "Site", "metadata": {"name": name}, "spec": spec}
        async with asyncio.timeout(60):
            while (answer := await self._api.send("POST", self._sites, tree)).code == 404:  # noqa: ASYNC110 - just defined
                await asyncio.sleep(0.05)
        assert answer.code == 201, answer.body

    async def spec(self, name: str) -> dict[str, Any]:
        return (await self._api.made("GET", f"{self._sites}/{name}"))["spec"]

    async def end(self) -> None:
        """Delete the definition and the namespace: the run's engine serves other tests."""
        unconverted = {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
        path = f"{CRDS}/sites.{self._group}"
        await self._api.made("PATCH", path, unconverted, content_type=MERGE)
        await self._api.made("DELETE", path)
        await self._api.made("DELETE", f"/api/v1/namespaces/{self._name}")

    async def left(self) -> list[str]:
        """What is left of the release."""
        rbac, hooks = "/apis/rbac.authorization.k8s.io/v1", "/apis/admissionregistration.k8s.io/v1"
        lists = [
            f"/apis/apps/v1/namespaces/{self._name}/deployments",
            f"{rbac}/clusterroles",
            f"{rbac}/clusterrolebindings",
        ]
        lists += [f"{hooks}/{kind}" for kind in ("validatingadmissionpolicies", "validatingadmissionpolicybindings")]
        found = [item["metadata"]["name"] for each in lists for item in (await self._api.made("GET", each))["items"]]
        return [each for each in found if each.startswith(self._name)]


async def test_a_release_lives_and_no_data_is_lost(cluster: Cluster, here: Path, name: str, group: str):
    """Definitions are upgraded before the release that needs them, and no rollback or removal touches an object."""
    modules = [write_release(here, number, name=name, group=group) for number in (1, 2, 3)]
    first, second, third = [chart_of(here, module, f"{number}.0.0") for number, module in enumerate(modules, 1)]
    life, at = Life(cluster, name, group), ("--namespace", name)

    said = await cluster.helm("install", name, first, *at, "--create-namespace")
    assert "helm show crds CHART | kubectl apply --server-side --force-conflicts -f -" in said
    await life.create("home", image="nginx")
    assert await life.fields() == {"image"}

    refused = await cluster.helm("upgrade", name, second, *at, code=1)
    assert f"the definition sites.{group} on this server lacks, in v1: spec.tls. helm does not upgrade" in refused
    await cluster.install_definitions(second)
    await cluster.helm("upgrade", name, second, *at, "--set", "replicas=3")
    assert (await life.deployment())["replicas"] == 3
    await life.create("shop", image="nginx", tls=True)

    await cluster.helm("rollback", name, "1", *at)
    assert (await life.deployment())["replicas"] == 2
    assert await life.fields() == {"image", "tls"}
    assert await life.spec("shop") == {"image": "nginx", "tls": True}

    await cluster.install_definitions(third)
    await life.restart()
    await cluster.helm("upgrade", name, third, *at)
    assert sorted((await life.definition())["status"]["storedVersions"]) == ["v1", "v2"]
    assert sorted((await life.readable()).split()) == ["v1", "v2"]
    for older in ("1", "2"):
        refused = await cluster.helm("rollback", name, older, *at, code=1)
        assert f"objects of sites.{group} are stored in v2, which this release cannot read" in refused
        assert sorted((await life.readable()).split()) == ["v1", "v2"]
        assert await life.may_convert(), "the permissions of the running release stay"
    await cluster.helm("upgrade", name, third, *at)

    await cluster.helm("uninstall", name, *at)
    assert await life.left() == []
    assert await life.fields() == {"image", "tls"}
    assert await life.spec("shop") == {"image": "nginx", "tls": True}
    await cluster.helm("install", name, third, *at)
    assert await life.left() != []
    await life.serve("v1", served=False)
    refused = await cluster.helm("upgrade", name, third, *at, code=1)
    assert f"the definition sites.{group} on this server lacks, in v1: served=true. helm does not upgrade" in refused
    await cluster.helm("uninstall", name, *at)
    await life.end()


async def test_the_webhooks_of_a_release_work_in_any_namespace(
    calling_cluster: Cluster, here: Path, name: str, group: str
):
    """Arguments, permissions and registrations of the chart fit together, and an upgrade interrupts no review."""
    async with checked_release(calling_cluster, here, name=name, group=group) as release:
        await release.reviews("home")
        await release.upgrade()
        await release.reviews("shop")
        await release.reconciles("home")
    await release.uninstall()
    await release.is_unchecked()
