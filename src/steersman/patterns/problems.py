"""Why a child is not as it was declared, in words that say what to do about it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from steersman.objects import Object, ObjectMeta
from steersman.objects.errors import Conflict, Invalid
from steersman.patterns.children import Identity
from steersman.patterns.membership import Bond, standing, whose

#: How Kubernetes, and most custom kinds, say that a field was settled when the object was made.
_IMMUTABLE = re.compile(
    r"immutable|may not change|may not be changed|cannot change|cannot be changed|can not be changed|cannot be updated"
    r"|may not be updated|updates to .* are forbidden",
    re.IGNORECASE,
)
#: A server shows what was given and, after its sentence, often how the object would change.
_VALUE = re.compile(r"Invalid value: .*: ", re.DOTALL)


#: Reasons for which somebody has to do something, although it is tried again.
_WRONG = frozenset({"Contested", "FieldConflict", "NotOurs"})


class Problem(msgspec.Struct, frozen=True):
    """Why a child is not as it was declared."""

    #: One CamelCase word: "NotOurs", "Immutable", "Recreating".
    reason: str
    message: str
    #: Neither waiting nor trying again helps: somebody has to change something.
    terminal: bool = False
    #: Look again after so many seconds.
    after: float | None = None

    @property
    def wrong(self) -> bool:
        """Whether people should be warned: it does not pass by waiting for children."""
        return self.terminal or self.reason in _WRONG


class ContestedError(RuntimeError):
    """What is deleted because no state declares it is made again and again."""


def not_ours(identity: Identity, metadata: ObjectMeta, owner: Object, bond: Bond = "reference") -> Problem:
    """An object stands where a child is to be."""
    belongs = whose(metadata, owner)
    if bond == "none":
        advice = "owner=False shares only what nobody controls; name the child otherwise"
    elif standing(metadata, owner.metadata.uid or "", "none", "") == "free":
        advice = "delete it, name the child otherwise, or take it over with out.apply(..., adopt=True)"
    elif "an earlier" in belongs:
        advice = "it is waited for until the garbage collector has deleted it"
    else:
        advice = "delete it or name the child otherwise; adopt=True takes only what nobody controls"
    return Problem("NotOurs", f"{identity} exists and {belongs}; {advice}")


def immutable_words(error: Invalid) -> str | None:
    """What the server says of fields that cannot be changed; None if it refused for other reasons."""
    said = [(cause.field, cause.message) for cause in error.causes] or [("", error.status.message)]
    found = [
        f"{field}: {_sentence(text)}" if field else _sentence(text) for field, text in said if _IMMUTABLE.search(text)
    ]
    return "; ".join(dict.fromkeys(found)) if found else None


def _sentence(text: str) -> str:
    return _VALUE.sub("", text.partition("\n")[0]).strip()


def immutable(identity: Identity, words: str) -> Problem:
    """A change that needs another object, and nobody allowed that."""
    return Problem(
        "Immutable",
        f"{identity} cannot be changed so: {words}. Declare what is there, give the child another name, or let it be deleted"
        " and made anew with out.apply(..., recreate=True)",
        terminal=True,
    )


def recreating(identity: Identity, words: str) -> Problem:
    """The object was deleted and is not gone yet."""
    return Problem("Recreating", f"{identity} was deleted, to be made anew when it is gone: {words}")


def cannot_recreate(identity: Identity, refused: Sequence[str]) -> Problem:
    """What would take the place of the object is refused by the server."""
    return Problem(
        "Immutable",
        f"{identity} cannot be changed so, and is not deleted either, because the server would refuse the new one:"
        f" {'; '.join(refused)}",
        terminal=True,
    )


def field_conflict(identity: Identity, conflict: Conflict) -> Problem:
    """A child that is shared holds a field that somebody else owns."""
    owned = "; ".join(dict.fromkeys(f'{field} is owned by "{manager}"' for manager, field in conflict.field_conflicts))
    return Problem(
        "FieldConflict",
        f"{identity} is shared (owner=False), and {owned}. Leave that field out, or let the other one give it up",
    )


def contested(identity: Identity, rival: str, after: float) -> Problem:
    """Somebody changes a child back as often as it is written."""
    return Problem(
        "Contested",
        f"{identity} is changed back by {rival} as often as it is written, so that it is written only now and then. Let one of"
        " them leave it, or the fields in question, to the other",
        after=after,
    )


def made_again(identity: Identity) -> ContestedError:
    """This program makes a child again as often as it is pruned."""
    return ContestedError(
        f"{identity} is made by this program and declared by no state, so that it is deleted as often as it is made. Declare it"
        " with out.apply(...), or make it without this owner"
    )
