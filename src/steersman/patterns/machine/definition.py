"""A machine as data: the kind that it reconciles, its children, its states, and how it deletes an object."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias

from steersman.controller import ControllerBuilder, Source, check_formerly
from steersman.objects import Object
from steersman.patterns.children import Children, Outputs
from steersman.patterns.machine.condition_ownership import ready_of
from steersman.patterns.machine.finalizer_names import Finalizers, default_finalizers, shared_finalizer
from steersman.patterns.machine.finalizers import check_finalizer, check_retired
from steersman.patterns.machine.graph import MachineGraph, StateNode
from steersman.patterns.machine.signatures import first_line
from steersman.patterns.machine.steps import Step

#: The function of a state: ``async def storage(pg, out) -> Next | Wait``.
StateFunction: TypeAlias = Callable[[Any, Outputs], Awaitable[Step]]


class Machine:
    """Everything that a reconcile needs, from a class with states or from one function."""

    def __init__(
        self,
        kind: type[Object],
        children: Children,
        graph: MachineGraph,
        functions: Mapping[str, StateFunction],
        *,
        name: str = "",
        formerly: Iterable[str] = (),
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
        #: Earlier names of the controller, whose status and finalizers it takes over.
        self.formerly = check_formerly(formerly, self.name, children.where, bearer="controller")
        self.clean_up = clean_up
        #: The finalizer that the program chose; empty for the default.
        self.finalizer = check_finalizer(finalizer, children.where)
        #: Finalizers of earlier versions: removed together with ours, and from objects that are not being deleted.
        self.retired_finalizers = check_retired(retired_finalizers, finalizer, graph.name)
        self.ordered_deletion = ordered_deletion
        self.sources = tuple(sources)
        #: The program's function that adds watches or sets options of the controller.
        self.declare = declare

    @classmethod
    def of(
        cls,
        kind: type[Object],
        children: Children,
        function: StateFunction,
        *,
        name: str = "",
        formerly: Iterable[str] = (),
        title: str = "",
        words: str = "",
        ready: str = "",
        finalizer: str = "",
        retired_finalizers: Iterable[str] = (),
        ordered_deletion: bool = False,
        sources: Iterable[Source] = (),
        declare: Callable[[ControllerBuilder[Any]], None] | None = None,
    ) -> Machine:
        """A machine of one state, whose condition is Ready itself; ``title`` names it in diagrams and errors."""
        title = title or getattr(function, "__name__", kind.__name__)
        ready, reports = ready_of(kind, ready, children.where)
        node = StateNode(name=title, condition=ready, words=words or first_line(function))
        deletes = ordered_deletion or children.needs_finalizer
        graph = MachineGraph(
            name=title, kind=kind.__name__, states=(node,), ready=ready, reports=reports, deletes_children=deletes
        )
        return cls(
            kind,
            children,
            graph,
            {title: function},
            name=name,
            formerly=formerly,
            finalizer=finalizer,
            retired_finalizers=retired_finalizers,
            ordered_deletion=ordered_deletion,
            sources=sources,
            declare=declare,
        )

    def deletes_children(self, children: Children) -> bool:
        """Whether the machine, not the garbage collector, deletes these children before the object is removed."""
        return self.ordered_deletion or children.needs_finalizer

    def needs_finalizer(self, children: Children) -> bool:
        """Whether the machine must do something before the object is removed."""
        return self.clean_up is not None or self.deletes_children(children)

    def finalizers(self, managers: tuple[str, ...]) -> Finalizers:
        """The machine's finalizers in a manager with this name, followed by its earlier names; set only if it needs one."""
        if self.finalizer:
            return Finalizers(self.finalizer, self.retired_finalizers)
        kind, names = self.kind.gvk(), (self.name, *self.formerly)
        current, *former = default_finalizers(kind, managers, names)
        retired = tuple(finalizer for finalizer in self.retired_finalizers if finalizer != current)
        former = tuple(finalizer for finalizer in former if finalizer not in retired)
        shared = dict.fromkeys(shared_finalizer(kind, name) for name in names)
        known = {current, *retired, *former}
        return Finalizers(current, retired, former, tuple(name for name in shared if name not in known))

    @property
    def labels_states(self) -> bool:
        """Whether children carry the name of their state in a label."""
        return len(self.graph.states) > 1
