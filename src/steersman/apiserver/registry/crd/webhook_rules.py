"""Validation of the conversion between versions: none, or a webhook that can be called.

Guarantee: messages and order are kube-apiserver's.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, Final
from urllib.parse import urlsplit

from steersman.apiserver.registry.builtin.types.trees import Tree, inner
from steersman.apiserver.registry.names import dns_1035_label, dns_subdomain
from steersman.golang import printed_json, url_problem
from steersman.objects.field_problems import (
    FieldProblem,
    Printed,
    forbidden,
    invalid,
    required,
    unsupported,
    until_enough,
)

#: The versions of ConversionReview that the server supports.
REVIEWS: Final = ("v1", "v1beta1")
_FORM: Final = "; desired format: https://host[/path]"
_PORT_MAX: Final = 65535
_PEM: Final = re.compile(r"-----BEGIN (?P<kind>[^-\n]+)-----\s*\n(?P<body>.*?)-----END (?P=kind)-----", re.DOTALL)
_NOT_SET: Final = "should not be set when strategy is not set to Webhook"


def conversion_problems(conversion: Tree, path: str, *, any_review: bool, any_bundle: bool) -> list[FieldProblem]:
    """The problems of a conversion; ``any_review`` and ``any_bundle`` tolerate existing ones."""
    strategy: str = conversion["strategy"]
    found: list[FieldProblem] = []
    if not strategy:
        found.append(required(f"{path}.strategy"))
    elif strategy not in {"None", "Webhook"}:
        found.append(unsupported(f"{path}.strategy", strategy, ("None", "Webhook")))
    webhook = inner(conversion, "webhook")
    client, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions")
    where = f"{path}.webhookClientConfig"
    if strategy != "Webhook":
        if client is not None:
            found.append(forbidden(where, _NOT_SET))
        return found + ([forbidden(f"{path}.conversionReviewVersions", _NOT_SET)] if reviews else [])
    if client is None:
        found.append(required(where, "required when strategy is set to Webhook"))
    else:
        found += _client_problems(client, where, any_bundle=any_bundle)
    return found + _review_problems(reviews or [], f"{path}.conversionReviewVersions", any_review=any_review)


def knows_a_review(reviews: list[str] | None) -> bool:
    """Whether the server supports one of the versions, or there is none."""
    return not reviews or any(review in REVIEWS for review in reviews)


def _client_problems(client: Tree, path: str, *, any_bundle: bool) -> list[FieldProblem]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        found = [required(path, "exactly one of url or service is required")]
    elif service is None:
        found = url_problems(url or "", f"{path}.url")
    else:
        found = _service_problems(service, f"{path}.service")
    bundle = client.get("caBundle")
    if bundle and not any_bundle and (told := bundle_problem(bundle)):
        found.append(invalid(f"{path}.caBundle", Printed(printed_json(bundle)), told))
    return found


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


def url_problems(url: str, path: str) -> list[FieldProblem]:
    """The problems of a webhook's URL."""
    if problem := url_problem(url):
        return [required(path, f"url must be a valid URL: {problem}{_FORM}")]
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    found: list[FieldProblem] = []
    if parts.scheme != "https":
        found.append(invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_FORM}"))
    if not host:
        found.append(invalid(path, host, f"host must be specified{_FORM}"))
    if at:
        found.append(invalid(path, user, "user information is not permitted in the URL"))
    if parts.fragment:
        found.append(invalid(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        found.append(invalid(path, parts.query, "query parameters are not permitted in the URL"))
    return found


def _service_problems(service: Tree, path: str) -> list[FieldProblem]:
    found: list[FieldProblem] = []
    # The server confuses the two, and so do its messages.
    if not service["namespace"]:
        found.append(required(f"{path}.name"))
    if not service["name"]:
        found.append(required(f"{path}.namespace"))
    port: int = service["port"]
    if not 1 <= port <= _PORT_MAX:
        said = f"port is not valid: must be between 1 and {_PORT_MAX}, inclusive"
        found.append(invalid(f"{path}.port", port, said))
    return found + _path_problems(service.get("path") or "", f"{path}.path")


def _path_problems(url_path: str, path: str) -> list[FieldProblem]:
    if url_path in {"", "/"}:
        return []
    if url_path == "//":
        return [invalid(path, url_path, "segment[0] may not be empty")]
    found: list[FieldProblem] = []
    if not url_path.startswith("/"):
        found.append(invalid(path, url_path, "must start with a '/'"))
    for at, step in until_enough(url_path[1:].removesuffix("/").split("/"), found):
        if not step:
            found.append(invalid(path, url_path, f"segment[{at}] may not be empty"))
        else:
            found += [invalid(path, url_path, f"segment[{at}]: {told}") for told in dns_subdomain(step)]
    return found


def _review_problems(reviews: list[str], path: str, *, any_review: bool) -> list[FieldProblem]:
    if not reviews:
        return [required(path)]
    found: list[FieldProblem] = []
    seen: set[str] = set()
    for at, review in until_enough(reviews, found):
        if review in seen:
            found.append(invalid(f"{path}[{at}]", review, "duplicate version"))
            continue
        seen.add(review)
        found += [invalid(f"{path}[{at}]", review, told) for told in dns_1035_label(review)]
    if not any_review and not seen & set(REVIEWS):
        listed: Any = reviews
        found.append(invalid(path, listed, f"must include at least one of {', '.join(REVIEWS)}"))
    return found
