"""The user that sends a request."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class User(msgspec.Struct, frozen=True, kw_only=True):
    """The sender of a request: ``User(name="kim", groups=("staff",))``."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}


#: The group of administrators.
MASTERS = "system:masters"
#: The sender of requests within this process, unless a handler of the chain sets another.
IN_PROCESS = User(name="system:admin", groups=(MASTERS, "system:authenticated"))
#: The sender of requests over a port, until a handler of the chain authenticates them; they are answered 401.
UNKNOWN = User(name="system:anonymous", groups=("system:unauthenticated",))
