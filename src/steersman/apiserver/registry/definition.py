"""What is served: one resource of one group-version, and how its kind behaves.

Guarantees
- A `Definition` is data; discovery, OpenAPI, tables and verbs all read the same one.
- A `Strategy` works on JSON trees in place, does no IO beyond `allocate`, and holds no state of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import msgspec

from steersman.apiserver.errors import Named
from steersman.apiserver.registry.names import dns_subdomain
from steersman.apiserver.storage import Record, Storage
from steersman.objects import GroupKind, GroupVersionKind
from steersman.schemas import FieldProblem

if TYPE_CHECKING:
    from steersman.apiserver.context import VerbContext
    from steersman.apiserver.request import ServerRequest
    from steersman.transport import ServerResponse

    #: Answers a request about a resource.
    Answerer: TypeAlias = Callable[[VerbContext, ServerRequest], Awaitable[ServerResponse]]
else:
    # Annotations of structs are resolved, by ``help`` too, and those of a verb's context lead back here.
    Answerer = Callable[..., Awaitable[Any]]

Tree: TypeAlias = dict[str, Any]

#: Where, among the problems of an update, stand those of its metadata: of what may not change, and of them as a whole.
CHANGED, WHOLE = FieldProblem("metadata", "changed"), FieldProblem("metadata", "whole")

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column of the table of a kind: `cell` makes its value of an object."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    #: 0 is always shown, more only in a wide table.
    priority: int = 0
    cell: Callable[[Tree], Any]


class Surroundings(Protocol):
    """What a strategy may look at beyond its object."""

    @property
    def storage(self) -> Storage:
        """The store."""
        ...

    async def read(self, group: str, resource: str, namespace: str, name: str) -> Record | None:
        """An object of any kind, as it is stored."""
        ...


class Strategy:
    """How objects of a kind are made, changed and judged; these are the rules that all kinds share.

    Every method may change the tree that it is given.
    """

    #: An update without a resourceVersion replaces what is there.
    unconditional_update = True
    #: A PUT makes an object that is not there.
    create_on_update = False
    #: Whether ``metadata.generation`` is kept, and which top-level fields do not count for it.
    counts_generations = False
    not_counted: frozenset[str] = frozenset({"metadata", "status", "apiVersion", "kind"})
    #: Whether a change of annotations is a new generation too.
    counts_annotations = False
    #: Whether who creates an object may give it a status, though that is a subresource (Nodes).
    keeps_new_status = False
    #: What a deletion without a policy is warned of, if anything.
    deletion_warning = ""
    #: Whether an update is judged by all rules of a new object too, which repeats what is wrong with its metadata.
    validates_whole_updates = False
    #: Whether the kind's own rules look at what changed of metadata too, also with a status, and whether they know finalizers.
    judges_metadata = True
    judges_metadata_of_status = True
    knows_finalizers = True
    #: The seconds that a deletion waits unless it says otherwise; None: it happens at once. See `grace`.
    grace_period: int | None = None
    #: Whether the first deletion only says that the object is to go, and the next one ends it (Namespaces).
    marks_first = False
    #: What a deletion without a policy does with dependents; "unsupported" ignores policies altogether (Events).
    default_propagation: Literal["background", "orphan", "unsupported"] = "background"

    def default(self, obj: Tree) -> None:
        """Fill in what the kind fills in."""

    def prepare_create(self, obj: Tree) -> None:
        """Clear what a creator may not set; the status is cleared already where it is a subresource."""

    def prepare_update(self, obj: Tree, old: Tree) -> None:
        """Put back what an update of the main resource may not change; the status is back already."""

    def prepare_status(self, obj: Tree, old: Tree) -> None:
        """Put back what an update of the status may not change; the spec and its like are back already."""

    def validate_type(self, obj: Tree, old: Tree | None = None) -> list[FieldProblem]:
        """What is wrong with what an object calls itself, and what is told beside that; nothing else is looked at then."""
        del obj, old
        return []

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        """What is wrong with a new object, its metadata aside."""
        del obj
        return []

    def validate_unallocated(self, obj: Tree) -> list[FieldProblem]:
        """What is wrong with a new object that is given nothing scarce."""
        return self.validate_create(obj)

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """What is wrong with a changed object; `CHANGED` and `WHOLE` say where its metadata are judged, if not first."""
        del old
        return self.validate_create(obj)

    def validate_status(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """What is wrong with a changed status."""
        del obj, old
        return []

    def validate_name(self, name: str, *, prefix: bool = False) -> list[str]:
        """What is wrong with a name, or the prefix of one that is generated, in words."""
        return dns_subdomain(name, prefix=prefix)

    def tolerated(self, obj: Tree, old: Tree) -> list[str]:
        """What is wrong but was so before: told with every answer, also with a refusal for other reasons."""
        del obj, old
        return []

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        """What the writer should know though it is allowed."""
        del obj, old
        return []

    def complete(self, obj: Tree) -> None:
        """Add to a new object that was found good what reading it from the store would fill in."""

    def is_unfinished(self, obj: Tree) -> bool:
        """Whether a new object lacks in the store what reading it fills in, so that its first update is a change."""
        del obj
        return False

    def prepare_warnings(self, obj: Tree) -> list[str]:
        """Like `warnings`, of a new object before it is prepared."""
        del obj
        return []

    async def allocate(self, obj: Tree, old: Tree | None, surroundings: Surroundings, *, dry_run: bool) -> None:
        """Take what the object needs and is scarce, such as addresses."""
        del obj, old, surroundings, dry_run

    def grace(self, obj: Tree, requested: int | None) -> int | None:
        """The seconds that a deletion waits for whoever ends the object; None: the kind knows no grace."""
        del obj
        return None if self.grace_period is None else self.grace_period if requested is None else requested

    def begin_deletion(self, obj: Tree) -> bool:
        """Mark an object for a deletion that others end, in the kind's own way; whether that is done."""
        del obj
        return False

    def mark_deletion(self, obj: Tree) -> None:
        """Change what else changes when a deletion is marked, such as the phase of a Namespace."""

    def blocks_deletion(self, obj: Tree) -> bool:
        """Whether a marked object stays for reasons beside its finalizers, such as the spec of a Namespace."""
        del obj
        return False

    async def released(self, obj: Tree, surroundings: Surroundings) -> None:
        """Give back what `allocate` took: the object is gone."""
        del obj, surroundings


class ScalePaths(msgspec.Struct, frozen=True, kw_only=True):
    """Where the subresource ``scale`` finds its numbers."""

    spec_replicas: tuple[str, ...] = ("spec", "replicas")
    status_replicas: tuple[str, ...] = ("status", "replicas")
    #: The selector in the status of a scale: a label selector's tree, or a string.
    selector: tuple[str, ...] | None = ("spec", "selector")


class Subresource(msgspec.Struct, frozen=True, kw_only=True):
    """A subresource of its own kind, such as ``pods/binding``; ``status`` and ``scale`` need none."""

    gvk: GroupVersionKind
    #: What it answers to: "create", "get", "update", "patch".
    verbs: tuple[str, ...]
    #: Answers a request whose verb is one of them; it raises `Refused` for what it does not take.
    answer: Answerer


def _differs(_: Record) -> bool:
    return False


class Conversion(msgspec.Struct, frozen=True, kw_only=True):
    """Between a kind as it is served here and as it is stored by another group-version; changes trees in place."""

    to_stored: Callable[[Tree], None]
    from_stored: Callable[[Tree], None]
    #: Whether a stored object is served as it is.
    is_same: Callable[[Record], bool] = _differs
    #: The schemas of all versions of a custom resource, served or not.
    schemas: Mapping[str, Tree] = {}
    #: Makes an object of any served version one of another, by the name of that, and leaves in it what it does not know.
    change: Callable[[Tree, str], None] | None = None


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
    #: The OpenAPI schema of the kind, made when it is first asked for.
    schema: Callable[[], Tree]
    strategy: Strategy = Strategy()
    has_status: bool = False
    scale: ScalePaths | None = None
    subresources: Mapping[str, Subresource] = {}
    #: Answers a POST in place of the store, for kinds that are questions, such as SubjectAccessReview.
    review: Answerer | None = None
    columns: tuple[Column, ...] = ()
    #: What the row of an object says beside its cells: conditions with type, status, reason and message.
    row_conditions: Callable[[Tree], list[Tree]] | None = None
    #: Annotations that are no part of the metadata alone, because they are fields in disguise.
    hidden_annotations: frozenset[str] = frozenset()
    #: What a field selector can ask for beside name and namespace.
    selectable: Mapping[str, Callable[[Tree], str]] = {}
    #: The field by which kube-apiserver finds objects without looking at the others, which shows at the end of a page.
    indexed_field: str = ""
    #: A custom resource: no strategic merge patch, an update needs a resourceVersion, items of lists name their kind.
    custom: bool = False
    #: Seconds that an object lives; None: until it is deleted.
    ttl: float | None = None
    #: Another group-resource under which the objects are stored, for kinds that two groups share.
    stored_as: tuple[str, str] | None = None
    #: What whoever reads an object is shown of it, where that is less than is stored; events of a watch show all.
    on_read: Callable[[Record], Record] | None = None
    #: Between this group-version and the one that is stored, where they differ.
    conversion: Conversion | None = None
    #: The version in which a custom resource is stored, where there may be others than this one.
    storage_version: str = ""
    #: The kind of its lists, if that is not the kind and ``List``.
    listed_as: str = ""
    #: Whether a deletion answers with the object instead of a Status.
    returns_deleted: bool = False
    #: What everybody is told who asks for it, if it should no longer be used.
    deprecation: str = ""

    @property
    def named(self) -> Named:
        """The resource as errors name it."""
        return Named(self.gvk.group, self.resource)

    @property
    def refused_kind(self) -> GroupKind:
        """The kind as refusals name it: of the group that stores it, where two groups share it."""
        return GroupKind((self.stored_as or (self.gvk.group, ""))[0], self.gvk.kind)

    def refused_as(self, obj: Tree) -> GroupKind:
        """The kind as the refusal of an object names it: of a custom resource, what it calls itself."""
        if not self.custom:
            return self.refused_kind
        return GroupKind(obj["apiVersion"].rpartition("/")[0], obj["kind"])

    @property
    def list_kind(self) -> str:
        """The kind of its lists."""
        return self.listed_as or f"{self.gvk.kind}List"

    @property
    def prefix(self) -> str:
        """Where the objects are stored."""
        group, resource = self.stored_as or (self.gvk.group, self.resource)
        return f"{group or 'core'}/{resource}/"

    def storage_key(self, namespace: str, name: str) -> str:
        """Where one object is stored."""
        return f"{self.prefix}{namespace}/{name}" if self.namespaced else f"{self.prefix}{name}"
