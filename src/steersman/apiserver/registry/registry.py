"""All resources that the server serves.

Guarantees
- Exactly one `Definition`, found in constant time, serves a resource of a group-version.
- Resources may be added and removed while the server runs. Then `revision` changes, so derived documents (discovery,
  OpenAPI) can be cached until that, and `listeners` are called.
- What is derived from a registry and kept is freed with it, even if it refers to the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from steersman.apiserver.registry.definition import Definition
from steersman.objects import GroupVersion, GroupVersionKind

T = TypeVar("T")


class ResourceRegistry:
    """Definitions by resource and by kind."""

    def __init__(self, definitions: Iterable[Definition] = ()) -> None:
        self._by_resource: dict[tuple[str, str, str], Definition] = {}
        self._by_name: dict[tuple[str, str], Definition] = {}
        #: The number of changes.
        self.revision = 0
        #: Called after each change. They must not block.
        self.listeners: list[Callable[[], object]] = []
        self._derived: dict[type[Any], Any] = {}
        for definition in definitions:
            self.add(definition)

    def add(self, definition: Definition) -> None:
        """Serve a resource, replacing one of the same name."""
        gvk = definition.gvk
        self._by_resource[gvk.group, gvk.version, definition.resource] = definition
        self._by_name[gvk.group, definition.resource] = definition
        self._changed()

    def remove(self, group: str, version: str, resource: str) -> None:
        """Stop serving a resource; its objects stay in the store."""
        if self._by_resource.pop((group, version, resource), None) is None:
            return
        self._by_name.pop((group, resource), None)
        for (its_group, _, name), other in self._by_resource.items():
            if (its_group, name) == (group, resource):
                self._by_name[group, resource] = other
        self._changed()

    def _changed(self) -> None:
        self.revision += 1
        for listener in self.listeners:
            listener()

    def find(self, group: str, version: str, resource: str) -> Definition | None:
        """The definition of a resource; None if it is not served."""
        return self._by_resource.get((group, version, resource))

    def of_kind(self, gvk: GroupVersionKind) -> Definition | None:
        """The definition of a kind; None if it is not served."""
        return next((found for found in self._by_resource.values() if found.gvk == gvk), None)

    def any_version(self, group: str, resource: str) -> Definition | None:
        """A definition of a group-resource in any version; None if it is not served."""
        return self._by_name.get((group, resource))

    def group_versions(self) -> list[GroupVersion]:
        """All served group-versions, in the order in which they were added."""
        return list(dict.fromkeys(definition.gvk.group_version for definition in self._by_resource.values()))

    def derived(self, kind: type[T]) -> T:
        """The instance of a class that belongs to this registry; the first call makes it."""
        found = self._derived.get(kind)
        # Worker threads call this too: the first instance wins.
        return self._derived.setdefault(kind, kind()) if found is None else found

    def __iter__(self) -> Iterator[Definition]:
        return iter(list(self._by_resource.values()))

    def __len__(self) -> int:
        return len(self._by_resource)
