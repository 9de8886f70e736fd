"""Where a scenario plays: a server with controllers, the names that are the scenario's own, and verbs in its words.

A scenario is an async function of a `Stage`. It plays on the engine with kube-controller-manager and on a ControlPlane, all
at once, so everything that it makes bears its name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Literal, Self

from steersman import Client, Kind, Unstructured
from steersman.aio import Supervisor
from steersman.client import Deleted, MergePatch
from steersman.objects import Key

Tree = dict[str, Any]
Policy = Literal["Background", "Foreground", "Orphan"]

CONFIG_MAP = Kind("v1", "ConfigMap")
NAMESPACE = Kind("v1", "Namespace")
CLUSTER_ROLE = Kind("rbac.authorization.k8s.io/v1", "ClusterRole")
WIDGET = Kind("collected.example.com/v1", "Widget")
PLANET = Kind("collected.example.com/v1", "Planet")
#: Its definition is deleted by a scenario.
COMET = Kind("collected.example.com/v1", "Comet")

#: Cluster-scoped kinds that scenarios make.
CLUSTER_SCOPED = {NAMESPACE, CLUSTER_ROLE, PLANET}
#: Kinds whose objects are compared in the end.
COMPARED = (
    CONFIG_MAP,
    Kind("v1", "Secret"),
    Kind("v1", "ServiceAccount"),
    Kind("v1", "Pod"),
    Kind("v1", "Event"),
    Kind("coordination.k8s.io/v1", "Lease"),
    Kind("rbac.authorization.k8s.io/v1", "Role"),
    WIDGET,
    *CLUSTER_SCOPED,
)

#: Where those are made by whose end one sees how far a garbage collector is.
SENTINELS = "sentinels"
#: Scenarios wait so long for what must come.
PATIENCE = 40.0


class Stage:
    """One scenario on one server."""

    def __init__(self, client: Client, name: str, quiet: Callable[[Stage], Awaitable[None]]) -> None:
        self.client = client
        self.name = name
        self._quiet = quiet
        self.sentinels = 0
        #: What each uid belongs to, for comparing.
        self.uids: dict[str, str] = {}

    # making

    async def namespace(self, suffix: str = "", **metadata: Any) -> str:
        """Make a namespace of this scenario."""
        name = f"{self.name}{suffix}"
        await self.make(NAMESPACE, name, **metadata)
        return name

    async def make(
        self,
        kind: Kind,
        name: str,
        *owners: Tree,
        namespace: str = "",
        finalizers: tuple[str, ...] = (),
        **fields: Any,
    ) -> Unstructured:
        """Make an object; of a namespaced kind in the scenario's first namespace unless told otherwise."""
        metadata: Tree = {"name": name}
        if kind not in CLUSTER_SCOPED:
            metadata["namespace"] = namespace or self.name
        if owners:
            metadata["ownerReferences"] = list(owners)
        if finalizers:
            metadata["finalizers"] = list(finalizers)
        tree = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **fields}
        made = await self.client.create(Unstructured(tree))
        count = sum(each.startswith(f"{kind.kind}/{name}") for each in self.uids.values())
        self.uids[made.uid] = f"{kind.kind}/{name}" + ("'" * count)
        return made

    async def config_map(self, name: str, *owners: Tree, **options: Any) -> Unstructured:
        """Make a ConfigMap."""
        return await self.make(CONFIG_MAP, name, *owners, **options)

    async def role(self, name: str, *owners: Tree, **options: Any) -> Unstructured:
        """Make a ClusterRole, whose name is the scenario's and this."""
        return await self.make(CLUSTER_ROLE, f"{self.name}-{name}", *owners, **options)

    # changing

    async def delete(self, obj: Unstructured, policy: Policy | None = None) -> None:
        """Delete an object."""
        kind = Kind(obj.api_version, obj.kind)
        await self.client.delete(kind, obj.key, propagation=policy, missing_ok=True)

    async def patch(self, obj: Unstructured, metadata: Tree) -> None:
        """Change metadata."""
        await self.client.patch(Kind(obj.api_version, obj.kind), obj.key, MergePatch({"metadata": metadata}))

    # waiting

    async def find(self, obj: Unstructured) -> Unstructured | None:
        """An object as it is now; None if it is gone, or another one has its name."""
        found = await self.client.find(Kind(obj.api_version, obj.kind), obj.key)
        return found if found is not None and found.uid == obj.uid else None

    async def until(self, what: str, condition: Callable[[], Awaitable[bool]]) -> None:
        """Wait until something holds."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not await condition():  # noqa: ASYNC110 - no event tells
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"{self.name}: timed out waiting until {what}") from None

    async def gone(self, *objects: Unstructured) -> None:
        """Wait until objects are gone."""

        async def condition() -> bool:
            return all([await self.find(each) is None for each in objects])

        await self.until(f"{', '.join(map(str, objects))} are gone", condition)

    async def deleting(self, obj: Unstructured) -> None:
        """Wait until the deletion of an object has begun."""

        async def condition() -> bool:
            found = await self.find(obj)
            return found is not None and found.deleting

        await self.until(f"{obj} is deleted", condition)

    async def exists(self, kind: Kind, name: str, namespace: str = "") -> Unstructured:
        """Wait until there is an object of this name."""
        found: list[Unstructured] = []

        async def condition() -> bool:
            obj = await self.client.find(kind, Key(namespace or self.name, name))
            found[:] = [obj] if obj is not None else []
            return bool(found)

        await self.until(f"{kind.kind} {name} is there", condition)
        return found[0]

    async def quiet(self) -> None:
        """Wait until the controllers have seen all that was done so far, and done what they do about it."""
        await self._quiet(self)


def ref(owner: Unstructured, *, block: bool | None = True, **other: Any) -> Tree:
    """A reference to an owner; what is said besides stands in it instead."""
    tree: Tree = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.key.name, "uid": owner.uid}
    if block is not None:
        tree["blockOwnerDeletion"] = block
    return {**tree, **other}


async def by_sentinel(stage: Stage) -> None:
    """Wait until a garbage collector that takes one thing after the other has collected something made now."""
    stage.sentinels += 1
    name = f"{stage.name}-{stage.sentinels}"
    owner = await stage.client.create(Unstructured(_config_map(f"{name}-owner", SENTINELS)))
    child = await stage.client.create(Unstructured(_config_map(f"{name}-child", SENTINELS, ref(owner))))
    await stage.client.delete(CONFIG_MAP, owner.key, propagation="Background")
    await stage.gone(child)


def _config_map(name: str, namespace: str, *owners: Tree) -> Tree:
    metadata: Tree = {"name": name, "namespace": namespace, "ownerReferences": list(owners)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


# comparing


async def snapshot(client: Client) -> list[Unstructured]:
    """Everything that scenarios may have made."""
    found: list[Unstructured] = []
    for kind in COMPARED:
        found += await client.list(kind)
    return found


def state_of(stage: Stage, objects: list[Unstructured]) -> dict[str, Tree]:
    """The objects of one scenario, without what no two servers share."""
    mine = [each for each in objects if _is_of(stage.name, _place(each))]
    return {f"{each.kind} {_name(each)}": _normalized(each.tree, stage.uids) for each in mine if _counts(each)}


def _place(obj: Unstructured) -> str:
    """What tells whose an object is: its namespace or its name; an Event is whose its object is."""
    if obj.kind == "Event":
        involved = obj["involvedObject"]
        return involved.get("namespace") or involved["name"]
    return obj.key.namespace or obj.key.name


def _is_of(name: str, place: str) -> bool:
    return place == name or place.startswith(f"{name}-")


def _counts(obj: Unstructured) -> bool:
    return obj.kind != "Event" or obj["reason"] == "OwnerRefInvalidNamespace"


def _name(obj: Unstructured) -> str:
    return f"{obj['involvedObject']['name']} {obj['reason']}" if obj.kind == "Event" else str(obj.key)


_DROPPED = frozenset(
    {"resourceVersion", "creationTimestamp", "lastTransitionTime", "firstTimestamp", "lastTimestamp", "startTime"}
)


def _normalized(value: Any, uids: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_normalized(each, uids) for each in value]
    if isinstance(value, str):
        for uid, name in uids.items():
            value = value.replace(uid, f"<{name}>")
        return value
    if not isinstance(value, dict):
        return value
    tree = {name: _field(name, each, uids) for name, each in value.items() if name not in _DROPPED}
    if tree.get("kind") == "Event":
        tree["metadata"].pop("name")
    return tree


def _field(name: str, value: Any, uids: dict[str, str]) -> Any:
    if name == "managedFields":
        return sorted((entry["manager"], entry["operation"], entry.get("subresource", "")) for entry in value)
    if name == "deletionTimestamp":
        return "set"
    if name == "uid" and value not in uids:
        return "unknown"
    return _normalized(value, uids)


class Histories:
    """What a watcher of ConfigMaps sees of them, in order; within its block it watches."""

    def __init__(self, client: Client) -> None:
        self._client = client
        #: For each namespace the names of objects, each with what a change left of it.
        self._seen: dict[str, list[tuple[str, str]]] = {}
        self._tasks = Supervisor()
        self._opened = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self._tasks.start(self._record(), name="histories")
        await self._opened.wait()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tasks.cancel()
        await self._tasks.__aexit__(kind, error, trace)

    async def _record(self) -> None:
        version = (await self._client.metadata.list(CONFIG_MAP)).resource_version
        while True:
            # A server ends the watch of a slow client.
            async with self._client.watch(CONFIG_MAP, resource_version=version) as events:
                self._opened.set()
                async for event in events:
                    obj = event.object
                    if isinstance(obj, Unstructured):
                        version = obj.metadata["resourceVersion"]
                        step = "gone" if isinstance(event, Deleted) else _step(obj)
                        self._seen.setdefault(obj.key.namespace, []).append((obj.key.name, step))

    async def complete(self) -> None:
        """Wait until everything was seen that has happened."""
        last = await self._client.create(Unstructured(_config_map("last", SENTINELS)))
        async with asyncio.timeout(PATIENCE):
            while not any(name == last.key.name for name, _ in self._seen.get(SENTINELS, ())):  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    def of(self, stage: Stage) -> list[tuple[str, str]]:
        """What was seen of a scenario's first namespace."""
        return self._seen.get(stage.name, [])

    def by_object(self, stage: Stage) -> dict[str, list[str]]:
        """What was seen of each object by itself."""
        seen: dict[str, list[str]] = {}
        for name, step in self.of(stage):
            seen.setdefault(name, []).append(step)
        return seen


def _step(obj: Unstructured) -> str:
    """What the garbage collector changes of an object, in words."""
    owners = [
        f"{each['name']}{' waits' if each.get('blockOwnerDeletion') else ''}"
        for each in obj.metadata.get("ownerReferences", ())
    ]
    going = "going" if obj.deleting else "there"
    return f"{going}, owners {owners}, finalizers {obj.metadata.get('finalizers', [])}"
