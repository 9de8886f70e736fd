"""No instance can be created while its definition is being deleted, nor after that."""

from __future__ import annotations

from typing import Protocol

from steersman.apiserver.admission.plugins import AdmissionOperation, Attributes, Plugin
from steersman.apiserver.errors import no_such_resource
from steersman.apiserver.registry.definition import Definition


class Definitions(Protocol):
    """The definitions of custom resources as they are now."""

    def serves(self, definition: Definition) -> bool:
        """Whether a resource is still served, in the same scope."""
        ...

    def is_terminating(self, group: str, resource: str) -> bool:
        """Whether the instances of a definition are being deleted."""
        ...


class DefinitionLifecycle(Plugin):
    """Rejects new instances of definitions that are terminating or gone."""

    operations: frozenset[AdmissionOperation] = frozenset({"CREATE"})
    is_repeated = True

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions

    async def admit(self, attributes: Attributes) -> None:
        """Check a new object."""
        definition = attributes.definition
        if not definition.custom:
            return
        if not self._definitions.serves(definition):
            raise no_such_resource()
        if self._definitions.is_terminating(definition.gvk.group, definition.resource):
            raise attributes.refused("create not allowed while custom resource definition is terminating")
