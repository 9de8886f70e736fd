"""Admission plugins, and what they see of a write.

Guarantees
- Plugins run in the given order: first all `admit` methods, which may change objects, then all `validate` methods.
- A plugin rejects a write by raising `Refused`; then nothing is stored.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, TypeAlias

from steersman.apiserver.errors import Refused, forbidden
from steersman.apiserver.registry.definition import Definition, Surroundings, Tree
from steersman.apiserver.request import ServerRequest

Operation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


class Attributes:
    """One write. `Plugin.admit` may change `obj` in place, but never `old`."""

    __slots__ = ("context", "dry_run", "name", "namespace", "obj", "old", "operation", "request")

    def __init__(
        self,
        context: Surroundings,
        request: ServerRequest,
        operation: Operation,
        *,
        namespace: str,
        name: str,
        obj: Tree | None,
        old: Tree | None,
        dry_run: bool,
    ) -> None:
        self.context = context
        self.request = request
        self.operation: Operation = operation
        self.namespace = namespace
        #: Empty while a name is not generated yet, and for the deletion of a collection.
        self.name = name
        #: None for a deletion.
        self.obj = obj
        #: None for a creation.
        self.old = old
        self.dry_run = dry_run

    @property
    def definition(self) -> Definition:
        """The resource being written."""
        return self.context.definition

    @property
    def subresource(self) -> str:
        """The subresource being written; empty for the object itself."""
        return self.request.info.subresource

    def refused(self, why: str) -> Refused:
        """The rejection of this write: ``raise attributes.refused("it has no owner")``, a 403 that names the object."""
        return forbidden(self.definition.named, self.name, why)

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
    operations: frozenset[Operation] = frozenset({"CREATE", "UPDATE", "DELETE"})

    async def admit(self, attributes: Attributes) -> None:
        """Change the object, or reject it. Called before validation."""

    async def validate(self, attributes: Attributes) -> None:
        """Reject the object as it would be stored. Called after validation."""


#: A plugin that only admits: ``async def stamp(attributes: Attributes) -> None``, called for creations and updates.
AdmissionFunction: TypeAlias = Callable[[Attributes], Awaitable[None]]


class _Function(Plugin):
    operations: frozenset[Operation] = frozenset({"CREATE", "UPDATE"})

    def __init__(self, function: AdmissionFunction) -> None:
        self._function = function

    async def admit(self, attributes: Attributes) -> None:
        """Call the function."""
        await self._function(attributes)


class Admission:
    """The plugins of a server, in order. `plugins` may be changed while it runs.

    ``guards`` see an object after all plugins have changed it.
    """

    def __init__(self, plugins: Sequence[Plugin | AdmissionFunction] = (), *, guards: Sequence[Plugin] = ()) -> None:
        self.plugins: list[Plugin] = []
        self._guards = tuple(guards)
        self.add(*plugins)

    def add(self, *plugins: Plugin | AdmissionFunction) -> None:
        """Add plugins after the others."""
        self.plugins += (each if isinstance(each, Plugin) else _Function(each) for each in plugins)

    async def admit(self, attributes: Attributes) -> None:
        """Call `admit` of every plugin."""
        for plugin in (*self.plugins, *self._guards):
            if attributes.operation in plugin.operations:
                await plugin.admit(attributes)

    async def validate(self, attributes: Attributes) -> None:
        """Call `validate` of every plugin."""
        for plugin in self.plugins:
            if attributes.operation in plugin.operations:
                await plugin.validate(attributes)
