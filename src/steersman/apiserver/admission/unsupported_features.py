"""Objects that configure features that this server does not have.

Guarantee: none of them is stored as if it had an effect. It is rejected or, if it is also useful to others, stored with
a warning.
"""

from __future__ import annotations

from collections.abc import Mapping

from steersman.apiserver.admission.attributes import Attributes, Operation, Plugin

_HOOKS = "this server does not call webhooks; use a plugin in ApiServer(admission=[...]) instead"
_POLICIES = "this server does not evaluate admission policies; use a plugin in ApiServer(admission=[...]) instead"

#: The reason for rejecting it, by group and resource.
REFUSED: Mapping[tuple[str, str], str] = {
    ("apiregistration.k8s.io", "apiservices"): "this server does not forward requests to other API servers",
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): _HOOKS,
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): _HOOKS,
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): _POLICIES,
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): _POLICIES,
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): _POLICIES,
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"): _POLICIES,
}
#: The warning, by group and resource.
WARNED: Mapping[tuple[str, str], str] = {
    ("", "limitranges"): "this server stores the limits of a LimitRange, but neither fills them in nor enforces them",
    ("", "resourcequotas"): "this server stores quotas, but neither counts nor enforces them",
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): "this server stores flow schemas, but does not apply them",
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): (
        "this server stores priority levels, but does not apply them"
    ),
}


class UnsupportedFeatures(Plugin):
    """Rejects, or warns about, objects without an effect."""

    operations: frozenset[Operation] = frozenset({"CREATE"})

    async def admit(self, attributes: Attributes) -> None:
        """Check a new object."""
        definition = attributes.definition
        name = (definition.gvk.group, definition.resource)
        if (why := REFUSED.get(name)) is not None:
            raise attributes.refused(why)
        if (told := WARNED.get(name)) is not None:
            attributes.warn(told)
