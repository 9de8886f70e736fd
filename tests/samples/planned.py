"""``steersman plan`` for tests: modules to plan, a kind without a schema, and the command beside the test's own loop."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from steersman import Client
from steersman.cli import main
from steersman.errors import KindNotServed, NotFound
from steersman.objects import Kind, Unstructured


def write(here: Path, name: str, text: str) -> str:
    (here / f"{name}.py").write_text(text, encoding="utf-8")
    return name


async def plan(server: Any, target: str, namespace: str, *arguments: str) -> int:
    """As the command does it, beside this loop."""
    command = ["plan", target, "--kubeconfig", str(server.kubeconfig), "-n", namespace, *arguments]
    return await asyncio.to_thread(main, command)


def crd(group: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"sites.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "sites", "singular": "site", "kind": "Site", "listKind": "SiteList"},
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }


async def installed(client: Client, group: str) -> Kind:
    await client.create(Unstructured(crd(group)))
    kind = Kind(f"{group}/v1", "Site")
    async with asyncio.timeout(60):
        while True:
            try:
                client.discovery.invalidate()
                await client.list(kind, namespace=None)
            except (KindNotServed, NotFound):
                await asyncio.sleep(0.05)
            else:
                return kind


def site(group: str, name: str, namespace: str, **spec: Any) -> Unstructured:
    metadata = {"name": name, "namespace": namespace}
    return Unstructured({"apiVersion": f"{group}/v1", "kind": "Site", "metadata": metadata, "spec": spec})
