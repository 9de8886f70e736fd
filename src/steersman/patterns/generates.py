"""Operators that are one function: from a resource to its children, or one state with steps.

Guarantees
- The decorated function stays what it was: called, it does what it did before, so that a test needs no server.
- Everything else follows from what it returns: children are applied, kept and pruned, waited for, and reported in the
  condition Ready.
- A mistake is raised where it is made, as a `TypeError` that says what to write: where the function is decorated, or, of
  what it returns, in the reconcile.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, ParamSpec, TypeAlias, TypedDict, TypeVar, Unpack, cast

import msgspec

from steersman.controller import ControllerBuilder, ControllerPlan, Done, KindLike
from steersman.controller.mappers import kind_name
from steersman.objects import Object, Unstructured
from steersman.patterns.children import ChildKind, Children
from steersman.patterns.graph import MachineGraph
from steersman.patterns.machine import Machine, StateFunction
from steersman.patterns.outputs import Outputs
from steersman.patterns.signatures import check_options, check_state, first_line
from steersman.patterns.steps import Failed, Step, Wait

T = TypeVar("T", bound=Object)
P = ParamSpec("P")
R = TypeVar("R")

#: What a generating function returns: children, or phases of children of which each is ready before the next is made.
Generated: TypeAlias = Sequence[Object | Unstructured] | Sequence[Sequence[Object | Unstructured]]
GenerateFunction: TypeAlias = Callable[[T], "Generated | Awaitable[Generated]"]
#: One state: declares children, and says how far it is.
ReconcileFunction: TypeAlias = Callable[[T, Outputs], Awaitable[Step]]
CleanUpFunction: TypeAlias = Callable[[T, Outputs], Awaitable[Done | Wait | Failed]]


class OperatorOptions(TypedDict, total=False):
    """What can be said of an operator of one function."""

    #: Kinds that an earlier version made and that may still be there: what is left of them is deleted.
    retired: Iterable[KindLike | ChildKind]
    #: The controller's; the name of the kind unless said.
    name: str
    #: The condition that it sets, for a second operator of the same kind; on a kind of somebody else's none is set unless
    #: one with a domain is named, such as "example.com/Ready".
    ready: str
    #: Its finalizer, if it needs one.
    finalizer: str
    #: Finalizers that an earlier version set under another name: they go as its own does.
    retired_finalizers: Iterable[str]
    #: Delete the phases in reverse order when the object goes, each after those that came later are gone.
    ordered_deletion: bool
    #: Watches more, or sets options: ``declare=lambda controller: controller.options(concurrency=8)``.
    declare: Callable[[ControllerBuilder[Any]], Any]


class Operator(Generic[P, R]):
    """A decorated function: called, it is the function; added to a manager, it is a controller."""

    def __init__(self, function: Callable[P, R], machine: Machine) -> None:
        self._function = function
        self._machine = machine
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        """Call the function."""
        return self._function(*arguments, **named)

    def __repr__(self) -> str:
        return f"<operator {self.machine.name} of {self._machine.kind.__name__}>"

    @property
    def machine(self) -> MachineGraph:
        """What it does, as data: for diagrams."""
        return self._machine.graph

    @property
    def children(self) -> Children:
        """The kinds that it makes; a test without a server gives them to `Outputs`."""
        return self._machine.children

    def plan(self) -> ControllerPlan:
        """The controller that runs it; ``manager.add(...)`` asks for it."""
        return self._machine.plan()


class GenerateOperator(Operator[P, R]):
    """A decorated function from a resource to its children."""

    async def declare(self, obj: Object) -> Outputs:
        """What it declares for an object, checked as a reconcile would, without a server: for tests."""
        out = Outputs(obj, self.children, phase=self.machine.first.name)
        await self._machine.functions[out.phase](obj, out)
        return out


class ReconcileOperator(Operator[P, R]):
    """A decorated function of one state; it may have a finalizer."""

    def finalizer(self, function: CleanUpFunction[Any]) -> CleanUpFunction[Any]:
        """Make a function the one that cleans up before the object goes: ``@site.finalizer``."""
        name = _name(function)
        where = f"@{self.machine.name}.finalizer, {name}"
        check_state(function, where, f"async def {name}(obj, out) -> Done | Wait")
        if self._machine.clean_up is not None:
            raise TypeError(
                f"{where}: {self.machine.finalizer} is its finalizer already; write one, which calls the other"
            )
        self._machine.clean_up = function
        self._machine.graph = msgspec.structs.replace(
            self._machine.graph, finalizer=name, finalizer_words=first_line(function)
        )
        return function


def generates(
    kind: type[T], *, children: Iterable[KindLike | ChildKind], **options: Unpack[OperatorOptions]
) -> Callable[[Callable[[T], R]], GenerateOperator[[T], R]]:
    """Make an operator of a function from a resource to its children; async or not.

    ```python
    @generates(Site, children=(Deployment, Service))
    def site_operator(site: Site) -> Sequence[Object]:
        return [deployment_for(site), service_for(site)]

    manager.add(site_operator)
    ```

    What it returns is made, corrected when somebody changes it, deleted when it is returned no longer, and waited for: the
    resource is Ready when all of it is. ``[[claim], [deployment, service]]`` are phases: each is ready before the next.
    """
    where = place_of("generates", kind)
    _check_options(options, where)
    declared = Children(kind, children, retired=options.get("retired", ()), where=where)

    def decorate(function: Callable[[T], R]) -> GenerateOperator[[T], R]:
        _check_generator(function, where)
        state = _generating(cast("GenerateFunction[Any]", function), declared, f"{where}: {_name(function)}")
        return GenerateOperator(function, _machine(kind, declared, state, function, options))

    return decorate


def reconciles(
    kind: type[T], *, children: Iterable[KindLike | ChildKind] = (), **options: Unpack[OperatorOptions]
) -> Callable[[Callable[[T, Outputs], Awaitable[Step]]], ReconcileOperator[[T, Outputs], Awaitable[Step]]]:
    """Make an operator of one async function that declares children and says how far it is.

    ```python
    @reconciles(Site, children=(Deployment, Service))
    async def site(site: Site, out: Outputs) -> Done | Wait:
        out.apply(deployment_for(site), recreate=True)
        return Done()
    ```
    """
    where = place_of("reconciles", kind)
    _check_options(options, where)
    declared = Children(kind, children, retired=options.get("retired", ()), where=where)

    def decorate(
        function: Callable[[T, Outputs], Awaitable[Step]],
    ) -> ReconcileOperator[[T, Outputs], Awaitable[Step]]:
        _check_function(function, where, "async def site(site, out) -> Done | Wait")
        name = _name(function)
        check_state(function, f"{where}: {name}", f"async def {name}({_noun(kind)}, out) -> Done | Wait")
        return ReconcileOperator(function, _machine(kind, declared, function, function, options))

    return decorate


def _machine(
    kind: type[Object],
    children: Children,
    state: StateFunction,
    function: Callable[..., Any],
    options: OperatorOptions,
) -> Machine:
    return Machine.of(
        kind,
        children,
        state,
        name=options.get("name", ""),
        title=_name(function),
        words=first_line(function),
        ready=options.get("ready", ""),
        finalizer=options.get("finalizer", ""),
        retired_finalizers=options.get("retired_finalizers", ()),
        ordered_deletion=options.get("ordered_deletion", False),
        declare=options.get("declare"),
    )


# a function from a resource to its children, as a state


def _generating(function: GenerateFunction[Any], children: Children, where: str) -> StateFunction:
    async def generate(obj: Any, out: Outputs) -> Done:
        returned: object = function(obj)
        if inspect.isawaitable(returned):
            returned = await returned
        before: tuple[Object | Unstructured, ...] = ()
        for phase in _phases(returned, where):
            for each in phase:
                if children.known(each) is None:
                    raise _undeclared(each, children, where)
                if before:
                    out.apply(each, after=before)
                else:
                    out.apply(each)
            before = phase or before
        return Done()

    return generate


def _phases(returned: object, where: str) -> Iterator[tuple[Object | Unstructured, ...]]:
    """The phases that a function returned, one if it returned children."""
    _check_list(returned, where)
    items = list(cast("Iterable[object]", returned))
    nested = [isinstance(each, Sequence) and not isinstance(each, str | bytes) for each in items]
    if any(nested) and not all(nested):
        raise TypeError(
            f"{where} returned objects beside lists of objects; for phases write lists alone, [[first], [second, third]]"
        )
    for phase in cast("list[Sequence[object]]", items) if any(nested) else [items]:
        yield tuple(_checked(each, where) for each in phase)


def _check_list(returned: object, where: str) -> None:
    if returned is None:
        raise TypeError(f"{where} returned nothing; return the list of the children, [] if there are none")
    if isinstance(returned, Object | Unstructured):
        raise TypeError(f"{where} returned one {returned.kind} and no list; return [{returned.kind}(...)]")
    if not isinstance(returned, Iterable) or isinstance(returned, str | bytes | Mapping):
        returned = cast("object", returned)
        raise TypeError(f"{where} returned {_shown(returned)} and no list; return the list of the children")


def _checked(child: object, where: str) -> Object | Unstructured:
    if isinstance(child, Object | Unstructured):
        return child
    if child is None:
        # who forgets a return in a function of his own would otherwise see children vanish
        raise TypeError(f"{where} returned None in its list; leave out what is not to be there")
    if isinstance(child, type):
        raise TypeError(f"{where} returned the class {child.__name__} in its list; build an object of it")
    if isinstance(child, Sequence) and not isinstance(child, str | bytes):
        raise TypeError(f"{where} returned lists in lists in a list; phases are one level: [[first], [second, third]]")
    raise TypeError(f"{where} returned {_shown(child)} in its list, which is no object")


def _undeclared(child: Object | Unstructured, children: Children, where: str) -> TypeError:
    names = [kind_name(each.kind) for each in children.kinds]
    there = f"({', '.join(names)}{',' if len(names) == 1 else ''})"
    return TypeError(
        f"{where} returned {child.kind} {child.key}, and {child.kind} is not among children={there}; "
        f"write children=({', '.join([*names, child.kind])}{',' if not names else ''})"
    )


# where it is decorated


def _check_options(options: Mapping[str, object], where: str) -> None:
    known = ("children", *OperatorOptions.__annotations__)
    check_options([name for name in options if name not in known], known, where)


def _check_generator(function: object, where: str) -> None:
    _check_function(function, where, "def site_operator(site)")
    name = _name(cast("Callable[..., Any]", function))
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{where}: {name} yields its children; return them in a list")
    try:
        inspect.signature(cast("Callable[..., Any]", function)).bind(object())
    except TypeError:
        raise TypeError(
            f"{where}: {name}{_parameters(function)} cannot be called with the resource alone; write def {name}(resource)."
            " Who needs a client or outputs writes @reconciles"
        ) from None


def _check_function(function: object, where: str, write: str) -> None:
    if not inspect.isroutine(function):
        what = f"class {function.__name__}" if isinstance(function, type) else _shown(function)
        raise TypeError(f"{where} stands above a function; {what} is none: write {write}")


def place_of(decorator: str, kind: object, *, more: str = "children=(...)") -> str:
    """How errors call a place where something is decorated; `TypeError` unless a kind was named."""
    if not (isinstance(kind, type) and hasattr(kind, "__resource__")):
        if inspect.isroutine(kind):
            raise TypeError(f"@{decorator} needs to be told of which kind; write @{decorator}(Site, {more})")
        raise TypeError(f"@{decorator}({_shown(kind)}) needs a kind, a class declared with group= and version=")
    return f"@{decorator}({kind.__name__})"


def _parameters(function: object) -> str:
    return f"({', '.join(inspect.signature(cast('Callable[..., Any]', function)).parameters)})"


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", repr(function))


def _noun(kind: type) -> str:
    return kind.__name__.lower()


def _shown(value: object) -> str:
    if isinstance(value, type):
        return value.__name__
    return repr(value)[:80]
