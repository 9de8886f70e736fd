"""Admission and conversion webhooks: defaults, checks and versions as typed functions.

Guarantees
- A handler gets typed objects and returns them, or raises `Denied`; this room implements the review protocol.
- A mutation sends exactly the difference: fields that the handler's types do not declare pass through unchanged.
- A round trip through another version loses no field, whether or not a type declares it.
- If a handler raises, blocks or takes too long, the review is denied with the reason; the API server never waits forever.
- All replicas share one certificate, which the room creates and renews without a restart and without cert-manager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names
from steersman.objects.field_problems import (
    FieldProblem as FieldProblem,
    duplicate as duplicate,
    forbidden as forbidden,
    invalid as invalid,
    required as required,
    too_long as too_long,
    unsupported as unsupported,
)
from steersman.webhooks.conversion import SAVED_FIELDS as SAVED_FIELDS, VersionConverter as VersionConverter
from steersman.webhooks.endpoint import WebhookEndpoint as WebhookEndpoint
from steersman.webhooks.handlers import (
    AdmissionHandler as AdmissionHandler,
    Admitted as Admitted,
    Denied as Denied,
    Review as Review,
    mutates as mutates,
    validates as validates,
)
from steersman.webhooks.server import Hook as Hook, WebhookServer as WebhookServer, admission_path as admission_path

# Imported on first use: without a port for webhooks, a program needs neither certificates nor built-in kinds.
if TYPE_CHECKING:
    from steersman.webhooks.address import WebhookAddress as WebhookAddress, webhook_address as webhook_address
    from steersman.webhooks.certificate_secret import CertificateSecret as CertificateSecret
    from steersman.webhooks.registration import WebhookRegistration as WebhookRegistration
    from steersman.webhooks.serving import ServedWebhooks as ServedWebhooks, serve_webhooks as serve_webhooks
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.webhooks.address": ["WebhookAddress", "webhook_address"],
            "steersman.webhooks.certificate_secret": ["CertificateSecret"],
            "steersman.webhooks.registration": ["WebhookRegistration"],
            "steersman.webhooks.serving": ["ServedWebhooks", "serve_webhooks"],
        },
    )

__all__ = [
    "Admitted",
    "Denied",
    "FieldProblem",
    "Review",
    "VersionConverter",
    "WebhookEndpoint",
    "WebhookServer",
    "duplicate",
    "forbidden",
    "invalid",
    "mutates",
    "required",
    "too_long",
    "unsupported",
    "validates",
]
