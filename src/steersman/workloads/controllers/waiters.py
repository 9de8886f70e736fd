"""The workloads that wait for other objects: what each waits for, and which of them to wake.

Guarantees
- No change is missed: a workload is listed as a waiter before its dependency is read.
- A cycle of dependencies, which would wait for ever, is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from steersman.controller import Context, View
from steersman.objects import Key, Object, controller_of
from steersman.workloads.dependencies import cycle, needs, waiting_for
from steersman.workloads.kinds import Container, Dependency, Executable, ExecutableReplicaSet, Service
from steersman.workloads.serving import produced

#: The kinds that a workload can wait for.
AWAITED_KINDS: Final[Mapping[str, type[Object]]] = {
    each.__name__: each for each in (Executable, ExecutableReplicaSet, Container, Service)
}


class Waiters:
    """The workloads of one controller that wait, by the kind and name of the object."""

    def __init__(self) -> None:
        self._waiters: dict[tuple[str, str], set[Key]] = {}

    def woken_by(self, view: View[Object]) -> list[Key]:
        """The workloads that wait for an object."""
        return sorted(self._waiters.get((view.kind.kind, view.key.name), ()))

    def add(self, kind: str, name: str, waiter: Key) -> None:
        """List a workload. Call it before reading the object."""
        self._waiters.setdefault((kind, name), set()).add(waiter)

    def remove(self, waiter: Key) -> None:
        """Drop a workload that waits no longer."""
        for subject in [subject for subject, keys in self._waiters.items() if waiter in keys]:
            self._waiters[subject].discard(waiter)
            if not self._waiters[subject]:
                del self._waiters[subject]

    async def unmet(self, ctx: Context, workload: Executable | Container) -> str:
        """What a workload waits for before it starts; empty if every dependency is met."""
        dependencies = needs(workload)
        found: dict[tuple[str, str], Object | None] = {}

        async def read(kind: str, name: str) -> Object | None:
            self.add(kind, name, workload.key)
            found[kind, name] = await _read(ctx, kind, name)
            return found[kind, name]

        for each in dependencies:
            awaited = await read(each.kind, each.name)
            for name in produced(awaited) if awaited is not None else ():
                await read("Service", name)
        missing = waiting_for(dependencies, lambda kind, name: found[kind, name])
        names = await _cycle(ctx, workload) if missing else []
        return f"{missing}; the dependencies form a cycle: {' -> '.join(names)}" if names else missing


async def _read(ctx: Context, kind: str, name: str) -> Object | None:
    return await ctx.client.find(AWAITED_KINDS[kind], Key("", name))


async def _cycle(ctx: Context, workload: Executable | Container) -> list[str]:
    """The cycle of dependencies that a workload, or the set that made it, is on; empty if there is none."""
    start = _set_of(workload) or (type(workload).__name__, workload.key.name)
    graph: dict[tuple[str, str], list[Dependency]] = {}
    left = [start]
    while left:
        subject = left.pop()
        if subject not in graph:
            found = await _read(ctx, *subject)
            graph[subject] = needs(found) if found is not None else []
            left += [(each.kind, each.name) for each in graph[subject]]
    return cycle(*start, lambda kind, name: graph[kind, name])


def _set_of(workload: Executable | Container) -> tuple[str, str] | None:
    """The kind and name of the set that made a workload. Others depend on the set, not on its replicas."""
    owner = controller_of(workload)
    return (owner.kind, owner.name) if owner is not None and owner.kind == "ExecutableReplicaSet" else None
