"""A release whose operator runs as a process of this machine, as from a kubelet, and whose webhooks the server calls."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from charts.clusters import Cluster
from charts.releases import write_checked

from samples.ports import free_port
from steersman.cli import main


def chart_of(folder: Path, module: str, version: str) -> Path:
    """Generate the chart of a module, in a folder of the module's name."""
    assert main(["generate", "chart", module, "--directory", str(folder / module), "--version", version]) == 0
    return folder / module


class CheckedRelease:
    """What a user does beside a release with webhooks."""

    def __init__(self, cluster: Cluster, chart: Path, *, name: str, group: str) -> None:
        self.namespace = f"{name}-elsewhere"
        self._cluster = cluster
        self._chart = chart
        self._name = name
        self._group = group
        self._sites = f"/apis/{group}/v1/namespaces/default/sites"
        self._at = ("--namespace", self.namespace)

    async def install(self) -> None:
        """Install the chart."""
        await self._cluster.helm("install", self._name, self._chart, *self._at, "--create-namespace")

    async def upgrade(self) -> None:
        """Change a value."""
        await self._cluster.helm("upgrade", self._name, self._chart, *self._at, "--set", "replicas=1")

    async def uninstall(self) -> None:
        """Remove the release."""
        await self._cluster.helm("uninstall", self._name, *self._at)

    async def arguments(self) -> list[str]:
        """The arguments of the operator's container, with the identity of its Pod, and ports of this machine."""
        path = f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{self._name}"
        pod = (await self._cluster.api.made("GET", path))["spec"]["template"]["spec"]
        account = await self._cluster.identity(self.namespace, pod["serviceAccountName"])
        return [*pod["containers"][0]["args"], "--host=127.0.0.1", "--port=0", f"--kubeconfig={account}"]

    async def is_served(self) -> None:
        """Wait until the server calls the webhooks."""
        async with asyncio.timeout(60):
            while (await self._create("trial", "nginx", "?dryRun=All")).code != 201:  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    async def reviews(self, name: str) -> None:
        """Create a site with a default, and fail to create another one."""
        made = await self._create(name, "nginx")
        assert (made.code, made.body["spec"]["image"]) == (201, "nginx:stable")
        refused = await self._create("refused", "nginx:latest")
        assert (refused.code, "the image must name a version" in refused.body["message"]) == (403, True)

    async def reconciles(self, name: str) -> None:
        """Wait for the child of a site: the operator leads, and has its permissions."""
        async with asyncio.timeout(60):
            path = f"/api/v1/namespaces/default/configmaps/{name}"
            while (await self._cluster.api.send("GET", path)).code != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    async def is_unchecked(self) -> None:
        """Create a site that the webhooks would reject, as soon as the server knows that they are gone."""
        async with asyncio.timeout(60):
            while (await self._create("unchecked", "nginx:latest")).code != 201:  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    async def _create(self, name: str, image: str, query: str = "") -> Any:
        tree = {"apiVersion": f"{self._group}/v1", "kind": "Site", "metadata": {"name": name}, "spec": {"image": image}}
        return await self._cluster.api.send("POST", f"{self._sites}{query}", tree)


@asynccontextmanager
async def checked_release(cluster: Cluster, folder: Path, *, name: str, group: str) -> AsyncGenerator[CheckedRelease]:
    """Install a release, and run its operator for one block."""
    port = free_port()
    chart = chart_of(folder, write_checked(folder, name=name, group=group, port=port), "1.0.0")
    release = CheckedRelease(cluster, chart, name=name, group=group)
    await release.install()
    await cluster.serve(release.namespace, "hooks", port)
    log = folder / "operator.log"
    command = (sys.executable, "-c", "import sys; from steersman.cli import main; sys.exit(main())", "run", chart.name)
    with log.open("wb") as file:
        arguments = await release.arguments()
        process = await asyncio.create_subprocess_exec(*command, *arguments, cwd=folder, stdout=file, stderr=file)
    try:
        await release.is_served()
        yield release
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(60):
            assert await process.wait() == 0, log.read_text(errors="replace")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
