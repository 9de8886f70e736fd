"""Creates the objects of a server at its start.

Guarantees
- The server creates only missing objects, and only of kinds that it serves. It does not change stored objects.
- It writes all objects in one step, without validating them: they are copies of objects that kube-apiserver stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import NamedTuple

from steersman.apiserver.bootstrap.templates import ResourceTemplates, Stamp, Template, TemplateFile, read_templates
from steersman.apiserver.registry import ResourceRegistry
from steersman.apiserver.storage import MemoryStorage, Mismatch, Record, Storage


class StoredObject(NamedTuple):
    """An object that a server already had at its start."""

    record: Record
    template: Template


async def create_missing(
    registry: ResourceRegistry, storage: Storage, files: Sequence[TemplateFile]
) -> list[StoredObject]:
    """Create the missing objects of some files. Returns the objects that already exist."""
    is_fresh = await storage.revision() == 1
    stored: list[StoredObject] = []
    made: dict[str, bytes] = {}
    stamp = Stamp()
    for each in chain.from_iterable(map(read_templates, files)):
        definition = registry.find(each.group, each.version, each.resource)
        if definition is None:
            continue
        prefix = definition.prefix
        for template in _chosen(registry, each):
            key = prefix + template.key
            if not is_fresh:
                record, _ = await storage.get(key)
                if record is not None:
                    stored.append(StoredObject(record, template))
                    continue
                if template.held and await _is_taken(storage, template):
                    continue
            made[key] = stamp.fill(template)
            for address in template.held:
                made[address] = stamp.uid
    await put_new(storage, made)
    return stored


def _chosen(registry: ResourceRegistry, resource: ResourceTemplates) -> tuple[Template, ...]:
    """The templates of a resource that apply to a server: an APIService only for a served group-version."""
    if resource.resource != "apiservices":
        return resource.templates
    served = {f"{version.version}.{version.group}" for version in registry.group_versions()}
    return tuple(template for template in resource.templates if template.key in served)


async def _is_taken(storage: Storage, template: Template) -> bool:
    """Whether another object holds the addresses of a template."""
    return any([(await storage.get(key))[0] is not None for key in template.held])


async def put_new(storage: Storage, values: Mapping[str, bytes]) -> None:
    """Set absent keys, in one step if the store supports it."""
    if isinstance(storage, MemoryStorage):
        await storage.put_new(values)
        return
    for key, value in values.items():
        # Another server on the same store may have created it first.
        with suppress(Mismatch):
            await storage.put(key, value, expect=0)
