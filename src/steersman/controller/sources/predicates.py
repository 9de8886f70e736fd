"""Filters for events that are worth a reconcile.

Guarantees
- A predicate sees the states of the watch, never pending own writes, and decodes nothing that it does not access.
- Predicates combine with ``&``, ``|`` and ``~``; the right side is skipped when the left one decides.
- When several changes arrive as one, the states between count too: a label that existed for a moment did change.
- An object that appears or vanishes passes every predicate of change.
- A resync passes predicates of change: ``when(generation_changed(), resync=3600)`` runs every hour. It does not pass
  `resource_version_changed`. Predicates that select objects (`labeled`, `when`) apply to resyncs too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from steersman.cache import ObjectEvent
from steersman.controller.sources.views import View
from steersman.objects import Selector


class Predicate:
    """A filter for events; made by the functions of this module."""

    __slots__ = ("_ask", "_words")

    def __init__(self, ask: Callable[[ObjectEvent], bool], words: str) -> None:
        self._ask = ask
        self._words = words

    def __call__(self, event: ObjectEvent) -> bool:
        """Whether the event passes."""
        return bool(self._ask(event))

    def __and__(self, other: Predicate) -> Predicate:
        if not isinstance(other, Predicate):  # pyright: ignore[reportUnnecessaryIsInstance] - users are not all typed
            return NotImplemented
        return Predicate(lambda event: self(event) and other(event), f"({self} and {other})")

    def __or__(self, other: Predicate) -> Predicate:
        if not isinstance(other, Predicate):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        return Predicate(lambda event: self(event) or other(event), f"({self} or {other})")

    def __invert__(self) -> Predicate:
        return Predicate(lambda event: not self(event), f"not {self}")

    def __bool__(self) -> bool:
        raise TypeError(f"'{self}' is a predicate, not a boolean: combine predicates with &, | and ~, not and, or, not")

    def __str__(self) -> str:
        return self._words

    def __repr__(self) -> str:
        return f"<Predicate {self._words}>"


def _changed(part: Callable[[View[Any]], object], words: str, *, resync: bool = True) -> Predicate:
    def ask(event: ObjectEvent) -> bool:
        if event.old is None or event.new is None or (event.resync and resync):
            return True
        first, *others = (part(view) for view in event.states)
        return any(other != first for other in others)

    return Predicate(ask, words)


def generation_changed() -> Predicate:
    """The spec changed, or deletion began; changes of status and metadata alone do not pass.

    Kinds without a generation (ConfigMap, Secret) pass on every change.
    """

    def part(view: View[Any]) -> object:
        return (view.uid, view.generation or view.resource_version, view.deleting)

    return _changed(part, "the generation changed")


def labels_changed() -> Predicate:
    """A label was added, changed or removed."""
    return _changed(lambda view: dict(view.labels), "labels changed")


def annotations_changed(*names: str) -> Predicate:
    """An annotation was added, changed or removed: one of ``names``, or any."""

    def part(view: View[Any]) -> object:
        annotations = view.metadata.annotations or {}
        return {name: annotations.get(name) for name in names} if names else annotations

    return _changed(part, f"annotations {', '.join(names)} changed" if names else "annotations changed")


def resource_version_changed() -> Predicate:
    """Anything changed; only a resync does not pass."""
    return _changed(lambda view: view.resource_version, "the resource version changed", resync=False)


def labeled(selector: Selector | str) -> Predicate:
    """The labels match, or did before: an object that leaves the selection passes once more."""
    wanted = Selector.parse(selector) if isinstance(selector, str) else selector
    return Predicate(
        lambda event: any(wanted.matches(dict(view.labels)) for view in event.states), f"labels match {wanted}"
    )


def when(function: Callable[[ObjectEvent], bool]) -> Predicate:
    """Your own filter: ``when(lambda event: event.latest.key.namespace != "kube-system")``."""
    name = getattr(function, "__name__", type(function).__name__)
    if not callable(function):  # pyright: ignore[reportUnnecessaryComparison]
        raise TypeError(f"when({function!r}): pass a function that takes an event and returns True or False")
    if inspect.iscoroutinefunction(function):
        raise TypeError(f"when({name}): a predicate cannot await; write def {name}(event), not async def")
    return Predicate(function, name)
