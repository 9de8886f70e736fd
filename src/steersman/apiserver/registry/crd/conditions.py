"""The conditions of a CustomResourceDefinition, and its accepted names.

Guarantees
- Conditions, reasons and messages are kube-apiserver's.
- A condition keeps its transition time while its status stays.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from steersman.aio import utc_now
from steersman.apiserver.registry.crd.names_in_use import NamesInUse, kind_names, resource_names
from steersman.apiserver.registry.crd.webhook_rules import bundle_problem
from steersman.apiserver.registry.definition import Tree
from steersman.golang import quoted
from steersman.objects import format_time

FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"
_BAD_BUNDLE: Final = "InvalidCABundle"
_APPROVED: Final = "api-approved.kubernetes.io"
_NAMES: Final = ("plural", "singular", "shortNames", "kind", "listKind", "categories")


def condition(crd: Tree, kind: str) -> Tree | None:
    """A condition of a definition; None if it has none of that type."""
    status: Tree = crd.get("status") or {}
    conditions: list[Tree] = status.get("conditions") or []
    return next((entry for entry in conditions if entry["type"] == kind), None)


def is_true(crd: Tree, kind: str) -> bool:
    """Whether a condition exists and is true."""
    entry = condition(crd, kind)
    return entry is not None and entry["status"] == "True"


def set_condition(crd: Tree, kind: str, status: str, reason: str, message: str) -> None:
    """Set a condition in place."""
    entry: Tree = {
        "type": kind,
        "status": status,
        "lastTransitionTime": format_time(utc_now()),
        "reason": reason,
        "message": message,
    }
    crd_status: Tree = crd.setdefault("status", {})
    conditions: list[Tree] = crd_status.get("conditions") or []
    for at, before in enumerate(conditions):
        if before["type"] == kind:
            if before["status"] == status:
                entry["lastTransitionTime"] = before["lastTransitionTime"]
            conditions[at] = entry
            break
    else:
        conditions.append(entry)
    crd_status["conditions"] = conditions


def names_of(names: Tree | None) -> Tree:
    """Names without empty ones, for comparison."""
    return {name: names[name] for name in _NAMES if names and names.get(name)}


class Names:
    """The requested names of a definition, checked against all others of its group."""

    def __init__(self, crd: Tree, in_use: NamesInUse) -> None:
        #: The accepted names from now on.
        self.accepted: Tree = names_of(crd.get("status", {}).get("acceptedNames"))
        self.reason = "NoConflicts"
        self.message = "no conflicts found"
        self._wanted = names_of(crd["spec"]["names"])
        before = dict(self.accepted)
        own = {"resource": resource_names(before), "kind": kind_names(before)}
        name: str = crd["metadata"].get("name", "")

        def is_taken(sort: str, wanted: str) -> bool:
            return wanted in own[sort] or in_use.is_taken(sort, wanted, name)

        self._is_taken = is_taken
        self._judge("plural", "PluralConflict", "resource")
        self._judge("singular", "SingularConflict", "resource")
        self._judge_short_names(before)
        self._judge("kind", "KindConflict", "kind")
        self._judge("listKind", "ListKindConflict", "kind")
        self._take("categories")

    @property
    def are_free(self) -> bool:
        """Whether all are accepted."""
        return self.reason == "NoConflicts"

    def _judge(self, name: str, reason: str, sort: str) -> None:
        wanted: str = self._wanted.get(name, "")
        if wanted != self.accepted.get(name, "") and self._is_taken(sort, wanted):
            self.reason, self.message = reason, _in_use(wanted)
        else:
            self._take(name)

    def _judge_short_names(self, before: Tree) -> None:
        own: list[str] = before.get("shortNames", [])
        wanted: list[str] = self._wanted.get("shortNames", [])
        if wanted == own:
            return
        asked = (name for name in wanted if name not in own and self._is_taken("resource", name))
        conflicts = list(dict.fromkeys(map(_in_use, asked)))
        if conflicts:
            self.reason = "ShortNamesConflict"
            self.message = conflicts[0] if len(conflicts) == 1 else f"[{', '.join(conflicts)}]"
        else:
            self._take("shortNames")

    def _take(self, name: str) -> None:
        if name in self._wanted:
            self.accepted[name] = self._wanted[name]
        else:
            self.accepted.pop(name, None)


def _in_use(name: str) -> str:
    return f"{quoted(name)} is already in use"


def judge_names(crd: Tree, in_use: NamesInUse) -> bool:
    """Accept the names of a definition in place, or set the reason why not. Returns whether anything changed."""
    current: Tree = crd.get("status") or {}
    if names_of(crd["spec"]["names"]) == names_of(current.get("acceptedNames")):
        return False
    names = Names(crd, in_use)
    status = "True" if names.are_free else "False"
    before: Any = condition(crd, "NamesAccepted")
    same = before is not None and (before["status"], before.get("reason"), before.get("message")) == (
        status,
        names.reason,
        names.message,
    )
    if same and names.accepted == names_of(current.get("acceptedNames")):
        return False
    crd.setdefault("status", {})["acceptedNames"] = {"plural": "", "kind": ""} | names.accepted
    set_condition(crd, "NamesAccepted", status, names.reason, names.message)
    if names.are_free and not is_true(crd, "Established"):
        set_condition(crd, "Established", "False", "Installing", "the initial names have been accepted")
    elif condition(crd, "Established") is None:
        set_condition(crd, "Established", "False", "NotAccepted", "not all names are accepted")
    return True


def establish(crd: Tree) -> bool:
    """Mark a definition as established in place, if possible. Returns whether anything changed."""
    if not is_true(crd, "NamesAccepted") or is_true(crd, "Established"):
        return False
    if _has_bad_bundle(crd):
        if has_bad_bundle(crd):
            return False
        set_condition(crd, "Established", "False", _BAD_BUNDLE, "The conversion webhook CABundle is invalid")
        return True
    set_condition(crd, "Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
    return True


def has_bad_bundle(crd: Tree) -> bool:
    """Whether a definition is not established because of its webhook's certificates."""
    entry = condition(crd, "Established")
    return entry is not None and entry.get("reason") == _BAD_BUNDLE


def _has_bad_bundle(crd: Tree) -> bool:
    conversion: Tree = crd["spec"].get("conversion") or {}
    webhook: Tree = conversion.get("webhook") or {}
    client: Tree = webhook.get("clientConfig") or {}
    return bool(client.get("caBundle")) and bool(bundle_problem(client["caBundle"]))


def mark_for_deletion(crd: Tree) -> None:
    """Apply the first deletion of a definition in place: its instances are deleted first."""
    metadata: Tree = crd["metadata"]
    metadata["deletionTimestamp"] = format_time(utc_now())
    finalizers: list[str] = metadata.get("finalizers") or []
    if FINALIZER not in finalizers:
        metadata["finalizers"] = [*finalizers, FINALIZER]
    message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    set_condition(crd, "Terminating", "True", "InstanceDeletionPending", message)


def judge_approval(crd: Tree) -> bool:
    """Set in place whether a kind in one of Kubernetes' own groups is approved. Returns whether anything changed."""
    group: str = crd["spec"]["group"]
    if not any(group == owned or group.endswith(f".{owned}") for owned in ("k8s.io", "kubernetes.io")):
        return False
    annotations: dict[str, str] = crd["metadata"].get("annotations") or {}
    status, reason, message = _approval(annotations.get(_APPROVED, ""))
    kind = "KubernetesAPIApprovalPolicyConformant"
    before = condition(crd, kind)
    if before is not None and (before["status"], before["reason"], before["message"]) == (status, reason, message):
        return False
    set_condition(crd, kind, status, reason, message)
    return True


def _approval(annotation: str) -> tuple[str, str, str]:
    needed = f"protected groups must have approval annotation {quoted(_APPROVED)}"
    see = "see https://github.com/kubernetes/enhancements/pull/1111"
    if not annotation:
        return "False", "MissingAnnotation", f"{needed}, {see}"
    if annotation.startswith("unapproved"):
        return "False", "UnapprovedAnnotation", f"not approved: {quoted(annotation)}"
    url = urlsplit(annotation)
    if url.scheme and url.netloc:
        return "True", "ApprovedAnnotation", f"approved in {annotation}"
    return "False", "InvalidAnnotation", f'{needed} with either a URL or a reason starting with "unapproved", {see}'
