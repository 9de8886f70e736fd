"""APIServices of custom resources: one for each group-version that a CustomResourceDefinition serves.

Guarantees
- The object exists while a definition serves its group-version. The server keeps an APIService that it did not create.
- The cost of a change does not depend on the number of definitions.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import msgspec

from steersman.apiserver.bootstrap.templates import Stamp, Template, read_templates
from steersman.apiserver.documents import encode_stored
from steersman.apiserver.registry import ResourceRegistry
from steersman.apiserver.registry.definition import Tree
from steersman.apiserver.storage import Storage
from steersman.objects import GroupVersion

_GROUP: Final = "apiregistration.k8s.io"
_MANAGED: Final = "kube-aggregator.kubernetes.io/automanaged"
_MARK: Final = b'"kube-aggregator.kubernetes.io/automanaged":"true"'
#: The priorities of the group-versions of custom resources.
_PRIORITIES: Final = {"groupPriorityMinimum": 1000, "versionPriority": 100}


class ApiServices:
    """Registers the group-versions of CRDs: call `note` for each change, then `write`."""

    def __init__(self, registry: ResourceRegistry, storage: Storage) -> None:
        self._registry = registry
        self._storage = storage
        #: The group-versions that each definition serves, and the number of definitions that serve each group-version.
        self._served: dict[str, frozenset[GroupVersion]] = {}
        self._counts: Counter[GroupVersion] = Counter()
        #: The group-versions whose APIServices may be outdated, in the order in which they changed.
        self._due: dict[GroupVersion, None] = {}
        self._has_read_stored = False

    def note(self, name: str, crd: Tree | None) -> None:
        """Note the current state of a definition; None if it was deleted."""
        spec: Tree = {} if crd is None else crd["spec"]
        versions: list[Tree] = spec.get("versions") or []
        after = frozenset(GroupVersion(spec["group"], version["name"]) for version in versions if version.get("served"))
        before = self._served.get(name, frozenset())
        if after == before:
            return
        self._served[name] = after
        self._counts.update(after)
        self._counts.subtract(before)
        self._due |= dict.fromkeys(sorted(before ^ after, key=str))

    async def write(self) -> None:
        """Create and delete APIServices for all changes so far."""
        definition = self._registry.find(_GROUP, "v1", "apiservices")
        if definition is None:
            return
        if not self._has_read_stored:
            # A killed server may have left outdated objects behind.
            for record in (await self._storage.list(definition.prefix)).records:
                if _MARK in record.value:
                    version, _, group = record.key.removeprefix(definition.prefix).partition(".")
                    self._due[GroupVersion(group, version)] = None
            self._has_read_stored = True
        while self._due:
            due = next(iter(self._due))
            await self._write_one(f"{definition.prefix}{due.version}.{due.group}", due)
            # Only now: if the write fails, the next call repeats it.
            self._due.pop(due, None)

    async def _write_one(self, key: str, version: GroupVersion) -> None:
        record, _ = await self._storage.get(key)
        if self._counts[version] > 0:
            if record is None:
                await self._storage.put(key, _object(version), expect=0)
        elif record is not None and _MARK in record.value:
            await self._storage.delete(key, expect=record.modified)


def _object(version: GroupVersion) -> bytes:
    """The APIService of a group-version: a copy of a built-in one with other names and priorities."""
    tree: Tree = msgspec.json.decode(Stamp().fill(_builtin_template()))
    tree["metadata"] |= {"name": f"{version.version}.{version.group}", "labels": {_MANAGED: "true"}}
    tree["spec"] |= {"group": version.group, "version": version.version, **_PRIORITIES}
    return encode_stored(tree)


def _builtin_template() -> Template:
    """The template of the APIService of apps/v1."""
    resource = next(entry for entry in read_templates("objects") if entry.resource == "apiservices")
    return next(template for template in resource.templates if template.key == "v1.apps")
