"""The definition whose objects are migrated: its storage version, its stored versions, and how far a migration is.

Guarantees
- `wait_until_used` returns once discovery reports the storage version. Before, a rewritten object could stay in the old one.
- `trim` removes stored versions only from the definition that was read: a change in between is refused by the server.
- A recorded key counts only for the generation of the definition in which it was recorded. Since then every write has
  stored its object in the storage version.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import msgspec

from steersman.cli.failure import Failure
from steersman.client import Client, MergePatch
from steersman.errors import KindNotServed, NotFound
from steersman.objects import Kind, Tree, tree_of

DEFINITION: Final = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
#: The annotation of a definition that records how far a migration is.
PROGRESS: Final = "steersman.dev/migration"
#: Seconds until the server must use a definition, and between two reads of discovery.
_PATIENCE: Final = 30.0
_INTERVAL: Final = 0.2


class _ServedResource(msgspec.Struct, rename="camel"):
    name: str
    storage_version_hash: str = ""


class _ServedResources(msgspec.Struct):
    resources: list[_ServedResource]


class RecordedProgress(msgspec.Struct, frozen=True):
    """How far a migration is: all keys up to ``after``, in their order, are done."""

    generation: int
    version: str
    after: str


@dataclass(frozen=True)
class StoredKind:
    """A definition as it was read."""

    name: str
    uid: str
    generation: int
    resource_version: str
    group: str
    plural: str
    kind: str
    namespaced: bool
    #: The version in which the server stores objects that are written now.
    storage: str
    #: A version in which clients can read and write: the storage version if it is served.
    served: str
    stored: tuple[str, ...]
    recorded: str

    @property
    def objects(self) -> Kind:
        """The kind of its objects."""
        return Kind(f"{self.group}/{self.served}", self.kind)

    @property
    def is_done(self) -> bool:
        """Whether no object can be stored in an old version."""
        return self.stored == (self.storage,)

    @property
    def done_up_to(self) -> str:
        """The last key of an interrupted migration to the same storage version; empty if there is none."""
        try:
            progress = msgspec.json.decode(self.recorded, type=RecordedProgress)
        except msgspec.MsgspecError:
            return ""
        return progress.after if (progress.generation, progress.version) == (self.generation, self.storage) else ""


async def read_definition(client: Client, name: str) -> StoredKind:
    """Read a definition by its name, or by any name by which kubectl finds the kind."""
    definition = await client.find(DEFINITION, name)
    if definition is None:
        try:
            served = await client.discovery.find(name)
        except KindNotServed as error:
            raise Failure(f"{error}; name the definition, such as sites.example.com") from error
        names = sorted({f"{resource.resource}.{resource.group}" for resource in served})
        if len(names) != 1:
            raise Failure(f"{name} means several kinds; name one of {', '.join(names)}")
        definition = await client.find(DEFINITION, names[0])
        if definition is None:
            raise Failure(f"{names[0]} has no CustomResourceDefinition; only custom resources can be migrated")
    return _stored_kind(tree_of(definition))


def _stored_kind(tree: Tree) -> StoredKind:
    spec, metadata = tree["spec"], tree["metadata"]
    status: Tree = tree.get("status") or {}
    annotations: dict[str, str] = metadata.get("annotations") or {}
    versions: list[Tree] = spec["versions"]
    storage = next(version["name"] for version in versions if version["storage"])
    served = [version["name"] for version in versions if version["served"]]
    if not served:
        raise Failure(f"{metadata['name']} serves no version, so its objects cannot be written; serve one first")
    return StoredKind(
        name=metadata["name"],
        uid=metadata["uid"],
        generation=metadata["generation"],
        resource_version=metadata["resourceVersion"],
        group=spec["group"],
        plural=spec["names"]["plural"],
        kind=spec["names"]["kind"],
        namespaced=spec["scope"] == "Namespaced",
        storage=storage,
        served=storage if storage in served else served[0],
        stored=tuple(status.get("storedVersions") or ()),
        recorded=annotations.get(PROGRESS, ""),
    )


async def wait_until_used(client: Client, definition: StoredKind) -> None:
    """Wait until the server stores objects in the storage version: after a change it uses the former one for a moment."""
    stored = f"{definition.group}/{definition.storage}/{definition.kind}"
    expected = b64encode(sha256(stored.encode()).digest()[:8]).decode()
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _PATIENCE
    while True:
        try:
            answer = await client.request("GET", f"/apis/{definition.group}/{definition.served}")
            served = msgspec.json.decode(answer, type=_ServedResources).resources
        except NotFound:
            served = []  # the version is new
        hashes = {each.storage_version_hash for each in served if each.name == definition.plural}
        if hashes == {expected}:
            return
        if loop.time() > deadline:
            raise Failure(
                f"{definition.name}: the server does not store objects in {definition.storage} yet; wait until the"
                " definition is established, then run the command again"
            )
        await asyncio.sleep(_INTERVAL)


async def record_progress(client: Client, definition: StoredKind, after: str) -> None:
    """Record that all keys up to this one are done."""
    progress = RecordedProgress(definition.generation, definition.storage, after)
    await _annotate(client, definition, msgspec.json.encode(progress).decode())


async def forget_progress(client: Client, definition: StoredKind) -> None:
    """Remove what was recorded."""
    await _annotate(client, definition, None)


async def _annotate(client: Client, definition: StoredKind, value: str | None) -> None:
    patch: dict[str, Any] = {"metadata": {"annotations": {PROGRESS: value}}}
    await client.patch(DEFINITION, definition.name, MergePatch(patch))


async def trim(client: Client, definition: StoredKind) -> None:
    """Leave the storage version alone in ``status.storedVersions``; `Conflict` if the definition was written meanwhile."""
    patch = {
        "metadata": {"resourceVersion": definition.resource_version},
        "status": {"storedVersions": [definition.storage]},
    }
    await client.patch(DEFINITION, definition.name, MergePatch(patch), subresource="status")
