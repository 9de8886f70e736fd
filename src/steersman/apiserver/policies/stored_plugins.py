"""The plugins that objects of admissionregistration.k8s.io configure."""

from __future__ import annotations

from collections.abc import Collection

from steersman.apiserver.admission import Plugin
from steersman.apiserver.admission.builtin_plugins import STORED_PLUGINS
from steersman.apiserver.policies.mutating_policy import MutatingPolicy
from steersman.apiserver.policies.mutation import MutatingPolicies
from steersman.apiserver.policies.stored_policies import StoredPolicies
from steersman.apiserver.policies.validating_policy import ValidatingPolicy
from steersman.apiserver.policies.validation import ValidatingPolicies
from steersman.apiserver.registry import ResourceRegistry
from steersman.apiserver.storage import Storage
from steersman.apiserver.webhooks import Configurations, MutatingWebhooks, ValidatingWebhooks, WebhookCaller
from steersman.apiserver.workers import Workers


def stored_plugins(
    names: Collection[str], storage: Storage, registry: ResourceRegistry, caller: WebhookCaller, workers: Workers
) -> list[Plugin]:
    """The plugins with these names, in the order of `STORED_PLUGINS`."""
    mutating = StoredPolicies(storage, "mutating", MutatingPolicy)
    validating = StoredPolicies(storage, "validating", ValidatingPolicy)
    hooks = (Configurations(storage), caller, registry, workers)
    plugins: dict[str, Plugin] = {
        "MutatingAdmissionPolicy": MutatingPolicies(mutating, registry, workers),
        "MutatingAdmissionWebhook": MutatingWebhooks(*hooks),
        "ValidatingAdmissionPolicy": ValidatingPolicies(validating, registry, workers),
        "ValidatingAdmissionWebhook": ValidatingWebhooks(*hooks),
    }
    return [plugins[name] for name in STORED_PLUGINS if name in names]
