"""Objects that ask the server itself to do something that it does not do yet.

Guarantee: none of them is stored as if it had an effect. It is refused; or, where others have a use for it as well,
stored with a warning to whoever makes it.
"""

from __future__ import annotations

from collections.abc import Mapping

from steersman.apiserver.admission.attributes import Attributes, Operation, Plugin

_HOOKS = "webhooks are not called by this server; a plugin in ApiServer(admission=[...]) does what one would"
_POLICIES = "admission policies are not evaluated by this server; a plugin in ApiServer(admission=[...]) is"

#: By group and resource, why it is refused.
REFUSED: Mapping[tuple[str, str], str] = {
    ("apiregistration.k8s.io", "apiservices"): "this server asks no other API server",
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): _HOOKS,
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): _HOOKS,
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): _POLICIES,
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): _POLICIES,
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): _POLICIES,
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"): _POLICIES,
}
#: By group and resource, what whoever makes one is told.
WARNED: Mapping[tuple[str, str], str] = {
    ("", "limitranges"): "limits of a LimitRange are stored, but neither filled in nor enforced by this server",
    ("", "resourcequotas"): "quotas are stored, but neither counted nor enforced by this server",
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): "flow schemas are stored, but not followed by this server",
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): (
        "priority levels are stored, but not followed by this server"
    ),
}


class NotYet(Plugin):
    """Refuses, or warns of, what would be ignored."""

    operations: frozenset[Operation] = frozenset({"CREATE"})

    async def admit(self, attributes: Attributes) -> None:
        """Look at a new object."""
        definition = attributes.definition
        name = (definition.gvk.group, definition.resource)
        if (why := REFUSED.get(name)) is not None:
            raise attributes.refused(why)
        if (told := WARNED.get(name)) is not None:
            attributes.warn(told)
