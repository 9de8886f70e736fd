"""Operators that are one function: from a resource to its children, or a single state that returns a step.

Guarantees
- The decorated function stays callable, so a test needs no server.
- Everything else follows from the return value: Steersman applies, corrects and prunes the children, waits for them, and
  reports in the condition Ready.
- A mistake raises `TypeError` and says what to write: at the decorator, or in the reconcile for a wrong return value.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NoReturn, ParamSpec, TypeAlias, TypedDict, TypeVar, Unpack, cast

import msgspec

from steersman.controller import Blueprint, ControllerBuilder, Done, KindLike
from steersman.objects import Object, Unstructured, kind_name
from steersman.patterns.children import ChildKind, Children, Outputs
from steersman.patterns.machine.definition import Machine, StateFunction
from steersman.patterns.machine.graph import MachineGraph
from steersman.patterns.machine.signatures import (
    check_options,
    check_parameter,
    check_state,
    first_line,
    place_of,
    shown,
)
from steersman.patterns.machine.steps import Failed, Step, Wait
from steersman.patterns.reconciler import blueprint_of

T = TypeVar("T", bound=Object)
P = ParamSpec("P")
R = TypeVar("R")

#: The return value of a generating function: children, or phases of children. Each phase is ready before the next is applied.
Generated: TypeAlias = Sequence[Object | Unstructured] | Sequence[Sequence[Object | Unstructured]]
GenerateFunction: TypeAlias = Callable[[T], "Generated | Awaitable[Generated]"]
#: A single state: declares children and returns a step.
ReconcileFunction: TypeAlias = Callable[[T, Outputs], Awaitable[Step]]
CleanUpFunction: TypeAlias = Callable[[T, Outputs], Awaitable[Done | Wait | Failed]]


class OperatorOptions(TypedDict, total=False):
    """The options of an operator that is one function."""

    #: Kinds that an earlier version produced: Steersman deletes the children that are left of them.
    retired: Iterable[KindLike | ChildKind]
    #: The controller's name; the kind's name by default.
    name: str
    #: Earlier names of the controller: it takes over their conditions, status fields and finalizers.
    formerly: Iterable[str]
    #: The condition that it sets, for a second operator of the same kind. On another program's kind it sets none, unless this
    #: names one with a domain, such as "example.com/Ready".
    ready: str
    #: The name of its finalizer, if it needs one.
    finalizer: str
    #: Finalizers that an earlier version set under other names: removed together with its own.
    retired_finalizers: Iterable[str]
    #: When the object is deleted, delete the phases in reverse order, each after the later ones are gone.
    ordered_deletion: bool
    #: Adds watches or sets options: ``declare=lambda controller: controller.options(concurrency=8)``.
    declare: Callable[[ControllerBuilder[Any]], Any]


class Operator(Generic[P, R]):
    """A decorated function. Calling it calls the function; adding it to a manager runs it as a controller."""

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
        """The operator as data, for diagrams."""
        return self._machine.graph

    @property
    def children(self) -> Children:
        """The kinds of its children; a test without a server passes them to `Outputs`."""
        return self._machine.children

    def blueprint(self) -> Blueprint:
        """The controller that runs it; ``manager.add(...)`` calls this."""
        return blueprint_of(self._machine)


class GenerateOperator(Operator[P, R]):
    """A decorated function from a resource to its children."""

    async def declare(self, obj: Object) -> Outputs:
        """Run the function for an object and check its children as a reconcile would, without a server: for tests."""
        out = Outputs(obj, self.children, state=self.machine.first.name)
        await self._machine.functions[out.state](obj, out)
        return out

    if not TYPE_CHECKING:  # a type checker reports the attribute

        @property
        def finalizer(self) -> NoReturn:
            """A generator has none: raises an AttributeError that says what to write."""
            name = self.machine.name
            raise AttributeError(
                f"@generates has no finalizer: write @reconciles over async def {name}(obj, out), which declares the children"
                f" with out.apply(child), and @{name}.finalizer"
            )


class ReconcileOperator(Operator[P, R]):
    """A decorated function of one state, optionally with a finalizer."""

    def finalizer(self, function: CleanUpFunction[Any]) -> CleanUpFunction[Any]:
        """Register the function that cleans up before the object is removed: ``@site.finalizer``."""
        name = _name(function)
        where = f"@{self.machine.name}.finalizer, {name}"
        check_state(function, where, f"async def {name}(obj, out) -> Done | Wait")
        if self._machine.clean_up is not None:
            raise TypeError(
                f"{where}: {self.machine.finalizer} is already its finalizer; write one function that calls the other"
            )
        self._machine.clean_up = function
        self._machine.graph = msgspec.structs.replace(
            self._machine.graph, finalizer=name, finalizer_words=first_line(function)
        )
        return function


def generates(
    kind: type[T], *, children: Iterable[KindLike | ChildKind], **options: Unpack[OperatorOptions]
) -> Callable[[Callable[[T], R]], GenerateOperator[[T], R]]:
    """Make an operator of a function, async or not, from a resource to its children.

    ```python
    @generates(Site, children=(Deployment, Service))
    def site_operator(site: Site) -> list[Deployment | Service]:
        return [deployment_for(site), service_for(site)]

    manager.add(site_operator)
    ```

    Steersman applies the returned children, restores them when they are changed, and deletes children that the function no longer
    returns. The resource is Ready when all children are. A list of lists, such as ``[[claim], [deployment, service]]``,
    defines phases: each phase is ready before the next is applied.
    """
    where = place_of("generates", kind)
    _check_options(options, where)
    declared = Children(kind, children, retired=options.get("retired", ()), where=where)

    def decorate(function: Callable[[T], R]) -> GenerateOperator[[T], R]:
        _check_generator(function, where)
        check_parameter(function, 0, kind, f"{where}: {_name(function)}")
        state = _generating(cast("GenerateFunction[Any]", function), declared, f"{where}: {_name(function)}")
        return GenerateOperator(function, _machine(kind, declared, state, function, options))

    return decorate


def reconciles(
    kind: type[T], *, children: Iterable[KindLike | ChildKind] = (), **options: Unpack[OperatorOptions]
) -> Callable[[Callable[[T, Outputs], Awaitable[Step]]], ReconcileOperator[[T, Outputs], Awaitable[Step]]]:
    """Make an operator of one async function that declares children and returns a step.

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

    def decorate(function: Callable[[T, Outputs], Awaitable[Step]]) -> ReconcileOperator[[T, Outputs], Awaitable[Step]]:
        _check_function(function, where, "async def site(site, out) -> Done | Wait")
        name = _name(function)
        check_state(function, f"{where}: {name}", f"async def {name}({kind.__name__.lower()}, out) -> Done | Wait")
        check_parameter(function, 0, kind, f"{where}: {name}")
        return ReconcileOperator(function, _machine(kind, declared, function, function, options))

    return decorate


def _machine(
    kind: type[Object], children: Children, state: StateFunction, function: Callable[..., Any], options: OperatorOptions
) -> Machine:
    return Machine.of(
        kind,
        children,
        state,
        name=options.get("name", ""),
        formerly=options.get("formerly", ()),
        title=_name(function),
        words=first_line(function),
        ready=options.get("ready", ""),
        finalizer=options.get("finalizer", ""),
        retired_finalizers=options.get("retired_finalizers", ()),
        ordered_deletion=options.get("ordered_deletion", False),
        declare=options.get("declare"),
    )


# the state of a generating function


def _generating(function: GenerateFunction[Any], children: Children, where: str) -> StateFunction:
    async def generate(obj: Any, out: Outputs) -> Done:
        returned: object = function(obj)
        if inspect.isawaitable(returned):
            returned = await returned
        before: tuple[Object | Unstructured, ...] = ()
        for phase in _phases(returned, where):
            for child in phase:
                if children.known(child) is None:
                    raise _undeclared(child, children, where)
                if before:
                    out.apply(child, after=before)
                else:
                    out.apply(child)
            before = phase or before
        return Done()

    return generate


def _phases(returned: object, where: str) -> Iterator[tuple[Object | Unstructured, ...]]:
    """The phases that a function returned; a plain list of children is one phase."""
    _check_list(returned, where)
    items = list(cast("Iterable[object]", returned))
    nested = [_is_phase(item) for item in items]
    if any(nested) and not all(nested):
        raise TypeError(
            f"{where} returned both objects and lists; for phases, return only lists: [[first], [second, third]]"
        )
    for phase in cast("list[Sequence[object]]", items) if any(nested) else [items]:
        yield tuple(_checked(item, where) for item in phase)


def _is_phase(item: object) -> bool:
    # Objects first: asking an abstract class is slow, and nearly every item is an object.
    return not isinstance(item, (Object, Unstructured, str, bytes)) and isinstance(item, Sequence)


def _check_list(returned: object, where: str) -> None:
    if returned is None:
        raise TypeError(f"{where} returned None; return a list of children, [] if there are none")
    if isinstance(returned, (Object, Unstructured)):
        raise TypeError(f"{where} returned one {returned.kind} instead of a list; return [{returned.kind}(...)]")
    if not isinstance(returned, Iterable) or isinstance(returned, str | bytes | Mapping):
        returned = cast("object", returned)
        raise TypeError(f"{where} returned {shown(returned)} instead of a list of children")


def _checked(child: object, where: str) -> Object | Unstructured:
    if isinstance(child, (Object, Unstructured)):
        return child
    if child is None:
        # A helper without a return statement yields None: ignoring it would prune children.
        raise TypeError(f"{where} returned None in its list; leave out children that should not exist")
    if isinstance(child, type):
        raise TypeError(
            f"{where} returned the class {child.__name__} in its list; create an object: {child.__name__}(...)"
        )
    if isinstance(child, Sequence) and not isinstance(child, str | bytes):
        raise TypeError(
            f"{where} returned lists that are nested too deeply; phases are one level: [[first], [second, third]]"
        )
    raise TypeError(
        f"{where} returned {shown(child)} in its list, which is not an object; build one of steersman.kinds or of your own types,"
        " or Unstructured({...})"
    )


def _undeclared(child: Object | Unstructured, children: Children, where: str) -> TypeError:
    names = [kind_name(produced.kind) for produced in children.kinds]
    there = f"({', '.join(names)}{',' if len(names) == 1 else ''})"
    return TypeError(
        f"{where} returned {child.kind} {child.key}, and {child.kind} is not in children={there}; "
        f"write children=({', '.join([*names, child.kind])}{',' if not names else ''})"
    )


# checks at the decorator


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
            f"{where}: {name}{_parameters(function)} cannot be called with the resource alone; write def"
            f" {name}(resource), or use @reconciles for a function that needs a client or outputs"
        ) from None


def _check_function(function: object, where: str, write: str) -> None:
    if not inspect.isroutine(function):
        what = f"class {function.__name__}" if isinstance(function, type) else shown(function)
        raise TypeError(f"{where} decorates a function, but {what} is not one: write {write}")


def _parameters(function: object) -> str:
    return f"({', '.join(inspect.signature(cast('Callable[..., Any]', function)).parameters)})"


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", repr(function))
