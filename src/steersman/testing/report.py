"""The report of a failed test: the object, the expectation, what happened to the object, and why.

Guarantees: it is plain text, most important parts first. A part that cannot be read is named and hides no other part.
Secret values are hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

import msgspec

from steersman.client import Client
from steersman.controller import KeyRecord, Request
from steersman.debug import count, duration, next_run
from steersman.errors import ApiError
from steersman.kinds.core_v1 import Event
from steersman.manager import ready_of
from steersman.objects import GroupVersionKind, Key, Object, Unstructured, encode, raw_bytes, wire_name
from steersman.objects.secret_values import HIDDEN, hide
from steersman.testing.expectations import ABSENT, Difference
from steersman.testing.participants import Participant, participants

_LINES_MAX, _EVENTS_MAX, _RUNS_MAX = 60, 10, 10

#: Maps of the metadata, whose keys are free.
_MAPS = (".labels", ".annotations")

_ENDED = {
    "success": "done",
    "requeue": "requeued",
    "requeue_after": "requeued for later",
    "conflict": "conflict: another writer was first",
    "error": "failed",
    "terminal_error": "failed for good",
}


def tree_of(found: Object | Unstructured, kind: GroupVersionKind | None = None) -> dict[str, Any]:
    """An object as JSON that the caller owns; ``kind`` completes items of lists, which carry no kind."""
    raw = raw_bytes(found)
    if raw is None:
        raw = encode(found) if isinstance(found, Object) else msgspec.json.encode(found.tree)
    own = {} if kind is None else {"apiVersion": str(kind.group_version), "kind": kind.kind}
    return own | cast("dict[str, Any]", msgspec.json.decode(raw))


def value_words(value: Any) -> str:
    """A value on one line."""
    return "nothing" if value is ABSENT else msgspec.json.encode(value).decode()


def difference_lines(found: Iterable[Difference], kind: GroupVersionKind) -> list[str]:
    """For each field, the expected and the actual value."""
    return [
        f"{each.field}: expected {shown_words(each.expected, each.field, kind)}, found"
        f" {shown_words(each.found, each.field, kind)}{_wire_hint(each)}"
        for each in found
    ]


def _wire_hint(difference: Difference) -> str:
    """The wire name of a missing field that was given by its Python name; empty for keys of maps such as labels."""
    parent, _, name = difference.field.rpartition(".")
    meant = wire_name(name)
    is_field = parent.partition(".")[0] in {"metadata", "spec", "status"} and not parent.endswith(_MAPS)
    if difference.found is not ABSENT or meant == name or not is_field:
        return ""
    return f"; has= takes the names of the YAML: {meant}"


def shown_words(value: Any, field: str, kind: GroupVersionKind) -> str:
    """The value of a field on one line; secret values are hidden."""
    if value is ABSENT:
        return value_words(value)
    shown = hide(value, field=field, secret=is_secret(kind))
    return HIDDEN if shown == HIDDEN else value_words(shown)


def is_secret(kind: GroupVersionKind) -> bool:
    """Whether objects of this kind are Secrets."""
    return (kind.group, kind.kind) == ("", "Secret")


def object_lines(found: Object | Unstructured, kind: GroupVersionKind) -> list[str]:
    """The object as YAML, without managed fields."""
    tree = tree_of(found, kind)
    metadata: dict[str, Any] = tree.get("metadata", {})
    metadata.pop("managedFields", None)
    tree = hide(tree, secret=is_secret(kind))
    import yaml  # noqa: PLC0415 - only a failure prints objects

    lines = yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, width=120).splitlines()
    if len(lines) > _LINES_MAX:
        lines = [*lines[:_LINES_MAX], f"(and {len(lines) - _LINES_MAX} more lines)"]
    return ["It is now:", *(f"    {line}" for line in lines)]


async def event_lines(client: Client, kind: GroupVersionKind, key: Key) -> list[str]:
    """The events about an object, newest last."""
    fields = {"involvedObject.kind": kind.kind, "involvedObject.name": key.name}
    try:
        found = (await client.list(Event, namespace=key.namespace or None, fields=fields)).items
    except ApiError as error:
        return [f"Its events cannot be read: {error}"]
    if not found:
        return ["There are no events about it."]
    found.sort(key=lambda event: int(event.metadata.resource_version or 0))
    return ["Events about it:", *(f"    {_event_words(event)}" for event in found[-_EVENTS_MAX:])]


def _event_words(event: Event) -> str:
    times = event.series.count if event.series is not None else event.count
    again = f" ({times} times)" if times and times > 1 else ""
    return f"{event.type} {event.reason}: {event.message}{again}"


def run_lines(kind: GroupVersionKind, key: Key, last: Object | Unstructured | None) -> list[str]:
    """The reconciles of an object or its owners, and why they ran."""
    participation = participants()
    if not participation:
        return ["No operator runs in this test."]
    wanted = {(kind.kind, key), *_owners(last, key.namespace)}
    lines: list[str] = []
    for participant in participation:
        for controller in participant.controllers:
            for primary, each in sorted(wanted):
                if controller.primary is not None and controller.primary.kind == primary:
                    if (primary, each) != (kind.kind, key) and (
                        ready := ready_of(participant.informers, controller.primary, each)
                    ):
                        lines.append(f"Its owner {primary} {each} has the condition Ready {ready}")
                    lines += _runs_of(participant, controller.name, primary, each)
    return lines or _other_runs(participation, kind, key)


def _owners(last: Object | Unstructured | None, namespace: str) -> set[tuple[str, Key]]:
    references: list[dict[str, Any]] = (tree_of(last).get("metadata", {}).get("ownerReferences") or []) if last else []
    return {(each["kind"], Key(namespace, each["name"])) for each in references}


def _runs_of(participant: Participant, controller: str, kind: str, key: Key) -> Iterator[str]:
    runs = [record for name, record in participant.runs_of(key) if name == controller]
    places = [each.place(Request(key)) for each in participant.controllers if each.name == controller]
    then = f"; it runs next {next_run(places[0].next_run)}" if places else ""
    if not runs:
        yield f"Controller {controller} did not reconcile {kind} {key}{then}."
        return
    yield f"Controller {controller} reconciled {kind} {key} {count(len(runs), 'time')}{then}:"
    if len(runs) > _RUNS_MAX:
        yield f"    (the last {_RUNS_MAX})"
    for record in runs[-_RUNS_MAX:]:
        yield from _run_words(record)


def _run_words(record: KeyRecord) -> Iterator[str]:
    at = record.finished.strftime("%H:%M:%S.%f")[:-3]
    wrote = count(record.writes, "write")
    yield f"    {at}  {_ENDED[record.result]}, {wrote}, in {duration(record.seconds)}; because {record.causes}"
    if record.last_error and record.last_error_at == record.finished:
        yield from (f"                  {line}" for line in record.last_error.splitlines())


def _other_runs(participation: list[Participant], kind: GroupVersionKind, key: Key) -> list[str]:
    """The latest reconciles of any key: no controller is known to reconcile the object, and these may explain it."""
    lines = [f"No controller of this test reconciles {kind.kind} {key} or an owner of it. The latest reconciles:"]
    for participant in participation:
        for name, record in participant.runs[-_RUNS_MAX:]:
            first, *rest = _run_words(record)
            lines += [f"    {name} {record.request}  {first.strip()}", *rest]
    return lines if len(lines) > 1 else [f"{lines[0].removesuffix(' The latest reconciles:')} Nothing was reconciled."]
