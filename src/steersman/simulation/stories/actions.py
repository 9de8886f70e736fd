"""The actions of a run: what each actor did, from the trace. Pure.

Guarantees
- Reads and watches are left out. So are writes that change nothing, unless a fault happens there or the server rejects them.
- A commit belongs to the request that asked for it. The control plane, or another client, made the others.
- No action shows a secret value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import msgspec

from steersman.plan import object_diff
from steersman.simulation.runs.faults import ChildDeleted, ChildEdited, CrashBefore, InterferingWrite, LostRequest
from steersman.simulation.runs.meddler import TOUCHED
from steersman.simulation.runs.places import EXTERNAL, Place
from steersman.simulation.runs.recorded_storage import RECORDS
from steersman.simulation.runs.trace import Entry
from steersman.simulation.stories.words import Vocabulary, collection_of, tree_of

#: The column of the server and of its controllers.
CONTROL_PLANE = "control plane"
#: The column of the client that changes what the operator writes.
OTHER_CLIENT = "another client"
#: How many characters of an error are shown.
_ERROR_MAX = 200

Sort: TypeAlias = Literal["write", "fault", "crash", "start", "failure", "note"]


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """What an actor did."""

    #: Virtual seconds since the operator first started.
    time: float
    actor: str
    #: The actor that it concerns; empty if it is its own matter.
    target: str = ""
    sort: Sort
    words: str
    #: How the server rejected it; empty if it did not.
    outcome: str = ""
    #: Whether the object existed before and after.
    change: Literal["create", "change", "delete", ""] = ""
    #: What changed, in lines that begin with a sign.
    diff: tuple[str, ...] = ()


class _Draft:
    """An action that later entries complete."""

    def __init__(self, entry: Entry, sort: Sort, words: str, *, actor: str = "", target: str = "") -> None:
        self.time = entry.time
        self.actor = actor or entry.actor
        self.target = target
        self.sort: Sort = sort
        self.words = words
        self.place = entry.place
        self.outcome = ""
        self.committed = False
        self.is_wanted = sort != "write"
        self._before: bytes | None = None
        self._after: bytes | None = None

    @property
    def is_collection(self) -> bool:
        """Whether it concerns several objects."""
        return self.place is not None and self.place.verb == "deletecollection"

    def commit(self, entry: Entry) -> None:
        """Add a commit that belongs to the action."""
        if not self.committed:
            self._before = entry.before
        self._after = entry.after
        self.committed = self.is_wanted = True

    def action(self, start: float) -> Action | None:
        """The action; None if it does not matter."""
        before, after = tree_of(self._before), tree_of(self._after)
        diff = tuple(object_diff(before, after)) if self.committed else ()
        if not self.is_wanted or (self.committed and not diff and self.actor == CONTROL_PLANE):
            return None
        return Action(
            time=round(self.time - start, 6),
            actor=self.actor,
            target=self.target,
            sort=self.sort,
            words=self.words + self._consequence(after),
            outcome=self.outcome,
            change="" if not self.committed else _change(before, after),
            diff=diff,
        )

    def _consequence(self, after: Any) -> str:
        """An update that removes the last finalizer deletes the object."""
        deletes = self.words.startswith("deletes")
        return ", which deletes it" if self.committed and after is None and not deletes else ""


def actions_of(recording: Iterable[Entry], vocabulary: Vocabulary) -> list[Action]:
    """The actions of a run, in order."""
    reader = _Reader(vocabulary)
    entries = list(recording)
    for entry in entries:
        reader.read(entry)
    start = entries[0].time if entries else 0.0
    return [action for draft in reader.drafts if (action := draft.action(start)) is not None]


class _Reader:
    """Turns entries into drafts."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self.drafts: list[_Draft] = []
        #: Writes without a reply.
        self._open: list[_Draft] = []
        #: The places at which another client acts.
        self._meddled: list[Place] = []

    def read(self, entry: Entry) -> None:
        """Take the next entry."""
        match entry.sort:
            case "request":
                self._request(entry)
            case "reply":
                self._reply(entry)
            case "fault":
                self._fault(entry)
            case "commit":
                self._commit(entry)
            case "effect":
                self._effect(entry)
            case "crash":
                self._crash(entry)
            case "reconcile":
                self._reconcile(entry)
            case "start":
                self._add(_Draft(entry, "start", entry.words))
            case "log":
                pass  # what matters of it is an action, too
            case _:
                self._add(_Draft(entry, "note", entry.words))

    def _add(self, draft: _Draft) -> _Draft:
        self.drafts.append(draft)
        return draft

    def _request(self, entry: Entry) -> None:
        place = entry.place
        if place is None or not place.is_write or place.is_lease or place.is_event:
            return
        target = place.resource.removeprefix(EXTERNAL) if place.is_external else CONTROL_PLANE
        self._open.append(self._add(_Draft(entry, "write", self._vocabulary.acts(place), target=target)))

    def _reply(self, entry: Entry) -> None:
        draft = next((draft for draft in self._open if draft.place == entry.place), None)
        if draft is None:
            return
        self._open.remove(draft)
        if entry.status >= 400:
            draft.outcome = str(entry.status)
            draft.is_wanted = True

    def _fault(self, entry: Entry) -> None:
        place, fault = entry.place, entry.fault
        if place is None or fault is None:
            return
        sent = next((draft for draft in self._open if draft.place == place), None)
        if sent is not None:
            # The line of a request that is never sent would mislead.
            sent.is_wanted = not isinstance(fault, CrashBefore)
            if isinstance(fault, LostRequest):
                sent.outcome = "lost"
            if isinstance(fault, CrashBefore | LostRequest):
                self._open.remove(sent)
        if isinstance(fault, InterferingWrite | ChildEdited | ChildDeleted):
            self._meddled.append(place)
        self._add(_Draft(entry, "fault", self._vocabulary.fault(fault, place)))

    def _crash(self, entry: Entry) -> None:
        last = self.drafts[-1] if self.drafts else None
        # A fault that is the crash says so itself.
        if last is None or (last.sort, last.actor, last.time) != ("fault", entry.actor, entry.time):
            self._add(_Draft(entry, "crash", "crashes"))

    def _reconcile(self, entry: Entry) -> None:
        head, _, ending = entry.words.partition(": ")
        result, failed, error = ending.partition(": ")
        if failed:
            line = error.strip().splitlines()[-1] if error.strip() else result
            words = f"{head.replace(' reconciled ', ' fails to reconcile ')}: {line[:_ERROR_MAX]}"
            self._add(_Draft(entry, "failure", words))

    def _effect(self, entry: Entry) -> None:
        for draft in self._open:
            place = draft.place
            if place is not None and place.is_external and entry.words == f"{place.verb} {place.key}, by {draft.actor}":
                draft.is_wanted = True
                self._open.remove(draft)
                return

    def _commit(self, entry: Entry) -> None:
        if entry.key.startswith(RECORDS):
            return
        asked = (draft for draft in self._open if draft.place is not None and _concerns(draft.place, entry.key))
        draft = next((draft for draft in asked if entry.actor in {draft.actor, "server"}), None)
        meddled = next((place for place in self._meddled if _concerns(place, entry.key)), None)
        if meddled is not None and (_is_touched(entry) or draft is None or draft.committed):
            self._meddled.remove(meddled)
            self._own_line(entry, OTHER_CLIENT)
        elif draft is not None and not (draft.committed and draft.is_collection):
            draft.commit(entry)
        else:
            self._own_line(entry, CONTROL_PLANE)

    def _own_line(self, entry: Entry, actor: str) -> None:
        verb = "creates" if entry.before is None else "deletes" if entry.after is None else "changes"
        words = f"{verb} {self._vocabulary.object_words(entry.key)}"
        target = "" if actor == CONTROL_PLANE else CONTROL_PLANE
        self._add(_Draft(entry, "write", words, actor=actor, target=target)).commit(entry)


def _concerns(place: Place, key: str) -> bool:
    """Whether a request can write the object of a key in the store."""
    name = key.partition("/")[2].partition("/")[2]
    if collection_of(key) != f"{place.group or 'core'}/{place.resource.partition('/')[0]}":
        return False
    if place.verb == "deletecollection":
        return name.startswith(place.key)
    return name.startswith(place.key[:-1]) if place.key.endswith("*") else name == place.key


def _is_touched(entry: Entry) -> bool:
    """Whether a commit sets the annotation of another client."""
    one, other = _annotations(entry.before), _annotations(entry.after)
    return TOUCHED in other and one.get(TOUCHED) != other[TOUCHED]


def _annotations(value: bytes | None) -> dict[str, Any]:
    metadata: dict[str, Any] = (tree_of(value) or {}).get("metadata") or {}
    return metadata.get("annotations") or {}


def _change(before: Any, after: Any) -> Literal["create", "change", "delete"]:
    return "create" if before is None else "delete" if after is None else "change"
