"""The settings of shards: which Leases and which assignment the replicas of a program share."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import cast

from steersman import aio
from steersman.controller import KindLike, check_kind
from steersman.manager.leader import LeaderElection

_FOREIGN = re.compile("[^a-z0-9-]+")
#: The names of Leases are DNS names, and the suffix makes them longer.
_HOST_MAX = 100


class Shards:
    """Replicas of one program that share its objects: ``Manager(shards=Shards("site-operator"))``.

    Experimental: its options, names and stored records may change in any release.

    - ``name`` and ``namespace`` (default: the client's) identify the Lease of the coordinator, which assigns ranges of
      namespaces to replicas; the assignment is the ConfigMap ``NAME-assignment``, and each replica has a Lease.
    - ``identity`` must be unique to this process. The default is the host name with a random suffix.
    - ``lease``, ``renew`` and ``retry`` are as for `LeaderElection`, for the coordinator and for each replica.
    - ``same_namespace`` are watched kinds whose ``map=`` function names only objects in the namespace of the watched one.
      Each replica caches all objects of other kinds with such a function.
    """

    def __init__(
        self,
        name: str,
        *,
        namespace: str | None = None,
        identity: str | None = None,
        lease: float = 15.0,
        renew: float = 10.0,
        retry: float = 2.0,
        same_namespace: Iterable[KindLike] = (),
    ) -> None:
        self.name = name
        self.namespace = namespace
        self.lease, self.renew, self.retry = lease, renew, retry
        if identity is not None and (not identity.strip("-") or _FOREIGN.search(identity)):
            raise ValueError(
                f"Shards(identity={identity!r}): it is part of the name of a Lease; use lower-case letters, digits and -"
            )
        self.identity = identity
        if isinstance(same_namespace, type | str):
            raise TypeError(f"Shards(same_namespace={same_namespace!r}): pass a list of kinds")
        self.same_namespace = tuple(same_namespace)
        for kind in cast("tuple[object, ...]", self.same_namespace):
            check_kind(kind, "Shards(same_namespace=...)")
        # It checks the arguments, too.
        self.election = LeaderElection(
            name, namespace=namespace, identity=identity, lease=lease, renew=renew, retry=retry
        )

    def __repr__(self) -> str:
        return f"<Shards {self.name}>"


def membership_of(shards: Shards) -> LeaderElection:
    """The Lease of this replica, for which no other process is a candidate. Call it on the loop that uses it."""
    host = _FOREIGN.sub("-", (aio.host_name() or "unnamed").lower()).strip("-")[:_HOST_MAX]
    identity = shards.identity or f"{host}-{aio.name_suffix(5)}"
    return LeaderElection(
        f"{shards.name}-{identity}",
        namespace=shards.namespace,
        identity=identity,
        lease=shards.lease,
        renew=shards.renew,
        retry=shards.retry,
    )


def assignment_name(name: str) -> str:
    """The name of the ConfigMap that holds the assignment."""
    return f"{name}-assignment"
