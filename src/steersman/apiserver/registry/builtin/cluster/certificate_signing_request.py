"""CertificateSigningRequests: their immutable spec, their approval, and the certificate in their status."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

from steersman.aio import utc_now
from steersman.apiserver.identity import User
from steersman.apiserver.registry.builtin.cluster.pem import certificate_problem, request_problem
from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.signers import signer_name
from steersman.apiserver.registry.builtin.types.trees import Tree, items, subtree, take
from steersman.apiserver.registry.strategy import CHANGED, WHOLE
from steersman.golang import quoted
from steersman.objects import format_time
from steersman.objects.field_problems import (
    FieldProblem,
    duplicate,
    enough,
    forbidden,
    invalid,
    repeated,
    required,
    unsupported,
    until_enough,
)

_USAGES = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip
_DECISIONS = ("Approved", "Denied")
_FINAL = (*_DECISIONS, "Failed")
_STATUSES = ("False", "True", "Unknown")
_LEGACY_SIGNER = "kubernetes.io/legacy-unknown"
_SHORTEST = 600
_CONDITIONS, _SIGNER = "status.conditions", "spec.signerName"


class CertificateSigningRequestStrategy(BuiltinStrategy):
    """How CertificateSigningRequests behave."""

    #: `_changed` sets the order of metadata problems for all writes.
    judges_metadata_of_status = False

    def validate_name(self, name: str, *, prefix: bool = False) -> list[str]:
        del name, prefix
        return []

    def record_user(self, obj: Tree, user: User) -> None:
        """Record the user that requests the certificate."""
        spec: Tree = obj["spec"]
        given: Tree = {
            "username": user.name,
            "uid": user.uid,
            "groups": list(user.groups),
            "extra": {key: list(values) for key, values in user.extra.items()},
        }
        for name, value in given.items():
            spec.pop(name, None)
            if value:
                spec[name] = value

    def prepare_update(self, obj: Tree, old: Tree) -> None:
        """Restore the spec, which is immutable, and the status, which only subresources change."""
        take(obj, old, "spec")
        take(obj, old, "status")

    def prepare_status(self, obj: Tree, old: Tree) -> None:
        """Restore the spec and the decision, and set the times of conditions."""
        super().prepare_status(obj, old)
        status: Tree = obj["status"]
        conditions = items(status, "conditions")
        for type_ in _DECISIONS:
            places = [at for at, one in enumerate(conditions) if one.get("type") == type_]
            before = _conditions(old, type_)
            if len(places) == len(before):
                for at, one in zip(places, before, strict=True):
                    conditions[at] = one
        _set_times(conditions, old)

    def prepare_subresource(self, name: str, obj: Tree, old: Tree) -> None:
        """Restore everything except the conditions, and set their times."""
        del name
        conditions = items(subtree(obj, "status"), "conditions")
        _set_times(conditions, old)
        status = {name: value for name, value in subtree(old, "status").items() if name != "conditions"}
        take(obj, old, "spec")
        obj["status"] = {"conditions": conditions, **status} if conditions else status

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        return _request(obj, {})

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        return _changed(obj, old)

    def validate_status(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        return _changed(obj, old, sets_certificate=True)

    def validate_subresource(self, name: str, obj: Tree, old: Tree) -> list[FieldProblem]:
        del name
        return _changed(obj, old, decides=True)


def _conditions(obj: Tree, type_: str) -> list[Tree]:
    return [one for one in items(subtree(obj, "status"), "conditions") if one.get("type") == type_]


def _set_times(conditions: list[Tree], old: Tree) -> None:
    time = format_time(utc_now())
    for one in conditions:
        one["lastUpdateTime"] = one.get("lastUpdateTime") or time
        if not one.get("lastTransitionTime"):
            same = [
                condition for condition in _conditions(old, one["type"]) if condition.get("status") == one.get("status")
            ]
            known = (each["lastTransitionTime"] for each in same if each.get("lastTransitionTime"))
            one["lastTransitionTime"] = next(known, time)


def _changed(obj: Tree, old: Tree, *, decides: bool = False, sets_certificate: bool = False) -> list[FieldProblem]:
    problems = [WHOLE, *_request(obj, old)]
    counts = {type_: len(_conditions(obj, type_)) - len(_conditions(old, type_)) for type_ in _FINAL}
    gone = [type_ for type_ in _FINAL if counts[type_] < 0]
    added = [] if decides else [type_ for type_ in _DECISIONS if counts[type_] > 0]
    for verb, types in (("remove", gone), ("add", added)):
        problems += [
            forbidden(_CONDITIONS, f"updates may not {verb} a condition of type {quoted(one)}") for one in types
        ]
    new, before = (subtree(one, "status").get("certificate") for one in (obj, old))
    if new != before:
        if not sets_certificate:
            problems.append(forbidden("status.certificate", "updates may not set certificate content"))
        elif before:
            problems.append(forbidden("status.certificate", "updates may not modify existing certificate content"))
    given = items(subtree(obj, "status"), "conditions")
    if given != items(subtree(old, "status"), "conditions"):
        return [*problems, CHANGED, *_both_decisions(given)]
    return [*problems, CHANGED]


def _request(obj: Tree, old: Tree) -> list[FieldProblem]:
    """Validate a request. An update may keep problems of the stored request."""
    spec, before = subtree(obj, "spec"), subtree(old, "spec")
    problems: list[FieldProblem] = []
    text: Any = spec.get("request")
    wrong = request_problem(b64decode(text or ""))
    if wrong:
        problems.append(invalid("spec.request", text, wrong))
    usages = items(spec, "usages")
    if not usages:
        problems.append(required("spec.usages"))
    if not any(one not in _USAGES for one in items(before, "usages")):
        problems += enough(
            unsupported(f"spec.usages[{index}]", one, _USAGES) for index, one in enumerate(usages) if one not in _USAGES
        )
    if len(set(items(before, "usages"))) == len(items(before, "usages")):
        problems += enough(duplicate(f"spec.usages[{index}]", one) for index, one in repeated(usages))
    problems += _signer(spec.get("signerName", ""))
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < _SHORTEST:
        detail = "may not specify a duration less than 600 seconds (10 minutes)"
        problems.append(invalid("spec.expirationSeconds", seconds, detail))
    problems += _condition_problems(items(subtree(obj, "status"), "conditions"))
    certificate = subtree(obj, "status").get("certificate")
    wrong = "" if certificate == subtree(old, "status").get("certificate") else _certificate(certificate)
    if wrong:
        problems.append(invalid("status.certificate", "<certificate data>", wrong))
    return problems


def _certificate(text: str | None) -> str:
    return certificate_problem(b64decode(text or ""))


def _signer(name: str) -> list[FieldProblem]:
    if name == _LEGACY_SIGNER:
        return [invalid(_SIGNER, name, "the legacy signerName is not allowed via this API version")]
    return signer_name(_SIGNER, name)


def _condition_problems(conditions: list[Tree]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    seen: set[str] = set()
    for index, one in until_enough(conditions, problems):
        path, type_, status = f"{_CONDITIONS}[{index}]", one.get("type", ""), one.get("status", "")
        if not type_:
            problems.append(required(f"{path}.type"))
        allowed = ("True",) if type_ in _FINAL else _STATUSES
        if not status:
            problems.append(required(f"{path}.status"))
        elif status not in allowed:
            problems.append(unsupported(f"{path}.status", status, allowed))
        if type_ in seen:
            problems.append(duplicate(f"{path}.type", type_))
        seen.add(type_)
    return problems


def _both_decisions(conditions: list[Tree]) -> list[FieldProblem]:
    """A request is not approved and denied. A declared rule checks that, so its problem comes last."""
    if not {*_DECISIONS} <= {one.get("type") for one in conditions}:
        return []
    names = [f'conditions[{{"type": "{type_}"}}]' for type_ in _DECISIONS]
    detail = f"must specify at most one of: {', '.join(f'`{name}`' for name in names)}"
    return [invalid(_CONDITIONS, f"{{{', '.join(names)}}}", detail)]
