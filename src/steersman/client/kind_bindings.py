"""The kinds that a client has used, and how it parses their keys."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from steersman.client.bindings import Binding, bind_class, no_kind
from steersman.client.checks import check_key
from steersman.client.discovery import Discovery
from steersman.client.selections import AnyKind, KeyLike
from steersman.objects import GroupVersionKind, Key, Kind, Object, Unstructured


class KindBindings:
    """The bindings of the kinds of one server, each made on first use. Clients of one server share them."""

    def __init__(self, discovery: Discovery, *, namespace: str) -> None:
        self.discovery = discovery
        #: The namespace of a bare name.
        self.namespace = namespace
        self._bindings: dict[AnyKind, Binding[Any]] = {}
        discovery.on_unserved(self._forget)

    @cached_property
    def metadata(self) -> KindBindings:
        """The same kinds, whose objects are read as metadata alone."""
        return MetadataBindings(self)

    def get(self, kind: AnyKind) -> Binding[Any] | None:
        """The binding of a kind, if it was used before; ``TypeError`` if the argument is not a kind."""
        try:
            return self._bindings.get(kind)
        except TypeError:  # objects are not hashable; classes and Kinds are
            raise no_kind(kind) from None

    async def bind(self, kind: AnyKind) -> Binding[Any]:
        """The binding of a kind; `KindNotServed` if the server does not serve it."""
        binding = self.get(kind)
        if binding is None:
            binding = await self._bound(kind)
            self._bindings[kind] = binding
        return binding

    async def bind_object(self, obj: Object | Unstructured) -> Binding[Any]:
        """The binding of an object's kind."""
        if isinstance(obj, Unstructured):
            return await self.bind(Kind(obj.api_version, obj.kind))
        kind = type(obj)
        return self._bindings.get(kind) or await self.bind(kind)

    def _forget(self, kind: GroupVersionKind) -> None:
        """Ask the server next time: the kind may come back with another resource name or scope."""
        if self._bindings.pop(Kind(kind.api_version, kind.kind), None) is not None:
            self.discovery.invalidate()

    def key(self, binding: Binding[Any], key: KeyLike) -> Key:
        """Parse a key; a bare name gets the client's namespace."""
        check_key(binding.gvk.kind, key)
        namespace, name = Key.parse(key) if isinstance(key, str) else key
        if not name:
            raise ValueError(f"{binding.gvk.kind}: the name is empty; call list() to read all objects")
        return Key(namespace or self.namespace, name) if binding.namespaced else Key("", name)

    async def _bound(self, kind: AnyKind) -> Binding[Any]:
        return await self.discovery.bind(kind) if isinstance(kind, Kind) else bind_class(kind)


class MetadataBindings(KindBindings):
    """The bindings of the same kinds, whose objects are read as metadata alone."""

    def __init__(self, kinds: KindBindings) -> None:
        super().__init__(kinds.discovery, namespace=kinds.namespace)

    async def _bound(self, kind: AnyKind) -> Binding[Any]:
        return (await super()._bound(kind)).metadata_only()
