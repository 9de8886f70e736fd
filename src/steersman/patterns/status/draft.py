"""The status of a reconciled object: at most one write per reconcile, and none if nothing changed.

Guarantees
- Conditions are set by server-side apply, with a separate field manager for each controller, so other writers keep theirs. If the
  kind's conditions are not a list with keys, a merge patch with the resourceVersion sets them.
- The same write includes what states set in ``obj.status``. Earlier values stay, even if a reconcile stops early, and if an
  earlier version of the program wrote them in another version of the kind.
- The first complete reconcile removes conditions that an earlier version of the program set and that no state has anymore.
- What the program or the controller wrote under an earlier name becomes its own, also if there is nothing new to write.
- A kind without ``status.conditions`` is never written to.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any, Literal, TypeAlias, cast

import msgspec

from steersman.aio import utc_now
from steersman.client import MergePatch, intent_of, merge_schema_of
from steersman.controller import Context, internal_client
from steersman.errors import ConfigError, NotFound
from steersman.objects import (
    Object,
    StructShape,
    field_shapes,
    fingerprint,
    has_status_subresource,
    raw_bytes,
    to_json,
    was_read,
    wire_names,
)
from steersman.patches import MergeSchema, extract_applied_tree as extract_tree
from steersman.patterns.children.membership import managers_of
from steersman.patterns.machine.graph import SUSPENDED
from steersman.patterns.status.conditions import Observation, Observations, condition_trees, cut
from steersman.patterns.status.merge import merge_changes

Tree: TypeAlias = dict[str, Any]

#: The API's limit for the name of a field manager.
_MANAGER_MAX = 128
#: The fields of a status that the machine itself sets.
_OWN_FIELDS = ("conditions", "observedGeneration")


class StatusForm(msgspec.Struct, frozen=True, kw_only=True):
    """How the status of a kind is written."""

    how: Literal["not", "apply", "patch"]
    subresource: str = ""
    observed_generation: bool = False
    #: Whether each condition has an observedGeneration.
    by_generation: bool = False
    schema: MergeSchema | None = None


@cache
def status_form(kind: type[Object]) -> StatusForm:
    """Read from a kind's schema whether it has conditions, and whether several writers can share them."""
    if "status" not in kind.__struct_fields__:
        return StatusForm(how="not")
    subresource = "status" if has_status_subresource(kind) else ""
    try:
        root = merge_schema_of(kind.gvk(), kind)
    except TypeError:
        # A model of another program's kind: its list types are in the CRD on the server, and unknown here.
        return _modeled(kind, subresource)
    status = root.field("status")
    conditions = status.field("conditions") if status is not None and status.declares("conditions") else None
    if status is None or conditions is None:
        return StatusForm(how="not")
    shared = conditions.list_type == "map" and conditions.map_keys == ("type",)
    return StatusForm(
        how="apply" if shared else "patch",
        subresource=subresource,
        observed_generation=status.declares("observedGeneration"),
        by_generation=conditions.items.declares("observedGeneration"),
        schema=status,
    )


def unreported(kind: type[Object]) -> str:
    """Why no condition of a kind can be written, and what to write instead; empty if conditions can be written."""
    if status_form(kind).how != "not":
        return ""
    shape = field_shapes(kind).get("status")
    name = shape.cls.__name__ if isinstance(shape, StructShape) else ""
    what = f"{name} has no conditions" if name else "it has no status"
    write = f"class {name}(Status)" if name else f"class {kind.__name__}(Resource[..., Status], ...)"
    return f"{what}, so Steersman reports readiness only in events; to see it in the status, write {write}"


def wrong_status(obj: Object, error: Exception) -> Exception:
    """The error with the object and a remedy, if a value in the status does not have the type of its field."""
    if not isinstance(error, msgspec.ValidationError):
        return error
    words, _, where = str(error).replace("`", "").partition(" - at ")
    field = where.removeprefix("$.") or "status"
    return TypeError(f"{obj.kind} {obj.key}: {field}: {words}; set {field} to a value of its type")


def _modeled(kind: type[Object], subresource: str) -> StatusForm:
    shape = field_shapes(kind).get("status")
    fields = wire_names(shape.cls).values() if isinstance(shape, StructShape) else ()
    if "conditions" not in fields:
        return StatusForm(how="not")
    return StatusForm(how="patch", subresource=subresource, observed_generation="observedGeneration" in fields)


class StatusDraft:
    """The status of one object during one reconcile: make it before any state runs, call `begin` first and `write` last."""

    def __init__(
        self,
        ctx: Context,
        obj: Object,
        known: tuple[str, ...] = (SUSPENDED,),
        *,
        formerly: tuple[str, ...] = (),
        silent: bool = False,
    ) -> None:
        self._ctx = ctx
        self._obj = obj
        #: Earlier names of the controller.
        self._formerly = formerly
        #: Silent: nothing is written, whatever fields the kind has.
        self._form = StatusForm(how="not") if silent else status_form(type(obj))
        self._known = frozenset(known)
        self._before: Tree = _as_read(obj)
        self._untouched = _fingerprint(obj) if was_read(obj) else None
        #: The object was deleted or replaced since it was read, so the observations are not about the current one.
        self._successor = False
        #: What we applied earlier; None until the first read.
        self._own: Tree | None = None
        #: Our conditions that no state declares: states set them directly, or an earlier version did.
        self._extras: dict[str, Tree] = {}
        #: Our conditions that `write` removed.
        self.taken_away: frozenset[str] = frozenset()

    @property
    def speaks(self) -> bool:
        """Whether the kind has conditions."""
        return self._form.how != "not"

    @property
    def present(self) -> dict[str, Tree]:
        """The conditions that the object had when it was read, by type."""
        return _by_type(self._before)

    async def begin(self) -> None:
        """Remove our conditions that no state declares from the object. A state that still wants one sets it again."""
        unknown = self.present.keys() - self._known
        if self._form.how != "apply" or not unknown:
            return
        self._extras = {name: tree for name, tree in _by_type(await self.applied()).items() if name in unknown}
        status: Any = getattr(self._obj, "status", None)
        if self._extras and status is not None:
            status.conditions = [each for each in status.conditions or () if each.type not in self._extras]

    @property
    def before(self) -> Tree:
        """The status as it was read."""
        return self._before

    @property
    def after(self) -> Tree:
        """The status as states left it."""
        return self._before if self._is_untouched else cast("Tree", to_json(self._obj).get("status") or {})

    async def write(self, observations: Observations, *, complete: bool, after: Tree) -> bool:
        """Write the observations and what changed between `before` and ``after``; returns whether a request was needed."""
        if self._form.how == "not":
            return False
        set_by_hand = self._set_by_hand(after)
        self.taken_away = await self._ours(observations.removed)
        if not self._differs(observations, after, set_by_hand, complete=complete):
            await self._take_over()  # otherwise an earlier name keeps the fields until something changes
            return False
        try:
            if self._form.how == "apply":
                await self._apply(observations, after, set_by_hand, complete=complete)
            else:
                await self._patch(observations, after, set_by_hand)
        except NotFound:
            if await self._lacks_subresource():
                raise _no_subresource(self._obj) from None
            return False  # the object was deleted meanwhile
        return True

    async def _lacks_subresource(self) -> bool:
        """Whether the object is there, so that only its status is not served."""
        if not self._form.subresource:
            return False
        found = await self._ctx.client.live.metadata.find(type(self._obj), self._obj.key)
        return found is not None and found.uid == self._obj.uid

    @property
    def _is_untouched(self) -> bool:
        """Whether no state changed the status: the common case, and cheaper to tell than to encode the whole object."""
        return self._untouched is not None and self._untouched == _fingerprint(self._obj)

    # the new status

    async def _ours(self, removed: Collection[str]) -> frozenset[str]:
        """The conditions among ``removed`` that exist and are ours; those of other writers stay."""
        there = frozenset(self.present.keys() & removed)
        return there & _by_type(await self.applied()).keys() if there and self._form.how == "apply" else there

    def _set_by_hand(self, after: Tree) -> dict[str, Tree]:
        """The conditions that states set directly in this reconcile."""
        earlier = self.present
        found: dict[str, Tree] = {}
        for name, tree in _by_type(after).items():
            if name in self._known or (name not in self._extras and earlier.get(name) == tree):
                continue
            before = earlier.get(name, {})
            same = before.get("status") == tree.get("status") and "lastTransitionTime" in before
            found[name] = {**tree, "lastTransitionTime": before["lastTransitionTime"]} if same else tree
        return found

    def _differs(
        self, observations: Observations, after: Tree, set_by_hand: dict[str, Tree], *, complete: bool
    ) -> bool:
        present = self.present
        generation = self._obj.generation
        if any(_news(each, present.get(each.type), generation) for each in observations.set):
            return True
        if self.taken_away:
            return True
        if any(present.get(name) != tree for name, tree in set_by_hand.items()):
            return True
        if complete and self._extras.keys() - set_by_hand.keys():
            return True
        if observations.observed and self._counts and self._before.get("observedGeneration") != generation:
            return True
        return _others(self._before) != _others(after)

    @property
    def _counts(self) -> bool:
        return self._form.observed_generation and self._obj.generation > 0

    async def _apply(
        self, observations: Observations, after: Tree, set_by_hand: dict[str, Tree], *, complete: bool
    ) -> None:
        own = await self.applied()
        if self._successor:
            return
        conditions = _by_type(own)
        for name in [*observations.removed, *(self._extras if complete else ())]:
            conditions.pop(name, None)
        conditions |= set_by_hand
        conditions |= {tree["type"]: tree for tree in self._trees(observations)}
        status = merge_changes(_others(own), _others(self._before), _others(after), self._form.schema)
        if observations.observed and self._counts:
            status["observedGeneration"] = self._obj.generation
        elif "observedGeneration" in own:
            status["observedGeneration"] = own["observedGeneration"]
        status["conditions"] = list(conditions.values())
        obj = self._obj
        metadata: Tree = {"name": obj.key.name}
        if obj.key.namespace:
            metadata["namespace"] = obj.key.namespace
        tree = {"apiVersion": obj.api_version, "kind": obj.kind, "metadata": metadata, "status": status}
        client = internal_client(self._ctx)
        prepared = await client.prepare_apply(
            intent_of(type(obj), tree), force=True, field_manager=self._manager, subresource=self._form.subresource
        )
        if client.known_apply(prepared) is None:
            # Require the uid: without a status subresource, an apply would recreate an object that was deleted meanwhile.
            written = await client.send_apply(prepared, uid=obj.uid)
            await self._take_away(_others(own).keys() - _others(after).keys(), written)

    async def _take_away(self, names: Collection[str], written: Object) -> None:
        """Remove fields of ours that another writer owns too: giving up our ownership alone would leave their values."""
        left = {name: None for name in names if name in _as_read(written)}
        if left:
            metadata = {"resourceVersion": written.metadata.resource_version, "uid": written.uid}
            patch = MergePatch({"metadata": metadata, "status": left})
            await self._ctx.client.patch(type(written), written.key, patch, subresource=self._form.subresource)

    async def _patch(self, observations: Observations, after: Tree, set_by_hand: dict[str, Tree]) -> None:
        conditions = {name: tree for name, tree in self.present.items() if name not in observations.removed}
        conditions |= set_by_hand
        conditions |= {tree["type"]: tree for tree in self._trees(observations)}
        earlier, later = _others(self._before), _others(after)
        status: Tree = {name: later.get(name) for name in earlier | later if earlier.get(name) != later.get(name)}
        if observations.observed and self._counts:
            status["observedGeneration"] = self._obj.generation
        status["conditions"] = list(conditions.values())
        metadata = {"resourceVersion": self._obj.metadata.resource_version, "uid": self._obj.uid}
        patch = MergePatch({"metadata": metadata, "status": status})
        await self._ctx.client.patch(type(self._obj), self._obj.key, patch, subresource=self._form.subresource)

    def _trees(self, observations: Observations) -> list[Tree]:
        generation = self._obj.generation if self._form.by_generation else 0
        return condition_trees(observations.set, self.present, generation=generation, now=utc_now())

    # the earlier status

    @property
    def _manager(self) -> str:
        program = self._ctx.client.field_manager
        if not program:
            raise ConfigError(
                f'controller {self._ctx.controller} writes a status, which needs a field manager: set Manager(name="...") and keep it'
            )
        return self._manager_of(self._ctx.controller)

    def _manager_of(self, controller: str) -> str:
        return f"{self._ctx.client.field_manager}/{controller}"[:_MANAGER_MAX]

    async def _take_over(self) -> None:
        """Transfer the fields of earlier names, of the program and of the controller, to the current name."""
        client, kind, key = internal_client(self._ctx), type(self._obj), self._obj.key
        await client.take_over(kind, key)
        if not self._formerly or self._form.how != "apply":
            return
        view = await client.view(kind, key)
        former = {self._manager_of(name) for name in self._formerly} - {self._manager}
        if view is not None and not former.isdisjoint(managers_of(view)):
            await client.move_entries(kind, key, former, self._manager)

    async def applied(self) -> Tree:
        """What this controller applied to the status, as of the newest known version."""
        if self._own is None:
            await self._take_over()
            tree = await self._with_managed_fields()
            schema = merge_schema_of(type(self._obj).gvk(), type(self._obj))
            found = extract_tree(tree, manager=self._manager, subresource=self._form.subresource, schema=schema)
            self._own = cast("Tree", found.get("status") or {})
        return self._own

    async def _with_managed_fields(self) -> Tree:
        kind, key = type(self._obj), self._obj.key
        view = await internal_client(self._ctx).view(kind, key)
        if view is None or view.uid != self._obj.uid:
            self._successor = True
            return {}
        managed: list[Tree] = msgspec.json.decode(view.stored.managed_fields or b"[]")
        if view.stored.partial or any(self._is_of_another_version(entry) for entry in managed):
            # The cache lacks the entries of other managers: what they hold is not ours under another name.
            live = await self._ctx.client.live.find(kind, key)
            self._successor = live is None or live.uid != self._obj.uid
            return {} if live is None or self._successor else to_json(live)
        if not managed:
            return {}  # this program has written nothing yet
        tree: Tree = msgspec.json.decode(view.stored.raw)
        tree["metadata"]["managedFields"] = managed
        return tree

    def _is_of_another_version(self, entry: Tree) -> bool:
        return entry.get("manager") == self._manager and entry.get("apiVersion") != self._obj.api_version


def _no_subresource(obj: Object) -> ConfigError:
    return ConfigError(
        f"{obj.kind} {obj.key}: its status cannot be written, because the CustomResourceDefinition of {obj.kind} has no status"
        " subresource; add subresources: {status: {}} to its version, or apply the CRD that `steersman generate crds` writes"
    )


class _Whole(msgspec.Struct):
    """An object decoded for its status alone."""

    status: Tree | None = None


_whole_decoder = msgspec.json.Decoder(_Whole)


def _as_read(obj: Object) -> Tree:
    raw = raw_bytes(obj)
    return (_whole_decoder.decode(raw).status or {}) if raw is not None else {}


def _fingerprint(obj: Object) -> bytes | None:
    return fingerprint(getattr(obj, "status", None))


def _by_type(status: Tree) -> dict[str, Tree]:
    return {each["type"]: each for each in status.get("conditions") or () if "type" in each}


def _others(status: Tree) -> Tree:
    """A status without the fields that the machine itself sets."""
    return {name: value for name, value in status.items() if name not in _OWN_FIELDS}


def _news(observation: Observation, present: Tree | None, generation: int) -> bool:
    if present is None:
        return True
    said = (present.get("status"), present.get("reason"), present.get("message", ""))
    if said != (observation.status, observation.reason, cut(observation.message)):
        return True
    return "observedGeneration" in present and present["observedGeneration"] != generation
