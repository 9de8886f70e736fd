"""Migration by the server: a StorageVersionMigration, which kube-controller-manager works on.

Guarantees
- A server that serves the kind but has no controller for it is noticed, and its object removed.
- If the user may not delete the object, the console names it, and the result of the migration counts all the same.
"""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import Final

from steersman.cli.failure import Failure
from steersman.cli.files import say
from steersman.cli.migration.definition import StoredKind
from steersman.client import Client
from steersman.errors import AlreadyExists, Forbidden, KindNotServed
from steersman.objects import Kind, Tree, Unstructured, tree_of

_RESOURCE: Final = "storageversionmigrations.storagemigration.k8s.io"
#: Versions whose spec names the resource by group and name.
_VERSIONS: Final = frozenset({"v1", "v1beta1"})
#: In the version of a server that serves the kind for kube-controller-manager, and has no controller of its own.
_EMBEDDED: Final = "+steersman."
#: Seconds until a controller must have set a condition, and between two reads.
_PATIENCE: Final = 15.0
_INTERVAL: Final = 0.5


class ServerResult(Enum):
    """What the server made of a migration."""

    SUCCEEDED = "succeeded"
    NOT_SERVED = "not served"
    NO_CONTROLLER = "no controller"
    FORBIDDEN = "forbidden"


async def migrate_by_server(client: Client, definition: StoredKind) -> ServerResult:
    """Let the server migrate, and wait for it."""
    kind = await _migration_kind(client)
    if kind is None or _EMBEDDED in (await client.discovery.server_version()).git_version:
        return ServerResult.NOT_SERVED
    # One object for each state of the definition: a run after a kill finds that of the run before. The uid keeps apart
    # a definition that was deleted and created again: a result for the former one says nothing about its objects.
    name = f"steersman-{definition.uid}-{definition.generation}"
    wanted = Unstructured(
        {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": name},
            "spec": {"resource": {"group": definition.group, "resource": definition.plural}},
        }
    )
    try:
        await client.create(wanted)
    except AlreadyExists:
        pass
    except Forbidden:
        return ServerResult.FORBIDDEN
    say(f"waiting for StorageVersionMigration {name}; after an interruption, --by-client goes on without it")
    result = await _wait(client, kind, name)
    await _remove(client, kind, name)
    return result


async def _migration_kind(client: Client) -> Kind | None:
    try:
        resources = await client.discovery.find(_RESOURCE)
    except KindNotServed:
        return None
    served = [resource for resource in resources if resource.version in _VERSIONS]
    return Kind(str(served[0].gvk.group_version), served[0].kind) if served else None


async def _wait(client: Client, kind: Kind, name: str) -> ServerResult:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _PATIENCE
    while True:
        tree = tree_of(await client.get(kind, name))
        status: Tree = tree.get("status") or {}
        reported: list[dict[str, str]] = status.get("conditions") or []
        conditions = {each["type"]: each for each in reported if each["status"] == "True"}
        if "Succeeded" in conditions:
            return ServerResult.SUCCEEDED
        if "Failed" in conditions:
            await _remove(client, kind, name)
            said = conditions["Failed"].get("message") or conditions["Failed"].get("reason") or "no reason given"
            raise Failure(f"the server could not migrate ({said}); run again with --by-client")
        if not reported and loop.time() > deadline:
            return ServerResult.NO_CONTROLLER
        await asyncio.sleep(_INTERVAL)


async def _remove(client: Client, kind: Kind, name: str) -> None:
    try:
        await client.delete(kind, name, missing_ok=True)
    except Forbidden:
        say(f"this user may not delete StorageVersionMigration {name}, which is no longer needed; ask for its deletion")
