"""``steersman draw``: the state machines of a module as diagrams, optionally with the state of an object.

Guarantees
- Without ``--object``, no server is contacted.
- A diagram matches the code: it is made from the graph that reconciles use.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeAlias

import msgspec

from steersman.cli.console import show_data
from steersman.cli.failure import Failure, Misuse
from steersman.cli.files import write_files
from steersman.cli.run import failure_of
from steersman.cli.targets.managers import find_manager
from steersman.cli.targets.modules import load_module, look_here_first, module_and_name
from steersman.client import Client, discover_config
from steersman.controller import Blueprint
from steersman.errors import ConfigError
from steersman.manager import Manager
from steersman.objects import Key, Object, nearest
from steersman.patterns import MachineGraph, MachineReconciler, StateMachine
from steersman.patterns.drawing import Live, mermaid, svg

Format: TypeAlias = Literal["mermaid", "svg"]

_SUFFIXES: dict[str, Format] = {".svg": "svg", ".mmd": "mermaid", ".mermaid": "mermaid", ".md": "mermaid"}
_HOW = "name a class derived from StateMachine, a function with @generates or @reconciles, or a Manager that has one"


class DrawOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the command line."""

    target: str
    format: Format | None = None
    output: str | None = None
    check: bool = False
    object: str | None = None
    kubeconfig: str | None = None
    context: str | None = None


class _Machine(msgspec.Struct, frozen=True):
    """What to draw: a graph, and the kind of the objects that it applies to."""

    graph: MachineGraph
    kind: type[Object]


def draw_machines(options: DrawOptions) -> int:
    """Draw; returns an exit code."""
    module, attribute = module_and_name(options.target, "machine", nothing="all its machines")
    if options.check and options.output is None:
        raise Misuse("--check compares with a file; name the file with -o")
    form = _format(options)
    look_here_first()
    machines = _machines(load_module(module), attribute)
    live = _look(machines, options) if options.object is not None else None
    draw = svg if form == "svg" else mermaid
    return _write([(each.graph.name, draw(each.graph, live)) for each in machines], form, options)


def _format(options: DrawOptions) -> Format:
    """The requested format, or the one that the file name implies."""
    suffix = Path(options.output).suffix if options.output else ""
    return options.format or _SUFFIXES.get(suffix, "mermaid")


# machines


def _machines(module: ModuleType, attribute: str) -> list[_Machine]:
    target = f"{module.__name__}:{attribute}" if attribute else module.__name__
    if not attribute:
        own = [found for value in vars(module).values() if (found := _own(value, module)) is not None]
        # a module may have the same machine under two names
        machines = list({each.graph: each for each in own}.values())
        if not machines and not any(isinstance(value, Manager) for value in vars(module).values()):
            raise Failure(f"{target} has no state machine; {_HOW}")
        return machines or _of_manager(find_manager(module, ""), target)
    value: Any = getattr(module, attribute, None)
    if (found := _machine(value)) is not None:
        return [found]
    if isinstance(value, Manager):
        return _of_manager(value, target)
    there = [name for name, each in vars(module).items() if _can_be_drawn(each)]
    hint = f"; there is {', '.join(f'{module.__name__}:{name}' for name in there)}" if there else ""
    if value is None:
        meant = nearest(attribute, there)
        hint = f"; did you mean {module.__name__}:{meant}?" if meant else hint
        raise Failure(f"{module.__name__} has no {attribute}{hint or f'; {_HOW}'}")
    what = f"the class {value.__name__}" if isinstance(value, type) else f"of type {type(value).__name__}"
    raise Failure(f"{target} is {what}, which has no states to draw; {_HOW}{hint}")


def _can_be_drawn(value: object) -> bool:
    if isinstance(value, Manager):
        return any(_of_blueprint(blueprint) is not None for blueprint in value.blueprints)
    return _machine(value) is not None


def _own(value: object, module: ModuleType) -> _Machine | None:
    """A machine that the module itself defines; an imported one is drawn where it is defined."""
    theirs = isinstance(value, type) and value.__module__ != module.__name__
    return None if theirs else _machine(value)


def _machine(value: object) -> _Machine | None:
    """The machine of a class, function or object; None if it has none."""
    if isinstance(value, type):
        return _of_class(value)
    blueprint: Any = getattr(value, "blueprint", None)
    if isinstance(value, Manager) or not inspect.ismethod(blueprint):
        return None
    return _of_blueprint(blueprint())


def _of_class(cls: Any) -> _Machine | None:
    # an abstract base class has no machine yet
    graph: Any = getattr(cls, "machine", None) if StateMachine in cls.__mro__ else None
    return _Machine(graph, cls.kind) if isinstance(graph, MachineGraph) else None


def _of_blueprint(blueprint: object) -> _Machine | None:
    reconciler = blueprint.reconciler if isinstance(blueprint, Blueprint) else None
    if not isinstance(reconciler, MachineReconciler):
        return None
    return _Machine(reconciler.machine.graph, reconciler.machine.kind)


def _of_manager(manager: object, target: str) -> list[_Machine]:
    if not isinstance(manager, Manager):
        raise Failure(f"{target} makes its manager from a client, which is not available here; {_HOW}")
    machines = [machine for blueprint in manager.blueprints if (machine := _of_blueprint(blueprint)) is not None]
    if not machines:
        names = ", ".join(blueprint.name for blueprint in manager.blueprints)
        has = f"its controllers ({names}) are plain reconcilers" if names else "it has no controllers"
        raise Failure(f"nothing to draw in {target}: {has}; {_HOW}")
    return machines


# an object


def _look(machines: Sequence[_Machine], options: DrawOptions) -> Live:
    """Read the object to show."""
    kinds = list(dict.fromkeys(machine.kind for machine in machines))
    if len(kinds) > 1:
        names = ", ".join(f"{machine.graph.name} ({machine.kind.__name__})" for machine in machines)
        raise Misuse(f"--object needs a single kind, but there are several machines: {names}; draw one of them")
    try:
        key = Key.parse(options.object or "")
    except ValueError as error:
        raise Misuse(f"--object: {error}") from None
    try:
        config = discover_config(kubeconfig=options.kubeconfig, context=options.context)
    except ConfigError as error:
        raise Failure(f"{error}\nOn this command line: --kubeconfig FILE, --context NAME") from error
    kind = kinds[0]
    if kind.__resource__.scope == "Namespaced" and not key.namespace:
        key = Key(config.namespace, key.name)

    async def read() -> Object | None:
        async with Client.connect(config) as client:
            return await client.find(kind, key)

    try:
        obj = asyncio.run(read())
    except Exception as error:
        raise failure_of(error) from error
    if obj is None:
        raise Failure(f"{kind.__name__} {key} not found on {config.server}; list objects with kubectl get")
    return Live.of(obj)


# output


def _write(pictures: Sequence[tuple[str, str]], form: Format, options: DrawOptions) -> int:
    if options.output is None:
        if form == "svg" and len(pictures) > 1:
            names = ", ".join(name for name, _ in pictures)
            raise Misuse(f"there are several machines: {names}; pass a directory with -o, or draw one of them")
        show_data("\n".join(_printed(pictures, form)))
        return 0
    path = Path(options.output)
    if len(pictures) == 1 and not path.is_dir():
        (name, text), *_ = pictures
        text = "\n".join(_fenced([(name, text)])) if path.suffix == ".md" else text
        return write_files({path: text}, check=options.check)
    if path.suffix == ".md":
        return write_files({path: "\n".join(_fenced(pictures))}, check=options.check)
    if path.suffix in _SUFFIXES:
        raise Misuse(f"{path} is one file for {len(pictures)} machines; pass a directory with -o, or draw one of them")
    suffix = "svg" if form == "svg" else "mmd"
    return write_files({path / f"{name}.{suffix}": text for name, text in pictures}, check=options.check)


def _printed(pictures: Sequence[tuple[str, str]], form: Format) -> Iterable[str]:
    if form == "svg" or len(pictures) == 1:
        return [text for _, text in pictures]
    return _fenced(pictures)


def _fenced(pictures: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Markdown that GitHub and others render as diagrams."""
    for name, text in pictures:
        yield f"## {name}\n\n```mermaid\n{text}```\n"
