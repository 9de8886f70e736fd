"""Checks of the arguments of `Manager`. Each error says what to write instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import cast

from steersman.cache import KindOptions
from steersman.client import Client
from steersman.manager.endpoints import Endpoints
from steersman.manager.leader import LeaderElection


def check_client(client: object) -> None:
    """Raise `TypeError` unless this is a client or None. A string was probably meant as the name."""
    if isinstance(client, str):
        raise TypeError(f"Manager({client!r}): the first argument is a client; write Manager(name={client!r})")
    if client is not None and not isinstance(client, Client):
        raise TypeError(
            f"Manager({client!r}): the first argument is a Client; leave it out, and run() connects by itself"
        )


def check_leader(leader: object, name: object) -> None:
    """Raise `TypeError` unless this is a `LeaderElection` or None.

    True or a string was probably meant as the Lease's name.
    """
    if leader is None or isinstance(leader, LeaderElection):
        return
    lease = leader if isinstance(leader, str) and leader else name if isinstance(name, str) and name else "my-operator"
    if leader is False:
        raise TypeError("Manager(leader=False): leave leader out to run without leader election")
    raise TypeError(
        f'Manager(leader={leader!r}): name the Lease; write Manager(leader=LeaderElection("{lease}")) '
        "with from steersman import LeaderElection"
    )


def check_endpoints(endpoints: object) -> None:
    """Raise `TypeError` unless these are `Endpoints` or None. A number was probably meant as the port."""
    if endpoints is None or isinstance(endpoints, Endpoints):
        return
    if endpoints is False:
        raise TypeError("Manager(endpoints=False): leave endpoints out to serve none")
    given = isinstance(endpoints, int) and not isinstance(endpoints, bool)
    write = f"Endpoints(port={endpoints})" if given else "Endpoints(port=8080)"
    raise TypeError(
        f"Manager(endpoints={endpoints!r}): write Manager(endpoints={write}) with from steersman import Endpoints"
    )


def check_seconds(option: str, seconds: object) -> None:
    """Raise unless this is a non-negative number of seconds."""
    if isinstance(seconds, timedelta):
        raise TypeError(
            f"Manager({option}=...) needs a number of seconds; write Manager({option}={seconds.total_seconds():g})"
        )
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"Manager({option}={seconds!r}): pass a number of seconds, such as {option}=30")
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"Manager({option}={seconds!r}): pass a non-negative number of seconds")


def check_kinds(kinds: object, uncached: object) -> None:
    """Raise `TypeError` unless ``kinds`` maps kinds to `KindOptions` and ``uncached`` is a list of kinds."""
    if kinds is not None and not isinstance(kinds, Mapping):
        raise TypeError("Manager(kinds=...): write a dictionary such as kinds={Pod: KindOptions(labels=...)}")
    for kind, options in cast("Mapping[object, object]", kinds or {}).items():
        if not isinstance(options, KindOptions):
            name = getattr(kind, "__name__", kind)
            raise TypeError(f"Manager(kinds={{{name}: {options!r}}}): write {name}: KindOptions(...)")
    if isinstance(uncached, type | str) or not isinstance(uncached, Iterable):
        name = getattr(uncached, "__name__", uncached)
        raise TypeError(f"Manager(uncached={name}): pass a list: uncached=[{name}]")


def several(namespaces: Iterable[str]) -> tuple[str, ...]:
    """The namespaces as a tuple. Raises `TypeError` for a single string."""
    if isinstance(namespaces, str):
        raise TypeError(f"namespaces must be a collection of names: write namespaces=({namespaces!r},)")
    return tuple(namespaces)
