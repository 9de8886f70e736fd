"""Validation of the conversion between versions: none, or a webhook that can be called.

Guarantee: messages and order are kube-apiserver's.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from steersman.apiserver.registry.builtin.types.trees import Tree, inner
from steersman.apiserver.registry.builtin.types.webhook_clients import (
    REVIEWS,
    review_problems,
    service_problems,
    url_problems,
)
from steersman.golang import printed_json
from steersman.objects.field_problems import (
    FieldProblem,
    Printed,
    forbidden,
    invalid,
    required,
    unsupported,
)

_PEM: Final = re.compile(r"-----BEGIN (?P<kind>[^-\n]+)-----\s*\n(?P<body>.*?)-----END (?P=kind)-----", re.DOTALL)
_NOT_SET: Final = "should not be set when strategy is not set to Webhook"


def conversion_problems(conversion: Tree, path: str, *, any_review: bool, any_bundle: bool) -> list[FieldProblem]:
    """The problems of a conversion; ``any_review`` and ``any_bundle`` tolerate existing ones."""
    strategy: str = conversion["strategy"]
    problems: list[FieldProblem] = []
    if not strategy:
        problems.append(required(f"{path}.strategy"))
    elif strategy not in {"None", "Webhook"}:
        problems.append(unsupported(f"{path}.strategy", strategy, ("None", "Webhook")))
    webhook = inner(conversion, "webhook")
    client, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions")
    where = f"{path}.webhookClientConfig"
    if strategy != "Webhook":
        if client is not None:
            problems.append(forbidden(where, _NOT_SET))
        return problems + ([forbidden(f"{path}.conversionReviewVersions", _NOT_SET)] if reviews else [])
    if client is None:
        problems.append(required(where, "required when strategy is set to Webhook"))
    else:
        problems += _client_problems(client, where, any_bundle=any_bundle)
    return problems + review_problems(reviews or [], f"{path}.conversionReviewVersions", must_have_known=not any_review)


def knows_a_review(reviews: list[str] | None) -> bool:
    """Whether the server supports one of the versions, or there is none."""
    return not reviews or any(review in REVIEWS for review in reviews)


def _client_problems(client: Tree, path: str, *, any_bundle: bool) -> list[FieldProblem]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        problems = [required(path, "exactly one of url or service is required")]
    elif service is None:
        problems = url_problems(url or "", f"{path}.url")
    else:
        problems = service_problems(service, f"{path}.service")
    bundle = client.get("caBundle")
    if bundle and not any_bundle and (reason := bundle_problem(bundle)):
        problems.append(invalid(f"{path}.caBundle", Printed(printed_json(bundle)), reason))
    return problems


def bundle_problem(bundle: str) -> str:
    """The problem of base64-encoded certificates, as text; empty if they are valid."""
    begin = "unable to load root certificates: "
    blocks = list(_PEM.finditer(base64.b64decode(bundle).decode("latin-1")))
    if not blocks:
        return f"{begin}unable to parse bytes as PEM block"
    for block in blocks:
        try:
            content = base64.b64decode("".join(block["body"].split()), validate=True)
        except (binascii.Error, ValueError):
            continue
        if block["kind"] == "CERTIFICATE":
            return "" if content[:1] == b"\x30" else f"{begin}failed to parse certificate: x509: malformed certificate"
    return f"{begin}no valid certificate authority data seen"
