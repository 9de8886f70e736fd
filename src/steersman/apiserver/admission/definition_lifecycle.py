"""No instance can be created while its definition is being deleted."""

from __future__ import annotations

from collections.abc import Callable

from steersman.apiserver.admission.plugins import AdmissionOperation, Attributes, Plugin


class DefinitionLifecycle(Plugin):
    """Rejects new instances of terminating definitions."""

    operations: frozenset[AdmissionOperation] = frozenset({"CREATE"})

    def __init__(self, is_terminating: Callable[[str, str], bool]) -> None:
        self._is_terminating = is_terminating

    async def admit(self, attributes: Attributes) -> None:
        """Check a new object."""
        definition = attributes.definition
        if definition.custom and self._is_terminating(definition.gvk.group, definition.resource):
            raise attributes.refused("create not allowed while custom resource definition is terminating")
