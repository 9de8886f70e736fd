"""How objects of a kind behave: defaults, validation, and what an update may change.

Guarantees
- A `Strategy` works on JSON trees in place and holds no state of its own.
- It does no IO, except that `Strategy.allocate` and `Strategy.release` take and return scarce values in the store.
"""

from __future__ import annotations

import re
from collections.abc import Coroutine, Iterable
from typing import Any, Literal, Protocol, TypeVar

from steersman.apiserver.identity import User
from steersman.apiserver.storage import Record, Storage
from steersman.apiserver.workers import Workers
from steersman.objects import Tree
from steersman.objects.field_problems import FieldProblem
from steersman.schemas.names import dns_subdomain

_T = TypeVar("_T")

#: Markers for the place of metadata problems among those of an update: of immutable fields, and of the metadata as a
#: whole.
CHANGED, WHOLE = FieldProblem("metadata", "changed"), FieldProblem("metadata", "whole")


class Surroundings(Protocol):
    """What a strategy may use beyond its object."""

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

    async def finished(self, step: Coroutine[Any, Any, _T]) -> _T:
        """Await a step that ends even if the request is cancelled meanwhile."""
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
    #: Whether the kind's own rules also validate metadata; otherwise they are validated when the rest is valid.
    judges_metadata = True
    #: Whether the kind's own rules also validate metadata that comes with a status.
    judges_metadata_of_status = True
    #: Whether the kind's own rules repeat the checks of immutable metadata.
    judges_changes = True
    #: The fields that kube-apiserver's declared rules check: a missing, changed or negative value comes last, and without
    #: details.
    declared_fields: re.Pattern[str] | None = None
    #: Whether those rules check the form of names too.
    declares_forms = True
    #: Whether the names of finalizers are validated.
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

    def counted_form(self, obj: Tree) -> Tree:
        """The form of an object whose changes count as generations."""
        return obj

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
        """Allocate the scarce values that the object needs, such as addresses; all of them or, if it fails, none."""
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

    async def release(self, obj: Tree | None, kept: Iterable[Tree | None], surroundings: Surroundings) -> None:
        """Release what `allocate` took for an object, except for what one of `kept` needs."""
        del obj, kept, surroundings
