"""Warnings about changes that a state makes to its object and that nothing writes.

Guarantees
- Each state is named once, with the object, the field, why nothing wrote the change, and what to write instead.
- No warning if the reconcile has written the object itself, or if the change has the same meaning as what was read.
- Changes of the status are not looked at: they are written.
- The first `ALWAYS` calls of states are checked, then one of `EVERY`, so that the checks cost next to nothing.
"""

from __future__ import annotations

from typing import Any, cast

from steersman.controller import Context, internal_client
from steersman.objects import Object, differing_fields, fingerprint
from steersman.patches import difference

#: How many calls of states are checked one by one, and which share of the later ones.
ALWAYS, EVERY = 100, 10
_EMPTY: tuple[Any, ...] = (None, {}, [])


class UnwrittenChanges:
    """Finds the unwritten changes of one controller."""

    def __init__(self) -> None:
        self._calls = 0
        #: The states that were named.
        self._named: set[str] = set()

    def before(self, obj: Object, state: str) -> bytes | None:
        """What to pass to `check` after the call of a state; None if this call is not checked."""
        self._calls += 1
        if (self._calls > ALWAYS and self._calls % EVERY) or state in self._named:
            return None
        return _written_by_programs(obj)

    async def check(self, ctx: Context, obj: Object, state: str, before: bytes | None) -> None:
        """Warn if a state has changed its object and nothing wrote the change."""
        if before is None or _written_by_programs(obj) == before:
            return
        view = await internal_client(ctx).view(type(obj), obj.key)
        if view is None or view.resource_version != obj.metadata.resource_version:
            return  # this state has written it, or another program has: the next reconcile tells
        field = _changed_field(obj)
        if not field:
            return
        self._named.add(state)
        kind = obj.kind
        ctx.logger.warning(
            "%s: %s changed %s of %s %s in memory, and nothing writes that: Steersman writes an object's status and children."
            " To keep the change, write it: client.patch(%s, key, MergePatch(...)) with the client of the reconcile;"
            " to give a child another value, change a copy: copy.deepcopy(...)",
            *(ctx.request, state, field, kind, obj.key, kind),
        )


def _written_by_programs(obj: Object) -> bytes | None:
    metadata = obj.metadata
    return fingerprint((getattr(obj, "spec", None), metadata.labels, metadata.annotations, metadata.finalizers))


def _changed_field(obj: Object) -> str:
    """The path of the first field that differs from what was read, without the status; empty if none does in meaning."""
    differing = differing_fields(obj, obj)
    if differing is None:
        return "spec"
    read, now = (_without_empty({**each, "status": None}) for each in differing)
    return (difference(now, read, exact=True) or "").removeprefix(".")


def _without_empty(tree: Any) -> Any:
    """A tree without its empty parts: a program may prepare them to read or fill them."""
    if isinstance(tree, dict):
        parts = {name: _without_empty(part) for name, part in cast("dict[str, Any]", tree).items()}
        return {name: part for name, part in parts.items() if part not in _EMPTY}
    return tree
