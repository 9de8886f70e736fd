"""Calls the webhooks of the stored MutatingWebhookConfigurations and ValidatingWebhookConfigurations."""

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names

# Imported on first use: most servers call no webhook.
if TYPE_CHECKING:
    from steersman.apiserver.webhooks.configurations import Configurations as Configurations
    from steersman.apiserver.webhooks.https_calls import WebhookCalls as WebhookCalls
    from steersman.apiserver.webhooks.mutation import MutatingWebhooks as MutatingWebhooks
    from steersman.apiserver.webhooks.services import StoredServices as StoredServices
    from steersman.apiserver.webhooks.targets import (
        CallFailed as CallFailed,
        ReviewHandler as ReviewHandler,
        ServiceReference as ServiceReference,
        ServiceResolver as ServiceResolver,
        WebhookCaller as WebhookCaller,
        WebhookTarget as WebhookTarget,
    )
    from steersman.apiserver.webhooks.validation import ValidatingWebhooks as ValidatingWebhooks
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.apiserver.webhooks.configurations": ["Configurations"],
            "steersman.apiserver.webhooks.https_calls": ["WebhookCalls"],
            "steersman.apiserver.webhooks.mutation": ["MutatingWebhooks"],
            "steersman.apiserver.webhooks.services": ["StoredServices"],
            "steersman.apiserver.webhooks.targets": [
                "CallFailed",
                "ReviewHandler",
                "ServiceReference",
                "ServiceResolver",
                "WebhookCaller",
                "WebhookTarget",
            ],
            "steersman.apiserver.webhooks.validation": ["ValidatingWebhooks"],
        },
    )
