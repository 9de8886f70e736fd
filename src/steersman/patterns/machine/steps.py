"""How a state can end: a closed union. For an error that a retry may fix, raise an exception instead.

Guarantees
- A step is data: a test can compare it without a server.
- `Next`, `Goto`, `Done` and `RequeueAfter` wait for the children. Only ``wait=False`` in `Next` and `Goto` skips that.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import msgspec

from steersman.controller import Done, RequeueAfter, no_timedelta

#: A valid reason of a condition.
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")


def _check_words(step: str, message: object, reason: str) -> None:
    if not isinstance(message, str):
        instead = (
            f"{step}(after={message!r})" if step == "Wait" and isinstance(message, int | float) else f'{step}(f"...")'
        )
        raise TypeError(f"{step}({message!r:.100}): the message of a condition is text; write {instead}")
    if not _REASON.fullmatch(reason):
        raise ValueError(
            f"{step}(reason={reason!r}): the reason of a condition is one CamelCase word, such as"
            " ImageMissing; put a sentence into the message"
        )


def _check_after(after: object) -> None:
    no_timedelta(after, "Wait(after=...): after")
    if after is not None and not (isinstance(after, int | float) and math.isfinite(after) and after > 0):
        raise ValueError(
            f"Wait(after={after!r}): after= must be a number of seconds above 0; leave it out to wait for a change"
        )


def _check_state(state: object) -> None:
    if not isinstance(state, str):
        name = getattr(state, "__name__", None)
        shown, instead = (name, name) if isinstance(name, str) else (f"{state!r:.100}", "storage")
        raise TypeError(f'Goto({shown}): the name of a method names its state; write Goto("{instead}")')


class Answer(msgspec.Struct, frozen=True):
    """What an `External` reports about its object. It is not a step: a state turns it into one."""

    if not TYPE_CHECKING:  # a type checker reports the await

        def __await__(self) -> NoReturn:
            raise TypeError(
                f"an External answers at once, with {type(self).__name__} here; remove await, and match its answer: Present(found)"
                " or Absent() is done, otherwise return pending.wait"
            )


class Next(msgspec.Struct, frozen=True, kw_only=True):
    """The state is complete once its children are ready. Then the next state runs, in the same reconcile."""

    #: Whether to wait until all children that this state declared are ready.
    wait: bool = True


class Goto(msgspec.Struct, frozen=True):
    """Like `Next`, but continues with another state: one that ``@state(to=...)`` names."""

    state: str
    wait: bool = True

    def __post_init__(self) -> None:
        _check_state(self.state)


class Wait(msgspec.Struct, frozen=True):
    """The state is not complete. The reconcile ends here: Steersman applies the declared children and prunes nothing.

    Without a message, the state waits for its declared children, and its condition says what they lack. With ``after``, the
    object is reconciled again after so many seconds. A change of the object or of a child triggers a reconcile anyway.
    """

    message: str = ""
    reason: str = "Waiting"
    after: float | None = None

    def __post_init__(self) -> None:
        _check_words("Wait", self.message, self.reason)
        _check_after(self.after)


class Failed(msgspec.Struct, frozen=True):
    """A retry cannot help. The condition says why, and nothing happens until the object or a child changes."""

    message: str
    reason: str = "Failed"

    def __post_init__(self) -> None:
        _check_words("Failed", self.message, self.reason)


#: What a state returns. `RequeueAfter` is `Done` plus a reconcile after so many seconds, for example to renew a certificate.
Step: TypeAlias = Next | Goto | Wait | Done | RequeueAfter | Failed
