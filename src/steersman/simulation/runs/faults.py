"""Faults: what a schedule does to a run, each at a place.

Every kind happens on real clusters: tests/simulation shows each on kube-apiserver.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

import msgspec

from steersman.objects import nearest


class _Fault(msgspec.Struct, frozen=True, kw_only=True, tag_field="fault"):
    """The base of all faults."""


class CrashBefore(_Fault, frozen=True, tag="crash before sending"):
    """The process ends just before it sends the request, and starts again."""


class CrashCommitted(_Fault, frozen=True, tag="crash after commit"):
    """The process ends just after it has sent the request; the server carries it out."""


class CrashReplied(_Fault, frozen=True, tag="crash after reply"):
    """The process ends when the reply has arrived, before its code continues."""


class LostRequest(_Fault, frozen=True, tag="lost request"):
    """The connection breaks before the server has seen the request. The client cannot know that."""


class LostReply(_Fault, frozen=True, tag="lost reply"):
    """The server carries out the request, and the connection breaks before the reply arrives."""


class Throttled(_Fault, frozen=True, tag="too many requests"):
    """The server answers 429, with a Retry-After of a second, and does not carry out the request."""


class ServerError(_Fault, frozen=True, tag="server error"):
    """The server answers 500, and does not carry out the request."""


class ServerTimeout(_Fault, frozen=True, tag="server timeout"):
    """The server carries out the request, and answers 504."""


class InterferingWrite(_Fault, frozen=True, tag="conflict"):
    """Another client changes an annotation of the object just before the request arrives."""


class StaleCache(_Fault, frozen=True, tag="stale cache"):
    """From this request on, the watches of the process deliver nothing for a while."""

    seconds: float = 5.0


class Coalesced(_Fault, frozen=True, tag="coalesced events"):
    """The watches of the process lose all events for a while, and expire: it sees only the state after them."""

    seconds: float = 5.0


class DroppedWatch(_Fault, frozen=True, tag="watch dropped"):
    """All watches of the process break."""


class LaggingServer(_Fault, frozen=True, tag="lagging server"):
    """From this request on, the process talks to an API server whose cache lags behind: its watches begin again there.

    For so many seconds, that cache shows the state of so many seconds before: to watches, and to reads that accept any state.
    """

    seconds: float = 5.0


class NoBookmarks(_Fault, frozen=True, tag="bookmarks withheld"):
    """From this request on, the watches of the process send no bookmarks for a while."""

    seconds: float = 240.0


class SlowServer(_Fault, frozen=True, tag="slow server"):
    """The reply takes this long."""

    seconds: float = 8.0


class Partition(_Fault, frozen=True, tag="partition"):
    """From this request on, nothing passes between the process and the server for a while."""

    seconds: float = 30.0


class Outage(_Fault, frozen=True, tag="outage"):
    """From this request on, the server answers the process with 503 for a while, and its watches end.

    At a call of an external system, all calls of that system fail for so long.
    """

    seconds: float = 60.0


class ClockSkew(_Fault, frozen=True, tag="clock skew"):
    """The wall clock of the process jumps by this many seconds, and stays wrong when the process starts again."""

    seconds: float = 120.0


class CutDeletion(_Fault, frozen=True, tag="crash during a deletecollection"):
    """The process ends when the first object of a deletecollection is deleted; the others stay."""


class ChildEdited(_Fault, frozen=True, tag="child edited"):
    """Another client changes a field of the object that the process has just written."""


class ChildDeleted(_Fault, frozen=True, tag="child deleted"):
    """Another client deletes the object that the process has just written."""


Fault: TypeAlias = (
    CrashBefore
    | CrashCommitted
    | CrashReplied
    | LostRequest
    | LostReply
    | Throttled
    | ServerError
    | ServerTimeout
    | InterferingWrite
    | StaleCache
    | Coalesced
    | DroppedWatch
    | LaggingServer
    | NoBookmarks
    | SlowServer
    | Partition
    | Outage
    | ClockSkew
    | CutDeletion
    | ChildEdited
    | ChildDeleted
)


#: The kinds of faults by name, as on the command line.
FaultName: TypeAlias = Literal[
    "crash-before-sending",
    "crash-after-commit",
    "crash-after-reply",
    "lost-request",
    "lost-reply",
    "too-many-requests",
    "server-error",
    "server-timeout",
    "conflict",
    "stale-cache",
    "coalesced-events",
    "watch-dropped",
    "lagging-server",
    "bookmarks-withheld",
    "slow-server",
    "partition",
    "outage",
    "clock-skew",
    "crash-during-a-deletecollection",
    "child-edited",
    "child-deleted",
]

#: Every kind of fault; all are tried if nothing else is named.
ALL_FAULTS: tuple[Fault, ...] = tuple(kind() for kind in get_args(Fault))


def fault_name(fault: Fault) -> str:
    """The name of a fault in reports."""
    return str(fault.__struct_config__.tag)


_BY_NAME = dict(zip(get_args(FaultName), ALL_FAULTS, strict=True))


def named_faults(names: Iterable[str]) -> tuple[Fault, ...]:
    """The faults with these names. Raises ValueError for a name that no fault has."""
    found: list[Fault] = []
    for name in names:
        if name not in _BY_NAME:
            meant = nearest(name, _BY_NAME)
            hint = f"did you mean {meant}?" if meant else f"there is {', '.join(_BY_NAME)}"
            raise ValueError(f"{name!r} is no kind of fault; {hint}")
        found.append(_BY_NAME[name])
    return tuple(found)
