"""An existing cluster instead of an engine (`USE_EXISTING_CLUSTER=true`).

Guarantees: nothing is started or stopped. The current context of the default kubeconfig is copied at the start, so that
switching contexts meanwhile does not move the tests to another cluster.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from steersman.testing.engine.environment import Environment
from steersman.testing.engine.errors import EngineError, KubectlError
from steersman.testing.engine.kubectl import run_kubectl


class ExistingCluster:
    """The requests of the fixtures, made with kubectl, which supports all kinds of credentials."""

    def __init__(self, kubectl: Path, kubeconfig: Path, url: str) -> None:
        self.kubeconfig = kubeconfig
        self.url = url
        self._kubectl = kubectl

    async def create_namespace(self, name: str) -> None:
        """Create a namespace."""
        await self._run("create", "namespace", name)

    async def delete_namespace(self, name: str) -> None:
        """Delete a namespace, without waiting for its end."""
        await self._run("delete", "namespace", name, "--ignore-not-found", "--wait=false")

    async def delete_crds(self, group: str) -> None:
        """Delete every custom resource definition of an API group."""
        listing = await self._run("get", "customresourcedefinitions", "--output=name")
        names = [name for name in listing.split() if name.endswith(f".{group}")]
        if names:
            await self._run("delete", *names, "--ignore-not-found", "--wait=false")

    async def _run(self, *arguments: str) -> str:
        return await run_kubectl(self._kubectl, arguments, kubeconfig=self.kubeconfig)


@asynccontextmanager
async def existing_cluster(environment: Environment) -> AsyncGenerator[ExistingCluster]:
    """Use the cluster of the default kubeconfig for one block."""
    kubectl = find_kubectl(environment)
    try:
        text = await run_kubectl(
            kubectl, ("config", "view", "--raw", "--flatten", "--minify"), variables=environment.variables
        )
    except KubectlError as error:
        raise EngineError(
            f"USE_EXISTING_CLUSTER is true, but the default kubeconfig is unusable ({error.stderr.strip()}): choose a "
            "context with `kubectl config use-context`, or unset the variable to start an engine"
        ) from error
    document: dict[str, Any] = yaml.safe_load(text)
    url: str = document["clusters"][0]["cluster"]["server"]
    with tempfile.TemporaryDirectory(prefix="steersman-cluster-") as folder:
        path = Path(folder) / "kubeconfig"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        yield ExistingCluster(kubectl, path, url)


def find_kubectl(environment: Environment) -> Path:
    """The kubectl next to the engine's programs, else the one on PATH: any version near the cluster's works."""
    try:
        return environment.program("kubectl")
    except EngineError:
        on_path = shutil.which("kubectl", path=environment.variables.get("PATH"))
        if on_path is None:
            raise
        return Path(on_path)
