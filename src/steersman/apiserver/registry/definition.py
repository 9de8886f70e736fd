"""A served resource of one group-version.

Guarantee: a `Definition` is data; discovery, OpenAPI, tables and verbs all read the same one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import cache, lru_cache
from typing import Any, TypeAlias

import msgspec

from steersman.apiserver.errors import Named
from steersman.apiserver.handlers import SubresourceHandler
from steersman.apiserver.registry.conversion import Conversion
from steersman.apiserver.registry.strategy import Strategy
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.storage import Record
from steersman.objects import GroupKind, GroupVersionKind, Tree

#: Fills in the answer to a question, such as the status of a SubjectAccessReview.
Review: TypeAlias = Callable[[Tree, ServerRequest], Awaitable[None]]

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a kind's table; `cell` computes its value from an object."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    #: 0 is always shown, higher numbers only in a wide table.
    priority: int = 0
    cell: Callable[[Tree], Any]


class ScalePaths(msgspec.Struct, frozen=True, kw_only=True):
    """Where the subresource ``scale`` finds its numbers."""

    spec_replicas: tuple[str, ...] = ("spec", "replicas")
    status_replicas: tuple[str, ...] = ("status", "replicas")
    #: The selector in the status of a scale: a label selector's tree, or a string.
    selector: tuple[str, ...] | None = ("spec", "selector")


class Subresource(msgspec.Struct, frozen=True, kw_only=True):
    """A subresource such as ``pods/binding``; ``status`` and ``scale`` need none.

    A subresource of the object's own kind reads and changes the object: see `Strategy.prepare_subresource`.

    `steersman.apiserver.verbs.subresources` has the functions that answer the subresources of built-in kinds.
    """

    gvk: GroupVersionKind
    #: The supported verbs: "create", "get", "update", "patch", "delete".
    verbs: tuple[str, ...]
    #: Answers it, for a custom kind.
    handler: SubresourceHandler | None = None
    #: The content type of answers of the handler that are bytes.
    content_type: str = "text/plain"


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """One served resource."""

    gvk: GroupVersionKind
    #: The plural, as in paths.
    resource: str
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    namespaced: bool = True
    verbs: tuple[str, ...] = ALL_VERBS
    #: The OpenAPI schema of the kind, made on first use.
    schema: Callable[[], Tree]
    #: The same with descriptions, if it has none.
    described: Callable[[], Tree] | None = None
    #: Makes the rules of the kind, or returns those that it made.
    make_strategy: Callable[[], Strategy] = cache(Strategy)
    has_status: bool = False
    scale: ScalePaths | None = None
    subresources: Mapping[str, Subresource] = {}
    #: Answers a POST in place of the store, for kinds that are questions, such as SubjectAccessReview.
    review: Review | None = None
    columns: tuple[Column, ...] = ()
    #: Conditions of an object's row, beside its cells, with type, status, reason and message.
    row_conditions: Callable[[Tree], list[Tree]] | None = None
    #: The name of the default of listed objects, which their table marks; empty if none is.
    default_of: Callable[[list[Tree]], str] | None = None
    #: Annotations excluded from metadata-only answers, because they are fields in disguise.
    hidden_annotations: frozenset[str] = frozenset()
    #: Fields for field selectors, other than name and namespace.
    selectable: Mapping[str, Callable[[Tree], str]] = {}
    #: The field by which kube-apiserver indexes objects, which is visible at the end of a page.
    indexed_field: str = ""
    #: A custom resource: no strategic merge patch, an update needs a resourceVersion, list items name their kind.
    custom: bool = False
    #: Lifetime of an object in seconds; None: until it is deleted.
    ttl: float | None = None
    #: Another group-resource under which the objects are stored, for kinds that two groups share.
    stored_as: tuple[str, str] | None = None
    #: The part of a stored object that reads show, if that is less than all; watch events show all.
    on_read: Callable[[Record], Record] | None = None
    #: Conversion to and from the stored group-version, where it differs.
    conversion: Conversion | None = None
    #: The version in which a custom resource is stored, where there may be others.
    storage_version: str = ""
    #: The kind of its lists, if that is not the kind plus ``List``.
    listed_as: str = ""
    #: Whether a deletion answers with the object instead of a Status.
    returns_deleted: bool = False
    #: The warning for every request, if the resource is deprecated.
    deprecation: str = ""

    @property
    def published_schema(self) -> Tree:
        """The schema for readers."""
        return (self.described or self.schema)()

    @property
    def strategy(self) -> Strategy:
        """The rules of the kind: defaults, validation, and what an update may change."""
        return self.make_strategy()

    @property
    def named(self) -> Named:
        """The resource as errors name it."""
        return Named(self.gvk.group, self.resource)

    @property
    def refused_kind(self) -> GroupKind:
        """The kind as rejections name it: of the storing group, where two groups share it."""
        return GroupKind((self.stored_as or (self.gvk.group, ""))[0], self.gvk.kind)

    def refused_as(self, obj: Tree) -> GroupKind:
        """The kind as the rejection of an object names it: for a custom resource, its declared kind."""
        if not self.custom:
            return self.refused_kind
        return GroupKind(obj["apiVersion"].rpartition("/")[0], obj["kind"])

    @property
    def list_kind(self) -> str:
        """The kind of its lists."""
        return self.listed_as or f"{self.gvk.kind}List"

    @property
    def prefix(self) -> str:
        """The key prefix of the objects."""
        return _prefix(*(self.stored_as or (self.gvk.group, self.resource)))

    def storage_key(self, namespace: str, name: str) -> str:
        """The key of one object."""
        return f"{self.prefix}{namespace}/{name}" if self.namespaced else f"{self.prefix}{name}"


@lru_cache(maxsize=1024)
def _prefix(group: str, resource: str) -> str:
    return f"{group or 'core'}/{resource}/"
