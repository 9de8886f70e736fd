"""The children that a state declares: collected here, applied elsewhere. Pure, so that a state can be tested without a server.

Guarantees
- Declaring changes nothing, neither on the server nor in the declared object.
- `Outputs.apply` raises for a mistake and says what to write instead: a kind that was not declared, a child declared twice, an
  object that was read, a child that its owner cannot hold, options that contradict each other.
- A child without a namespace gets the namespace of its owner.
- An owner writes only to its own namespace, with or without a mark, unless the kind is declared with
  ``across_namespaces=True``: otherwise a user who may create owners in one namespace could write to every namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, Unpack, cast, get_args

import msgspec
from msgspec import UNSET

from steersman.controller import Context
from steersman.errors import NotAnIntent, OwnershipError
from steersman.objects import (
    GroupVersionKind,
    Key,
    Kind,
    Object,
    ObjectMeta,
    Unstructured,
    controller_of,
    has_status_subresource,
    is_owned_by,
    nearest,
    was_read,
)
from steersman.patterns.children.kinds import ChildIdentity, Children, KnownKind
from steersman.patterns.children.membership import Bond

ObjectT = TypeVar("ObjectT", bound=Object | Unstructured)
T = TypeVar("T", bound=Object)


#: The ways to write a child.
How: TypeAlias = Literal["apply", "merge", "update", "replace", "create"]


class ChildOptions(TypedDict, total=False):
    """How Steersman writes and keeps one child; the defaults suit most children."""

    #: ``apply``: server-side apply, which corrects drift and removes fields that are no longer declared. ``merge``: a merge patch
    #: of the differences. ``update``: read, change, put. ``replace``: put the child alone, which removes everything that it does
    #: not declare. ``create``: created once, never changed afterwards.
    how: How
    #: Write only on top of the version that was read; a change by another writer is a conflict, and the reconcile runs again.
    lock: bool
    #: False: the child carries no mark of its owner. Other owners may share it, and Steersman never prunes or deletes it. Outside the
    #: owner's namespace it needs ``child(KIND, across_namespaces=True)``, like every child.
    owner: bool
    #: False: the child stays when no state declares it anymore. It is still deleted with its owner.
    prune: bool
    #: Take over an existing object that has no controller.
    adopt: bool
    #: Delete and recreate the child if the server says that a field is immutable.
    recreate: bool
    #: Apply the child's status too.
    status: bool
    #: False: the state does not wait until the child is ready.
    wait: bool
    #: Children that must be ready before this one is applied; deletion runs in reverse.
    after: Object | Unstructured | Sequence[Object | Unstructured]
    #: Fields that must be absent, whichever field manager owns them: ``remove=("spec.paused",)``, or JSON pointers.
    remove: Sequence[str]


_OPTIONS = tuple(ChildOptions.__annotations__)
_HOW = get_args(How)
_NO_OPTIONS: ChildOptions = {}
_NOTHING: tuple[int, ...] = ()


def _bond(known: KnownKind, *, owned: bool, far: bool) -> Bond:
    if not owned:
        return "none"
    if not known.owner_references:
        return "label_alone"
    return "label" if far else "reference"


class Output(msgspec.Struct, frozen=True, gc=False):
    """A child as it was declared."""

    child: Object | Unstructured
    identity: ChildIdentity
    known: KnownKind
    bond: Bond
    options: ChildOptions
    #: 1 for a child without ``after=``, otherwise one more than the deepest child that it waits for.
    depth: int = 1
    #: The indexes, in the order of declaration, of the children that it waits for.
    after: tuple[int, ...] = ()


class Outputs:
    """The children of one state: ``out.apply(Deployment(...))``.

    The states of one reconcile share ``taken``, the declared children by state, so that two states cannot declare the same child.
    ``claimed`` are the objects that the owner claims by their labels.
    ``namespace_ends`` says that the owner's namespace is being deleted, so that nothing can be created in it.
    ``owner_is_gone`` says that the server has deleted the owner, so that the garbage collector would delete new children.
    """

    def __init__(
        self,
        owner: Object,
        children: Children,
        *,
        state: str = "",
        ctx: Context | None = None,
        taken: dict[ChildIdentity, str] | None = None,
        claimed: Mapping[GroupVersionKind, Sequence[Any]] | None = None,
        namespace_ends: bool = False,
        owner_is_gone: bool = False,
    ) -> None:
        self.owner = owner
        self.children = children
        self.state = state
        #: Whether the owner's namespace is being deleted: children of a finalizer that do not exist there yet are then skipped.
        self.namespace_ends = namespace_ends
        #: Whether the server deleted the owner in spite of its finalizer: the same children are then skipped.
        self.owner_is_gone = owner_is_gone
        self._ctx = ctx
        self._taken = {} if taken is None else taken
        self._claimed = claimed or {}
        self._outputs: list[Output] = []
        self._places: dict[ChildIdentity, int] = {}
        self._namespace = owner.metadata.namespace or ""
        if ctx is None and not self._namespace and type(owner).__resource__.namespaced:
            self._namespace = "default"  # a test need not set a namespace
        if ctx is not None and not owner.metadata.uid:
            raise OwnershipError(
                f"{children.where}: {owner.kind} {owner.key} has no uid, so it cannot own children; pass the"
                " object that was read from the server"
            )

    @property
    def ctx(self) -> Context:
        """The context of this reconcile: its client, causes and logger."""
        if self._ctx is None:
            raise RuntimeError(
                "these outputs have no context, as in a test without a server; pass one: Outputs(owner,"
                " children, ctx=ctx)"
            )
        return self._ctx

    @property
    def declared(self) -> tuple[Output, ...]:
        """The declared children, in order."""
        return tuple(self._outputs)

    def apply(self, child: ObjectT, **options: Unpack[ChildOptions]) -> ObjectT:
        """Declare a child; returns the same object, for use in ``after=``."""
        is_object = isinstance(child, (Object, Unstructured))  # pyright: ignore[reportUnnecessaryIsInstance]
        known = self.children.known(child) if is_object else None
        if known is None:
            raise self._unknown(child)
        identity, bond = self._identified(child, known, owned=options.get("owner", True))
        if was_read(child):
            raise NotAnIntent(
                f"{self._what(identity)}: it was read from the server, and applying it would claim all of"
                f" its fields; build a new {identity.kind.kind} with the fields that you want to set"
            )
        depth, after = 1, _NOTHING
        if options:
            self._check_options(identity, options)
            depth, after = self._placed(identity, options)
        status: Any = child.tree.get("status") if isinstance(child, Unstructured) else getattr(child, "status", None)
        if status is not None and status is not UNSET and not options.get("status"):
            self._check_status(identity, known)
        if bond != "label_alone":
            self._check_references(identity, child, options)
        earlier = self._taken.setdefault(identity, self.state)
        if identity in self._places or earlier != self.state:
            raise self._twice(identity, earlier)
        self._places[identity] = len(self._outputs)
        self._outputs.append(Output(child, identity, known, bond, options or _NO_OPTIONS, depth, after))
        return child

    async def current(self, child: ObjectT) -> ObjectT | None:
        """The live state of a child, declared or not; None if it does not exist. Never older than our own writes."""
        known = self.children.known(child)
        if known is None:
            raise self._unknown(child)
        identity, _ = self._identified(child, known, owned=True)
        found: Any = await self.ctx.client.find(cast("Any", known.kind), identity.key)
        return cast("ObjectT | None", found)

    def claimed(self, kind: type[T]) -> list[T]:
        """The objects of a kind that the owner claims by their labels: ``child(Pod, claims=...)``."""
        if not any(each.kind is kind and each.claims is not None for each in self.children.kinds):
            raise ValueError(
                f"{self.children.where}: out.claimed({kind.__name__}) needs the labels to select; write"
                f' children=(child({kind.__name__}, claims=lambda owner: {{"app": owner.key.name}}), ...)'
            )
        return [*self._claimed.get(kind.gvk(), ())]

    # internals

    def _identified(self, child: Object | Unstructured, known: KnownKind, *, owned: bool) -> tuple[ChildIdentity, Bond]:
        """The identity of a child, and what ties it to its owner."""
        own = self._namespace
        if isinstance(child, Unstructured):
            namespace, name = child.key
        else:
            metadata = child.metadata
            if not isinstance(metadata, ObjectMeta):  # pyright: ignore[reportUnnecessaryIsInstance] - users are not all typed
                raise TypeError(
                    f"{self._what(known.group_kind.kind)}: its metadata is of type {type(metadata).__name__}; write"
                    " metadata=ObjectMeta(name=...)"
                )
            namespace, name = metadata.namespace or "", metadata.name or ""
        if not name:
            raise self._nameless(child, known)
        namespaced = known.namespaced
        if namespaced is None:
            # Only the server could tell, and a test has none. Nothing is written because of this guess.
            namespaced = bool(namespace) or (bool(own) and not known.across_namespaces)
        if not namespaced:
            namespace = ""
        elif not namespace:
            if not own:
                raise ValueError(
                    f"{self._what(known.group_kind.kind, name)}: it needs a namespace, because"
                    f" {self.owner.kind} {self.owner.key} has none; write metadata=ObjectMeta(name=...,"
                    " namespace=...)"
                )
            namespace = own
        identity = ChildIdentity(known.group_kind, Key(namespace, name))
        far = bool(own) and namespace != own
        if far and namespaced and not known.across_namespaces:
            raise self._across(identity, owned=owned)
        return identity, _bond(known, owned=owned, far=far)

    def _placed(self, identity: ChildIdentity, options: ChildOptions) -> tuple[int, tuple[int, ...]]:
        after = options.get("after")
        if after is None:
            return 1, _NOTHING
        named: Iterable[Any] = [after] if isinstance(after, (Object, Unstructured)) else after
        places: list[int] = []
        for each in named:
            known = self.children.known(each) if isinstance(each, (Object, Unstructured)) else None
            found = None
            if known is not None:
                found = self._places.get(self._identified(each, known, owned=False)[0])
            if found is None:
                shown = f"{each.kind} {each.key}" if isinstance(each, (Object, Unstructured)) else repr(each)
                raise ValueError(
                    f"{self._what(identity)}: after={shown} must be declared earlier in this state: first ="
                    " out.apply(...), then out.apply(second, after=first)"
                )
            places.append(found)
        return 1 + max((self._outputs[place].depth for place in places), default=0), tuple(places)

    def _check_options(self, identity: ChildIdentity, options: ChildOptions) -> None:
        for name in options:
            if name not in _OPTIONS:
                near = nearest(name, _OPTIONS)
                hint = f"did you mean {near}=?" if near else f"there are {', '.join(_OPTIONS)}"
                raise TypeError(f"{self._what(identity)}: there is no option {name}=; {hint}")
        how = options.get("how", "apply")
        if how not in _HOW:
            raise ValueError(f"{self._what(identity)}: how={how!r} is not one of {', '.join(_HOW)}")
        if how == "create" and (
            clash := [each for each in ("lock", "recreate", "remove", "adopt") if options.get(each)]
        ):
            raise ValueError(
                f'{self._what(identity)}: how="create" never changes an existing object, so {clash[0]}= has no effect; remove it'
            )
        if how == "replace" and options.get("remove"):
            raise ValueError(
                f'{self._what(identity)}: how="replace" removes every undeclared field, so remove= has no effect; remove it'
            )
        if how == "replace" and not options.get("owner", True):
            raise ValueError(
                f'{self._what(identity)}: how="replace" overwrites the fields of others, but owner=False shares the object;'
                " use only one of them"
            )
        if how != "apply" and options.get("status"):
            raise ValueError(f'{self._what(identity)}: how="{how}" does not write a status; remove status= or how=')
        if isinstance(options.get("remove"), str):
            raise TypeError(
                f'{self._what(identity)}: remove= is a list of fields; write remove=("{options.get("remove")}",)'
            )
        if options.get("adopt") and not options.get("owner", True):
            raise ValueError(
                f"{self._what(identity)}: adopt=True takes an object over, but owner=False shares it; use only one of them"
            )

    def _check_status(self, identity: ChildIdentity, known: KnownKind) -> None:
        if not isinstance(known.kind, Kind) and has_status_subresource(known.kind):
            raise ValueError(
                f"{self._what(identity)}: its status is set, but the server ignores it here; write"
                " out.apply(..., status=True) to apply it to the status subresource, or do not set it"
            )

    def _check_references(self, identity: ChildIdentity, child: Object | Unstructured, options: ChildOptions) -> None:
        if isinstance(child, Object) and not child.metadata.owner_references:
            return
        named = controller_of(child) is not None or is_owned_by(child, self.owner)
        if named and options.get("owner", True):
            raise OwnershipError(
                f"{self._what(identity)}: its ownerReferences name a controller or its owner, but Steersman"
                f" writes the reference to {self.owner.kind} {self.owner.key}; remove them, or write"
                f" children=(child({identity.kind.kind}, owner_references=False), ...) to set all references"
                " yourself"
            )

    # messages

    def _what(self, identity: ChildIdentity | str, name: str = "") -> str:
        shown = f"{identity} {name}" if name else str(identity)
        place = f", {self.state}" if self.state else ""
        return f"{self.children.where}{place}: out.apply({shown})"

    def _unknown(self, child: object) -> Exception:
        where = self._what
        if isinstance(child, type):
            return TypeError(
                f"{where(child.__name__)}: that is a class; pass an object: {child.__name__}(metadata=..., spec=...)"
            )
        if isinstance(child, dict):
            kind = str(cast("dict[str, Any]", child).get("kind", "child"))
            return TypeError(
                f"{where(kind)}: that is a dict; build a {kind} of steersman.kinds or of your own types, or pass Unstructured(...)"
            )
        if not isinstance(child, (Object, Unstructured)):
            return TypeError(f"{where(repr(child))}: that is not an object; build the child and pass it")
        kind = child.kind
        gvk = cast("Any", child).gvk() if isinstance(child, Object) else None
        if gvk is not None and any(each.kind.gvk() == gvk for each in self.children.retired):
            return ValueError(
                f"{where(f'{kind} {child.key}')}: {kind} is in retired=, which is for kinds that are no"
                " longer declared; move it to children="
            )
        return ValueError(
            f"{where(f'{kind} {child.key}')}: {kind} is not in children={self.children.names()}; add it, so"
            " that Steersman watches and prunes it"
        )

    def _nameless(self, child: Object | Unstructured, known: KnownKind) -> Exception:
        kind = known.group_kind.kind
        generated = (
            child.get("metadata", "generateName") if isinstance(child, Unstructured) else child.metadata.generate_name
        )
        if generated:
            return ValueError(
                f"{self._what(kind)}: it has a generated name, so every reconcile would create another one; set a name,"
                f' such as f"{{{self.owner.kind.lower()}.key.name}}-{kind.lower()}"'
            )
        return ValueError(f"{self._what(kind)}: it has no name; write metadata=ObjectMeta(name=...)")

    def _across(self, identity: ChildIdentity, *, owned: bool) -> Exception:
        declare = f"children=(child({identity.kind.kind}, across_namespaces=True), ...)"
        owner = f"{self.owner.kind} {self.owner.key}"
        if owned:
            words = (
                f"{owner} cannot own it by reference from another namespace; if you intend that, write"
                f" {declare}: Steersman then uses a label and a finalizer"
            )
        else:
            words = (
                f"{owner} would write to another namespace, in which its author may have no permissions; if"
                f" you intend that, write {declare}"
            )
        return ValueError(f"{self._what(identity)}: {words}")

    def _twice(self, identity: ChildIdentity, earlier: str) -> Exception:
        by = "" if earlier == self.state else f" by {earlier}"
        return ValueError(
            f"{self._what(identity)}: it was already declared in this reconcile{by}; declare each child"
            " once, with all of its fields"
        )
