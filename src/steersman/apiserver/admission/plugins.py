"""Admission plugins, and what they see of a write.

Guarantees
- Plugins run in the given order: first all `admit` methods, which may change objects, then all `validate` methods.
- A plugin rejects a write by raising `RequestRejected`; then nothing is stored.
- No new object is stored in a namespace, or under a definition, that was deleted while webhooks took their time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from steersman.apiserver.errors import RequestRejected, forbidden
from steersman.apiserver.metrics import ServerMetrics
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.registry.strategy import Surroundings
from steersman.apiserver.request import ServerRequest
from steersman.errors import StatusCause

#: The maximum size of the index of plugins by operation and resource.
_CALLED_MAX = 4096

AdmissionOperation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


class WriteView(NamedTuple):
    """What clients see of a write whose object has another kind, such as the Scale of a Deployment.

    ``show`` makes it from the object, and ``take`` writes its changes back; both are None if the object is already in this form.
    """

    definition: Definition
    show: Callable[[Tree], Tree] | None = None
    take: Callable[[Tree, Tree], None] | None = None


class PluginSurroundings(Surroundings, Protocol):
    """What a plugin may read beyond its object."""

    @property
    def definition(self) -> Definition:
        """The resource of the object."""
        ...


class Attributes:
    """One write. `Plugin.admit` may change `obj` in place, but never `old`."""

    __slots__ = (
        "context",
        "dry_run",
        "is_reinvocation",
        "name",
        "namespace",
        "obj",
        "old",
        "operation",
        "options",
        "request",
        "state",
        "view",
        "wants_reinvocation",
    )

    def __init__(
        self,
        context: PluginSurroundings,
        request: ServerRequest,
        operation: AdmissionOperation,
        *,
        namespace: str,
        name: str,
        obj: Tree | None,
        old: Tree | None,
        dry_run: bool,
        options: Any = None,
        view: WriteView | None = None,
    ) -> None:
        self.context = context
        self.request = request
        self.operation: AdmissionOperation = operation
        self.namespace = namespace
        #: Empty while a name is not generated yet. In the deletion of a collection, that of one object in it.
        self.name = name
        #: None for a deletion.
        self.obj = obj
        #: None for a creation.
        self.old = old
        self.dry_run = dry_run
        #: The options of a deletion.
        self.options = options
        #: The kind that clients see, if it is not that of the resource.
        self.view = view
        #: Whether a plugin changed the object so that the others must see it again, and whether they do.
        self.wants_reinvocation = self.is_reinvocation = False
        #: What a plugin remembers between its calls, by its own key.
        self.state: dict[object, Any] | None = None

    @property
    def definition(self) -> Definition:
        """The resource being written."""
        return self.context.definition

    @property
    def subresource(self) -> str:
        """The subresource being written; empty for the object itself."""
        return self.request.info.subresource

    def refused(self, why: str, causes: tuple[StatusCause, ...] = ()) -> RequestRejected:
        """The rejection of this write: ``raise attributes.refused("it has no owner")``, a 403 that names the object."""
        metadata: Tree = (self.obj or {}).get("metadata", {})
        # The deletion of a collection names no object.
        name = "" if self.request.info.verb == "deletecollection" else self.name
        return forbidden(self.definition.named, name or metadata.get("generateName") or "Unknown", why, causes)

    def warn(self, text: str) -> None:
        """Add a warning to an allowed write: kubectl and `Client` show it."""
        self.request.warn(text)


class Plugin:
    """One admission plugin. Override the methods that you need.

    ```python
    class TeamLabel(Plugin):
        operations = frozenset({"CREATE"})

        async def validate(self, attributes: Attributes) -> None:
            if "team" not in attributes.obj["metadata"].get("labels", {}):
                raise attributes.refused("it has no label team")
    ```
    """

    #: The operations that it is called for.
    operations: frozenset[AdmissionOperation] = frozenset({"CREATE", "UPDATE", "DELETE"})
    #: The groups and names of the resources that it is called for, such as ``("", "pods")``; None for all.
    resources: frozenset[tuple[str, str]] | None = None
    #: Whether `admit` is called again right before a new object is stored, and then changes nothing: it checks something
    #: that may be gone by then.
    is_repeated: bool = False

    async def admit(self, attributes: Attributes) -> None:
        """Change the object, or reject it. Called before validation."""

    async def validate(self, attributes: Attributes) -> None:
        """Reject the object as it would be stored. Called after validation."""


#: A plugin that only admits: ``async def stamp(attributes: Attributes) -> None``, called for creations and updates.
AdmissionFunction: TypeAlias = Callable[[Attributes], Awaitable[None]]


class _Function(Plugin):
    operations: frozenset[AdmissionOperation] = frozenset({"CREATE", "UPDATE"})

    def __init__(self, function: AdmissionFunction) -> None:
        self._function = function

    async def admit(self, attributes: Attributes) -> None:
        """Call the function."""
        await self._function(attributes)


class Admission:
    """The plugins of a server, in order.

    The plugins in ``last`` run after all others. Guards see an object after all plugins have changed it.
    """

    def __init__(
        self,
        plugins: Sequence[Plugin | AdmissionFunction] = (),
        *,
        last: Sequence[Plugin] = (),
        metrics: ServerMetrics | None = None,
    ) -> None:
        self._plugins: list[Plugin] = []
        self._guards: list[Plugin] = []
        self._last = list(last)
        #: The plugins that admit, and those that validate, by operation, group and resource.
        self._called: dict[tuple[AdmissionOperation, str, str], tuple[Sequence[Plugin], Sequence[Plugin]]] = {}
        self._metrics = metrics
        self.add(*plugins)

    def add(self, *plugins: Plugin | AdmissionFunction) -> None:
        """Add plugins after the others."""
        self._plugins += (plugin if isinstance(plugin, Plugin) else _Function(plugin) for plugin in plugins)
        self._called.clear()

    def add_last(self, plugin: Plugin) -> None:
        """Add a plugin that runs after all others, except guards."""
        self._last.append(plugin)
        self._called.clear()

    def add_guard(self, guard: Plugin) -> None:
        """Add a plugin that sees an object after all others have changed it."""
        self._guards.append(guard)
        self._called.clear()

    async def admit(self, attributes: Attributes) -> None:
        """Call `admit` of every plugin; once more if one of them requests it."""
        admitting, _ = self._find(attributes)
        await self._call("admit", attributes, [plugin.admit for plugin in admitting])
        if attributes.wants_reinvocation:
            attributes.is_reinvocation = True
            await self._call("admit", attributes, [plugin.admit for plugin in admitting])

    async def validate(self, attributes: Attributes) -> None:
        """Call `validate` of every plugin."""
        _, validating = self._find(attributes)
        await self._call("validate", attributes, [plugin.validate for plugin in validating])

    async def repeat(self, attributes: Attributes) -> None:
        """Call `admit` of the plugins that check again right before a new object is stored."""
        admitting, _ = self._find(attributes)
        for plugin in admitting:
            if plugin.is_repeated:
                await plugin.admit(attributes)

    async def _call(self, step: str, attributes: Attributes, functions: Sequence[AdmissionFunction]) -> None:
        loop = asyncio.get_running_loop()
        began, rejected = loop.time(), True
        try:
            for function in functions:
                await function(attributes)
            rejected = False
        finally:
            if self._metrics is not None:
                self._metrics.admitted(step, attributes.operation, loop.time() - began, rejected=rejected)

    def _find(self, attributes: Attributes) -> tuple[Sequence[Plugin], Sequence[Plugin]]:
        definition = attributes.definition
        key = (attributes.operation, definition.gvk.group, definition.resource)
        handlers = self._called.get(key)
        if handlers is None:
            if len(self._called) >= _CALLED_MAX:
                self._called.clear()
            own = [plugin for plugin in (*self._plugins, *self._last, *self._guards) if _concerns(plugin, *key)]
            handlers = self._called[key] = (
                [plugin for plugin in own if type(plugin).admit is not Plugin.admit],
                [
                    plugin
                    for plugin in own
                    if type(plugin).validate is not Plugin.validate and plugin not in self._guards
                ],
            )
        return handlers


def _concerns(plugin: Plugin, operation: AdmissionOperation, group: str, resource: str) -> bool:
    return operation in plugin.operations and (plugin.resources is None or (group, resource) in plugin.resources)
