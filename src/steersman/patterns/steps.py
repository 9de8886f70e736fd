"""How a state can end: a closed union. Failures that may pass are raised.

Guarantees
- A step is data: what a state decided can be compared in a test that needs no server.
- Going on without having looked at the children must be said: `Next`, `Done` and `RequeueAfter` wait for them.
"""

from __future__ import annotations

import math
import re
from typing import TypeAlias

import msgspec

from steersman.controller import Done, RequeueAfter

#: What the API takes as the reason of a condition.
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")


def _check_reason(step: str, reason: str) -> None:
    if not _REASON.fullmatch(reason):
        raise ValueError(
            f"{step}(reason={reason!r}): the reason of a condition is one word for programs, such as ImageMissing;"
            " the message is the place for a sentence"
        )


class Next(msgspec.Struct, frozen=True, kw_only=True):
    """This state is complete as soon as its children are ready; then the following state runs, in the same pass."""

    #: Whether to wait until all children that this state declared are ready.
    wait: bool = True


class Goto(msgspec.Struct, frozen=True):
    """As `Next`, but another state follows: one of those that ``@state(to=...)`` names."""

    state: str
    wait: bool = True


class Wait(msgspec.Struct, frozen=True):
    """This state is not complete: the pass ends here, with what was declared applied and nothing pruned.

    Without a message it waits for the children that were declared, and says in their words what they lack. With
    ``after`` it looks again after so many seconds; a change of the object or of a child wakes it anyway.
    """

    message: str = ""
    reason: str = "Waiting"
    after: float | None = None

    def __post_init__(self) -> None:
        _check_reason("Wait", self.reason)
        if self.after is not None and not (math.isfinite(self.after) and self.after > 0):
            raise ValueError(
                f"Wait(after={self.after}): a number of seconds above 0; without it a change is waited for"
            )


class Failed(msgspec.Struct, frozen=True):
    """Trying again cannot help: the condition says why, and nothing happens until the object or a child changes."""

    message: str
    reason: str = "Failed"

    def __post_init__(self) -> None:
        _check_reason("Failed", self.reason)


#: `RequeueAfter` is `Done`, and look again after so many seconds: a certificate that is renewed in time.
Step: TypeAlias = Next | Goto | Wait | Done | RequeueAfter | Failed
