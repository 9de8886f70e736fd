"""State machines: states are methods, each owns a condition, and what follows is data that is checked.

Guarantees
- What is written wrongly is refused where the class is defined, as a `TypeError` that says what to write instead.
- No current state is stored: every pass begins with the first state and finds out from the world.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, Never, TypeAlias, TypeVar, cast, get_args, get_origin, overload

import msgspec

from steersman.controller import ControllerBuilder, ControllerPlan, Done, KindLike, Source, controller
from steersman.objects import Object
from steersman.patterns.children import ChildKind, Children
from steersman.patterns.external import External
from steersman.patterns.finalizers import check_retired
from steersman.patterns.foreign import check_shared, ready_of
from steersman.patterns.graph import MachineGraph, StateNode, check_graph, check_state_name
from steersman.patterns.outputs import Outputs
from steersman.patterns.signatures import check_options, check_state, first_line, steps_of
from steersman.patterns.steps import Failed, Step, Wait

T = TypeVar("T", bound=Object)
StateT = TypeVar("StateT", bound=Callable[..., Coroutine[Any, Any, Step]])
FinalizerT = TypeVar("FinalizerT", bound=Callable[..., Coroutine[Any, Any, Done | Wait | Failed]])

#: What runs in a state: ``async def storage(pg, out) -> Next | Wait``.
StateFunction: TypeAlias = Callable[[Any, Outputs], Awaitable[Step]]

_MARK = "__steersman_state__"


#: What every machine has.
_RESERVED = frozenset({"children", "declare", "kind", "machine", "plan"})


class _Mark(NamedTuple):
    """What a decorator noted on a method."""

    finalizer: bool
    condition: str = ""
    to: tuple[str, ...] = ()


@overload
def state(*, condition: str, to: Sequence[str] = ()) -> Callable[[StateT], StateT]: ...
@overload
def state(method: Callable[..., Any], /) -> Never: ...


def state(
    method: Callable[..., Any] | None = None, /, *, condition: Any = None, to: Sequence[str] = ()
) -> Callable[[StateT], StateT]:
    """Make a method a state: ``@state(condition="StorageReady")``; ``to`` names where its `Goto` may lead."""
    if method is not None or not isinstance(condition, str):
        raise TypeError('@state needs the name of its condition: write @state(condition="StorageReady")')
    if isinstance(to, str):
        raise TypeError(f'@state(condition="{condition}"): to= are several names; write to=("{to}",)')
    mark = _Mark(finalizer=False, condition=condition, to=tuple(to))

    def decorate(method: StateT) -> StateT:
        setattr(method, _MARK, mark)
        return method

    return decorate


def finalizer(method: FinalizerT) -> FinalizerT:
    """Make a method the one that cleans up before the object goes: ``@finalizer``."""
    setattr(method, _MARK, _Mark(finalizer=True))
    return method


class MachineOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a class of states says beside its states."""

    children: Iterable[KindLike | ChildKind] = ()
    retired: Iterable[KindLike | ChildKind] = ()
    name: str = ""
    finalizer: str = ""
    retired_finalizers: Iterable[str] = ()
    ordered_deletion: bool = False
    ready: str = ""


class Machine:
    """Everything that a pass needs to know, however it was written: a class of states, or one function."""

    def __init__(
        self,
        kind: type[Object],
        children: Children,
        graph: MachineGraph,
        functions: Mapping[str, StateFunction],
        *,
        name: str = "",
        clean_up: StateFunction | None = None,
        finalizer: str = "",
        retired_finalizers: Iterable[str] = (),
        ordered_deletion: bool = False,
        sources: Iterable[Source] = (),
        declare: Callable[[ControllerBuilder[Any]], None] | None = None,
    ) -> None:
        self.kind = kind
        self.children = children
        self.graph = graph
        #: The functions of the states, by name.
        self.functions = dict(functions)
        #: The controller's name.
        self.name = name or kind.__name__.lower()
        self.clean_up = clean_up
        #: The finalizer of the machine, whether it needs one or not.
        self.finalizer = finalizer or finalizer_name(kind, self.name)
        #: Those of earlier versions: they go as ours does, and from objects that stay.
        self.retired_finalizers = check_retired(retired_finalizers, self.finalizer, graph.name)
        self.ordered_deletion = ordered_deletion
        self.sources = tuple(sources)
        self._declare = declare

    @classmethod
    def of(
        cls,
        kind: type[Object],
        children: Children,
        function: StateFunction,
        *,
        name: str = "",
        title: str = "",
        words: str = "",
        ready: str = "",
        finalizer: str = "",
        retired_finalizers: Iterable[str] = (),
        ordered_deletion: bool = False,
        sources: Iterable[Source] = (),
        declare: Callable[[ControllerBuilder[Any]], None] | None = None,
    ) -> Machine:
        """A machine of one state, whose condition is Ready itself; ``title`` is how diagrams and errors call it."""
        title = title or getattr(function, "__name__", kind.__name__)
        ready, reports = ready_of(kind, ready, children.where)
        node = StateNode(name=title, condition=ready, words=words or first_line(function))
        deletes = ordered_deletion or children.needs_finalizer
        graph = MachineGraph(
            name=title,
            kind=kind.__name__,
            states=(node,),
            ready=ready,
            reports=reports,
            deletes_children=deletes,
        )
        return cls(
            kind,
            children,
            graph,
            {title: function},
            name=name,
            finalizer=finalizer,
            retired_finalizers=retired_finalizers,
            ordered_deletion=ordered_deletion,
            sources=sources,
            declare=declare,
        )

    @property
    def externals(self) -> tuple[External[Any, Any], ...]:
        """The sources that look after things of the world outside."""
        return tuple(cast("External[Any, Any]", each) for each in self.sources if isinstance(each, External))

    @property
    def deletes_children(self) -> bool:
        """Whether the machine deletes children itself before the object goes, rather than leaving them to the server."""
        return self.ordered_deletion or self.children.needs_finalizer

    @property
    def needs_finalizer(self) -> bool:
        """Whether something must happen before the object goes."""
        return self.clean_up is not None or self.deletes_children

    @property
    def labels_phases(self) -> bool:
        """Whether children are told apart by the state that they belong to."""
        return len(self.graph.states) > 1

    def plan(self) -> ControllerPlan:
        """The controller that runs it; `Manager.add` asks for it."""
        from steersman.patterns.passes import MachineReconciler  # noqa: PLC0415 - passes know machines

        builder = controller(self.kind, name=self.name)
        self.children.watch(builder)
        for source in self.sources:
            builder.on(source)
        if self._declare is not None:
            self._declare(builder)
        plan = builder.run_with(MachineReconciler(self))
        written = tuple(each.kind for each in (*self.children.kinds, *self.children.retired))
        said = self.graph.conditions if self.graph.reports else ()
        return msgspec.structs.replace(plan, writes=written, conditions=said)


class StateMachine(Generic[T]):
    """A reconciler in states.

    ```python
    class Cluster(StateMachine[Postgres], children=(StatefulSet, Service)):
        @state(condition="StorageReady")
        async def storage(self, pg: Postgres, out: Outputs) -> Next | Wait: ...

        @state(condition="PrimaryReady")
        async def primary(self, pg: Postgres, out: Outputs) -> Done | Wait: ...

    manager.add(Cluster())
    ```

    The first state that is written comes first, and `Next` leads to the one after. ``children`` are the kinds that states
    declare, ``retired`` those that an earlier version declared and that may still be there. ``ordered_deletion`` deletes
    children in the reverse order of states when the object goes, each after those that came later are gone. ``name`` is the
    controller's and ``ready`` the condition that sums up the others: both are for a second machine of the same kind.
    ``retired_finalizers`` are those that an earlier version set under another name. On a kind of somebody else's no condition
    is written, unless ``ready`` and those of the states have a domain: ``ready="example.com/Ready"``.
    """

    #: The graph, checked when the class was defined.
    machine: ClassVar[MachineGraph]
    kind: ClassVar[type[Object]]
    children: ClassVar[Children]
    _options: ClassVar[MachineOptions] = MachineOptions()

    def __init_subclass__(
        cls,
        *,
        children: Iterable[KindLike | ChildKind] | None = None,
        retired: Iterable[KindLike | ChildKind] | None = None,
        name: str | None = None,
        finalizer: str | None = None,
        retired_finalizers: Iterable[str] | None = None,
        ordered_deletion: bool | None = None,
        ready: str | None = None,
        **unknown: Any,
    ) -> None:
        super().__init_subclass__()
        check_options(unknown, MachineOptions.__struct_fields__, f"class {cls.__name__}")
        said: dict[str, Any] = {
            "children": children,
            "retired": retired,
            "name": name,
            "finalizer": finalizer,
            "retired_finalizers": retired_finalizers,
            "ordered_deletion": ordered_deletion,
            "ready": ready,
        }
        cls._options = msgspec.structs.replace(
            cls._options, **{key: value for key, value in said.items() if value is not None}
        )
        kind = _kind_of(cls)
        if isinstance(kind, TypeVar):
            return  # a class to be derived from: it is checked when its kind is known
        where = f"class {cls.__name__}(StateMachine[{kind.__name__}])"
        cls.kind = kind
        graph = _graph_of(cls, kind, cls._options.ready, where)
        cls.children = Children(kind, cls._options.children, retired=cls._options.retired, where=where)
        deletes = cls._options.ordered_deletion or cls.children.needs_finalizer
        cls.machine = msgspec.structs.replace(graph, deletes_children=deletes)

    def declare(self, controller: ControllerBuilder[T]) -> None:
        """Override to watch more, or to set options: ``controller.watches(Secret, map=...).options(concurrency=8)``."""

    def plan(self) -> ControllerPlan:
        """The controller that runs this machine; `Manager.add` asks for it."""
        cls, graph, options = type(self), self.machine, self._options
        sources = tuple(_sources_of(self))
        if graph.finalizer is None:
            _check_left_behind(cls, sources)
        machine = Machine(
            cls.kind,
            cls.children,
            graph,
            {node.name: getattr(self, node.name) for node in graph.states},
            name=options.name,
            clean_up=getattr(self, graph.finalizer) if graph.finalizer is not None else None,
            finalizer=options.finalizer,
            retired_finalizers=options.retired_finalizers,
            ordered_deletion=options.ordered_deletion,
            sources=sources,
            declare=cast("Callable[[ControllerBuilder[Any]], None]", self.declare),
        )
        return machine.plan()


def finalizer_name(kind: type[Object], controller: str) -> str:
    """The name of a machine's finalizer: the kind's own group, or ours for the kinds of Kubernetes."""
    group = kind.gvk().group
    return f"{group if '.' in group else 'steersman.dev'}/{controller}"


def _kind_of(cls: type[StateMachine[Any]]) -> Any:
    """The X of a class that is a ``StateMachine[X]``."""
    for parent in cls.__mro__:
        for declared in getattr(parent, "__orig_bases__", ()):
            origin, arguments = get_origin(declared), get_args(declared)
            if not (isinstance(origin, type) and issubclass(origin, StateMachine) and arguments):
                continue
            found = arguments[0]
            if isinstance(found, TypeVar) or (isinstance(found, type) and hasattr(found, "__resource__")):
                return found
            name = getattr(found, "__name__", repr(found))
            raise TypeError(
                f"class {cls.__name__}: StateMachine[{name}] needs a kind, a class declared with group= and version=;"
                f" {name} is none"
            )
    raise TypeError(
        f"class {cls.__name__} does not say which kind it reconciles; write class {cls.__name__}(StateMachine[Postgres])"
    )


def _marked(cls: type) -> Iterator[tuple[str, Callable[..., Any], _Mark]]:
    """The methods with a mark, in the order in which they are written, those of parents first."""
    found: dict[str, tuple[Callable[..., Any], _Mark]] = {}
    for parent in reversed(cls.__mro__):
        for name, method in vars(parent).items():
            mark = getattr(method, _MARK, None)
            if isinstance(mark, _Mark):
                found[name] = (method, mark)
            elif name in found:
                raise TypeError(
                    f"class {cls.__name__}: {name} is a state of a class that this one is derived from; write @state(...)"
                    " above it here too, or give it another name"
                )
    for name, (method, mark) in found.items():
        yield name, method, mark


def _graph_of(cls: type, kind: type[Object], ready: str, where: str) -> MachineGraph:
    written = list(_marked(cls))
    for name, _, _ in written:
        if name in _RESERVED:
            raise TypeError(
                f"{where}, state {name}: every machine has a {name} of its own; give the state another name"
            )
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
        raise TypeError(f"{where}: {names} are both finalizers; write one, which calls the other")
    name, method = written[0]
    here = f"{where}, finalizer {name}"
    check_state_name(name, here)
    check_state(method, here, f"async def {name}(self, obj, out) -> Done | Wait")
    steps = steps_of(method, here, example="Done | Wait")
    if wrong := [step for step in ("Next", "Goto", "RequeueAfter") if step in steps]:
        raise TypeError(
            f"{here}: its annotation names {' and '.join(wrong)}, but nothing follows a finalizer;"
            " return Done when everything is cleaned up, Wait until then"
        )
    return name, method


def _check_left_behind(cls: type, sources: Iterable[Source]) -> None:
    """Refuse a machine that makes things outside and never removes them."""
    for each in sources:
        if isinstance(each, External) and not each.keep:
            raise TypeError(
                f"class {cls.__name__}: nothing removes what external {each.name} makes, since it has no finalizer; write"
                f" @finalizer async def clean_up(self, obj, out) -> Done | Wait, which calls remove(obj) of it, or"
                f" External(..., keep=True) if it is to stay when the object goes"
            )


def _sources_of(machine: object) -> Iterator[Source]:
    """The attributes of an object that are sources, such as an `External`; each once."""
    found: dict[int, Source] = {}
    places: list[Mapping[str, Any]] = [vars(parent) for parent in reversed(type(machine).__mro__)]
    for place in (*places, vars(machine)):
        for value in place.values():
            named = isinstance(getattr(value, "name", None), str)
            if named and not inspect.isclass(value) and inspect.iscoroutinefunction(getattr(value, "run", None)):
                found[id(value)] = cast("Source", value)
    yield from found.values()
