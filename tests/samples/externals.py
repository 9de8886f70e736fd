"""What a state of a machine returns for the answer of an `External`."""

from __future__ import annotations

from steersman import Done, Wait
from steersman.patterns import Absent, Broken, Present, Working


def settled(answer: Present | Absent | Working | Broken) -> Done | Wait:
    """Done if the external object is as requested; otherwise the wait that the answer proposes."""
    match answer:
        case Present() | Absent():
            return Done()
        case pending:
            return pending.wait
