"""A scheme: maps kinds and resources to Python classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from steersman.objects.identity import GroupVersionKind, GroupVersionResource
from steersman.objects.resource import Object


class Scheme:
    """A registry of classes by kind and by resource. Each kind and each resource has one class."""

    def __init__(self, classes: Iterable[type[Object]] = ()) -> None:
        self._by_kind: dict[GroupVersionKind, type[Object]] = {}
        self._by_resource: dict[GroupVersionResource, type[Object]] = {}
        for cls in classes:
            self.register(cls)

    def __contains__(self, kind: GroupVersionKind) -> bool:
        return kind in self._by_kind

    def __iter__(self) -> Iterator[type[Object]]:
        return iter(self._by_kind.values())

    def register(self, cls: type[Object]) -> type[Object]:
        """Add a class (usable as a decorator). Adding it twice is harmless; a second class for its kind is an error."""
        present = self._by_kind.setdefault(cls.gvk(), cls)
        if present is not cls:
            raise ValueError(
                f"{cls.gvk()} is already registered as {present.__qualname__}; cannot register {cls.__qualname__} too"
            )
        self._by_resource.setdefault(cls.gvr(), cls)
        return cls

    def class_of(self, kind: GroupVersionKind) -> type[Object]:
        """The class of a kind."""
        try:
            return self._by_kind[kind]
        except KeyError:
            raise LookupError(f"no class for {kind} in this scheme; register one, or use Unstructured") from None

    def resource_of(self, kind: GroupVersionKind) -> GroupVersionResource:
        """The resource that serves a kind."""
        return self.class_of(kind).gvr()

    def kind_of(self, resource: GroupVersionResource) -> GroupVersionKind:
        """The kind that a resource serves."""
        try:
            return self._by_resource[resource].gvk()
        except KeyError:
            raise LookupError(f"no class for {resource} in this scheme; register one, or use Unstructured") from None
