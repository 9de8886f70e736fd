"""Events: one store, two forms (``v1`` and ``events.k8s.io/v1``), and the rules of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.canonical_form import canonical
from steersman.apiserver.registry.builtin.types.internal_form import printed
from steersman.apiserver.registry.builtin.types.trees import Tree, metadata, subtree
from steersman.apiserver.registry.conversion import Conversion
from steersman.apiserver.registry.strategy import CHANGED, WHOLE
from steersman.objects import GroupVersionKind
from steersman.objects.field_problems import FieldProblem, each, invalid, required, unchanged
from steersman.schemas.names import dns_subdomain, qualified_name

#: Fields by their names in events.k8s.io/v1 and in v1.
_NAMES = {
    "reportingController": "reportingComponent",
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_LONGEST = 128
_LONGEST_NOTE = 1024
_MISMATCH = "does not match event.namespace"


def to_core(event: Tree) -> Tree:
    """An event in the form of ``v1``, in which events are stored."""
    if event.get("apiVersion") == "v1":
        return event
    renamed = {_NAMES.get(name, name): value for name, value in event.items()}
    return canonical(renamed | {"apiVersion": "v1", "kind": "Event"}, "core.v1.Event")


def to_events(event: Tree) -> Tree:
    """An event in the form of ``events.k8s.io/v1``."""
    if event.get("apiVersion") == "events.k8s.io/v1":
        return event
    names = {old: new for new, old in _NAMES.items()}
    renamed = {names.get(name, name): value for name, value in event.items()}
    return canonical(renamed | {"apiVersion": "events.k8s.io/v1", "kind": "Event"}, "events.v1.Event")


def _in_place(convert: Callable[[Tree], Tree]) -> Callable[[Tree], None]:
    def converted(event: Tree) -> None:
        made = dict(convert(event))
        event.clear()
        event.update(made)

    return converted


#: Between events.k8s.io/v1 and the stored form.
CONVERSION = Conversion(to_stored=_in_place(to_core), from_stored=_in_place(to_events))


class EventStrategy(BuiltinStrategy):
    """How Events behave; problems name the fields of ``v1`` in both forms, as in the server."""

    create_on_update = True
    default_propagation = "unsupported"

    def __init__(self, kind: GroupVersionKind, *, has_status: bool = False) -> None:
        super().__init__(kind, has_status=has_status)
        # Only the newer group is strict about names.
        self.names = "subdomain" if kind.group else "any"
        self.judges_metadata = self.knows_finalizers = bool(kind.group)

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        """Validate an event by the rules of its request's group."""
        event = to_core(obj)
        problems = self._shared(event)
        if not self.kind.group:
            return problems
        problems += [WHOLE, *_series(event)]
        if not event.get("eventTime"):
            problems.append(required("eventTime"))
        type_ = event.get("type", "")
        if type_ not in {"Normal", "Warning"}:
            problems.append(invalid("type", "", f"has invalid value: {type_}"))
        for field in ("firstTimestamp", "lastTimestamp", "count"):
            if event.get(field):
                problems.append(invalid(field, "", "needs to be unset"))
        if event.get("source"):
            problems.append(invalid("source", "", "needs to be unset"))
        return problems

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Only the series of an events.k8s.io event may change."""
        event, before = to_core(obj), to_core(old)
        problems = self._shared(event)
        if not self.kind.group:
            return problems
        if event.get("series") != before.get("series"):
            problems += _series(event)
        problems += [CHANGED, *_stays(event, before, "involvedObject", "core.ObjectReference")]
        problems += _stays(event, before, "reason") + _stays(event, before, "message")
        problems += _stays(event, before, "source", "core.EventSource")
        for field in ("firstTimestamp", "lastTimestamp"):
            problems += unchanged(field, event.get(field), before.get(field))
        problems += unchanged("count", event.get("count", 0), before.get("count", 0))
        problems += _stays(event, before, "reason") + _stays(event, before, "type")
        problems += unchanged("eventTime", event.get("eventTime"), before.get("eventTime"))
        problems += _stays(event, before, "action")
        problems += _stays(event, before, "related", "*core.ObjectReference")
        problems += _stays(event, before, "reportingComponent", shown_as="reportingController")
        return problems + _stays(event, before, "reportingInstance")

    def _shared(self, event: Tree) -> list[FieldProblem]:
        problems: list[FieldProblem] = []
        namespace = metadata(event).get("namespace", "")
        about = subtree(event, "involvedObject").get("namespace", "")
        if not event.get("eventTime"):
            if namespace not in ({about} if about else {"", "default"}):
                problems.append(invalid("involvedObject.namespace", about, _MISMATCH))
        else:
            if not about and namespace not in {"default", "kube-system"}:
                problems.append(invalid("involvedObject.namespace", about, _MISMATCH))
            problems += self._reported(event)
        return problems + each("namespace", namespace, dns_subdomain(namespace))

    def _reported(self, event: Tree) -> list[FieldProblem]:
        """The required fields of an event with a time."""
        problems: list[FieldProblem] = []
        controller = event.get("reportingComponent", "")
        field = "reportingController" if self.kind.group else "reportingComponent"
        if not controller:
            problems.append(required(field))
        problems += each(field, controller, qualified_name(controller))
        for name in ("reportingInstance", "action", "reason"):
            value = event.get(name, "")
            if not value:
                problems.append(required(name))
            if len(value.encode()) > _LONGEST:
                problems.append(invalid(name, "", f"can have at most {_LONGEST} characters"))
        if len(event.get("message", "").encode()) > _LONGEST_NOTE:
            problems.append(invalid("message", "", f"can have at most {_LONGEST_NOTE} characters"))
        return problems


def _series(event: Tree) -> list[FieldProblem]:
    series = event.get("series")
    if series is None:
        return []
    problems = [invalid("series.count", "", "should be at least 2")] if series.get("count", 0) < 2 else []
    return problems + ([] if series.get("lastObservedTime") else [required("series.lastObservedTime")])


def _stays(event: Tree, before: Tree, field: str, definition: str = "", *, shown_as: str = "") -> list[FieldProblem]:
    zero: Any = None if definition.startswith("*") else {} if definition else ""
    new, old = event.get(field) or zero, before.get(field) or zero
    shown = printed(new, definition) if definition else new
    return unchanged(shown_as or field, new, old, printed=shown)
