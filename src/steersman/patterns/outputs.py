"""What a state wants to exist: collected here, applied by others. Pure, so that a state can be tested without a server.

Guarantees
- Declaring changes nothing, neither on the server nor in the object that is declared.
- A mistake is raised where it is made, at `Outputs.apply`, with what to write instead: a kind that was not declared, a
  child twice, a child that was read, one that its owner cannot hold, options that contradict each other.
- A child without a namespace is in that of its owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, Literal, TypedDict, TypeVar, Unpack, cast

import msgspec
from msgspec import UNSET

from steersman.client.bindings import has_status_subresource, was_read
from steersman.client.preparing import NotAnIntent
from steersman.controller import Context
from steersman.objects import Key, Kind, Object, OwnershipError, Unstructured
from steersman.patterns.children import Children, Identity, KnownKind
from steersman.patterns.membership import Bond

ObjectT = TypeVar("ObjectT", bound=Object | Unstructured)


class ChildOptions(TypedDict, total=False):
    """How one child is made and kept; what is not said is as for most children."""

    #: ``apply``: server-side apply, which corrects drift and removes what is declared no longer. ``merge``: a merge patch of
    #: what differs. ``update``: read, change, put. ``create``: made once, never changed afterwards.
    how: Literal["apply", "merge", "update", "create"]
    #: Write only on top of the version that was seen; another writer's change is a conflict, and the pass runs again.
    lock: bool
    #: False: it carries no mark of its owner. It is then nobody's: shared with others, never pruned, never deleted.
    owner: bool
    #: False: it stays when it is declared no longer. It still goes with its owner.
    prune: bool
    #: Take over an object that is there already, if nobody controls it.
    adopt: bool
    #: Delete it and make it anew where the server says that a field cannot be changed.
    recreate: bool
    #: Its status is applied too.
    status: bool
    #: False: whether it is ready does not matter to the state.
    wait: bool
    #: Children that must be ready before this one is applied; deletion goes the other way.
    after: Object | Unstructured | Sequence[Object | Unstructured]
    #: Fields that must not be there, whoever set them: ``remove=("spec.paused",)``, or as JSON pointers.
    remove: Sequence[str]


_OPTIONS = tuple(ChildOptions.__annotations__)
_HOW = ("apply", "merge", "update", "create")
_NO_OPTIONS: ChildOptions = {}
_NOTHING: tuple[int, ...] = ()


class Output(msgspec.Struct, frozen=True, gc=False):
    """A child as it was declared."""

    child: Object | Unstructured
    identity: Identity
    known: KnownKind
    bond: Bond
    options: ChildOptions
    #: 1 for a child that waits for no other, one more than that of the deepest child that it waits for otherwise.
    depth: int = 1
    #: The places, in the order of declaration, of the children that it waits for.
    after: tuple[int, ...] = ()


class Outputs:
    """The children of one state: ``out.apply(Deployment(...))``.

    ``taken`` is shared by the states of one pass: who declared what, so that two states cannot declare the same child.
    """

    def __init__(
        self,
        owner: Object,
        children: Children,
        *,
        phase: str = "",
        ctx: Context | None = None,
        taken: dict[Identity, str] | None = None,
    ) -> None:
        self.owner = owner
        self.children = children
        self.phase = phase
        self._ctx = ctx
        self._taken = {} if taken is None else taken
        self._outputs: list[Output] = []
        self._places: dict[Identity, int] = {}
        self._namespace = owner.metadata.namespace or ""
        if ctx is None and not self._namespace and type(owner).__resource__.namespaced:
            self._namespace = "default"  # a test need not say where its object is
        if ctx is not None and not owner.metadata.uid:
            raise OwnershipError(
                f"{children.where}: {owner.kind} {owner.key} has no uid, so nothing can belong to it; give the object that was"
                " read from the server, not one that was built"
            )

    @property
    def ctx(self) -> Context:
        """The reconcile that this happens in: its client, causes and logger."""
        if self._ctx is None:
            raise RuntimeError(
                "these outputs were made without a context, as for a test that needs no server; give them one:"
                " Outputs(owner, children, ctx=ctx)"
            )
        return self._ctx

    @property
    def declared(self) -> tuple[Output, ...]:
        """What was declared, in order."""
        return tuple(self._outputs)

    def apply(self, child: ObjectT, **options: Unpack[ChildOptions]) -> ObjectT:
        """Declare that a child exists and how it is; the same object is given back, to be named in ``after=``."""
        is_object = isinstance(child, (Object, Unstructured))  # pyright: ignore[reportUnnecessaryIsInstance]
        known = self.children.known(child) if is_object else None
        if known is None:
            raise self._unknown(child)
        identity, bond = self._identified(child, known, owned=options.get("owner", True))
        if was_read(child):
            raise NotAnIntent(
                f"{self._what(identity)}: it was read from the server, and applying it would claim every field of it; build"
                f" the {identity.kind.kind} anew, with the fields that you mean"
            )
        depth, after = 1, _NOTHING
        if options:
            self._check_options(identity, options)
            depth, after = self._placed(identity, options)
        self._check_status(identity, child, known, options)
        if not isinstance(child, Unstructured) and child.metadata.owner_references:
            self._check_references(identity, child, options)
        earlier = self._taken.setdefault(identity, self.phase)
        if identity in self._places or earlier != self.phase:
            raise self._twice(identity, earlier)
        self._places[identity] = len(self._outputs)
        self._outputs.append(Output(child, identity, known, bond, options or _NO_OPTIONS, depth, after))
        return child

    async def current(self, child: ObjectT) -> ObjectT | None:
        """What the cluster holds now of a child, declared or not; None if there is none. Never older than our own writes."""
        known = self.children.known(child)
        if known is None:
            raise self._unknown(child)
        identity, _ = self._identified(child, known, owned=True)
        found: Any = await self.ctx.client.find(cast("Any", known.kind), identity.key)
        return cast("ObjectT | None", found)

    # inside

    def _identified(self, child: Object | Unstructured, known: KnownKind, *, owned: bool) -> tuple[Identity, Bond]:
        """Which object a child is, and by what it can belong to its owner."""
        own = self._namespace
        if isinstance(child, Unstructured):
            namespace, name = child.key
        else:
            namespace, name = child.metadata.namespace or "", child.metadata.name or ""
        if not name:
            raise self._nameless(child, known)
        namespaced = known.namespaced
        if namespaced is None:
            # Only the server knows, and was not asked, as in a test without one: nothing is written on the strength of this.
            namespaced = bool(namespace) or (bool(own) and not known.across_namespaces)
        if not namespaced:
            namespace = ""
        elif not namespace:
            if not own:
                raise ValueError(
                    f"{self._what(known.group_kind.kind, name)}: in which namespace? {self.owner.kind} {self.owner.key} lives in"
                    " none, so write metadata=ObjectMeta(name=..., namespace=...)"
                )
            namespace = own
        identity = Identity(known.group_kind, Key(namespace, name))
        if not owned:
            return identity, "none"
        if not own or namespace == own:
            return identity, "reference"
        if namespaced and not known.across_namespaces:
            kind = known.group_kind.kind
            raise ValueError(
                f"{self._what(identity)}: {self.owner.kind} {self.owner.key} cannot own it by reference from another namespace; if"
                f" it is meant, write children=(child({kind}, across_namespaces=True), ...), which holds it by a label and a"
                " finalizer"
            )
        return identity, "label"

    def _placed(self, identity: Identity, options: ChildOptions) -> tuple[int, tuple[int, ...]]:
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
                    f"{self._what(identity)}: after={shown} was not declared before it in this state; declare that first,"
                    " first = out.apply(...), and name it: out.apply(second, after=first)"
                )
            places.append(found)
        return 1 + max((self._outputs[place].depth for place in places), default=0), tuple(places)

    def _check_options(self, identity: Identity, options: ChildOptions) -> None:
        for name in options:
            if name not in _OPTIONS:
                near = get_close_matches(name, _OPTIONS, n=1)
                hint = f"did you mean {near[0]}=?" if near else f"there are {', '.join(_OPTIONS)}"
                raise TypeError(f"{self._what(identity)}: there is no option {name}=; {hint}")
        how = options.get("how", "apply")
        if how not in _HOW:
            raise ValueError(f"{self._what(identity)}: how={how!r} is none of {', '.join(_HOW)}")
        if how == "create" and (
            clash := [each for each in ("lock", "recreate", "remove", "adopt") if options.get(each)]
        ):
            raise ValueError(
                f'{self._what(identity)}: how="create" never changes what is there, so {clash[0]}= says nothing; leave it out'
            )
        if how != "apply" and options.get("status"):
            raise ValueError(f'{self._what(identity)}: how="{how}" writes no status; leave status= or how= out')
        if isinstance(options.get("remove"), str):
            raise TypeError(
                f'{self._what(identity)}: remove= is a list of fields; write remove=("{options.get("remove")}",)'
            )
        if options.get("adopt") and not options.get("owner", True):
            raise ValueError(
                f"{self._what(identity)}: adopt=True takes an object over, and owner=False leaves it to everybody; say one of"
                " them"
            )

    def _check_status(
        self, identity: Identity, child: Object | Unstructured, known: KnownKind, options: ChildOptions
    ) -> None:
        status: Any = child.tree.get("status") if isinstance(child, Unstructured) else getattr(child, "status", None)
        if status is None or status is UNSET or options.get("status") or isinstance(known.kind, Kind):
            return
        if has_status_subresource(known.kind):
            raise ValueError(
                f"{self._what(identity)}: its status is set, which the server ignores here; write out.apply(..., status=True) to"
                " apply it to the status subresource, or leave it out"
            )

    def _check_references(self, identity: Identity, child: Object, options: ChildOptions) -> None:
        if any(each.controller for each in child.metadata.owner_references or ()) and options.get("owner", True):
            raise OwnershipError(
                f"{self._what(identity)}: it names a controller in its ownerReferences, and {self.owner.kind} {self.owner.key} is"
                " to be that; leave them out, or write owner=False"
            )

    # what to say

    def _what(self, identity: Identity | str, name: str = "") -> str:
        shown = f"{identity} {name}" if name else str(identity)
        place = f", {self.phase}" if self.phase else ""
        return f"{self.children.where}{place}: out.apply({shown})"

    def _unknown(self, child: object) -> Exception:
        where = self._what
        if isinstance(child, type):
            return TypeError(
                f"{where(child.__name__)}: that is a class; give an object, {child.__name__}(metadata=..., spec=...)"
            )
        if not isinstance(child, (Object, Unstructured)):
            return TypeError(f"{where(repr(child))}: that is no object; build the child and give that")
        kind = child.kind
        gvk = cast("Any", child).gvk() if isinstance(child, Object) else None
        if gvk is not None and any(each.kind.gvk() == gvk for each in self.children.retired):
            return ValueError(
                f"{where(f'{kind} {child.key}')}: {kind} is in retired=, which names kinds that are no longer produced; move"
                " it to children="
            )
        return ValueError(
            f"{where(f'{kind} {child.key}')}: {kind} is not among children={self.children.names()}; add it there, so that it"
            " is watched and pruned"
        )

    def _nameless(self, child: Object | Unstructured, known: KnownKind) -> Exception:
        kind = known.group_kind.kind
        generated = (
            child.get("metadata", "generateName") if isinstance(child, Unstructured) else child.metadata.generate_name
        )
        if generated:
            return ValueError(
                f"{self._what(kind)}: it has a generated name, so that every pass would make another one; give it a name of its"
                f' own, such as f"{{{self.owner.kind.lower()}.key.name}}-{kind.lower()}"'
            )
        return ValueError(f"{self._what(kind)}: it has no name; write metadata=ObjectMeta(name=...)")

    def _twice(self, identity: Identity, earlier: str) -> Exception:
        by = "" if earlier == self.phase else f" by {earlier}"
        return ValueError(
            f"{self._what(identity)}: it was declared already in this pass{by}; declare each child once, with all that it is"
            " to hold"
        )
