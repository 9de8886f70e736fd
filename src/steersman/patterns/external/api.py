"""What the world outside must be able to do, and what a reconcile is told of it.

Guarantees
- Everything here is data or a protocol: an answer can be compared in a test that needs no outside.
- A key names one Kubernetes object for ever: its UID is never given to another object, also not to one of the same name.

An effect happens exactly once where the outside finds by key what it was asked to make. Where it cannot (`find` looks at
a list that lags, or there is nothing to look at), it happens at least once.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

import msgspec

from steersman.objects import Key, Object
from steersman.patterns.steps import Wait

T_contra = TypeVar("T_contra", bound=Object, contravariant=True)
R = TypeVar("R")


class ExternalKey(msgspec.Struct, frozen=True, kw_only=True):
    """Whom an effect is for: one very object, and the how-manieth of its wishes.

    ``uid`` is what to mark the outside thing with, and what to find it by: it stays the same for as long as the object is
    there, also while it is deleted. ``str(key)`` is ``UID.GENERATION``: a token for one request, where the outside takes
    such tokens; or the mark of an effect that is to happen once for each generation.
    """

    uid: str
    #: 0 where the kind counts no generations.
    generation: int
    #: The kind of the object, such as "SecureStorage".
    kind: str
    #: Namespace and name: for people. The next object of that name has another UID.
    key: Key

    def __str__(self) -> str:
        return f"{self.uid}.{self.generation}"


class Api(Protocol[T_contra, R]):
    """The world outside, seen from one kind of object: ``class Buckets`` with these methods, all of them async.

    Two more are optional. ``def up_to_date(self, obj, found) -> bool``, which does no IO, says whether what was found is
    as the object asks; without it whatever is found is right. ``async def update(self, key, obj, found) -> R`` makes it
    so, and raises if it is gone: it never makes it anew. Without it a thing that is not up to date is reported, and left
    alone.

    Whatever a method raises is tried again, later and later. `create` may have had its effect nevertheless, so it is not
    called again before `find` has found nothing; raise `Refused` when it is certain that nothing was made, and there is
    less to wait for.
    """

    async def find(self, key: ExternalKey, /) -> R | None:
        """What there is for this key, asked of the outside itself; None if there is nothing."""
        ...

    async def create(self, key: ExternalKey, obj: T_contra, /) -> R:
        """Make it, marked such that `find` finds it from then on."""
        ...

    async def delete(self, key: ExternalKey, found: R, /) -> None:
        """Remove it, or begin to: `find` is asked until it is gone. What is gone already is fine."""
        ...


class Refused(Exception):
    """The outside said no, and certainly did nothing: raised by an `Api`. The message is shown as it is."""


class Present(msgspec.Struct, Generic[R], frozen=True):
    """It is there, as the object asks."""

    found: R


class Working(msgspec.Struct, frozen=True):
    """It is not so yet; the object is reconciled when there is news."""

    message: str

    @property
    def wait(self) -> Wait:
        """The same as the step of a state."""
        return Wait(self.message, reason="ExternalPending")


class Broken(msgspec.Struct, frozen=True):
    """The outside refused, failed or did not answer. It is tried again, later and later, for as long as it is asked for."""

    message: str

    @property
    def wait(self) -> Wait:
        """The same as the step of a state."""
        return Wait(self.message, reason="ExternalError")


class Gone(msgspec.Struct, frozen=True):
    """It is not there: it was looked for, and not found."""
