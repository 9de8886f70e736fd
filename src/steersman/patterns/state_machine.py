"""State machines: each state is a method that owns a condition, and the steps between states are checked data.

Guarantees
- A mistake raises `TypeError` where the class is defined and says what to write instead.
- No current state is stored: every reconcile starts with the first state and reads the cluster.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import (
    Any,
    ClassVar,
    Generic,
    NamedTuple,
    Never,
    Protocol,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    get_args,
    get_origin,
    overload,
)

import msgspec

from steersman.controller import Blueprint, ControllerBuilder, Done, KindLike, Source
from steersman.objects import Object
from steersman.patterns.children import ChildKind, Children, Outputs
from steersman.patterns.external import External
from steersman.patterns.machine.condition_ownership import check_shared, ready_of
from steersman.patterns.machine.definition import Machine
from steersman.patterns.machine.graph import MachineGraph, StateNode, check_graph, check_state_name
from steersman.patterns.machine.signatures import check_object, check_options, check_state, first_line, steps_of
from steersman.patterns.machine.steps import Failed, Step, Wait
from steersman.patterns.reconciler import blueprint_of

T = TypeVar("T", bound=Object)
ObjectT = TypeVar("ObjectT", bound=Object)
MachineT = TypeVar("MachineT", bound="StateMachine[Any]")
StepT = TypeVar("StepT", bound=Step)
LastStepT = TypeVar("LastStepT", bound=Done | Wait | Failed)
Same = TypeVar("Same")

#: A state as its class has it: a method of a machine that takes an object of the machine's kind.
StateMethod: TypeAlias = Callable[[MachineT, ObjectT, Outputs], Coroutine[Any, Any, StepT]]

_MARK = "__steersman_state__"


#: The names that every machine defines itself.
_RESERVED = frozenset({"children", "declare", "kind", "machine", "blueprint"})


class _Mark(NamedTuple):
    """The options that a decorator stored on a method."""

    finalizer: bool
    condition: str = ""
    to: tuple[str, ...] = ()


def _same(machine: Same, /) -> Same:
    return machine


class StateDecorator(Protocol):
    """Makes a method a state."""

    def __call__(
        self,
        method: StateMethod[MachineT, ObjectT, StepT],
        # Not to be passed. Its default lets pyright relate the two types: the machine must be a StateMachine[ObjectT].
        of: Callable[[MachineT], StateMachine[ObjectT]] = _same,
        /,
    ) -> StateMethod[MachineT, ObjectT, StepT]:
        """Return the method, marked."""
        ...


@overload
def state(*, condition: str, to: Sequence[str] = ()) -> StateDecorator: ...
@overload
def state(method: Callable[..., Any], /) -> Never: ...


def state(
    method: Callable[..., Any] | None = None, /, *, condition: Any = None, to: Sequence[str] = ()
) -> StateDecorator:
    """Make a method a state: ``@state(condition="StorageReady")``; ``to`` names the states that its `Goto` may name."""
    if method is not None or not isinstance(condition, str):
        raise TypeError('@state needs the name of its condition: write @state(condition="StorageReady")')
    if isinstance(to, str):
        raise TypeError(f'@state(condition="{condition}"): to= must be a tuple of names; write to=("{to}",)')
    given: tuple[object, ...] = (to,) if callable(to) else tuple(to)
    if any(not isinstance(each, str) for each in given):
        names = ", ".join(f'"{getattr(each, "__name__", each)}"' for each in given)
        names += "," if len(given) == 1 else ""
        raise TypeError(f'@state(condition="{condition}"): to= needs the names of states; write to=({names})')
    mark = _Mark(finalizer=False, condition=condition, to=tuple(to))

    def decorate(method: Any, _of: object = None, /) -> Any:
        setattr(method, _MARK, mark)
        return method

    return decorate


def finalizer(
    method: StateMethod[MachineT, ObjectT, LastStepT],
    of: Callable[[MachineT], StateMachine[ObjectT]] = _same,  # noqa: ARG001 - as for StateDecorator
    /,
) -> StateMethod[MachineT, ObjectT, LastStepT]:
    """Make a method the clean-up that runs before the object is removed: ``@finalizer``."""
    setattr(method, _MARK, _Mark(finalizer=True))
    return method


class MachineOptions(TypedDict, total=False):
    """The options of a machine's class; `StateMachine` describes them."""

    children: Iterable[KindLike | ChildKind]
    retired: Iterable[KindLike | ChildKind]
    name: str
    formerly: Iterable[str]
    finalizer: str
    retired_finalizers: Iterable[str]
    ordered_deletion: bool
    ready: str


class StateMachine(Generic[T]):
    """A reconciler made of states: each declares children, has a condition, and says which state is next.

    ```python
    class Cluster(StateMachine[Postgres], children=(StatefulSet, Service)):
        @state(condition="StorageReady")
        async def storage(self, pg: Postgres, out: Outputs) -> Next | Wait: ...

        @state(condition="PrimaryReady")
        async def primary(self, pg: Postgres, out: Outputs) -> Done | Wait: ...

    manager.add(Cluster())
    ```

    Every reconcile starts with the state that is defined first, and `Next` continues with the one defined after it. No state is
    stored.

    - ``children``: the kinds that states declare.
    - ``retired``: kinds that an earlier version declared; Steersman deletes the children that are left.
    - ``ordered_deletion``: when the object is deleted, delete children in the reverse order of states, each after the later ones
      are gone.
    - ``name`` of the controller and ``ready``, the summary condition: both are for a second machine of the same kind.
    - ``formerly``: earlier names of the controller, whose conditions, status fields and finalizers it takes over.
    - ``retired_finalizers``: finalizers that an earlier version set under other names.

    On a kind of another program, Steersman writes no conditions unless ``ready`` and the conditions of the states have a domain:
    ``ready="example.com/Ready"``.
    """

    #: The graph, checked when the class is defined.
    machine: ClassVar[MachineGraph]
    kind: ClassVar[type[Object]]
    children: ClassVar[Children]
    _options: ClassVar[MachineOptions] = {}

    def __init_subclass__(cls, **options: Unpack[MachineOptions]) -> None:
        super().__init_subclass__()
        known = MachineOptions.__annotations__
        check_options([name for name in options if name not in known], known, f"class {cls.__name__}")
        cls._options = {**cls._options, **options}
        kind = _kind_of(cls)
        if isinstance(kind, TypeVar):
            return  # a base class without a kind: its subclasses are checked
        where = f"class {cls.__name__}(StateMachine[{kind.__name__}])"
        cls.kind = kind
        said = cls._options
        graph = _graph_of(cls, kind, said.get("ready", ""), where)
        cls.children = Children(kind, said.get("children", ()), retired=said.get("retired", ()), where=where)
        deletes = said.get("ordered_deletion", False) or cls.children.needs_finalizer
        cls.machine = msgspec.structs.replace(graph, deletes_children=deletes)

    def declare(self, controller: ControllerBuilder[T]) -> None:
        """Override to add watches or set options: ``controller.watches(Secret, map=...).options(concurrency=8)``."""

    def blueprint(self) -> Blueprint:
        """The controller that runs this machine; `Manager.add` calls this."""
        cls, graph, options = type(self), self.machine, self._options
        _separate_externals(self)
        sources = tuple(_sources_of(self))
        if graph.finalizer is None:
            _check_left_behind(cls, sources)
        machine = Machine(
            cls.kind,
            cls.children,
            graph,
            {node.name: getattr(self, node.name) for node in graph.states},
            name=options.get("name", ""),
            formerly=options.get("formerly", ()),
            clean_up=getattr(self, graph.finalizer) if graph.finalizer is not None else None,
            finalizer=options.get("finalizer", ""),
            retired_finalizers=options.get("retired_finalizers", ()),
            ordered_deletion=options.get("ordered_deletion", False),
            sources=sources,
            declare=cast("Callable[[ControllerBuilder[Any]], None]", self.declare),
        )
        return blueprint_of(machine)


def _kind_of(cls: type[StateMachine[Any]]) -> Any:
    """The kind X of a subclass of ``StateMachine[X]``."""
    for parent in cls.__mro__:
        for declared in getattr(parent, "__orig_bases__", ()):
            origin, arguments = get_origin(declared), get_args(declared)
            if not (isinstance(origin, type) and issubclass(origin, StateMachine) and arguments):
                continue
            kind = arguments[0]
            if isinstance(kind, TypeVar) or (isinstance(kind, type) and hasattr(kind, "__resource__")):
                return kind
            name = getattr(kind, "__name__", repr(kind))
            raise TypeError(
                f"class {cls.__name__}: StateMachine[{name}] needs a kind, a class declared with group= and"
                f" version=; {name} is not one"
            )
    raise TypeError(
        f"class {cls.__name__} does not say which kind it reconciles; write class {cls.__name__}(StateMachine[Postgres])"
    )


def _marked(cls: type) -> Iterator[tuple[str, Callable[..., Any], _Mark]]:
    """The decorated methods in the order of their definition, those of base classes first."""
    marked: dict[str, tuple[Callable[..., Any], _Mark]] = {}
    for parent in reversed(cls.__mro__):
        for name, method in vars(parent).items():
            mark = getattr(method, _MARK, None)
            if isinstance(mark, _Mark):
                marked[name] = (method, mark)
            elif name in marked:
                raise TypeError(
                    f"class {cls.__name__}: {name} overrides a state of a base class; decorate it with"
                    " @state(...) too, or rename it"
                )
    for name, (method, mark) in marked.items():
        yield name, method, mark


def _graph_of(cls: type, kind: type[Object], ready: str, where: str) -> MachineGraph:
    written = list(_marked(cls))
    for name, _, _ in written:
        if name in _RESERVED:
            raise TypeError(f"{where}, state {name}: every machine has an attribute {name}; rename the state")
    states = [(name, method, mark) for name, method, mark in written if not mark.finalizer]
    returns = {name: _returns(method, name, where) for name, method, _ in states}
    nodes: list[StateNode] = []
    for position, (name, method, mark) in enumerate(states):
        follows = states[position + 1][0] if position + 1 < len(states) else None
        nodes.append(
            StateNode(
                name=name,
                condition=mark.condition,
                to=mark.to,
                next=follows if "Next" in returns[name] else None,
                words=first_line(method),
                returns=returns[name],
            )
        )
    last = _finalizer_of([(name, method) for name, method, mark in written if mark.finalizer], where)
    for name, method, mark in written:
        check_object(method, kind, f"{where}, {'finalizer' if mark.finalizer else 'state'} {name}")
    ready, reports = ready_of(kind, ready, where)
    graph = MachineGraph(
        name=cls.__name__,
        kind=kind.__name__,
        states=tuple(nodes),
        finalizer=last[0] if last else None,
        finalizer_words=first_line(last[1]) if last else "",
        ready=ready,
        reports=reports,
    )
    check_graph(graph, where)
    check_shared(graph, kind, where)
    return graph


def _returns(method: Callable[..., Any], name: str, where: str) -> frozenset[str]:
    here = f"{where}, state {name}"
    check_state(method, here, f"async def {name}(self, obj, out) -> Next | Wait")
    return steps_of(method, here, example="Next | Wait")


def _finalizer_of(written: list[tuple[str, Callable[..., Any]]], where: str) -> tuple[str, Callable[..., Any]] | None:
    if not written:
        return None
    if len(written) > 1:
        names = " and ".join(name for name, _ in written)
        raise TypeError(f"{where}: {names} are both finalizers; write one that calls the other")
    name, method = written[0]
    here = f"{where}, finalizer {name}"
    check_state_name(name, here)
    check_state(method, here, f"async def {name}(self, obj, out) -> Done | Wait")
    steps = steps_of(method, here, example="Done | Wait")
    if wrong := [step for step in ("Next", "Goto", "RequeueAfter") if step in steps]:
        raise TypeError(
            f"{here}: its annotation has {' and '.join(wrong)}, but no state follows a finalizer; return"
            " Done when everything is cleaned up, Wait until then"
        )
    return name, method


def _check_left_behind(cls: type, sources: Iterable[Source]) -> None:
    """Reject a machine that creates external objects and never deletes them."""
    for source in sources:
        if isinstance(source, External) and not source.keep:
            raise TypeError(
                f"class {cls.__name__}: nothing removes what external {source.name} creates, because the class"
                " has no finalizer; write @finalizer async def clean_up(self, obj, out) -> Done | Wait that"
                " calls remove(obj), or pass keep=True to External(...) if it should outlive the object"
            )


def _separate_externals(machine: object) -> None:
    """Copy each `External` of the class into the instance, so that machines of several managers share no memory."""
    for parent in type(machine).__mro__:
        for name, value in vars(parent).items():
            if isinstance(value, External) and name not in vars(machine):
                setattr(machine, name, cast("External[Any, Any]", value).another())


def _sources_of(machine: object) -> Iterator[Source]:
    """The attributes of an object that are sources, such as an `External`, without duplicates."""
    sources: dict[int, Source] = {}
    places: list[Mapping[str, Any]] = [vars(parent) for parent in reversed(type(machine).__mro__)]
    for place in (*places, vars(machine)):
        for name, value in place.items():
            if place is not vars(machine) and name in vars(machine):
                continue  # the instance has its own copy
            named = isinstance(getattr(value, "name", None), str)
            if named and not inspect.isclass(value) and inspect.iscoroutinefunction(getattr(value, "run", None)):
                sources[id(value)] = cast("Source", value)
    yield from sources.values()
