"""CustomResourceDefinitions as they are created, changed and deleted while the server runs.

Guarantees
- When a write of a definition is answered, its effects are complete: its names are checked, it is established, and its
  resources are served, or no longer.
- A deleted definition stays until its last instance is gone; until then no new instances can be created.
- The cost of a change does not depend on the number of other definitions in its group.
- When its schemas or names change, watches of its resources end, as in kube-apiserver: a watch shows one form.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from steersman.aio import Supervisor
from steersman.apiserver.bootstrap import ApiServices
from steersman.apiserver.context import Backend
from steersman.apiserver.custom_resources.definitions import definitions_of
from steersman.apiserver.custom_resources.extensions import NONE, Extensions
from steersman.apiserver.documents import copied, decode_stored
from steersman.apiserver.errors import RequestRejected
from steersman.apiserver.identity import User
from steersman.apiserver.registry.crd.conditions import (
    FINALIZER,
    condition,
    establish,
    has_bad_bundle,
    is_true,
    judge_approval,
    judge_names,
    names_of,
)
from steersman.apiserver.registry.crd.names_in_use import NamesInUse
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.storage import Record, StorageError
from steersman.apiserver.verbs.options import WriteOptions
from steersman.apiserver.verbs.update import Change
from steersman.apiserver.watching import TooOld
from steersman.apiserver.webhooks import WebhookCaller
from steersman.wire import HttpRequest

if TYPE_CHECKING:
    from steersman.apiserver.custom_resources.instance_deletion import InstanceDeletion

_log = logging.getLogger("steersman.apiserver")

GROUP: Final = "apiextensions.k8s.io"
RESOURCE: Final = "customresourcedefinitions"
#: The identity of the server's own writes.
ITSELF: Final = User(name="system:apiserver", groups=("system:authenticated", "system:masters"))
_PATH: Final = f"/apis/{GROUP}/v1/{RESOURCE}"
#: The field manager of the server's own writes.
HEADERS: Final = (("User-Agent", "kube-apiserver"),)
#: Seconds until a failure is retried.
_RETRY: Final = 1.0
#: Seconds for watches to see the latest stored changes.
_FEED: Final = 5.0
#: Seconds between unconditional checks.
_LOOK: Final = 3600.0


class _Known(msgspec.Struct):
    """A definition as last seen."""

    modified: int
    crd: Tree
    definitions: list[Definition] = []


class CustomResources:
    """Serves the definitions of a server. Call `begin`, then `run` in a task; call `catch_up` after writes."""

    def __init__(self, backend: Backend, extensions: Extensions, caller: WebhookCaller | None = None) -> None:
        self._backend = backend
        #: Calls conversion webhooks.
        self._caller = caller
        self._extensions = extensions
        self._known: dict[str, _Known] = {}
        #: The names in use, by group.
        self._names: dict[str, NamesInUse] = {}
        self._api_services = ApiServices(backend.registry, backend.storage)
        #: Definitions that may need a status update.
        self._due: dict[str, None] = {}
        #: The position up to which changes of definitions were processed; None before the first.
        self._position: int | None = None
        self._turn = asyncio.Lock()
        self._tasks: Supervisor | None = None
        self._ending: dict[str, str] = {}

    @property
    def definition(self) -> Definition | None:
        """The definition of CustomResourceDefinitions themselves; None if the server does not serve them."""
        return self._backend.registry.find(GROUP, "v1", RESOURCE)

    async def begin(self, tasks: Supervisor) -> None:
        """Serve all stored definitions."""
        self._tasks = tasks
        self._ending.clear()
        for name in list(self._known):
            self._withdraw(name)
        self._position = None
        await self._catch_up()

    async def run(self) -> None:
        """Follow changes of definitions forever."""
        definition = self.definition
        if definition is None:
            return
        window = self._backend.feed.window(definition.prefix)
        loop = asyncio.get_running_loop()
        while not window.closed:
            position = window.end
            if await self.catch_up():
                await window.wait(position, loop.time() + _LOOK, lambda: False)
            else:
                await asyncio.sleep(_RETRY)

    async def catch_up(self) -> bool:
        """Process all writes so far. Returns whether that succeeded."""
        try:
            await self._catch_up()
        except (RequestRejected, StorageError) as error:
            _log.warning("definitions of custom resources: %s; retrying soon", error)
            return False
        except Exception:  # noqa: BLE001 - our own mistake about one definition is not the end of the server
            _log.exception("definitions of custom resources could not be processed; retrying soon")
            return False
        return True

    def serves(self, definition: Definition) -> bool:
        """Whether a resource is still served, in the same scope."""
        gvk = definition.gvk
        served = self._backend.registry.find(gvk.group, gvk.version, definition.resource)
        return served is not None and served.namespaced == definition.namespaced

    def is_terminating(self, group: str, resource: str) -> bool:
        """Whether a definition or its instances are being deleted: then it takes no new ones."""
        known = self._known.get(f"{resource}.{group}")
        if known is None:
            return False
        return "deletionTimestamp" in known.crd["metadata"] or is_true(known.crd, "Terminating")

    async def _catch_up(self) -> None:
        definition = self.definition
        if definition is None:
            return
        async with self._turn:
            while True:
                for name, record in (await self._changed(definition)).items():
                    self._take(name, record)
                if not await self._judge():
                    break
            await self._api_services.write()

    async def _changed(self, definition: Definition) -> dict[str, Record | None]:
        """The definitions that have changed since the last call; None for deleted ones."""
        storage, feed, prefix = self._backend.storage, self._backend.feed, definition.prefix
        window = feed.window(prefix)
        # Watches show everything up to now before they end.
        is_reached = await feed.wait_for(await storage.revision(), _FEED)
        if self._position is not None and is_reached:
            try:
                events = window.after(self._position)
            except TooOld:
                pass
            else:
                self._position += len(events)
                return {event.key.removeprefix(prefix): event.record for event in events}
        page = await storage.list(prefix)
        there: dict[str, Record | None] = {record.key.removeprefix(prefix): record for record in page.records}
        self._position = None
        if await feed.wait_for(page.revision, _FEED):
            with suppress(TooOld):
                self._position = window.position_after(page.revision)
        return dict.fromkeys((name for name in self._known if name not in there), None) | there

    def _take(self, name: str, record: Record | None) -> None:
        """Serve a definition as it is now, or stop serving it, and mark the definitions whose names need a check."""
        group = name.partition(".")[2]
        in_use = self._names.setdefault(group, NamesInUse())
        known = self._known.get(name)
        if record is None:
            if known is not None:
                self._withdraw(name)
            gives_up = in_use.remove(name)
            self._api_services.note(name, None)
        elif known is not None and known.modified == record.modified:
            return
        else:
            self._look_at(name, record)
            crd = self._known[name].crd
            self._api_services.note(name, crd)
            accepted = names_of(crd.get("status", {}).get("acceptedNames"))
            names = condition(crd, "NamesAccepted")
            gives_up = in_use.put(name, accepted, is_refused=names is not None and names["status"] != "True")
            self._due[name] = None
        if gives_up:
            self._due |= in_use.refused

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
        registry, feed = self._backend.registry, self._backend.feed
        known = self._known[name] = _Known(record.modified, crd)
        if _is_served(crd):
            known.definitions = self._definitions(name, crd, since=record.modified)
        served = {definition.gvk.version for definition in known.definitions}
        for definition in before.definitions if before is not None else ():
            if definition.gvk.version not in served:
                registry.remove(definition.gvk.group, definition.gvk.version, definition.resource)
        if before is not None and before.definitions:
            feed.renew(before.definitions[0].prefix)
        for definition in known.definitions:
            registry.add(definition)

    def _definitions(self, name: str, crd: Tree, *, since: int) -> list[Definition]:
        """The served definitions, without the server's own kinds and damaged definitions."""
        try:
            extension = self._extensions.get(name, NONE)
            definitions = definitions_of(crd, extension=extension, since=since, caller=self._caller)
        except (LookupError, TypeError, ValueError, AttributeError):
            _log.exception("the stored definition %s cannot be served", name)
            return []
        return [definition for definition in definitions if not self._is_builtin(definition)]

    def _is_builtin(self, definition: Definition) -> bool:
        """Whether a built-in resource has the place of a definition."""
        registered = self._backend.registry.find(definition.gvk.group, definition.gvk.version, definition.resource)
        return registered is not None and not registered.custom

    def _withdraw(self, name: str) -> None:
        known = self._known.pop(name)
        for definition in known.definitions:
            self._backend.registry.remove(definition.gvk.group, definition.gvk.version, definition.resource)
            self._backend.feed.renew(definition.prefix)

    async def _judge(self) -> bool:
        """Write one pending condition. Returns whether there was one. Also starts the deletion of deleted definitions."""
        for name in list(self._due):
            known = self._known.get(name)
            if known is not None:
                in_use = self._names[name.partition(".")[2]]
                # The first definition to take a name has it, so others are checked after that.
                if await self._write(name, lambda crd, in_use=in_use: judge_names(crd, in_use) or judge_approval(crd)):
                    return True
                if await self._write(name, establish):
                    return True
                self._finalize(name, known.crd["metadata"].get("uid", ""))
            self._due.pop(name, None)
        return False

    async def _write(self, name: str, change: Callable[[Tree], bool]) -> bool:
        """Write a condition if it changed. Returns whether it did."""
        trial: Tree = copied(self._known[name].crd)
        if not change(trial):
            return False
        await self.write_status(name, trial["metadata"].get("uid", ""), change)
        return True

    async def write_status(self, name: str, uid: str, change: Callable[[Tree], bool]) -> None:
        """Change the status of a definition, and its finalizers, as the server itself; not that of another with its name."""
        definition = self.definition
        assert definition is not None

        def transform(crd: Tree) -> Tree:
            change(crd)
            return crd

        request = ServerRequest(HttpRequest("PUT", f"{_PATH}/{name}/status", headers=HEADERS), user=ITSELF)
        try:
            context = self._backend.context(definition)
            await Change(context, request, WriteOptions(), transform, uid=uid, part="status").make()
        except RequestRejected as refused:
            if refused.status.code not in {404, 409}:
                raise

    def _ended(self, name: str, uid: str) -> Tree | None:
        """A definition as it is now, if it is deleted and waits for the deletion of its instances."""
        known = self._known.get(name)
        metadata: Tree = {} if known is None else known.crd["metadata"]
        waits = "deletionTimestamp" in metadata and FINALIZER in metadata.get("finalizers", ())
        return known.crd if known is not None and waits and metadata["uid"] == uid else None

    def _finalize(self, name: str, uid: str) -> None:
        """Start to delete the instances of a deleted definition, once."""
        if self._tasks is None or self._ending.get(name) == uid or self._ended(name, uid) is None:
            return
        from steersman.apiserver.custom_resources.instance_deletion import InstanceDeletion  # noqa: PLC0415 - few are deleted

        self._ending[name] = uid
        ending = InstanceDeletion(
            self._backend,
            partial(self._ended, name, uid),
            partial(self.write_status, name, uid),
            self._extensions.get(name, NONE),
            self._caller,
        )
        self._tasks.start(self._end(name, uid, ending), name=f"api server: end of {name}")

    async def _end(self, name: str, uid: str, ending: InstanceDeletion) -> None:
        try:
            await ending.run()
        finally:
            if self._ending.get(name) == uid:
                del self._ending[name]


def _readable(name: str, record: Record) -> Tree:
    """A stored definition; an empty one if it is malformed."""
    crd = decode_stored(record)
    if isinstance(crd.get("spec"), dict) and "names" in crd["spec"] and "versions" in crd["spec"]:
        return crd
    _log.error("the stored definition %s is malformed; it is not served", name)
    return {"metadata": {}, "spec": {"names": {}, "group": "", "versions": []}}


def _served_form(crd: Tree) -> tuple[object, ...]:
    """The parts of a definition that determine how it is served."""
    return crd["spec"], crd.get("status", {}).get("acceptedNames"), _is_served(crd)


def _is_served(crd: Tree) -> bool:
    return is_true(crd, "Established") or (is_true(crd, "NamesAccepted") and not has_bad_bundle(crd))
