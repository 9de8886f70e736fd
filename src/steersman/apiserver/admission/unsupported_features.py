"""Objects that configure features that this server does not have.

Guarantee: the server rejects such an object or, if other programs use it, stores it with a warning.
"""

from __future__ import annotations

from collections.abc import Mapping

from steersman.apiserver.admission.plugins import AdmissionOperation, Attributes, Plugin

#: The reason for rejecting it, by group and resource.
REFUSED: Mapping[tuple[str, str], str] = {
    ("apiregistration.k8s.io", "apiservices"): "this server does not forward requests to other API servers",
}
#: The warning, by group and resource.
WARNED: Mapping[tuple[str, str], str] = {
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): (
        "this server stores priority levels, but does not limit requests by them"
    ),
}


class UnsupportedFeatures(Plugin):
    """Rejects, or warns about, objects without an effect."""

    operations: frozenset[AdmissionOperation] = frozenset({"CREATE"})
    resources = frozenset({*REFUSED, *WARNED})

    async def admit(self, attributes: Attributes) -> None:
        """Check a new object."""
        definition = attributes.definition
        name = (definition.gvk.group, definition.resource)
        if (why := REFUSED.get(name)) is not None:
            raise attributes.refused(why)
        if (warning := WARNED.get(name)) is not None:
            attributes.warn(warning)
