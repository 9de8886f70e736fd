"""What admission sees of a write, and what it is made of.

Guarantees
- Plugins run in the order in which they are given: first all that change objects, then all that only judge them.
- A plugin refuses by raising `Refused`; nothing is stored then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, TypeAlias

from steersman.apiserver.context import VerbContext
from steersman.apiserver.errors import Refused, forbidden
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.request import ServerRequest

Operation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


class Attributes:
    """One write: `obj` may be changed in place by `Plugin.admit`; `old` never."""

    __slots__ = ("context", "dry_run", "name", "namespace", "obj", "old", "operation", "request")

    def __init__(
        self,
        context: VerbContext,
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
        #: Empty for a generated name, while it is not generated, and for the deletion of a collection.
        self.name = name
        #: None for a deletion.
        self.obj = obj
        #: None for a creation.
        self.old = old
        self.dry_run = dry_run

    @property
    def definition(self) -> Definition:
        """The resource that is written."""
        return self.context.definition

    @property
    def subresource(self) -> str:
        """The subresource that is written; empty for the object itself."""
        return self.request.info.subresource

    def refused(self, why: str) -> Refused:
        """The refusal of this write: ``raise attributes.refused("it has no owner")``, a 403 that names the object."""
        return forbidden(self.definition.named, self.name, why)

    def warn(self, text: str) -> None:
        """Tell the writer something though the write is allowed: kubectl and `Client` show it."""
        self.request.warn(text)


class Plugin:
    """One admission plugin; it does what it overrides.

    ```python
    class TeamLabel(Plugin):
        operations = frozenset({"CREATE"})

        async def validate(self, attributes: Attributes) -> None:
            if "team" not in attributes.obj["metadata"].get("labels", {}):
                raise attributes.refused("it has no label team")
    ```
    """

    #: What it wants to see.
    operations: frozenset[Operation] = frozenset({"CREATE", "UPDATE", "DELETE"})

    async def admit(self, attributes: Attributes) -> None:
        """Change the object, or refuse it; called before it is validated."""

    async def validate(self, attributes: Attributes) -> None:
        """Refuse the object as it would be stored; called after it was validated."""


#: A plugin that only admits: ``async def stamp(attributes: Attributes) -> None``, called for creations and updates.
AdmissionFunction: TypeAlias = Callable[[Attributes], Awaitable[None]]


class _Function(Plugin):
    operations: frozenset[Operation] = frozenset({"CREATE", "UPDATE"})

    def __init__(self, function: AdmissionFunction) -> None:
        self._function = function

    async def admit(self, attributes: Attributes) -> None:
        """Leave it to the function."""
        await self._function(attributes)


class Admission:
    """The plugins of a server, in order. `plugins` may be changed while it runs."""

    def __init__(self, plugins: Sequence[Plugin | AdmissionFunction] = ()) -> None:
        self.plugins: list[Plugin] = [each if isinstance(each, Plugin) else _Function(each) for each in plugins]

    async def admit(self, attributes: Attributes) -> None:
        """Let every plugin change the object."""
        for plugin in self.plugins:
            if attributes.operation in plugin.operations:
                await plugin.admit(attributes)

    async def validate(self, attributes: Attributes) -> None:
        """Let every plugin judge the object."""
        for plugin in self.plugins:
            if attributes.operation in plugin.operations:
                await plugin.validate(attributes)
