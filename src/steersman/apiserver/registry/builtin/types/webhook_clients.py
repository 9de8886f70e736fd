"""Where webhooks are, and the reviews that they read, validated as in kube-apiserver."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from steersman import golang
from steersman.apiserver.registry.builtin.types.trees import Tree
from steersman.objects.field_problems import FieldProblem, invalid, required, until_enough
from steersman.schemas.names import dns_1035_label, dns_subdomain

#: The versions of AdmissionReview and of ConversionReview that the server sends.
REVIEWS: Final = ("v1", "v1beta1")
_FORM: Final = "; desired format: https://host[/path]"
_PORT_MAX: Final = 65535


def url_problems(url: str, path: str) -> list[FieldProblem]:
    """The problems of a webhook's URL."""
    if problem := golang.url_problem(url):
        return [required(path, f"url must be a valid URL: {problem}{_FORM}")]
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    problems: list[FieldProblem] = []
    if parts.scheme != "https":
        problems.append(invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_FORM}"))
    if not host:
        problems.append(invalid(path, host, f"host must be specified{_FORM}"))
    if at:
        problems.append(invalid(path, user, "user information is not permitted in the URL"))
    if parts.fragment:
        problems.append(invalid(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        problems.append(invalid(path, parts.query, "query parameters are not permitted in the URL"))
    return problems


def service_problems(service: Tree, path: str) -> list[FieldProblem]:
    """The problems of a webhook's Service."""
    problems: list[FieldProblem] = []
    # The server confuses the two, and so do its messages.
    if not service["namespace"]:
        problems.append(required(f"{path}.name"))
    if not service["name"]:
        problems.append(required(f"{path}.namespace"))
    port: int = service["port"]
    if not 1 <= port <= _PORT_MAX:
        said = f"port is not valid: must be between 1 and {_PORT_MAX}, inclusive"
        problems.append(invalid(f"{path}.port", port, said))
    return problems + _path_problems(service.get("path") or "", f"{path}.path")


def _path_problems(url_path: str, path: str) -> list[FieldProblem]:
    if url_path in {"", "/"}:
        return []
    if url_path == "//":
        return [invalid(path, url_path, "segment[0] may not be empty")]
    problems: list[FieldProblem] = []
    if not url_path.startswith("/"):
        problems.append(invalid(path, url_path, "must start with a '/'"))
    for at, step in until_enough(url_path[1:].removesuffix("/").split("/"), problems):
        if not step:
            problems.append(invalid(path, url_path, f"segment[{at}] may not be empty"))
        else:
            problems += [invalid(path, url_path, f"segment[{at}]: {reason}") for reason in dns_subdomain(step)]
    return problems


def review_problems(reviews: list[str], path: str, *, must_have_known: bool, missing: str = "") -> list[FieldProblem]:
    """The problems of the versions of a review that a webhook reads; a known one is one that the server sends."""
    if not reviews:
        return [required(path, missing)]
    problems: list[FieldProblem] = []
    seen: set[str] = set()
    for at, review in until_enough(reviews, problems):
        if review in seen:
            problems.append(invalid(f"{path}[{at}]", review, "duplicate version"))
            continue
        seen.add(review)
        problems += [invalid(f"{path}[{at}]", review, reason) for reason in dns_1035_label(review)]
    if must_have_known and not seen & set(REVIEWS):
        listed: Any = reviews
        problems.append(invalid(path, listed, f"must include at least one of {', '.join(REVIEWS)}"))
    return problems
