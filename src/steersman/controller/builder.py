"""Declare what a controller watches: ``controller_for(Site).owns(Deployment).watches(Secret, map=sites_using)``.

Guarantees
- Every detectable mistake raises a `TypeError` or `ValueError` where it is made, with what to write instead. At run
  time it would look like an event that never came.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Generic, Literal, Protocol, Self, TypeVar, cast, get_args, get_origin, overload

import msgspec

from steersman.controller.blueprint import Blueprint, WatchedKind, same_object
from steersman.controller.causes import Request
from steersman.controller.context import Context, ReconcileFunction, Reconciler
from steersman.controller.options import RESYNC, ControllerOptions
from steersman.controller.outcomes import Outcome, no_timedelta
from steersman.controller.queue.state import QueueOptions
from steersman.controller.sources.mappers import (
    MapFunction,
    Mapper,
    Owners,
    Referring,
    Through,
    check_kind,
    function_mapper,
    reference_function,
)
from steersman.controller.sources.predicates import Predicate
from steersman.controller.sources.source import Source
from steersman.controller.sources.views import KindLike, View
from steersman.controller.targets import Scope
from steersman.objects import Key, Kind, Object, PartialObjectMetadata, Unstructured, kind_name

T = TypeVar("T")
ObjectT = TypeVar("ObjectT", bound=Object)

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


@overload
def controller_for(
    kind: type[ObjectT], *, name: str = ..., namespaced: bool | None = ..., register: Register | None = ...
) -> ControllerBuilder[ObjectT]: ...
@overload
def controller_for(
    kind: Kind, *, name: str = ..., namespaced: bool | None = ..., register: Register | None = ...
) -> ControllerBuilder[Unstructured]: ...


def controller_for(
    kind: KindLike, *, name: str = "", namespaced: bool | None = None, register: Register | None = None
) -> ControllerBuilder[Any]:
    """Begin a controller that reconciles objects of a kind; ``run_with`` completes it and returns its blueprint.

    ```python
    blueprint = (
        controller_for(Site)
        .when(generation_changed())
        .owns(Deployment)
        .watches(Secret, map=sites_using)
        .options(concurrency=16)
        .run_with(reconcile)
    )
    manager.add(blueprint)
    ```

    ``manager.controller(Site)`` begins the same and adds the blueprint to the manager. ``name`` defaults to the kind in lower
    case. ``namespaced`` is only for a `Kind`: a class declares it. ``register`` is called with the complete blueprint.
    """
    return ControllerBuilder(kind, name=name, namespaced=namespaced, register=register)


class Register(Protocol):
    """Accepts a complete blueprint, as a manager does."""

    def __call__(self, blueprint: Blueprint, /) -> None:
        """Accept the blueprint."""
        ...


class ControllerBuilder(Generic[T]):
    """A controller under construction; `run_with` completes it."""

    def __init__(
        self, kind: KindLike, *, name: str = "", namespaced: bool | None = None, register: Register | None = None
    ) -> None:
        check_kind(kind, "controller")
        self._primary = kind
        self._name = name or kind_name(kind).lower()
        if not _NAME.fullmatch(self._name):
            raise ValueError(
                f"controller name {self._name!r}: it becomes part of metrics and logs; use lower-case letters, digits, '-' and '.'"
            )
        if isinstance(kind, Kind):
            self._namespaced = namespaced
        else:
            declared = kind.__resource__.namespaced
            if namespaced not in {None, declared}:
                raise ValueError(
                    f"controller({kind_name(kind)}): the class declares namespaced={declared}; leave it out here"
                )
            self._namespaced = declared
        self._register = register
        self._own: WatchedKind | None = None
        self._watches: list[WatchedKind] = []
        self._sources: list[Source] = []
        self._options = ControllerOptions()
        self._complete = False

    def when(self, predicate: Predicate, *, resync: float | None = RESYNC) -> Self:
        """React only to these events of the reconciled kind. Objects present at the start must pass too.

        ``resync`` is that of `options`, next to a predicate. It takes precedence.
        """
        if self._own is not None:
            raise ValueError(f"{self._where('when')} was already called; combine predicates with & and |")
        self._own = WatchedKind(
            kind=self._primary,
            mapper=same_object,
            predicate=_checked(predicate, self._where("when")),
            resync=_seconds(resync, self._where("when")),
            local=True,
        )
        return self

    def owns(
        self, kind: KindLike, *, when: Predicate | None = None, any_owner: bool = False, metadata_only: bool = False
    ) -> Self:
        """Also reconcile the owner when an object that it owns changes.

        ``any_owner`` includes owners that do not control the object.
        """
        where = self._where("owns", kind)
        self._check_reach(kind, where)
        if any(watch.kind == kind and watch.words == "owned" for watch in self._watches):
            raise ValueError(f"{where} was already called for this kind; remove one of the calls")
        mapper = partial(Owners, self._primary, namespaced=self._is_namespaced(where), any_owner=any_owner)
        self._watches.append(
            WatchedKind(
                kind=kind,
                mapper=mapper,
                words="owned",
                predicate=_checked(when, where),
                metadata_only=metadata_only,
                local=True,
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
        optional: bool = ...,
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
        optional: bool = ...,
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
        optional: bool = ...,
    ) -> Self: ...

    def watches(
        self,
        kind: KindLike,
        *,
        map: MapFunction[Any] | Through | None = None,  # noqa: A002 - the customary name
        when: Predicate | None = None,
        metadata_only: bool = False,
        resync: float | None = None,
        optional: bool = False,
    ) -> Self:
        """Also reconcile the objects that ``map`` returns when an object of this kind changes.

        ``map`` is a function from a `View` to keys, called with the old and the new state, or `owners_through`. If it
        has a second parameter, it also gets the `Stores` for lookups. With ``metadata_only`` the view's object is a
        `PartialObjectMetadata`, whatever kind the function declares: only key, labels and metadata are available.
        With ``optional``, the controller also works while the server does not serve the kind.
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
            words = "owners through " + ", ".join(kind_name(between) for between in through)
        else:
            function = function_mapper(map, where, scope=Scope(kind_name(self._primary), self._namespaced))
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
                optional=optional,
                local=bool(through),
            )
        )
        return self

    def refers_to(
        self,
        kind: KindLike,
        *,
        by: Callable[[View[T]], Iterable[Key | str] | Key | str | None],
        when: Predicate | None = None,
        metadata_only: bool = False,
        optional: bool = False,
    ) -> Self:
        """Cache only the objects of this kind to which the reconciled ones refer, and reconcile these when one changes.

        ``by`` is a function from a `View` of the reconciled object to what it refers to: names in its namespace, or
        keys. It is called at each change of the object, must depend on nothing else, and may return None.
        If this controller or another also owns or watches the kind, all of it is cached.
        """
        where = self._where("refers_to", kind)
        if any(watch.kind == kind and watch.references is not None for watch in self._watches):
            raise ValueError(f"{where} was already called for this kind; return all references from one function")
        function = reference_function(by, where, kind_name(self._primary))
        self._watches.append(
            WatchedKind(
                kind=kind,
                mapper=partial(Referring, self._primary, function),
                words="referred to by " + getattr(by, "__name__", "a function"),
                predicate=_checked(when, where),
                metadata_only=metadata_only,
                optional=optional,
                references=function,
            )
        )
        return self

    def on(self, source: Source) -> Self:
        """Also reconcile the objects that another source names, such as a `ChannelSource`."""
        if isinstance(source, type) or not inspect.iscoroutinefunction(getattr(source, "run", None)):
            raise TypeError(
                f"{self._where('on')}: {source!r} is not a source; write .on(ChannelSource('name')), or pass an object "
                "with async def run(self, emit, started)"
            )
        if any(present is source for present in self._sources):
            raise ValueError(f"{self._where('on')}: source {source.name} was already added")
        self._sources.append(source)
        return self

    def options(
        self,
        *,
        concurrency: int = ControllerOptions().concurrency,
        timeout: float | None = ControllerOptions().timeout,
        queue: QueueOptions | None = None,
        resync: float | None = RESYNC,
    ) -> Self:
        """Set how the controller runs: ``.options(concurrency=16, timeout=60)``. A second call replaces all options.

        - ``concurrency`` is how many objects are reconciled at once. One object is never reconciled twice at once.
        - ``timeout`` is the seconds for one reconcile; a longer one is cancelled and counts as an error. None: no limit.
        - ``queue`` sets the backoff of failures; see `QueueOptions`.
        - ``resync`` queues all objects of the reconciled kind with low priority every so many seconds, give or take a tenth,
          even if nothing changed. None or 0: never.
        """
        self._options = ControllerOptions(
            concurrency=concurrency, timeout=timeout, queue=queue or QueueOptions(), resync=resync
        )
        return self

    def run_with(self, reconciler: Reconciler[T] | ReconcileFunction) -> Blueprint:
        """Complete the controller with its reconciler.

        That is an object with ``async def reconcile(self, ctx, request)``, or such a function.
        """
        where = self._where("run_with")
        if self._complete:
            raise ValueError(f"{where} was already called; begin another controller for another reconciler")
        checked = _check_reconciler(reconciler, self._primary, where)
        self._complete = True
        own = self._own or WatchedKind(kind=self._primary, mapper=same_object, resync=RESYNC, local=True)
        if own.resync == RESYNC:
            own = msgspec.structs.replace(own, resync=self._options.resync or None)
        blueprint = Blueprint(
            name=self._name,
            primary=self._primary,
            watches=(own, *self._watches),
            sources=tuple(self._sources),
            reconciler=checked,
            options=self._options,
            namespaced=self._namespaced,
        )
        if self._register is not None:
            self._register(blueprint)
        return blueprint

    @property
    def is_complete(self) -> bool:
        """Whether `run_with` was called."""
        return self._complete

    @property
    def kind_name(self) -> str:
        """The name of the reconciled kind."""
        return kind_name(self._primary)

    def _where(self, method: str, kind: object = None) -> str:
        place = f"controller({kind_name(self._primary)}).{method}"
        if kind is None:
            return place
        check_kind(kind, place)
        return f"{place}({kind_name(cast('KindLike', kind))})"

    def _is_namespaced(self, where: str) -> bool:
        if self._namespaced is None:
            name = kind_name(self._primary)
            raise ValueError(f"{where}: is {name} namespaced? Declare it: controller_for(Kind(...), namespaced=True)")
        return self._namespaced

    def _check_reach(self, kind: KindLike, where: str) -> None:
        """Reject an ownership that Kubernetes does not allow: its garbage collector would delete the owned object."""
        if not isinstance(kind, Kind) and not kind.__resource__.namespaced and self._is_namespaced(where):
            name, primary = kind_name(kind), kind_name(self._primary)
            raise ValueError(
                f"{where}: a {primary} is namespaced and cannot own a {name}, which is cluster-scoped; "
                f"label the {name} and write .watches({name}, map=function)"
            )


def _checked(predicate: Predicate | None, where: str) -> Predicate | None:
    if predicate is not None and not isinstance(predicate, Predicate):  # pyright: ignore[reportUnnecessaryIsInstance]
        hint = "call it: when=generation_changed()" if inspect.isfunction(predicate) else "write when=when(function)"
        raise TypeError(f"{where}: {predicate!r} is not a predicate; for your own use when(function), or {hint}")
    return predicate


def _seconds(resync: float | None, where: str) -> float | None:
    no_timedelta(resync, f"{where}: resync")
    if resync is not None and not 0 <= resync < float("inf"):
        raise ValueError(f"{where}: resync must be a number of seconds, or None or 0 for never (got {resync})")
    return resync or None


class _FunctionReconciler:
    """A function as a reconciler."""

    def __init__(self, function: ReconcileFunction) -> None:
        self._function = function

    async def reconcile(self, ctx: Context, request: Request) -> Outcome:
        return await self._function(ctx, request)


def _check_reconciler(reconciler: object, primary: KindLike, where: str) -> Reconciler[Any]:
    name = getattr(reconciler, "__name__", type(reconciler).__name__)
    if isinstance(reconciler, type):
        raise TypeError(f"{where}: {name} is a class; pass an instance: run_with({name}())")
    method = getattr(reconciler, "reconcile", None)
    if method is None and callable(reconciler):
        _check_call(reconciler, f"async def {name}(ctx, request)", where)
        return _FunctionReconciler(cast("ReconcileFunction", reconciler))
    if inspect.iscoroutine(reconciler):
        reconciler.close()
        raise TypeError(f"{where}: {name} was called; pass the function itself: run_with({name})")
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
    if inspect.isasyncgenfunction(function):
        raise TypeError(
            f"{where}: it yields, but a reconcile returns one outcome; write return Done() instead of yield Done()"
        )
    if not (inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)):
        raise TypeError(
            f"{where}: it is not async; write {write}, and call blocking code with await asyncio.to_thread(...)"
        )
    try:
        inspect.signature(function).bind(object(), object())
    except TypeError as error:
        raise TypeError(f"{where}: it cannot be called with a context and a request ({error}); write {write}") from None


def _declared_kind(cls: type) -> object:
    """The X of a class that derives from ``Reconciler[X]``."""
    for parent in cls.__mro__:
        for declared in getattr(parent, "__orig_bases__", ()):
            arguments = get_args(declared)
            if get_origin(declared) is Reconciler and arguments and isinstance(arguments[0], type):
                return arguments[0]
    return None
