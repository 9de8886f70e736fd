"""Names of signers, which issue certificates and publish trust anchors."""

from __future__ import annotations

from steersman.golang import quoted
from steersman.objects.field_problems import FieldProblem, invalid, required, too_long
from steersman.schemas.names import dns_label, dns_subdomain

_DOMAIN_MAX, _SIGNER_MAX = 253, 571


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
