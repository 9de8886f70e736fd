"""Saying what a controller watches: ``controller(Site).owns(Deployment).watches(Secret, map=sites_using)``.

Guarantees
- Every mistake that can be seen is raised where it is made, as a `TypeError` or `ValueError` that says what to write
  instead; nothing wrong is left to be found at run time, when it would look like an event that never came.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, Literal, Protocol, Self, TypeVar, cast, get_args, get_origin, overload

from steersman.controller.causes import Request
from steersman.controller.context import Context, ReconcileFunction, Reconciler
from steersman.controller.events import KindLike
from steersman.controller.mappers import MapFunction, Mapper, Owners, Through, check_kind, function_mapper, kind_name
from steersman.controller.outcomes import Outcome
from steersman.controller.plan import ControllerPlan, WatchedKind, same_object
from steersman.controller.predicates import Predicate
from steersman.controller.queue_state import QueueOptions
from steersman.controller.sources import Source
from steersman.controller.workers import ControllerOptions
from steersman.objects import Kind, Object, PartialObjectMetadata, Unstructured

T = TypeVar("T")
ObjectT = TypeVar("ObjectT", bound=Object)

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


@overload
def controller(
    kind: type[ObjectT], *, name: str = ..., namespaced: bool | None = ..., register: Register | None = ...
) -> ControllerBuilder[ObjectT]: ...
@overload
def controller(
    kind: Kind, *, name: str = ..., namespaced: bool | None = ..., register: Register | None = ...
) -> ControllerBuilder[Unstructured]: ...


def controller(
    kind: KindLike, *, name: str = "", namespaced: bool | None = None, register: Register | None = None
) -> ControllerBuilder[Any]:
    """Begin a controller that reconciles objects of a kind.

    ``name`` is the kind's in small letters unless given. ``namespaced`` is only for a `Kind`: a class knows it.
    ``register`` is handed the plan when it is complete.
    """
    return ControllerBuilder(kind, name=name, namespaced=namespaced, register=register)


class Register(Protocol):
    """Takes a complete plan: a manager does."""

    def __call__(self, plan: ControllerPlan, /) -> None:
        """Take it."""
        ...


class ControllerBuilder(Generic[T]):
    """A controller being described; ends with `run_with`."""

    def __init__(
        self, kind: KindLike, *, name: str = "", namespaced: bool | None = None, register: Register | None = None
    ) -> None:
        check_kind(kind, "controller")
        self._primary = kind
        self._name = name or kind_name(kind).lower()
        if not _NAME.fullmatch(self._name):
            raise ValueError(
                f"controller name {self._name!r}: it becomes part of metrics and logs; use small letters, digits, '-' and '.'"
            )
        if isinstance(kind, Kind):
            self._namespaced = namespaced
        else:
            declared = kind.__resource__.namespaced
            if namespaced not in {None, declared}:
                raise ValueError(
                    f"controller({kind_name(kind)}): the class says namespaced={declared}; leave it out here"
                )
            self._namespaced = declared
        self._register = register
        self._own: WatchedKind | None = None
        self._watches: list[WatchedKind] = []
        self._sources: list[Source] = []
        self._options = ControllerOptions()
        self._complete = False

    def when(self, predicate: Predicate, *, resync: float | None = None) -> Self:
        """Only these events of the reconciled kind count. What was there at the start must pass too."""
        if self._own is not None:
            raise ValueError(f"{self._where('when')} was said already; combine predicates with & and |")
        self._own = WatchedKind(
            kind=self._primary,
            mapper=same_object,
            predicate=_checked(predicate, self._where("when")),
            resync=_seconds(resync, self._where("when")),
        )
        return self

    def owns(
        self,
        kind: KindLike,
        *,
        when: Predicate | None = None,
        any_owner: bool = False,
        metadata_only: bool = False,
    ) -> Self:
        """Also reconcile the owner when an object that it owns changes.

        ``any_owner``: not only the owner that controls the object.
        """
        where = self._where("owns", kind)
        self._check_reach(kind, where)
        if any(watch.kind == kind and watch.words == "owned" for watch in self._watches):
            raise ValueError(f"{where} was said already; once is enough")
        mapper = partial(Owners, self._primary, namespaced=self._is_namespaced(where), any_owner=any_owner)
        self._watches.append(
            WatchedKind(
                kind=kind, mapper=mapper, words="owned", predicate=_checked(when, where), metadata_only=metadata_only
            )
        )
        return self

    @overload
    def watches(
        self,
        kind: KindLike,
        *,
        map: MapFunction[PartialObjectMetadata] | Through,
        metadata_only: Literal[True],
        when: Predicate | None = ...,
        resync: float | None = ...,
    ) -> Self: ...
    @overload
    def watches(
        self,
        kind: type[ObjectT],
        *,
        map: MapFunction[ObjectT] | Through,
        when: Predicate | None = ...,
        metadata_only: bool = ...,
        resync: float | None = ...,
    ) -> Self: ...
    @overload
    def watches(
        self,
        kind: Kind,
        *,
        map: MapFunction[Unstructured] | Through,
        when: Predicate | None = ...,
        metadata_only: bool = ...,
        resync: float | None = ...,
    ) -> Self: ...

    def watches(
        self,
        kind: KindLike,
        *,
        map: MapFunction[Any] | Through | None = None,  # noqa: A002 - the word that everybody expects
        when: Predicate | None = None,
        metadata_only: bool = False,
        resync: float | None = None,
    ) -> Self:
        """Also reconcile whom ``map`` names when an object of this kind changes.

        ``map`` is a function from a `View` to keys, asked about the old and the new state; or `owners_through`. With a
        second parameter it is also given the `Stores` to look things up in. With ``metadata_only`` the view's object is
        a `PartialObjectMetadata`, whatever kind the function names: it can rely on key, labels and metadata alone.
        """
        where = self._where("watches", kind)
        name = kind_name(kind)
        if map is None:
            primary = kind_name(self._primary)
            raise TypeError(
                f"{where} does not say which {primary} to reconcile: write .watches({name}, map=function) with "
                f"def function(view) -> list[Key], or .owns({name}) if a {primary} owns it"
            )
        through: tuple[KindLike, ...] = ()
        if isinstance(map, Through):
            through = map.kinds
            mapper: Callable[[], Mapper] = partial(
                Owners, self._primary, namespaced=self._is_namespaced(where), through=through
            )
            words = "owners through " + ", ".join(kind_name(each) for each in through)
        else:
            function = function_mapper(map, where)
            mapper, words = (lambda: function), getattr(map, "__name__", "mapped")
        self._watches.append(
            WatchedKind(
                kind=kind,
                mapper=mapper,
                words=words,
                predicate=_checked(when, where),
                metadata_only=metadata_only,
                through=through,
                resync=_seconds(resync, where),
            )
        )
        return self

    def on(self, source: Source) -> Self:
        """Also reconcile whom a source of another kind names, such as a `ChannelSource`."""
        if isinstance(source, type) or not inspect.iscoroutinefunction(getattr(source, "run", None)):
            raise TypeError(
                f"{self._where('on')}: {source!r} is no source; write .on(ChannelSource('name')), or give an object "
                "with async def run(self, emit, started)"
            )
        if any(present is source for present in self._sources):
            raise ValueError(f"{self._where('on')}: source {source.name} is there already")
        self._sources.append(source)
        return self

    def options(
        self,
        *,
        concurrency: int = ControllerOptions().concurrency,
        timeout: float | None = ControllerOptions().timeout,
        queue: QueueOptions | None = None,
    ) -> Self:
        """How many at once, how long each may take, how failures back off."""
        self._options = ControllerOptions(concurrency=concurrency, timeout=timeout, queue=queue or QueueOptions())
        return self

    def run_with(self, reconciler: Reconciler[T] | ReconcileFunction) -> ControllerPlan:
        """Say what reconciles: an object with ``async def reconcile(self, ctx, request)``, or such a function."""
        where = self._where("run_with")
        if self._complete:
            raise ValueError(f"{where} was called already; begin another controller for another reconciler")
        checked = _check_reconciler(reconciler, self._primary, where)
        self._complete = True
        plan = ControllerPlan(
            name=self._name,
            primary=self._primary,
            watches=(self._own or WatchedKind(kind=self._primary, mapper=same_object), *self._watches),
            sources=tuple(self._sources),
            reconciler=checked,
            options=self._options,
        )
        if self._register is not None:
            self._register(plan)
        return plan

    def _where(self, method: str, kind: object = None) -> str:
        place = f"controller({kind_name(self._primary)}).{method}"
        if kind is None:
            return place
        check_kind(kind, place)
        return f"{place}({kind_name(cast('KindLike', kind))})"

    def _is_namespaced(self, where: str) -> bool:
        if self._namespaced is None:
            name = kind_name(self._primary)
            raise ValueError(f"{where}: is {name} namespaced? Say it: controller(Kind(...), namespaced=True)")
        return self._namespaced

    def _check_reach(self, kind: KindLike, where: str) -> None:
        """Refuse an ownership that Kubernetes does not allow: its garbage collector would delete the owned object."""
        if not isinstance(kind, Kind) and not kind.__resource__.namespaced and self._is_namespaced(where):
            name, primary = kind_name(kind), kind_name(self._primary)
            raise ValueError(
                f"{where}: a {primary} lives in a namespace and cannot own a {name}, which lives in none; "
                f"label the {name} and write .watches({name}, map=function)"
            )


def _checked(predicate: Predicate | None, where: str) -> Predicate | None:
    if predicate is not None and not isinstance(predicate, Predicate):  # pyright: ignore[reportUnnecessaryIsInstance]
        hint = "call it: when=generation_changed()" if inspect.isfunction(predicate) else "write when=when(function)"
        raise TypeError(f"{where}: {predicate!r} is no predicate; for one of your own use when(function), or {hint}")
    return predicate


def _seconds(resync: float | None, where: str) -> float | None:
    if resync is not None and not 0 < resync < float("inf"):
        raise ValueError(f"{where}: resync is a number of seconds above 0; got {resync}")
    return resync


class _FunctionReconciler:
    """A reconciler that is a function."""

    def __init__(self, function: ReconcileFunction) -> None:
        self._function = function

    async def reconcile(self, ctx: Context, request: Request) -> Outcome:
        return await self._function(ctx, request)


def _check_reconciler(reconciler: object, primary: KindLike, where: str) -> Reconciler[Any]:
    name = getattr(reconciler, "__name__", type(reconciler).__name__)
    if isinstance(reconciler, type):
        raise TypeError(f"{where}: {name} is a class; give an object of it: run_with({name}())")
    method = getattr(reconciler, "reconcile", None)
    if method is None and callable(reconciler):
        _check_call(reconciler, f"async def {name}(ctx, request)", where)
        return _FunctionReconciler(cast("ReconcileFunction", reconciler))
    if method is None:
        raise TypeError(f"{where}: {name} has no method reconcile; write async def reconcile(self, ctx, request)")
    _check_call(method, "async def reconcile(self, ctx, request)", where)
    declared = _declared_kind(type(reconciler))
    if declared is not None and not isinstance(primary, Kind) and declared is not primary:
        raise TypeError(
            f"{where}: {name} is a Reconciler[{getattr(declared, '__name__', declared)}], but this controller "
            f"reconciles {kind_name(primary)}"
        )
    return cast("Reconciler[Any]", reconciler)


def _check_call(function: Callable[..., Any], write: str, where: str) -> None:
    if not (inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)):
        raise TypeError(
            f"{where}: it is not async; write {write}, and call blocking code with await asyncio.to_thread(...)"
        )
    try:
        inspect.signature(function).bind(object(), object())
    except TypeError as error:
        raise TypeError(f"{where}: it cannot be called with a context and a request ({error}); write {write}") from None


def _declared_kind(cls: type) -> object:
    """The X of a class that says it is a ``Reconciler[X]``."""
    for parent in cls.__mro__:
        for declared in getattr(parent, "__orig_bases__", ()):
            arguments = get_args(declared)
            if get_origin(declared) is Reconciler and arguments and isinstance(arguments[0], type):
                return arguments[0]
    return None
