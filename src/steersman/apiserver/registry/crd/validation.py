"""kube-apiserver's validation of a CustomResourceDefinition: a new one, a changed one, a changed status.

Guarantees
- Messages and order are kube-apiserver's; where that is the order of a Go map, names are sorted.
- The functions take definitions prepared by `default_crd`, and change nothing.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items
from steersman.apiserver.registry.crd.internal_version import internal_spec
from steersman.apiserver.registry.crd.ratcheting import Options, lenient_options, quick_options
from steersman.apiserver.registry.crd.spec_rules import names_problems, spec_problems
from steersman.apiserver.registry.definition import Definition
from steersman.apiserver.registry.metadata import validate_new
from steersman.apiserver.registry.strategy import Strategy
from steersman.golang import printed_json
from steersman.objects import GroupVersionKind
from steersman.objects.field_problems import FieldProblem, Printed, invalid, required, until_enough
from steersman.schemas.names import dns_subdomain

_KIND: Final = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
_APPROVED: Final = "api-approved.kubernetes.io"
_OWN_GROUPS: Final = ("k8s.io", "kubernetes.io")
_SEE: Final = "see https://github.com/kubernetes/enhancements/pull/1111"
_NEEDED: Final = f'protected groups must have approval annotation "{_APPROVED}"'
_CHANGED: Final = "field is immutable"
_PRESERVE: Final = (
    "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
)


class _Names(Strategy):
    """The name rule of one definition."""

    knows_finalizers = False

    def __init__(self, spec: Tree) -> None:
        self._expected = f"{spec['names']['plural']}.{spec['group']}"

    def validate_name(self, name: str, *, prefix: bool = False) -> list[str]:
        reasons = dns_subdomain(name, prefix=prefix)
        return reasons if name == self._expected else [*reasons, 'must be spec.names.plural+"."+spec.group']


def _no_schema() -> Tree:
    return {}


def validate_crd(crd: Tree) -> list[FieldProblem]:
    """The problems of a new definition, including its metadata."""
    strategy = _Names(crd["spec"])
    names = Definition(
        gvk=_KIND,
        resource="customresourcedefinitions",
        namespaced=False,
        schema=_no_schema,
        make_strategy=lambda: strategy,
    )
    problems = spec_problems(internal_spec(crd["spec"]), Options())
    return validate_new(
        names,
        crd["metadata"],
        problems + _status_problems(crd) + _approval_problems(crd, None) + _preserve_problems(crd, None),
    )


def validate_crd_update(crd: Tree, old: Tree) -> list[FieldProblem]:
    """The problems of a changed definition, without its metadata."""
    spec, options = internal_spec(crd["spec"]), quick_options(crd, old)
    problems = spec_problems(spec, options)
    if problems:
        lenient = lenient_options(crd, old)
        if lenient != options:
            options, problems = lenient, spec_problems(spec, lenient)
    problems += _immutable_problems(spec, old["spec"], established=options.established)
    return problems + _status_problems(crd) + _approval_problems(crd, old) + _preserve_problems(crd, old)


def validate_crd_status(crd: Tree) -> list[FieldProblem]:
    """The problems of a changed status, without its metadata."""
    return names_problems(inner(crd["status"], "acceptedNames"), "status.acceptedNames")


def _immutable_problems(spec: Tree, before: Tree, *, established: bool) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    if established:
        if spec["scope"] != before["scope"]:
            problems.append(invalid("spec.scope", Printed(printed_json(spec["scope"])), _CHANGED))
        if spec["names"]["kind"] != before["names"]["kind"]:
            problems.append(invalid("spec.names.kind", spec["names"]["kind"], _CHANGED))
    if spec["group"] != before["group"]:
        problems.append(invalid("spec.group", spec["group"], _CHANGED))
    if spec["names"]["plural"] != before["names"]["plural"]:
        problems.append(invalid("spec.names.plural", spec["names"]["plural"], _CHANGED))
    return problems


def _status_problems(crd: Tree) -> list[FieldProblem]:
    return validate_crd_status(crd) + _stored_problems(crd["status"].get("storedVersions"), crd["spec"])


def _stored_problems(stored: list[str] | None, spec: Tree) -> list[FieldProblem]:
    path = "status.storedVersions"
    shown: Any = stored
    if not stored:
        return [invalid(path, shown, "must have at least one stored version")]
    versions = items(spec, "versions")
    problems = [
        invalid(path, shown, f"must have the storage version {version['name']}")
        for version in versions
        if version["storage"] and version["name"] not in stored
    ]
    known = {version["name"] for version in versions}
    for at, name in until_enough(stored, problems):
        if name not in known and name not in stored[at + 1 :]:
            said = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions "
                f"until a storage migration ensures no data remains persisted in {name} and removes {name} from "
                "status.storedVersions"
            )
            problems.append(invalid(f"{path}[{at}]", name, said))
    return problems


def _approval_problems(crd: Tree, old: Tree | None) -> list[FieldProblem]:
    group: str = crd["spec"]["group"]
    if not any(group == own or group.endswith(f".{own}") for own in _OWN_GROUPS):
        return []
    value, state = _approval(crd)
    if state in {"approved", "bypassed"} or (old is not None and _approval(old)[1] == state):
        return []
    path = f"metadata.annotations[{_APPROVED}]"
    if state == "missing":
        return [required(path, f"{_NEEDED}, {_SEE}")]
    return [invalid(path, value, f'{_NEEDED} with either a URL or a reason starting with "unapproved", {_SEE}')]


def _approval(crd: Tree) -> tuple[str, str]:
    value: str = inner(crd["metadata"], "annotations").get(_APPROVED, "")
    if not value:
        return value, "missing"
    if value.startswith("unapproved"):
        return value, "bypassed"
    from steersman.golang import is_uri  # noqa: PLC0415 - few definitions are in a protected group

    parts = urlsplit(value) if is_uri(value) else None
    return value, "approved" if parts is not None and parts.scheme and parts.netloc else "invalid"


def _preserve_problems(crd: Tree, old: Tree | None) -> list[FieldProblem]:
    if not crd["spec"].get("preserveUnknownFields") or (old is not None and old["spec"].get("preserveUnknownFields")):
        return []
    return [invalid("spec.preserveUnknownFields", value=True, detail=_PRESERVE)]
