"""A plan as a value: what an operator would create, change and delete, and what keeps it from that. Pure.

Guarantees
- Each object is listed once for its change, and once more if its status would be written.
- No value of a Secret is contained.
- The order is that of causes, places, namespaces, kinds and names: the same cluster gives the same plan, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeAlias, cast

import msgspec

from steersman.cache import Informer
from steersman.controller import Requeue, RequeueAfter
from steersman.debug import count, duration
from steersman.objects import Key
from steersman.plan.diffs import Line, diff_lines, visible
from steersman.plan.planned_objects import PlannedObject, PlannedObjects, Reconcile
from steersman.plan.trees import Tree, as_sent, count_fields, part
from steersman.plan.trials import Trial, Trials

Action: TypeAlias = Literal["create", "change", "delete", "deleteWhenReady", "status"]

_OWNER_UID = "steersman.dev/owner-uid"
_OWNER = "steersman.dev/owner"


class PlannedChange(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The planned change of one object, or of its status."""

    action: Action
    api_version: str
    kind: str
    namespace: str
    name: str
    #: The objects whose reconciles cause it: ``Site default/home``.
    for_: tuple[str, ...] = msgspec.field(name="for", default=())
    notes: tuple[str, ...] = ()
    #: The difference as lines of YAML, each after ``+``, ``-`` or a space.
    diff: tuple[str, ...] = ()
    #: The object without server-managed fields; None before a creation and after a deletion.
    before: Any = None
    after: Any = None

    @property
    def key(self) -> Key:
        """The key of the object."""
        return Key(self.namespace, self.name)

    @property
    def title(self) -> str:
        """``create Deployment default/web``."""
        match self.action:
            case "status":
                return f"status of {self.kind} {self.key}"
            case "deleteWhenReady":
                return f"delete when ready {self.kind} {self.key}"
            case "create" | "change" | "delete":
                return f"{self.action} {self.kind} {self.key}"


class Remark(msgspec.Struct, frozen=True, kw_only=True):
    """A message about an object or a write."""

    what: str
    message: str


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator would change; see `plan_changes`."""

    server: str
    #: All changes, in the order of the objects that cause them.
    changes: tuple[PlannedChange, ...]
    #: How many objects of the operator would stay as they are.
    unchanged: int
    #: Writes that the server would reject, or that have no dry run.
    rejected: tuple[Remark, ...]
    #: Reconciles that failed, or did not end in time.
    failed: tuple[Remark, ...]
    #: Lookups of external objects that failed.
    failed_lookups: tuple[Remark, ...]
    #: Objects that wait for something after the changes.
    waits: tuple[Remark, ...]

    @property
    def created(self) -> tuple[PlannedChange, ...]:
        """The objects to create."""
        return self._with("create")

    @property
    def changed(self) -> tuple[PlannedChange, ...]:
        """The objects to change, apart from their status."""
        return self._with("change")

    @property
    def deleted(self) -> tuple[PlannedChange, ...]:
        """The objects to delete now."""
        return self._with("delete")

    @property
    def deleted_when_ready(self) -> tuple[PlannedChange, ...]:
        """Children that are no longer declared, and stay until all declared ones are ready."""
        return self._with("deleteWhenReady")

    @property
    def statuses(self) -> tuple[PlannedChange, ...]:
        """The statuses to write."""
        return self._with("status")

    @property
    def complete(self) -> bool:
        """Whether it contains everything: nothing was rejected, and nothing failed."""
        return not (self.rejected or self.failed or self.failed_lookups)

    def __str__(self) -> str:
        """One line for each change and each remark: ``assert plan.complete, plan``."""
        lines = [", for ".join(filter(None, (change.title, " and ".join(change.for_)))) for change in self.changes]
        lines += [f"{wait.what} then waits: {wait.message}" for wait in self.waits]
        lines += [f"rejected: {each.what}: {each.message}" for each in self.rejected]
        lines += [f"failed: {each.what}: {each.message}" for each in (*self.failed, *self.failed_lookups)]
        return "\n".join(lines) or "nothing to change"

    def _with(self, action: Action) -> tuple[PlannedChange, ...]:
        return tuple(change for change in self.changes if change.action == action)


def result_of(planned: PlannedObjects, trials: Trials, *, server: str, within: float) -> Plan:
    """The plan that trials have shown."""
    gone = {_identity_of(one) for one in planned if one.deleted}
    later = {each: trial for trial in trials.all for each in _pending(trial) if each not in gone}
    found = [change for one in sorted(planned, key=lambda one: one.place) for change in _changes(one)]
    found += [_later(each, trial, trials.informers) for each, trial in later.items()]
    touched = {_identity_of(each) for each in planned}
    altered = {_identity_of(one) for one in planned if any(_changes(one))} | later.keys()
    return Plan(
        server=server,
        changes=tuple(sorted(found, key=_order)),
        unchanged=len((_theirs(trials) | touched) - altered),
        rejected=tuple(Remark(what=what, message=words) for what, words in _rejected(planned)),
        failed=tuple(_failed(trials.all, within)),
        failed_lookups=tuple(Remark(what=what, message=why) for what, why in sorted(trials.failed_lookups)),
        waits=tuple(_waits(planned, trials)),
    )


def _order(change: PlannedChange) -> tuple[str, int, str, str, str]:
    """Sort by the causing object; for each: itself first, then what is created and deleted for it, then its status.

    Objects without a namespace come first, as others may be in a namespace among them.
    """
    mine = f"{change.kind} {change.key}"
    place = {"create": 1, "change": 1, "delete": 2, "deleteWhenReady": 2, "status": 3}[change.action]
    cause = (change.for_[0], place) if change.for_ else (mine, place if change.action == "status" else 0)
    return *cause, change.namespace, change.kind, change.name


def _rejected(planned: PlannedObjects) -> list[tuple[str, str]]:
    """The rejections, each once, in the order of the objects that cause them."""
    ordered = sorted(planned.rejections, key=lambda each: (str(each.by or ""), each.what, each.words))
    return [*dict.fromkeys((each.what, each.words) for each in ordered)]


def _changes(planned: PlannedObject) -> Iterator[PlannedChange]:
    """The changes of one object; none if only server-managed fields differ."""
    before, after = visible(planned.before, None if planned.deleted else planned.after)
    shown = after or before or {}
    namespace, _, name = planned.name.rpartition("/")
    common: dict[str, Any] = {
        "api_version": str(shown.get("apiVersion", "")),
        "kind": planned.kind,
        "namespace": namespace,
        "name": name,
        "for_": tuple(sorted({str(who) for who in planned.by if (who.kind.kind, str(who.key)) != _itself(planned)})),
    }
    notes = tuple(planned.notes)
    if planned.deleted:
        yield PlannedChange(action="delete", notes=(*_why_deleted(planned), *notes), before=before, **common)
        return
    if before is None:
        yield _created(planned, after or {}, notes, common)
        return
    lines = diff_lines(_but(before, "status"), _but(after or {}, "status"))
    if lines or planned.replaced:
        again = ("deleted and created again",) if planned.replaced else ()
        yield PlannedChange(
            action="change",
            notes=(*again, *notes),
            diff=_printed(lines),
            **common,
            before=_but(before, "status"),
            after=_but(after, "status"),
        )
    status = diff_lines({"status": before.get("status") or {}}, {"status": (after or {}).get("status") or {}})
    if status:
        yield PlannedChange(
            action="status",
            diff=_printed(status),
            before=before.get("status"),
            after=(after or {}).get("status"),
            **common,
        )


def _itself(planned: PlannedObject) -> tuple[str, str]:
    at = planned.place
    return planned.kind, f"{at.namespace}/{at.name}" if at.namespace else at.name


def _created(planned: PlannedObject, after: Tree, notes: tuple[str, ...], common: Tree) -> PlannedChange:
    whole = _but(after, "status")
    shown = _headless(whole)
    if planned.sent is not None and planned.kind != "Secret":
        sent = as_sent(_headless(planned.sent), shown)
        more = count_fields(shown) - count_fields(sent)
        shown = sent if sent.get("metadata") else _but(sent, "metadata")
        if more > 0:
            notes = (*notes, f"and {count(more, 'field')} set by the server")
    lines = diff_lines(None, shown)
    return PlannedChange(action="create", notes=notes, diff=_printed(lines), after=whole, **common)


def _but(tree: Tree | None, *names: str) -> Tree:
    return {name: value for name, value in (tree or {}).items() if name not in names}


def _headless(tree: Tree) -> Tree:
    """An object without what its title shows: kind, name and owner."""
    metadata = _but(part(tree, "metadata"), "name", "namespace", "ownerReferences", "generateName")
    shown = _but(tree, "apiVersion", "kind", "metadata", "status")
    return {"metadata": metadata, **shown} if metadata else shown


def _printed(lines: Iterable[Line]) -> tuple[str, ...]:
    return tuple(map(str, lines))


def _why_deleted(planned: PlannedObject) -> Iterator[str]:
    """Why it is deleted: pruned, if its owner no longer declares it; and which finalizers it waits for."""
    metadata = part(planned.before, "metadata")
    owners = {(reference.get("kind"), reference.get("name")) for reference in metadata.get("ownerReferences") or ()}
    named = part(metadata, "annotations").get(_OWNER, "")
    for who in planned.by:
        if (who.kind.kind, who.key.name) in owners or (named and named == _annotation(who)):
            yield "pruned"
            break
    if planned.after is not None and (names := metadata.get("finalizers")):
        yield f"waits for its finalizers: {', '.join(names)}"


def _annotation(who: Reconcile) -> str:
    kind = f"{who.kind.kind}.{who.kind.group}" if who.kind.group else who.kind.kind
    return f"{kind}/{who.key.namespace}/{who.key.name}"


_Identity: TypeAlias = tuple[str, str, str, str]


def _identity_of(planned: PlannedObject) -> _Identity:
    at = planned.place
    return at.group, planned.kind, at.namespace, at.name


def _pending(trial: Trial) -> Iterator[_Identity]:
    """The children that this object deletes once it is ready."""
    for each in trial.pending:
        yield each.kind.group, each.kind.kind, each.key.namespace, each.key.name


def _later(child: _Identity, trial: Trial, informers: Iterable[Informer[Any]]) -> PlannedChange:
    group, kind, namespace, name = child
    stored = next(
        (
            found
            for informer in informers
            if (informer.gvk.group, informer.gvk.kind) == (group, kind)
            and (found := informer.store.get(Key(namespace, name))) is not None
        ),
        None,
    )
    before, _ = visible(msgspec.json.decode(stored.raw) if stored is not None else None, None)
    return PlannedChange(
        action="deleteWhenReady",
        api_version=str((before or {}).get("apiVersion", "")),
        kind=kind,
        namespace=namespace,
        name=name,
        for_=(str(trial.reconcile),),
        notes=("no longer declared",),
        before=before,
    )


def _theirs(trials: Trials) -> set[_Identity]:
    """The reconciled objects, and those that belong to them."""
    keys = {(trial.reconcile.kind, trial.reconcile.key) for trial in trials.all}
    found: set[_Identity] = set()
    uids: set[str] = set()
    for informer in trials.informers:
        for stored in informer.store:
            if (informer.gvk, stored.key) in keys:
                uids.add(stored.uid)
                found.add((informer.gvk.group, informer.gvk.kind, stored.key.namespace, stored.key.name))
    for informer in trials.informers:
        for stored in informer.store:
            if not uids.isdisjoint(stored.owners) or stored.labels.get(_OWNER_UID) in uids:
                found.add((informer.gvk.group, informer.gvk.kind, stored.key.namespace, stored.key.name))
    return found


def _failed(trials: Iterable[Trial], within: float) -> Iterator[Remark]:
    for trial in trials:
        if trial.running:
            yield Remark(what=str(trial.reconcile), message=f"its reconcile did not end within {duration(within)}")
        elif trial.error:
            yield Remark(what=str(trial.reconcile), message=trial.error)


def _waits(planned: PlannedObjects, trials: Trials) -> Iterator[Remark]:
    for trial in trials.all:
        if trial.running or trial.error:
            continue
        found = planned.find(trial.reconcile.kind, trial.reconcile.key)
        tree = found.after if found is not None else _stored(trials.informers, trial.reconcile)
        words = [_not_ready(tree)] if tree is not None else []
        match trial.outcome:
            case RequeueAfter() as outcome:
                words.append(f"it is reconciled again after {duration(outcome.delay)}")
            case Requeue():
                words.append("it is requeued")
            case _:
                pass
        if message := "; ".join(filter(None, words)):
            yield Remark(what=str(trial.reconcile), message=message)


def _stored(informers: Iterable[Informer[Any]], who: Reconcile) -> Tree | None:
    for informer in informers:
        if informer.gvk == who.kind and (stored := informer.store.get(who.key)) is not None:
            return msgspec.json.decode(stored.raw)
    return None


def _not_ready(tree: Tree) -> str:
    """The message of a Ready condition that is not true; empty if the object is ready."""
    conditions = cast("list[Tree]", part(tree, "status").get("conditions") or [])
    for condition in conditions:
        if condition.get("type") == "Ready" and condition.get("status") != "True":
            return str(condition.get("message") or condition.get("reason") or "it is not ready")
    return ""
