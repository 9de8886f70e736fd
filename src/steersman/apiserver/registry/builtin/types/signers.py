"""Names of signers, which issue certificates and publish trust anchors."""

from __future__ import annotations

from steersman.apiserver.registry.builtin.types.trees import Tree
from steersman.golang import quoted
from steersman.objects.field_problems import FieldProblem, each, invalid, required, too_long, until_enough
from steersman.schemas.names import dns_label, dns_subdomain, qualified_name

_DOMAIN_MAX, _SIGNER_MAX, _ANNOTATIONS_MAX = 253, 571, 256 * 1024


def signer_name(path: str, name: str) -> list[FieldProblem]:
    """Check the name of a signer: a domain, a slash and a path."""
    if not name:
        return [required(path)]
    if name.count("/") != 1:
        detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [invalid(path, name, detail)]
    domain, _, rest = name.partition("/")
    problems = [too_long(path, _DOMAIN_MAX)] if len(domain.encode()) > _DOMAIN_MAX else []
    for labels, judge in ((domain, dns_label), (rest, dns_subdomain)):
        wrong = next((one for one in labels.split(".") if judge(one)), None)
        if wrong is not None:
            problems += [invalid(path, labels, f"validating label {quoted(wrong)}: {said}") for said in judge(wrong)]
        if judge is dns_label and "." not in labels:
            detail = "should be a domain with at least two segments separated by dots"
            problems.append(invalid(path, labels, detail))
    if len(name.encode()) > _SIGNER_MAX:
        problems.append(too_long(path, _SIGNER_MAX))
    return problems


def is_kubernetes_signer(name: str) -> bool:
    """Whether a signer is one of Kubernetes itself, whose certificates last a day at most."""
    return f".{name.partition('/')[0]}".endswith(".kubernetes.io")


def bundle_name(name: str, signer: str, *, prefix: bool = False) -> list[str]:
    """Check the name of a ClusterTrustBundle, which begins with its signer."""
    if not signer:
        if ":" in name:
            return ['ClusterTrustBundle without signer name must not have ":" in its name']
        return dns_subdomain(name, prefix=prefix)
    start = signer.replace("/", ":") + ":"
    if not name.startswith(start):
        return [f"ClusterTrustBundle for signerName {signer} must be named with prefix {start}"]
    return dns_subdomain(name.removeprefix(start), prefix=prefix)


def user_annotations(path: str, given: Tree) -> list[FieldProblem]:
    """Check annotations that a Pod passes to a signer."""
    problems: list[FieldProblem] = []
    for _, name in until_enough(sorted(given), problems):
        key = name.lower()
        wrong = qualified_name(key)
        if not key:
            problems.append(required(path))
        elif wrong:
            problems += each(path, key, wrong)
        elif "/" not in key:
            problems.append(invalid(path, key, 'must be a domain-prefixed key (such as "acme.io/foo")'))
    if sum(len(f"{key}{value}".encode()) for key, value in given.items()) > _ANNOTATIONS_MAX:
        problems.append(too_long(path, _ANNOTATIONS_MAX))
    return problems
