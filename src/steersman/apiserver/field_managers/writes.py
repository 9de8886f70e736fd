"""Managed fields of writes: every create, update, patch and apply records who set which field.

Guarantees
- No write fails because of its managed fields: if they cannot be computed, the object has none.
- An apply that would take fields from others is rejected with all conflicts, unless it is forced.
- A write that changes only times of managed fields changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from steersman.aio import utc_now
from steersman.apiserver.errors import bad_request, unnamed
from steersman.apiserver.field_managers.conflicts import apply_conflict
from steersman.apiserver.field_managers.typed_problems import typed_problems
from steersman.apiserver.field_managers.versions import Managed
from steersman.apiserver.registry.definition import Tree
from steersman.apiserver.request import ServerRequest
from steersman.objects import GroupVersionKind, format_time
from steersman.patches import ApplyConflicts, ManagedFieldsError, NotConvertible, PatchError, read_managed_fields

MANAGER_MAX = 128
_AFTER_ADMISSION = (
    ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating "
    "admission controller; please fix your requests: {}"
)


def manager_of(request: ServerRequest, field_manager: str) -> str:
    """The field manager of a request: its ``fieldManager``, or the beginning of its user agent."""
    if field_manager:
        return field_manager
    agent = (request.wire.header("User-Agent") or "").partition("/")[0]
    if agent.isascii() and agent.isprintable() and len(agent) <= MANAGER_MAX:
        return agent
    kept, size = "", 0
    for character in agent.encode("utf-8", "replace").decode():
        if not character.isprintable():
            continue
        size += len(character.encode())
        if size > MANAGER_MAX:
            break
        kept += character
    return kept


def updated(
    managed: Managed, old: Tree | None, new: Tree, manager: str, *, fits: Callable[[int], bool] | None = None
) -> Tree:
    """The object to write in place of ``new``, with its managed fields.

    ``fits`` returns whether the object has room for managed fields of this many characters; None means that it has.
    """
    # An empty map is no field, unless its type always writes it. It stays: the rules of its kind may see it.
    unowned = {
        name: value
        for name, value in new.items()
        if value == {} and not managed.definition.custom and name not in managed.empty
    }
    owned = {name: value for name, value in new.items() if name not in unowned} if unowned else new
    try:
        if managed.definition.custom and not _has_types(managed, old or {}, new):
            return _as_before(new, old)
        result = managed.fields.update(
            old, owned, manager=manager, now=format_time(utc_now()), empty=managed.empty, fits=fits
        )
    except (PatchError, RecursionError):
        return _as_before(new, old)
    return result | unowned


def _as_before(new: Tree, old: Tree | None) -> Tree:
    """An object whose managed fields cannot be computed: it keeps those that are stored."""
    made = without_managed(new)
    before = (old or {}).get("metadata", {}).get("managedFields")
    return made | {"metadata": made["metadata"] | {"managedFields": before}} if before else made


def _has_types(managed: Managed, old: Tree, new: Tree) -> bool:
    """Whether a custom resource has the types of its schema, as far as no validation has checked them yet.

    - Of a new object, validation skips what the endpoint resets: the status, or all else at the endpoint of the status.
    - Of an existing one, it also skips what is unchanged, so all fields are checked here, in the old state too.
    """
    definition = managed.definition
    if new.get("apiVersion") != definition.gvk.api_version or new.get("kind") != definition.gvk.kind:
        return False
    if old and _live_problems(managed, old):
        return False
    if definition.strategy.has_form(new):
        return True
    unchecked = {
        name: value
        for name, value in new.items()
        if name != "metadata" and (old or ((name == "status") != managed.of_status and value is not None))
    }
    return not unchecked or not typed_problems(unchecked, managed.schema, duplicates=True)


def applied(managed: Managed, live: Tree | None, intent: Tree, *, manager: str, force: bool) -> Tree:
    """The object to write after an apply, with its managed fields, before defaults; ``live`` is None for a new one."""
    gvk = managed.definition.gvk
    _check_type(gvk, intent)
    metadata: Any = intent.get("metadata")
    if isinstance(metadata, dict) and isinstance(cast("Tree", metadata).get("managedFields"), list):
        raise bad_request("metadata.managedFields must be nil")
    if live is not None:
        _check_live(managed, live, intent)
    try:
        return managed.fields.apply(
            managed.empty if live is None else live,
            intent,
            manager=manager,
            now=format_time(utc_now()),
            force=force,
            empty=managed.empty,
        )
    except ApplyConflicts as error:
        raise apply_conflict(error.conflicts) from None
    except NotConvertible as error:
        raise unnamed(str(error)) from None
    except (PatchError, RecursionError) as error:
        # The engine's messages are computed only once it is known that there are problems.
        if problems := typed_problems(intent, managed.schema):
            raise unnamed(f"failed to create typed patch object ({described(gvk, intent)}): {problems}") from None
        raise unnamed(f"failed to apply ({described(gvk, intent)}): {error}") from None


def _live_problems(managed: Managed, live: Tree) -> str:
    """The problems of a stored custom resource with the types of its schema, which was changed since.

    A conversion can also give such an object. It has no fields to merge with.
    """
    if not managed.definition.custom or managed.definition.strategy.has_form(live):
        return ""
    return typed_problems(without_managed(live), managed.schema, duplicates=True)


def _check_live(managed: Managed, live: Tree, intent: Tree) -> None:
    """Reject an apply to an object that cannot be merged."""
    problems = _live_problems(managed, live)
    if not problems:
        return
    gvk = managed.definition.gvk
    if not live["metadata"].get("managedFields"):
        why = f"failed to convert new object ({described(gvk, live)}) to smd typed: {problems}"
        raise unnamed(f"failed to create manager for existing fields: {why}")
    if of_intent := typed_problems(intent, managed.schema):
        raise unnamed(f"failed to create typed patch object ({described(gvk, intent)}): {of_intent}")
    raise unnamed(f"failed to create typed live object ({described(gvk, live)}): {problems}")


def described(gvk: GroupVersionKind, tree: Tree) -> str:
    """An object as kube-apiserver's internal errors print it."""
    given: Any = tree.get("metadata")
    metadata: Tree = cast("Tree", given) if isinstance(given, dict) else {}
    namespace, name = (value if isinstance(value := metadata.get(key), str) else "" for key in ("namespace", "name"))
    return f"{namespace}/{name}; {_kind_words(gvk)}"


def _kind_words(gvk: GroupVersionKind) -> str:
    return f"{gvk.group}/{gvk.version}, Kind={gvk.kind}"


def _check_type(expected: GroupVersionKind, intent: Tree) -> None:
    version, kind = (value if isinstance(value := intent.get(name), str) else "" for name in ("apiVersion", "kind"))
    if version == expected.api_version and kind == expected.kind:
        return
    group, _, version = version.rpartition("/")
    given = GroupVersionKind("", "", "") if "/" in group else GroupVersionKind(group, version, kind)
    raise bad_request(f"invalid object type: {_kind_words(given)}")


def keep_readable(request: ServerRequest, metadata: Tree, before: list[Any] | None) -> None:
    """Restore managed fields that admission made unreadable, with a warning."""
    after = metadata.get("managedFields")
    if after is before:
        return
    try:
        read_managed_fields(after)
    except (ManagedFieldsError, TypeError) as error:
        if before is None:
            del metadata["managedFields"]
        else:
            metadata["managedFields"] = before
        request.warn(_AFTER_ADMISSION.format(error))


def forget_new_times(obj: Tree, old: Tree) -> bool:
    """Whether two states of an object are equal but for times of managed fields; if so, ``obj`` gets the old times."""
    metadata: Tree = obj["metadata"]
    entries, before = metadata.get("managedFields"), old["metadata"].get("managedFields")
    if not entries or not before or len(entries) != len(before) or entries == before:
        return obj == old
    if not all(_same_but_time(one, other) for one, other in zip(entries, before, strict=True)):
        return False
    metadata["managedFields"] = before
    if obj == old:
        return True
    # Something else differs: the write counts, and so does its time.
    metadata["managedFields"] = entries
    return False


def _same_but_time(one: Tree, other: Tree) -> bool:
    return one == other or {**one, "time": None} == {**other, "time": None}


def without_managed(obj: Tree) -> Tree:
    """An object without its managed fields, which may make it too large for the store."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return {**obj, "metadata": metadata}
