"""What the API server says while an operator is killed: all objects of some kinds, every change, every write."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable

from steersman import Client, Key, Object
from steersman.aio import Supervisor
from steersman.client import Added, Deleted, Modified
from steersman.errors import ApiError

_COUNTED = re.compile(r"^apiserver_request_total\{(?P<labels>[^}]*)\} (?P<count>\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_WRITING = frozenset({"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"})
#: What the parts of a control plane write by themselves.
_HOUSEKEEPING = frozenset({"leases", "tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews"})

Place = tuple[str, Key]


class World:
    """A watch of each kind, and what they have told so far."""

    def __init__(self, client: Client, kinds: tuple[type[Object], ...]) -> None:
        self._client = client
        self._kinds = kinds
        #: By kind and key.
        self.objects: dict[Place, Object] = {}
        #: So many changes were seen.
        self.changes = 0
        self._changed = asyncio.Event()
        self._listeners: list[Callable[[Object, bool], None]] = []

    def listen(self, listener: Callable[[Object, bool], None]) -> None:
        """Tell of every change: the object, and whether it is gone."""
        self._listeners.append(listener)

    def follow(self, tasks: Supervisor) -> None:
        """Watch from now on."""
        for kind in self._kinds:
            tasks.start(self._follow(kind), name=f"watch of {kind.__name__}")

    async def _follow(self, kind: type[Object]) -> None:
        while True:
            for place in [place for place in self.objects if place[0] == kind.__name__]:
                del self.objects[place]
            try:
                async with self._client.watch(kind, namespace=None, initial_events=True) as events:
                    async for event in events:
                        if isinstance(event, (Added, Modified, Deleted)):
                            self._take(event.object, gone=isinstance(event, Deleted))
            except ApiError:
                await asyncio.sleep(0.2)

    def _take(self, found: Object, *, gone: bool) -> None:
        place = (type(found).__name__, found.key)
        for listener in self._listeners:
            listener(found, gone)  # before it counts: a listener sees what there was
        if gone:
            self.objects.pop(place, None)
        else:
            self.objects[place] = found
        self.changes += 1
        self._changed.set()

    async def change(self) -> None:
        """Wait for the next change."""
        self._changed.clear()
        await self._changed.wait()

    async def changes_reach(self, number: int) -> None:
        """Wait until so many changes were seen."""
        while self.changes < number:
            await self.change()

    async def stands_still(self, seconds: float) -> None:
        """Wait until nothing has changed for a while."""
        before = -1
        while before != (before := self.changes):  # noqa: ASYNC110 - quiet has no event
            await asyncio.sleep(seconds)

    async def live(self) -> dict[Place, Object]:
        """All objects, asked for now."""
        found = [each for kind in self._kinds for each in await self._client.list(kind, namespace=None)]
        return {(type(each).__name__, each.key): each for each in found}

    async def writes(self) -> Counter[str]:
        """How often the server was asked to write what, since it started."""
        text = (await self._client.request("GET", "/metrics")).decode()
        counted: Counter[str] = Counter()
        for match in _COUNTED.finditer(text):
            labels = dict(_LABEL.findall(match["labels"]))
            if labels.get("verb") in _WRITING and labels.get("resource") not in _HOUSEKEEPING:
                what = f"{labels['verb']} {labels['resource']} {labels.get('subresource', '')}".rstrip()
                counted[what] += int(float(match["count"]))
        return counted
