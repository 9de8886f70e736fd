"""Why a child does not match its declaration, and what to do about it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from steersman.errors import Conflict, Forbidden, Invalid, NotFound
from steersman.objects import Object, ObjectMeta
from steersman.patterns.children.kinds import ChildIdentity
from steersman.patterns.children.membership import Bond, is_of_predecessor, standing, whose

#: How Kubernetes, and most custom kinds, report an immutable field.
_IMMUTABLE = re.compile(
    r"immutable|may not change|may not be changed|cannot change|cannot be changed|can not be changed|cannot be updated"
    r"|may not be updated|updates to .* are forbidden",
    re.IGNORECASE,
)
#: The server's message includes the rejected value, often followed by the difference.
_VALUE = re.compile(r"Invalid value: .*: ", re.DOTALL)


#: Reasons that need a user's attention, although Steersman retries.
_WRONG = frozenset({"Contested", "FieldConflict", "NamespaceNotFound", "NotOurs"})
#: Seconds between two attempts to create a child in a namespace that is missing or being deleted: no event announces it.
_NAMESPACE_AGAIN = 5.0


class Problem(msgspec.Struct, frozen=True):
    """Why a child does not match its declaration."""

    #: One CamelCase word: "NotOurs", "Immutable", "Recreating".
    reason: str
    message: str
    #: Neither waiting nor a retry helps: a user has to change something.
    terminal: bool = False
    #: Reconcile again after so many seconds.
    after: float | None = None

    @property
    def wrong(self) -> bool:
        """Whether to record a Warning: waiting does not solve it."""
        return self.terminal or self.reason in _WRONG


class ContestedError(RuntimeError):
    """Raised when this program keeps recreating a child that is pruned because no state declares it."""


def not_ours(identity: ChildIdentity, metadata: ObjectMeta, owner: Object, bond: Bond = "reference") -> Problem:
    """An object that is not ours has the name of a child."""
    belongs = whose(metadata, owner)
    if bond == "none":
        advice = "owner=False shares only objects without a controller; give the child another name"
    elif standing(metadata, owner.metadata.uid or "", "none", ()) == "free":
        advice = "delete it, give the child another name, or take it over with out.apply(..., adopt=True)"
    elif bond in ("label_alone", "reference") and is_of_predecessor(metadata, owner):
        advice = (
            "that is an earlier object of this name; delete the child, or take it over with out.apply(..., adopt=True)"
        )
    elif "an earlier" in belongs:
        advice = "Steersman waits until the garbage collector has deleted it"
    else:
        advice = "delete it or give the child another name; adopt=True takes over only objects without a controller"
    return Problem("NotOurs", f"{identity} exists and {belongs}; {advice}")


def immutable_words(error: Invalid) -> str | None:
    """The server's message about immutable fields; None if it rejected the change for another reason."""
    said = [(cause.field, cause.message) for cause in error.causes] or [("", error.status.message)]
    words = [
        f"{field}: {_sentence(text)}" if field else _sentence(text) for field, text in said if _IMMUTABLE.search(text)
    ]
    return "; ".join(dict.fromkeys(words)) if words else None


def _sentence(text: str) -> str:
    return _VALUE.sub("", text.partition("\n")[0]).strip()


def outside_cache(identity: ChildIdentity, selector: str) -> Problem:
    """A child that the cache would not show."""
    kind = identity.kind.kind
    return Problem(
        "OutsideCache",
        f"{identity} lacks the labels {selector}, and the manager caches only {kind} objects with them, so Steersman would"
        f" not notice if it changes or vanishes; add the labels to the child, or change Manager(kinds={{{kind}: ...}})",
        terminal=True,
    )


def immutable(identity: ChildIdentity, words: str) -> Problem:
    """A change that needs a new object, on a child without ``recreate=True``."""
    return Problem(
        "Immutable",
        f"{identity} cannot be changed this way: {words}. Declare the current value, give the child another"
        " name, or delete and recreate it with out.apply(..., recreate=True)",
        terminal=True,
    )


def recreating(identity: ChildIdentity, words: str) -> Problem:
    """The old object was deleted but is not gone yet."""
    return Problem("Recreating", f"{identity} was deleted and is recreated when it is gone: {words}")


def cannot_recreate(identity: ChildIdentity, refused: Sequence[str]) -> Problem:
    """The server rejects the object that would replace the old one."""
    return Problem(
        "Immutable",
        f"{identity} cannot be changed this way, and was not deleted because the server would reject its"
        f" replacement: {'; '.join(refused)}",
        terminal=True,
    )


def field_conflict(identity: ChildIdentity, conflict: Conflict) -> Problem:
    """Another field manager owns a field of a shared child."""
    owned = "; ".join(dict.fromkeys(f'{field} is owned by "{manager}"' for manager, field in conflict.field_conflicts))
    return Problem(
        "FieldConflict",
        f"{identity} is shared (owner=False), and {owned}. Remove that field here, or let the other field"
        " manager give it up",
    )


def namespace_problem(identity: ChildIdentity, error: Forbidden | NotFound) -> Problem | None:
    """The namespace of a child is being deleted, or is missing; None for any other error."""
    namespace = identity.key.namespace
    if isinstance(error, Forbidden):
        if not error.namespace_terminating:
            return None
        words = f"{identity}: namespace {namespace} is being deleted; Steersman creates the child when it exists again"
        return Problem("NamespaceTerminating", words, after=_NAMESPACE_AGAIN)
    details = error.status.details
    if details is None or (details.kind, details.name) != ("namespaces", namespace):
        return None
    words = f"{identity}: namespace {namespace} does not exist; Steersman creates the child when it does"
    return Problem("NamespaceNotFound", words, after=_NAMESPACE_AGAIN)


def contested(identity: ChildIdentity, other_writer: str, after: float) -> Problem:
    """Another writer keeps changing a child back."""
    return Problem(
        "Contested",
        f"{other_writer} keeps reverting {identity}, so Steersman writes it only now and then. Let only one"
        " of them set these fields",
        after=after,
    )


def made_again(identity: ChildIdentity) -> ContestedError:
    """This program recreates a child as often as it is pruned."""
    return ContestedError(
        f"this program keeps creating {identity}, which no state declares, so Steersman keeps pruning it."
        " Declare it with out.apply(...), or create it without this owner"
    )
