"""The log of a machine: one line at INFO for each change that it makes.

Guarantees
- A line names the change and the kind and key of the object: ``default/home: created Deployment default/web``.
- A reconcile that changes nothing logs nothing.
"""

from __future__ import annotations

from steersman.controller import Context
from steersman.patterns.children.kinds import ChildIdentity


def log_change(ctx: Context, word: str, identity: ChildIdentity, why: str = "") -> None:
    """Log that a child was created, updated, adopted, recreated or deleted."""
    ctx.logger.info("%s: %s %s%s", ctx.request, word, identity, f": {why}" if why else "")
