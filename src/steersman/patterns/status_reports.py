"""Operators that only write a status, computed by one function from observed objects.

Guarantees
- Only the status is written, by a separate field manager for each controller. Fields of other writers stay; a field that the
  function no longer sets is removed.
- A field with its default value is not claimed unless it was ours before, because the default may be unintended.
- Nothing is written if nothing changed.
- The function reads the cached objects of the kinds that it names, and runs again when one of them changes.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeAlias, TypeVar, cast

import msgspec

from steersman.aio import AwaitCheck, utc_now
from steersman.controller import (
    Blueprint,
    Context,
    ControllerBuilder,
    Done,
    KindLike,
    Request,
    check_formerly,
    controller_for,
)
from steersman.objects import Kind, Object, Status, kind_name, to_json
from steersman.patterns.children import ChildKind, Children
from steersman.patterns.children.membership import OWNER_UID_LABEL
from steersman.patterns.children.memory import Memories
from steersman.patterns.machine.signatures import place_of
from steersman.patterns.status.conditions import Observations, suspension_of
from steersman.patterns.status.draft import StatusDraft, status_form

T = TypeVar("T", bound=Object)
R = TypeVar("R")
ObjectT = TypeVar("ObjectT", bound=Object)
Tree: TypeAlias = dict[str, Any]


class Seen:
    """The objects that a status is computed from; in a test without a server, ``Seen(site, [deployment])``."""

    def __init__(
        self, owner: Object, objects: Iterable[Object] = (), *, kinds: Iterable[KindLike] | None = None, where: str = ""
    ) -> None:
        self.owner = owner
        self._objects = sorted(objects, key=lambda obj: obj.key)
        self._kinds = None if kinds is None else {kind.gvk(): kind for kind in kinds}
        self._where = where or "Seen"

    def owned(self, kind: type[ObjectT]) -> list[ObjectT]:
        """The objects of a kind that belong to the owner, sorted by name."""
        if self._kinds is not None and kind.gvk() not in self._kinds:
            names = [kind_name(each) for each in self._kinds.values()]
            kinds = f"({', '.join(names)}{',' if len(names) == 1 else ''})"
            raise TypeError(
                f"{self._where} reads {kind.__name__}, which is not in on={kinds}; add it, so that the status"
                " follows its changes"
            )
        return [cast("ObjectT", each) for each in self._objects if type(each).gvk() == kind.gvk()]

    def one(self, kind: type[ObjectT], name: str = "") -> ObjectT | None:
        """The only object of a kind that belongs to the owner, or the one with this name; None if it does not exist."""
        owned = [obj for obj in self.owned(kind) if not name or obj.key.name == name]
        if len(owned) > 1:
            names = ", ".join(obj.key.name for obj in owned)
            raise LookupError(
                f"{self._where}: {self.owner.kind} {self.owner.key} has {len(owned)} objects of kind {kind.__name__} ({names});"
                f' name one: seen.one({kind.__name__}, "{owned[0].key.name}"), or seen.owned({kind.__name__})'
            )
        return owned[0] if owned else None


class Report(Generic[T, R]):
    """A decorated function. Calling it calls the function; adding it to a manager keeps the status up to date."""

    def __init__(
        self,
        kind: type[T],
        on: Children,
        function: Callable[[T, Seen], R],
        *,
        name: str,
        formerly: tuple[str, ...],
        where: str,
        declare: Callable[[ControllerBuilder[Any]], Any] | None,
    ) -> None:
        self._kind = kind
        self._on = on
        self._function = function
        self._name = name
        self._formerly = formerly
        self._where = where
        self._declare = declare
        functools.update_wrapper(self, function)

    def __call__(self, obj: T, seen: Seen) -> R:
        """Call the function."""
        return self._function(obj, seen)

    def blueprint(self) -> Blueprint:
        """The controller that runs it; ``manager.add(...)`` calls this."""
        builder = controller_for(self._kind, name=self._name)
        Memories(self._on).watch(builder)
        if self._declare is not None:
            self._declare(builder)
        return msgspec.structs.replace(builder.run_with(self._reconcile), formerly=self._formerly)

    async def _reconcile(self, ctx: Context, request: Request) -> Done:
        obj = await ctx.client.find(self._kind, request.key)
        if obj is None or suspension_of(obj) is not None:
            return Done()
        draft = StatusDraft(ctx, obj, formerly=self._formerly)
        await draft.begin()
        kinds = [watched.kind for watched in self._on.kinds]
        seen = Seen(obj, await self._owned(ctx, obj), kinds=kinds, where=self._where)
        with AwaitCheck():
            returned: object = self._function(obj, seen)
            if inspect.isawaitable(returned):
                returned = await returned
        status = self._checked(returned)
        cast("Any", obj).status = status
        observed = status.observed_generation is not None
        after = await self._said(draft, status, to_json(obj).get("status") or {})
        await draft.write(Observations(set=(), observed=observed), complete=True, after=after)
        return Done()

    async def _owned(self, ctx: Context, obj: Object) -> list[Object]:
        objects: dict[str, Object] = {}
        for watched in self._on.all_kinds:
            kind = cast("type[Object]", watched.kind)
            listed: list[Object] = list(await ctx.client.owned_by(kind, obj))
            if watched.may_be_labeled:
                listed += await ctx.client.list(kind, namespace=None, labels={OWNER_UID_LABEL: obj.uid})
            objects |= {one.uid: one for one in listed}
        return list(objects.values())

    async def _said(self, draft: StatusDraft, status: Status, tree: Tree) -> Tree:
        """The status to write. A default value may be unintended, so it is claimed only if the field was ours before."""
        if status_form(self._kind).how != "apply":
            return tree
        own, before = await draft.applied(), draft.before
        for field in msgspec.structs.fields(status):
            name = field.encode_name
            default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
            if name in own or name not in tree or getattr(status, field.name) != default:
                continue
            tree.pop(name)
            if name in before:
                tree[name] = before[name]
        others = {name: value for name, value in before.items() if name not in own and name not in tree}
        return {**others, **tree}

    def _checked(self, returned: object) -> Status:
        if not isinstance(returned, Status):
            printed = repr(returned)[:80]
            raise TypeError(f"{self._where} returned {printed}; return the status, a {self._kind.__name__}Status")
        for condition in returned.conditions or ():
            # The write restores the time of a condition that did not change.
            condition.last_transition_time = condition.last_transition_time or utc_now()
        return returned


def reports(
    kind: type[T],
    *,
    on: Iterable[KindLike | ChildKind] = (),
    name: str = "",
    formerly: Iterable[str] = (),
    declare: Callable[[ControllerBuilder[Any]], Any] | None = None,
) -> Callable[[Callable[[T, Seen], R]], Report[T, R]]:
    """Keep the status of a kind up to date with a function, async or not, of the objects that it sees.

    ```python
    @reports(Site, on=(Deployment,))
    def site_status(site: Site, seen: Seen) -> SiteStatus:
        web = seen.one(Deployment)
        return SiteStatus(ready_replicas=web.status.ready_replicas if web and web.status else 0)
    ```

    ``on`` names kinds whose objects belong to the reconciled object, whichever program created them. The server records what
    it writes under ``name``; after a rename, list the earlier names as ``formerly``.
    """
    where = place_of("reports", kind, more="on=(...)")
    if status_form(kind).how == "not":
        raise TypeError(
            f"{where}: {kind.__name__} has no status with conditions; write class {kind.__name__}Status(Status) and "
            f"Resource[{kind.__name__}Spec, {kind.__name__}Status]"
        )
    if isinstance(on, type | Kind | ChildKind):
        shown = kind_name(on.kind if isinstance(on, ChildKind) else cast("KindLike", on))
        raise TypeError(f"{where}: on={shown} is one kind; write on=({shown},)")
    watched = Children(kind, on, where=where)
    for child in watched.kinds:
        if isinstance(child.kind, Kind):
            raise TypeError(f"{where}: on= needs classes, but {kind_name(child.kind)} has none")

    def decorate(function: Callable[[T, Seen], R]) -> Report[T, R]:
        title = getattr(function, "__name__", repr(function)[:80])
        if not inspect.isroutine(function):
            raise TypeError(f"{where} decorates a function, but {title} is not one: write def site_status(site, seen)")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"{where}: {title} yields; return the status")
        try:
            inspect.signature(function).bind(object(), object())
        except TypeError:
            raise TypeError(
                f"{where}: {title} cannot be called with an object and a Seen; write def"
                f" {title}({kind.__name__.lower()}, seen)"
            ) from None
        controller = name or f"{kind.__name__.lower()}-status"
        return Report(
            kind,
            watched,
            function,
            name=controller,
            formerly=check_formerly(formerly, controller, where, bearer="controller"),
            where=f"{where}: {title}",
            declare=declare,
        )

    return decorate
