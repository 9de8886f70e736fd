"""Check the signatures of state functions: async, two parameters, and a return annotation that names steps.

Guarantees
- Only the return annotation must be readable when the class is defined: parameters may use types that only a type
  checker imports.
- A mistake raises `TypeError` with one sentence: what is wrong, where, and what to write instead.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from types import UnionType
from typing import Any, Union, cast, get_args, get_origin

from steersman.controller import Context, Done, RequeueAfter
from steersman.objects import Object, nearest
from steersman.patterns.machine.steps import Failed, Goto, Next, Wait

_STEPS: dict[Any, str] = {each: each.__name__ for each in (Next, Goto, Wait, Done, RequeueAfter, Failed)}


def first_line(function: Callable[..., Any]) -> str:
    """The first line of a function's docstring; empty without one."""
    words = inspect.getdoc(function) or ""
    return words.partition("\n")[0].strip()


def check_options(unknown: Iterable[str], known: Iterable[str], where: str) -> None:
    """Reject unknown options, and suggest the closest known names."""
    for name in unknown:
        near = nearest(name, known)
        meant = f"did you mean {near}=?" if near else f"the options are {', '.join(f'{each}=' for each in known)}"
        raise TypeError(f"{where} has no option {name}=; {meant}")


def check_state(function: object, where: str, write: str) -> None:
    """Reject anything but an async function of an object and outputs; ``write`` shows the correct form."""
    if not inspect.iscoroutinefunction(function):
        raise TypeError(f"{where} is not async; write {write}")
    try:
        inspect.signature(function).bind(*(object(),) * (2 + write.count("self")))
    except TypeError:
        raise TypeError(f"{where} cannot be called with an object and outputs; write {write}") from None


def check_object(method: Callable[..., Any], kind: type[Object], where: str) -> None:
    """Reject a method whose first parameter is annotated with a kind other than ``kind``.

    An annotation that cannot be read here, such as a name that only a type checker imports, is not checked.
    """
    if other := _other_kind(method, 1, kind):
        raise TypeError(
            f"{where} takes a {other}, but its machine reconciles {kind.__name__};"
            f" write async def {method.__name__}(self, obj: {kind.__name__}, out: Outputs)"
        )


def check_parameter(function: Callable[..., Any], place: int, kind: type[Object], where: str) -> None:
    """Reject a decorated function whose parameter is annotated with a kind other than that of its decorator."""
    other = _other_kind(function, place, kind)
    if other == Context.__name__:
        raise TypeError(
            f"{where} takes a Context, but gets a {kind.__name__}, read for it; take the object first, and a Context only in"
            f" manager.controller({kind.__name__}).run_with(...)"
        )
    if other:
        raise TypeError(
            f"{where} takes a {other}, but gets a {kind.__name__}; name one of the two kinds in both places"
        )


def _other_kind(function: Callable[..., Any], place: int, kind: type[Object]) -> str:
    """The name of the kind in the annotation of a parameter if ``kind`` does not fit; empty if it does, or cannot be read."""
    parameters = list(inspect.signature(function).parameters.values())
    annotation = parameters[place].annotation if place < len(parameters) else None
    if isinstance(annotation, str):
        annotation = getattr(inspect.unwrap(function), "__globals__", {}).get(annotation)
    if not isinstance(annotation, type):
        return ""
    if issubclass(annotation, (Object, Context)) and not issubclass(kind, annotation):
        return annotation.__name__
    return ""


def steps_of(function: Callable[..., Any], where: str, *, example: str) -> frozenset[str]:
    """The steps in the return annotation of a function; ``example`` is a valid annotation."""
    annotation = function.__annotations__.get("return", inspect.Parameter.empty)
    if annotation is inspect.Parameter.empty:
        raise TypeError(f"{where} has no return annotation, from which Steersman reads the graph; write -> {example}")
    if isinstance(annotation, str):
        annotation = _evaluated(annotation, function, where)
    steps: set[str] = set()
    for member in _members(annotation):
        if member not in _STEPS:
            raise TypeError(
                f"{where}: its annotation has {_name(member)}, which is not a step; the steps are"
                f" {', '.join(_STEPS.values())}: write -> {example}"
            )
        steps.add(_STEPS[member])
    return frozenset(steps)


def _evaluated(annotation: str, function: Callable[..., Any], where: str) -> Any:
    plain = inspect.unwrap(function)
    scope = {name: step for step, name in _STEPS.items()} | getattr(plain, "__globals__", {})
    nonlocals = dict(inspect.getclosurevars(plain).nonlocals) if inspect.isfunction(plain) else None
    try:
        return eval(annotation, scope, nonlocals)  # noqa: S307 - the program's own annotation, evaluated as typing does
    except Exception as error:  # noqa: BLE001 - any exception means that the annotation cannot be read
        raise TypeError(
            f"{where}: its annotation {annotation!r} cannot be read ({error});"
            " import the steps at the top of the module, not under TYPE_CHECKING"
        ) from None


def _members(annotation: Any) -> list[Any]:
    if get_origin(annotation) in {Union, UnionType}:
        return [leaf for member in get_args(annotation) for leaf in _members(member)]
    try:
        hash(annotation)
    except TypeError:
        return [_Unhashable(annotation)]
    return [annotation]


class _Unhashable:
    """A value in an annotation that cannot be hashed."""

    def __init__(self, value: object) -> None:
        self.__name__ = repr(value)


def _name(member: Any) -> str:
    return "None" if member is type(None) or member is None else cast("str", getattr(member, "__name__", repr(member)))


def place_of(decorator: str, kind: object, *, more: str = "children=(...)") -> str:
    """How errors name a decorated function; raises `TypeError` unless ``kind`` is a kind."""
    if not (isinstance(kind, type) and hasattr(kind, "__resource__")):
        if inspect.isroutine(kind):
            raise TypeError(f"@{decorator} needs a kind: write @{decorator}({', '.join(filter(None, ('Site', more)))})")
        raise TypeError(f"@{decorator}({shown(kind)}) needs a kind, a class declared with group= and version=")
    return f"@{decorator}({kind.__name__})"


def shown(value: object) -> str:
    """A value as errors show it: the name of a class, else the start of its repr."""
    if isinstance(value, type):
        return value.__name__
    return repr(value)[:80]
