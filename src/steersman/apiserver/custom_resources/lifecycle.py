"""CustomResourceDefinitions as they are made, changed and deleted while the server runs.

Guarantees
- When a write of a definition is answered, what follows from it has happened: its names are judged, it is established,
  and its resources are served, or no longer.
- A definition that is deleted goes when its last instance has gone; until then nobody makes new ones.
- When its schemas or names change, watches of its resources end, as in kube-apiserver: a watch shows one form.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from steersman.aio import Supervisor
from steersman.apiserver.custom_resources.conversion import Converter
from steersman.apiserver.custom_resources.definitions import definitions_of
from steersman.apiserver.custom_resources.finalizing import Finalizing
from steersman.apiserver.documents import decode_stored
from steersman.apiserver.errors import Refused
from steersman.apiserver.registry.crd.conditions import (
    FINALIZER,
    establish,
    has_bad_bundle,
    is_true,
    judge_approval,
    judge_names,
)
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.request import ServerRequest, User
from steersman.apiserver.storage import Record, StorageError
from steersman.apiserver.verbs.options import WriteOptions
from steersman.apiserver.verbs.update import Change
from steersman.wire import Request

if TYPE_CHECKING:
    from steersman.apiserver.server import ApiServer

_log = logging.getLogger("steersman.apiserver")

GROUP: Final = "apiextensions.k8s.io"
RESOURCE: Final = "customresourcedefinitions"
#: Who the server is when it writes by itself.
ITSELF: Final = User(name="system:apiserver", groups=("system:authenticated", "system:masters"))
_PATH: Final = f"/apis/{GROUP}/v1/{RESOURCE}"
#: By its name the fields are managed that the server itself writes.
HEADERS: Final = (("User-Agent", "kube-apiserver"),)
#: Seconds after which what failed is tried again.
_RETRY: Final = 1.0
#: Seconds that watches are given to hear of what is stored.
_FEED: Final = 5.0
#: Seconds after which it is looked anyway.
_LOOK: Final = 3600.0


class _Known(msgspec.Struct):
    """A definition as it was when last looked at."""

    modified: int
    crd: Tree
    definitions: list[Definition] = []


class CustomResources:
    """The definitions of a server, served. `begin` it, then `run` it in a task; `catch_up` after writes."""

    def __init__(self, server: ApiServer, conversions: Mapping[str, Converter]) -> None:
        self._server = server
        self._conversions = conversions
        self._known: dict[str, _Known] = {}
        self._turn = asyncio.Lock()
        self._tasks: Supervisor | None = None
        self._ending: dict[str, str] = {}

    @property
    def definition(self) -> Definition | None:
        """The kind of definitions; None if the server does not serve it."""
        return self._server.registry.find(GROUP, "v1", RESOURCE)

    async def begin(self, tasks: Supervisor) -> None:
        """Serve all that are stored."""
        self._tasks = tasks
        self._ending.clear()
        for name in list(self._known):
            self._withdraw(name)
        await self._catch_up()

    async def run(self) -> None:
        """Follow definitions for ever, whoever writes them."""
        definition = self.definition
        if definition is None:
            return
        window = self._server.feed.window(definition.prefix)
        loop = asyncio.get_running_loop()
        while not window.closed:
            position = window.end
            if await self.catch_up():
                await window.wait(position, loop.time() + _LOOK, _always)
            else:
                await asyncio.sleep(_RETRY)

    async def catch_up(self) -> bool:
        """Do what follows from all that was written; whether that could be done."""
        try:
            await self._catch_up()
        except (Refused, StorageError) as error:
            _log.warning("definitions of custom resources: %s; tried again soon", error)
            return False
        except Exception:  # noqa: BLE001 - our own mistake about one definition is not the end of the server
            _log.exception("definitions of custom resources could not be followed; tried again soon")
            return False
        return True

    def is_terminating(self, group: str, resource: str) -> bool:
        """Whether the instances of a definition are being deleted."""
        known = self._known.get(f"{resource}.{group}")
        return known is not None and is_true(known.crd, "Terminating")

    async def _catch_up(self) -> None:
        definition = self.definition
        if definition is None:
            return
        async with self._turn:
            unjudged: set[str] = set()
            while True:
                page = await self._server.storage.list(definition.prefix)
                there = {record.key.removeprefix(definition.prefix): record for record in page.records}
                gone = [name for name in self._known if name not in there]
                new = [
                    (name, record)
                    for name, record in there.items()
                    if name not in self._known or self._known[name].modified != record.modified
                ]
                if gone or new:
                    # Watches show everything up to now before they end.
                    await self._server.feed.wait_for(page.revision, _FEED)
                for name in gone:
                    self._withdraw(name)
                for name, record in new:
                    self._look_at(name, record)
                unjudged |= {name.partition(".")[2] for name in (*gone, *(name for name, _ in new))}
                if not await self._judge(unjudged):
                    return

    def _look_at(self, name: str, record: Record) -> None:
        """Serve a definition as it is now."""
        crd = _readable(name, record)
        before = self._known.get(name)
        if before is not None and before.crd["metadata"].get("uid") != crd["metadata"].get("uid"):
            self._withdraw(name)
            before = None
        if before is not None and _served_form(before.crd) == _served_form(crd):
            before.crd, before.modified = crd, record.modified
            return
        registry, feed = self._server.registry, self._server.feed
        known = self._known[name] = _Known(record.modified, crd)
        if _is_served(crd):
            known.definitions = self._definitions(name, crd, since=record.modified)
        served = {each.gvk.version for each in known.definitions}
        for each in before.definitions if before is not None else ():
            if each.gvk.version not in served:
                registry.remove(each.gvk.group, each.gvk.version, each.resource)
        if before is not None and before.definitions:
            feed.renew(before.definitions[0].prefix)
        for each in known.definitions:
            registry.add(each)

    def _definitions(self, name: str, crd: Tree, *, since: int) -> list[Definition]:
        """What is served of a definition: nothing that is a kind of the server's own, and nothing of one that is damaged."""
        try:
            made = definitions_of(crd, conversion=self._conversions.get(name), since=since)
        except (LookupError, TypeError, ValueError, AttributeError):
            _log.exception("the definition %s is stored in a form that cannot be served", name)
            return []
        found = ((each, self._server.registry.find(each.gvk.group, each.gvk.version, each.resource)) for each in made)
        return [each for each, there in found if there is None or there.custom]

    def _withdraw(self, name: str) -> None:
        known = self._known.pop(name)
        for each in known.definitions:
            self._server.registry.remove(each.gvk.group, each.gvk.version, each.resource)
            self._server.feed.renew(each.prefix)

    async def _judge(self, groups: set[str]) -> bool:
        """Write one condition that is due in some groups; whether there was one. If not, end what is deleted."""
        chosen = {name: known.crd for name, known in self._known.items() if name.partition(".")[2] in groups}
        for name, crd in chosen.items():
            group = name.partition(".")[2]
            others = [each for other, each in chosen.items() if other != name and other.partition(".")[2] == group]
            # Who takes a name first has it, so others are judged when that is known.
            if await self._write(name, lambda crd, others=others: judge_names(crd, others) or judge_approval(crd)):
                return True
            if await self._write(name, establish):
                return True
            self._finalize(name, crd)
        return False

    async def _write(self, name: str, change: Callable[[Tree], bool]) -> bool:
        """Write a condition if there is one to be written; whether there was."""
        trial: Tree = msgspec.json.decode(msgspec.json.encode(self._known[name].crd))
        if not change(trial):
            return False
        await self.write_status(name, change)
        return True

    async def write_status(self, name: str, change: Callable[[Tree], bool]) -> None:
        """Change the status of a definition, and its finalizers, as the server itself."""
        definition = self.definition
        assert definition is not None

        def transform(crd: Tree) -> Tree:
            change(crd)
            return crd

        request = ServerRequest(Request("PUT", f"{_PATH}/{name}/status", headers=HEADERS), user=ITSELF)
        try:
            await Change(self._server.context(definition), request, WriteOptions(), transform, part="status").make()
        except Refused as refused:
            if refused.status.code not in {404, 409}:
                raise

    def _finalize(self, name: str, crd: Tree) -> None:
        """Begin to delete the instances of a definition that is to go, once."""
        metadata: Tree = crd["metadata"]
        if "deletionTimestamp" not in metadata or FINALIZER not in metadata.get("finalizers", ()):
            return
        uid: str = metadata["uid"]
        if self._tasks is None or self._ending.get(name) == uid:
            return
        self._ending[name] = uid
        ending = Finalizing(self._server, name, crd, self.write_status, self._conversions.get(name))
        self._tasks.start(self._end(name, uid, ending), name=f"api server: end of {name}")

    async def _end(self, name: str, uid: str, ending: Finalizing) -> None:
        try:
            await ending.run()
        finally:
            if self._ending.get(name) == uid:
                del self._ending[name]


def _readable(name: str, record: Record) -> Tree:
    """A stored definition; one of nothing if it has not the form of one."""
    crd = decode_stored(record)
    if isinstance(crd.get("spec"), dict) and "names" in crd["spec"] and "versions" in crd["spec"]:
        return crd
    _log.error("what is stored as the definition %s is none; nothing is served of it", name)
    return {"metadata": {}, "spec": {"names": {}, "group": "", "versions": []}}


def _served_form(crd: Tree) -> tuple[object, ...]:
    """What of a definition says how it is served."""
    return crd["spec"], crd.get("status", {}).get("acceptedNames"), _is_served(crd)


def _is_served(crd: Tree) -> bool:
    return is_true(crd, "Established") or (is_true(crd, "NamesAccepted") and not has_bad_bundle(crd))


def _always() -> bool:
    return False
