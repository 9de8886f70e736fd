"""A served resource of one group-version, and the behavior of its kind.

Guarantees
- A `Definition` is data; discovery, OpenAPI, tables and verbs all read the same one.
- A `Strategy` works on JSON trees in place, does no IO beyond `allocate`, and holds no state of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import cache, lru_cache
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from steersman.apiserver.errors import Named
from steersman.apiserver.handlers import SubresourceHandler
from steersman.apiserver.identity import User
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.storage import Record, Storage
from steersman.apiserver.workers import Workers
from steersman.objects import GroupKind, GroupVersionKind, Tree
from steersman.objects.field_problems import FieldProblem
from steersman.schemas.names import dns_subdomain

#: Fills in the answer to a question, such as the status of a SubjectAccessReview.
Review: TypeAlias = Callable[[Tree, ServerRequest], Awaitable[None]]

#: Markers for the place of metadata problems among those of an update: of immutable fields, and of the metadata as a
#: whole.
CHANGED, WHOLE = FieldProblem("metadata", "changed"), FieldProblem("metadata", "whole")

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


class Surroundings(Protocol):
    """What a strategy or an admission plugin may read beyond its object."""

    @property
    def definition(self) -> Definition:
        """The resource of the object."""
        ...

    @property
    def storage(self) -> Storage:
        """The store."""
        ...

    @property
    def workers(self) -> Workers:
        """Threads for long computations."""
        ...

    async def read(self, group: str, resource: str, namespace: str, name: str) -> Record | None:
        """A stored object of any kind."""
        ...


class Strategy:
    """How objects of a kind are created, changed and validated; these are the rules that all kinds share.

    Every method may change its tree.
    """

    #: Whether an update without a resourceVersion replaces the object.
    unconditional_update = True
    #: Whether a PUT creates a missing object.
    create_on_update = False
    #: Whether ``metadata.generation`` is counted, and which top-level fields do not count.
    counts_generations = False
    not_counted: frozenset[str] = frozenset({"metadata", "status", "apiVersion", "kind"})
    #: Whether a change of annotations is a new generation too.
    counts_annotations = False
    #: Whether a new object may have a status, though that is a subresource (Nodes).
    keeps_new_status = False
    #: The warning for a deletion without a policy, if any.
    deletion_warning = ""
    #: Whether an update must also satisfy all rules for a new object, which repeats the problems of its metadata.
    validates_whole_updates = False
    #: Whether the kind's own rules also validate changed metadata, also with a status, and whether they validate
    #: finalizers.
    judges_metadata = True
    judges_metadata_of_status = True
    #: Whether the kind's own rules repeat the checks of immutable metadata.
    judges_changes = True
    knows_finalizers = True
    #: Whether objects need scarce values, see `allocate`.
    allocates = False
    #: The default grace period of a deletion in seconds; None: no grace period. See `grace`.
    grace_period: int | None = None
    #: Whether the first deletion only marks the object, and the next one removes it (Namespaces).
    marks_first = False
    #: What a deletion without a policy does with dependents; "unsupported" ignores policies (Events).
    default_propagation: Literal["background", "orphan", "unsupported"] = "background"

    def counts_as(self, size: int) -> int:
        """The size that a body counts as: more than its bytes if its schema causes much work."""
        return size

    def has_form(self, obj: Tree) -> bool:
        """Whether an object has the fields and types of the kind, and no others; False means undecided."""
        del obj
        return False

    def default(self, obj: Tree) -> None:
        """Fill in the kind's defaults."""

    def prepare_create(self, obj: Tree) -> None:
        """Clear fields that a creator may not set; a status that is a subresource is already cleared."""

    def prepare_update(self, obj: Tree, old: Tree) -> None:
        """Restore fields that an update of the main resource may not change; the status is already restored."""

    def prepare_status(self, obj: Tree, old: Tree) -> None:
        """Restore fields that an update of the status may not change; the spec is already restored."""

    def prepare_subresource(self, name: str, obj: Tree, old: Tree) -> None:
        """Restore fields that an update of another subresource of the same kind may not change."""

    def record_user(self, obj: Tree, user: User) -> None:
        """Record the user who creates an object."""

    def validate_type(self, obj: Tree, old: Tree | None = None) -> list[FieldProblem]:
        """The problems of an object's declared kind, and those reported with them; then nothing else is validated."""
        del obj, old
        return []

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        """The problems of a new object, except for its metadata."""
        del obj
        return []

    def validate_unallocated(self, obj: Tree) -> list[FieldProblem]:
        """The problems of a new object that gets no scarce values."""
        return self.validate_create(obj)

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """The problems of a changed object; `CHANGED` and `WHOLE` mark where metadata problems come, if not first."""
        del old
        return self.validate_create(obj)

    def validate_status(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """The problems of a changed status."""
        del obj, old
        return []

    def validate_subresource(self, name: str, obj: Tree, old: Tree) -> list[FieldProblem]:
        """The problems of a change through another subresource of the same kind."""
        del name
        return self.validate_update(obj, old)

    def validate_name(self, name: str, *, prefix: bool = False) -> list[str]:
        """The problems of a name, or of a prefix for generated names, as text."""
        return dns_subdomain(name, prefix=prefix)

    def tolerated(self, obj: Tree, old: Tree) -> list[str]:
        """Problems that existed before: reported with every answer, also with a rejection for other reasons."""
        del obj, old
        return []

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        """Warnings for the writer of an allowed object."""
        del obj, old
        return []

    def status_warnings(self, obj: Tree) -> list[str]:
        """Warnings for the writer of an allowed status."""
        del obj
        return []

    def complete(self, obj: Tree) -> None:
        """Add to a validated new object what decoding it from the store would fill in."""

    def is_unfinished(self, obj: Tree) -> bool:
        """Whether a stored new object lacks what decoding fills in, so that its first update is a change."""
        del obj
        return False

    def prepare_warnings(self, obj: Tree) -> list[str]:
        """Like `warnings`, for a new object before it is prepared."""
        del obj
        return []

    async def allocate(self, obj: Tree, old: Tree | None, surroundings: Surroundings, *, dry_run: bool) -> None:
        """Allocate the scarce values that the object needs, such as addresses."""
        del obj, old, surroundings, dry_run

    def grace(self, obj: Tree, requested: int | None) -> int | None:
        """The seconds that a deletion waits; None: the kind has no grace period."""
        del obj
        return None if self.grace_period is None else self.grace_period if requested is None else requested

    def begin_deletion(self, obj: Tree) -> bool:
        """Mark an object for a deletion that others finish, in the kind's own way. Returns whether it did."""
        del obj
        return False

    def mark_deletion(self, obj: Tree) -> None:
        """Make the other changes of a marked deletion, such as the phase of a Namespace."""

    def blocks_deletion(self, obj: Tree) -> bool:
        """Whether a marked object stays for reasons beside its finalizers, such as the spec of a Namespace."""
        del obj
        return False

    async def released(self, obj: Tree, surroundings: Surroundings) -> None:
        """Release what `allocate` took: the object is gone."""
        del obj, surroundings


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


def _differs(_: Record) -> bool:
    return False


class WebhookConverter(Protocol):
    """Converts objects of a resource by a webhook."""

    def known(self, record: Record) -> Record | None:
        """A stored object in the version of the resource, if it was converted lately."""
        ...

    async def readable(self, records: list[Record]) -> list[Record]:
        """Stored objects in the version of the resource."""
        ...

    async def storable(self, tree: Tree) -> None:
        """Change an object to the stored version."""
        ...

    async def converted(self, tree: Tree, version: str) -> Tree:
        """An object in another version, with fields that this version does not know."""
        ...

    async def change(self, tree: Tree, version: str) -> None:
        """Change an object to another version."""
        ...


class Conversion(msgspec.Struct, frozen=True, kw_only=True):
    """Conversion between the served kind and the group-version that stores it; changes trees in place."""

    to_stored: Callable[[Tree], None]
    from_stored: Callable[[Tree], None]
    #: Whether a stored object is served unchanged.
    is_same: Callable[[Record], bool] = _differs
    #: The schemas of all versions of a custom resource, served or not.
    schemas: Mapping[str, Tree] = {}
    #: Converts an object between served versions, given the target's name, and keeps fields that it does not know. The
    #: object may lack parts. None if fields keep their names, or only the webhook can tell.
    change: Callable[[Tree, str], None] | None = None
    #: The webhook that converts objects; the functions above expect objects that it has converted.
    webhook: WebhookConverter | None = None


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
