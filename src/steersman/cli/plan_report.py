"""The report of a plan: as lines for people, as JSON for programs. Pure.

Guarantees
- Each object is listed once for its change, and once more if its status would be written.
- Colors are for terminals only; control characters in errors and objects are replaced.
- Neither form contains a value of a Secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeAlias, cast

import msgspec

from steersman.cache import Informer
from steersman.cli.diffs import Line, Tree, as_sent, count_fields, diff_lines, hidden, part
from steersman.cli.intentions import Intention, Intentions, Reconcile
from steersman.cli.rehearsal import Look
from steersman.controller import Requeue, RequeueAfter
from steersman.manager.words import count, duration
from steersman.objects import Key

Action: TypeAlias = Literal["create", "change", "delete", "deleteWhenReady", "status"]

_OWNER_UID = "steersman.dev/owner-uid"
_OWNER = "steersman.dev/owner"
_COLOURS = {
    "+": "32",
    "-": "31",
    "create": "32",
    "delete": "31",
    "deleteWhenReady": "31",
    "change": "33",
    "status": "36",
}


class Change(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The planned change of one object, or of its status."""

    action: Action
    api_version: str
    kind: str
    namespace: str
    name: str
    #: The objects that cause it.
    for_: tuple[str, ...] = msgspec.field(name="for", default=())
    notes: tuple[str, ...] = ()
    #: The difference, as lines.
    diff: tuple[str, ...] = ()
    before: Any = None
    after: Any = None

    @property
    def title(self) -> str:
        """``create Deployment default/web``."""
        key = f"{self.namespace}/{self.name}" if self.namespace else self.name
        match self.action:
            case "status":
                return f"status of {self.kind} {key}"
            case "deleteWhenReady":
                return f"delete when ready {self.kind} {key}"
            case "create" | "change" | "delete":
                return f"{self.action} {self.kind} {key}"


class Refused(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A write that the server would reject, or that has no dry run; or a failed reconcile."""

    what: str
    message: str


class Waits(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An object that waits for something after the changes."""

    what: str
    message: str


class Report(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A whole plan."""

    server: str
    create: int
    change: int
    delete: int
    #: Children that are no longer declared, and stay until everything is ready.
    delete_when_ready: int
    status: int
    unchanged: int
    changes: tuple[Change, ...]
    refused: tuple[Refused, ...]
    failed: tuple[Refused, ...]
    waits: tuple[Waits, ...]

    @property
    def exit_code(self) -> int:
        """0: nothing to change; 2: something to change; 1: the plan is incomplete."""
        return 1 if self.refused or self.failed else 2 if self.changes else 0

    @property
    def summary(self) -> str:
        """The whole plan in one line."""
        parts = [
            f"{self.create} to create" if self.create else "",
            f"{self.change} to change" if self.change else "",
            f"{self.delete} to delete" if self.delete else "",
            f"{self.delete_when_ready} to delete when ready" if self.delete_when_ready else "",
            count(self.status, "status to write", "statuses to write") if self.status else "",
            f"{count(self.unchanged, 'object')} unchanged" if self.unchanged else "",
        ]
        words = ", ".join(filter(None, parts)) or "there is nothing to reconcile"
        troubles = [
            f"{len(self.refused)} rejected" if self.refused else "",
            f"{len(self.failed)} failed" if self.failed else "",
        ]
        told = ", ".join(filter(None, troubles))
        return f"{words}; {told}" if told else words


def report_of(
    intentions: Intentions,
    looks: Iterable[Look],
    informers: Iterable[Informer[Any]],
    *,
    server: str,
    seconds: float,
    failed_looks: Iterable[tuple[str, str]] = (),
) -> Report:
    """The report of a rehearsal."""
    looks, informers = list(looks), list(informers)
    gone = {_identity_of(one) for one in intentions if one.deleted}
    later = {each: look for look in looks for each in _pending(look) if each not in gone}
    found = [each for one in intentions for each in _changes(one)]
    found += [_later(each, look, informers) for each, look in later.items()]
    changes = sorted(found, key=_order)
    actions = [each.action for each in changes]
    touched = {_identity_of(each) for each in intentions}
    altered = {_identity_of(one) for one in intentions if any(_changes(one))} | later.keys()
    alike = _theirs(looks, informers) | {each for each in touched if each not in altered}
    return Report(
        server=server,
        create=actions.count("create"),
        change=actions.count("change"),
        delete=actions.count("delete"),
        delete_when_ready=actions.count("deleteWhenReady"),
        status=actions.count("status"),
        unchanged=len(alike - altered),
        changes=tuple(changes),
        refused=tuple(Refused(what=each.what, message=each.words) for each in intentions.refusals),
        failed=(*_failed(looks, seconds), *(Refused(what=what, message=why) for what, why in failed_looks)),
        waits=tuple(_waits(intentions, looks, informers)),
    )


def _order(change: Change) -> tuple[str, int]:
    """Sort by the causing object; for each: itself first, then what is created and deleted for it, then its status."""
    key = f"{change.namespace}/{change.name}" if change.namespace else change.name
    mine = f"{change.kind} {key}"
    place = {"create": 1, "change": 1, "delete": 2, "deleteWhenReady": 2, "status": 3}[change.action]
    return (change.for_[0], place) if change.for_ else (mine, place if change.action == "status" else 0)


def _changes(intention: Intention) -> Iterator[Change]:
    """The changes of one object; none if only server-managed fields differ."""
    before, after = hidden(intention.before, None if intention.deleted else intention.after)
    told = after or before or {}
    namespace, _, name = intention.name.rpartition("/")
    common: dict[str, Any] = {
        "api_version": str(told.get("apiVersion", "")),
        "kind": intention.kind,
        "namespace": namespace,
        "name": name,
        "for_": tuple(str(who) for who in intention.by if (who.kind.kind, str(who.key)) != _itself(intention)),
    }
    notes = tuple(intention.notes)
    if intention.deleted:
        yield Change(action="delete", notes=(*_why_deleted(intention), *notes), before=before, **common)
        return
    if before is None:
        yield _created(intention, after or {}, notes, common)
        return
    lines = diff_lines(_but(before, "status"), _but(after or {}, "status"))
    if lines:
        yield Change(
            action="change",
            notes=notes,
            diff=_printed(lines),
            **common,
            before=_but(before, "status"),
            after=_but(after, "status"),
        )
    status = diff_lines({"status": before.get("status") or {}}, {"status": (after or {}).get("status") or {}})
    if status:
        yield Change(
            action="status",
            diff=_printed(status),
            before=before.get("status"),
            after=(after or {}).get("status"),
            **common,
        )


def _itself(intention: Intention) -> tuple[str, str]:
    at = intention.place
    return intention.kind, f"{at.namespace}/{at.name}" if at.namespace else at.name


def _created(intention: Intention, after: Tree, notes: tuple[str, ...], common: Tree) -> Change:
    whole = _but(after, "status")
    shown = _headless(whole)
    if intention.sent is not None and intention.kind != "Secret":
        sent = as_sent(_headless(intention.sent), shown)
        more = count_fields(shown) - count_fields(sent)
        shown = sent if sent.get("metadata") else _but(sent, "metadata")
        if more > 0:
            notes = (*notes, f"and {count(more, 'field')} set by the server")
    lines = diff_lines(None, shown)
    return Change(action="create", notes=notes, diff=_printed(lines), after=whole, **common)


def _but(tree: Tree | None, *names: str) -> Tree:
    return {name: value for name, value in (tree or {}).items() if name not in names}


def _headless(tree: Tree) -> Tree:
    """An object without what its title shows: kind, name and owner."""
    metadata = _but(part(tree, "metadata"), "name", "namespace", "ownerReferences", "generateName")
    shown = _but(tree, "apiVersion", "kind", "metadata", "status")
    return {"metadata": metadata, **shown} if metadata else shown


def _printed(lines: Iterable[Line]) -> tuple[str, ...]:
    return tuple(map(str, lines))


def _why_deleted(intention: Intention) -> Iterator[str]:
    """Why it is deleted: pruned, if its owner no longer declares it; and which finalizers it waits for."""
    metadata = part(intention.before, "metadata")
    owners = {(each.get("kind"), each.get("name")) for each in metadata.get("ownerReferences") or ()}
    named = part(metadata, "annotations").get(_OWNER, "")
    for who in intention.by:
        if (who.kind.kind, who.key.name) in owners or (named and named == _annotation(who)):
            yield "pruned"
            break
    if intention.after is not None and (names := metadata.get("finalizers")):
        yield f"waits for its finalizers: {', '.join(names)}"


def _annotation(who: Reconcile) -> str:
    kind = f"{who.kind.kind}.{who.kind.group}" if who.kind.group else who.kind.kind
    return f"{kind}/{who.key.namespace}/{who.key.name}"


_Identity: TypeAlias = tuple[str, str, str, str]


def _identity_of(intention: Intention) -> _Identity:
    at = intention.place
    return at.group, intention.kind, at.namespace, at.name


def _pending(look: Look) -> Iterator[_Identity]:
    """The children that this object deletes once it is ready."""
    for each in look.pending:
        yield each.kind.group, each.kind.kind, each.key.namespace, each.key.name


def _later(child: _Identity, look: Look, informers: Iterable[Informer[Any]]) -> Change:
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
    before, _ = hidden(msgspec.json.decode(stored.raw) if stored is not None else None, None)
    return Change(
        action="deleteWhenReady",
        api_version=str((before or {}).get("apiVersion", "")),
        kind=kind,
        namespace=namespace,
        name=name,
        for_=(str(look.who),),
        notes=("no longer declared",),
        before=before,
    )


def _theirs(looks: Iterable[Look], informers: Iterable[Informer[Any]]) -> set[_Identity]:
    """The reconciled objects, and those that belong to them."""
    keys = {(look.who.kind, look.who.key) for look in looks}
    found: set[_Identity] = set()
    uids: set[str] = set()
    informers = list(informers)
    for informer in informers:
        for stored in informer.store:
            if (informer.gvk, stored.key) in keys:
                uids.add(stored.uid)
                found.add((informer.gvk.group, informer.gvk.kind, stored.key.namespace, stored.key.name))
    for informer in informers:
        for stored in informer.store:
            if not uids.isdisjoint(stored.owners) or stored.labels.get(_OWNER_UID) in uids:
                found.add((informer.gvk.group, informer.gvk.kind, stored.key.namespace, stored.key.name))
    return found


def _failed(looks: Iterable[Look], seconds: float) -> Iterator[Refused]:
    for look in looks:
        if look.under_way:
            yield Refused(what=str(look.who), message=f"its reconcile did not end within {duration(seconds)}")
        elif look.error:
            yield Refused(what=str(look.who), message=look.error)


def _waits(intentions: Intentions, looks: Iterable[Look], informers: list[Informer[Any]]) -> Iterator[Waits]:
    for look in looks:
        if look.under_way or look.error:
            continue
        planned = intentions.find(look.who.kind, look.who.key)
        tree = planned.after if planned is not None else _stored(informers, look.who)
        words = [_not_ready(tree)] if tree is not None else []
        match look.outcome:
            case RequeueAfter():
                words.append(f"it is reconciled again after {duration(look.outcome.delay)}")
            case Requeue():
                words.append("it is requeued")
            case _:
                pass
        if told := "; ".join(filter(None, words)):
            yield Waits(what=str(look.who), message=told)


def _stored(informers: Iterable[Informer[Any]], who: Reconcile) -> Tree | None:
    for informer in informers:
        if informer.gvk == who.kind and (stored := informer.store.get(who.key)) is not None:
            return msgspec.json.decode(stored.raw)
    return None


def _not_ready(tree: Tree) -> str:
    """The message of a Ready condition that is not true; empty if the object is ready."""
    conditions = cast("list[Tree]", part(tree, "status").get("conditions") or [])
    for each in conditions:
        if each.get("type") == "Ready" and each.get("status") != "True":
            return str(each.get("message") or each.get("reason") or "it is not ready")
    return ""


# text


def text_lines(report: Report, *, colours: bool) -> Iterator[str]:
    """The report for a terminal."""
    for change in report.changes:
        yield from _change_lines(change, colours=colours)
        yield ""
    for each in report.waits:
        yield f"{each.what} then waits: {_safe(each.message)}"
    for each in report.refused:
        yield _painted(f"rejected: {each.what}: {_safe(each.message)}", "31", colours=colours)
    for each in report.failed:
        yield _painted(f"failed: {each.what}: {_safe(each.message)}", "31", colours=colours)
    if report.waits or report.refused or report.failed:
        yield ""
    yield _painted(report.summary, "1", colours=colours)


def _change_lines(change: Change, *, colours: bool) -> Iterator[str]:
    notes = f" ({', '.join(change.notes)})" if change.notes else ""
    owners = f", for {' and '.join(change.for_)}" if change.for_ else ""
    title = _painted(change.title, f"1;{_COLOURS[change.action]}", colours=colours)
    yield f"{title}{_painted(_safe(notes + owners), '2', colours=colours)}"
    for line in change.diff:
        yield f"  {_painted(_safe(line), _COLOURS.get(line[:1], ''), colours=colours)}"


def _safe(text: str) -> str:
    """A text on one line, without terminal control characters."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _painted(text: str, colour: str, *, colours: bool) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m" if colours and colour and text else text
