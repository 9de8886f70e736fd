"""Refuses new objects while a control plane stops."""

from __future__ import annotations

from steersman.apiserver import Attributes, Plugin


class NewObjects(Plugin):
    """Refuses all new objects but Events while `refusal` holds a reason."""

    operations = frozenset({"CREATE"})
    refusal = ""

    async def admit(self, attributes: Attributes) -> None:
        # Controllers still report what they do.
        if self.refusal and attributes.definition.gvk.kind != "Event":
            raise attributes.refused(self.refusal)
