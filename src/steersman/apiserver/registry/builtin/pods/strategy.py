"""Pods: their defaults at creation, the few changes that are allowed, and the grace period of their deletion."""

from __future__ import annotations

from typing import Any

import msgspec

from steersman import aio
from steersman.apiserver.registry.builtin.pods.defaults import fill_pod, fill_pod_resources, fill_spec
from steersman.apiserver.registry.builtin.pods.profiles import matching_profiles, old_profiles, pinned_annotations
from steersman.apiserver.registry.builtin.pods.resources import quality_of_service
from steersman.apiserver.registry.builtin.pods.scheduling import spread_by_labels, tolerations
from steersman.apiserver.registry.builtin.pods.subresources import (
    ephemeral_problems,
    keep_all_but_ephemeral,
    keep_all_but_resources,
    resize_problems,
)
from steersman.apiserver.registry.builtin.pods.validation import pod_annotations, pod_spec
from steersman.apiserver.registry.builtin.pods.warnings import annotation_warnings, name_warnings, pod_warnings
from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.formats import MAX_INT32, in_range, ip_address, ip_family
from steersman.apiserver.registry.builtin.types.internal_form import difference, printed
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, metadata, subtree, take
from steersman.apiserver.registry.strategy import CHANGED, WHOLE
from steersman.objects import format_time
from steersman.objects.field_problems import (
    FieldProblem,
    each,
    enough,
    forbidden,
    invalid,
    required,
    unchanged,
    until_enough,
)
from steersman.schemas.names import dns_subdomain, qualified_name

_MAY_CHANGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"
)
_OWN_CONDITIONS = {"PodScheduled", "Ready", "Initialized"}


class PodStrategy(BuiltinStrategy):
    """How Pods behave."""

    counts_generations = True

    def fill(self, obj: Tree) -> None:
        fill_spec(obj["spec"])
        fill_pod(obj["spec"])
        if isinstance(obj.get("status"), dict):
            _same_addresses(obj["status"])
            for disabled in ("nodeAllocatableResourceClaimStatuses", "volumeHealth"):
                obj["status"].pop(disabled, None)

    def prepare_create(self, obj: Tree) -> None:
        """Set the phase to Pending."""
        spec: Tree = obj["spec"]
        fill_pod_resources(spec)
        for _, profile, container in old_profiles(obj):
            if profile is not None:
                container.setdefault("securityContext", {})["appArmorProfile"] = profile
        status: Tree = {"phase": "Pending", "qosClass": quality_of_service(spec)}
        obj["status"] = status
        if spec.get("schedulingGates"):
            condition: Tree = {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": format_time(aio.utc_now()),
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
            status["conditions"] = [condition]
        spread_by_labels(spec, inner(metadata(obj), "labels"))

    def prepare_update(self, obj: Tree, old: Tree) -> None:
        """Restore the status, and resources that the update leaves out."""
        super().prepare_update(obj, old)
        if obj["spec"].get("resources") is None:
            take(obj["spec"], old["spec"], "resources")

    def prepare_status(self, obj: Tree, old: Tree) -> None:
        """Restore everything but the status, including its QoS class."""
        super().prepare_status(obj, old)
        meta, before = metadata(obj), metadata(old)
        for name in ("deletionTimestamp", "ownerReferences"):
            if name in before:
                meta[name] = before[name]
            else:
                meta.pop(name, None)
        if "qosClass" in subtree(old, "status"):
            obj["status"].setdefault("qosClass", old["status"]["qosClass"])
        _keep_generations(obj["status"], subtree(old, "status"))

    def prepare_subresource(self, name: str, obj: Tree, old: Tree) -> None:
        """Restore everything that ``ephemeralcontainers`` or ``resize`` may not change."""
        (keep_all_but_ephemeral if name == "ephemeralcontainers" else keep_all_but_resources)(obj, old)

    def validate_subresource(self, name: str, obj: Tree, old: Tree) -> list[FieldProblem]:
        first = [CHANGED, WHOLE, *self._spec(obj)]
        if name == "resize":
            return resize_problems(obj, old, first)
        return ephemeral_problems(obj, old, [*first, *_annotation_updates(obj, old)])

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        spec: Tree = obj["spec"]
        problems = self._spec(obj)
        if spec.get("ephemeralContainers"):
            problems.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
        if spec.get("nodeName") and spec.get("schedulingGates"):
            detail = "cannot be set until all schedulingGates have been cleared"
            problems.append(forbidden("spec.nodeName", detail))
        return problems + matching_profiles(inner(metadata(obj), "annotations"), spec)

    def _spec(self, obj: Tree) -> list[FieldProblem]:
        spec, meta = obj["spec"], metadata(obj)
        problems = pod_annotations("metadata.annotations", meta.get("annotations"), spec)
        problems += pod_spec("spec", spec, pod=meta)
        if not spec.get("serviceAccountName"):
            problems += _tokens_without_account(spec)
        for field in ("containers", "initContainers"):
            problems += _padded(field, items(spec, field))
        return problems

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Only images, the deadline, more tolerations and fewer gates may change."""
        problems = self._spec(obj) + _annotation_updates(obj, old)
        new, before = obj["spec"], old["spec"]
        for field in ("containers", "initContainers"):
            ones = items(new, field)
            if len(ones) != len(items(before, field)):
                return [*problems, forbidden(f"spec.{field}", "pod updates may not add or remove containers")]
            problems += enough(
                required(f"spec.{field}[{i}].image") for i, one in enumerate(ones) if not one.get("image")
            )
            problems += _padded(field, ones)
        shorter = _deadline(new.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"))
        problems += shorter
        if shorter and "nil value" not in shorter[0].message:
            return problems
        problems += _only_more(items(new, "tolerations"), items(before, "tolerations"))
        problems += _only_fewer(items(new, "schedulingGates"), items(before, "schedulingGates"))
        return problems + _rest(new, before)

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        """Warnings about the name, the annotations and the spec of a new Pod; as in kube-apiserver, none later."""
        if old is not None:
            return []
        named = name_warnings(obj, "this is used in the Pod's hostname")
        return named + annotation_warnings("", obj) + pod_warnings("spec", obj["spec"])

    def prepare_warnings(self, obj: Tree) -> list[str]:
        """Warnings about profiles in the old form."""
        return [
            f'metadata.annotations[{key}]: deprecated since v1.30; use the "appArmorProfile" field instead'
            for key, _, _ in old_profiles(obj)
        ]

    def validate_status(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        problems = _annotation_updates(obj, old)
        status, before = subtree(obj, "status"), subtree(old, "status")
        for index, condition in until_enough(items(status, "conditions"), problems):
            if condition.get("observedGeneration", 0) < 0:
                where = f"status.conditions[{index}].observedGeneration"
                problems.append(invalid(where, condition["observedGeneration"], "must be a non-negative integer"))
            type_ = condition.get("type", "")
            if type_ not in _OWN_CONDITIONS:
                problems += each(f"status.conditions[{index}].Type", type_, qualified_name(type_))
        nominated = status.get("nominatedNodeName", "")
        if nominated and nominated != before.get("nominatedNodeName", ""):
            problems += each("status.nominatedNodeName", nominated, dns_subdomain(nominated))
            if old["spec"].get("nodeName"):
                detail = "may not be set on pods that are already bound to a node"
                problems.append(forbidden("status.nominatedNodeName", detail))
        if status.get("observedGeneration", 0) < 0:
            where, value = "status.observedGeneration", status["observedGeneration"]
            problems.append(invalid(where, value, "must be a non-negative integer"))
        problems += unchanged("status.qosClass", status.get("qosClass", ""), before.get("qosClass", ""))
        problems += _restarted(status, before, old["spec"])
        return problems + _addresses(status, before)

    def grace(self, obj: Tree, requested: int | None) -> int | None:
        """The requested grace period, or that of its spec; 0 without a node, and after its end."""
        spec, status = subtree(obj, "spec"), subtree(obj, "status")
        if not spec.get("nodeName") or status.get("phase") in {"Succeeded", "Failed"}:
            return 0
        seconds: int = spec.get("terminationGracePeriodSeconds", 0) if requested is None else requested
        return 1 if seconds < 0 else seconds


def _same_addresses(status: Tree) -> None:
    """Two fields hold the address of a Pod: the older one wins, and both are kept equal."""
    address, given = status.get("podIP"), items(status, "podIPs")
    if address and (not given or given[0].get("ip") != address):
        status["podIPs"] = [{"ip": address}]
    elif given:
        status["podIP"] = given[0].get("ip", "")


def _padded(field: str, given: list[Tree]) -> list[FieldProblem]:
    detail = "must not have leading or trailing whitespace"
    return enough(
        invalid(f"spec.{field}[{index}].image", one["image"], detail)
        for index, one in enumerate(given)
        if one.get("image", "") != one.get("image", "").strip()
    )


def _tokens_without_account(spec: Tree) -> list[FieldProblem]:
    detail = "must not be specified when serviceAccountName is not set"
    return enough(
        forbidden(f"spec.volumes[{index}].projected.sources[{position}].serviceAccountToken", detail)
        for index, volume in enumerate(items(spec, "volumes"))
        for position, source in enumerate(items(inner(volume, "projected"), "sources"))
        if "serviceAccountToken" in source
    )


def _annotation_updates(obj: Tree, old: Tree) -> list[FieldProblem]:
    annotations = metadata(obj).get("annotations")
    return pinned_annotations(obj, old) + pod_annotations("metadata.annotations", annotations, obj["spec"])


def _deadline(new: int | None, before: int | None) -> list[FieldProblem]:
    where = "spec.activeDeadlineSeconds"
    if new is None:
        detail = "must not update from a positive integer to nil value"
        return [] if before is None else [invalid(where, None, detail)]
    wrong = in_range(new, 0, MAX_INT32)
    if not wrong and before is not None and before < new:
        wrong = ["must be less than or equal to previous value"]
    return each(where, new, wrong)


def _only_more(new: list[Tree], before: list[Tree]) -> list[FieldProblem]:
    def kept(one: Tree) -> bytes:
        rest = {name: value for name, value in one.items() if name != "tolerationSeconds"}
        return msgspec.json.encode(rest, order="sorted")

    present = {kept(one) for one in new}
    if any(kept(one) not in present for one in before):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        return [forbidden("spec.tolerations", detail)]
    return tolerations("spec.tolerations", new)


def _only_fewer(new: list[Tree], before: list[Tree]) -> list[FieldProblem]:
    names = {gate.get("name", "") for gate in before}
    return enough(
        forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name', '')}'",
        )
        for index, gate in enumerate(new)
        if gate.get("name", "") not in names
    )


def _rest(new: Tree, before: Tree) -> list[FieldProblem]:
    if new == before:
        return []
    judged = dict(new)
    for field in ("containers", "initContainers"):
        if field in new:
            pairs = zip(items(new, field), items(before, field), strict=True)
            judged[field] = [one | {"image": was.get("image", "")} for one, was in pairs]
    for name in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        take(judged, before, name)
    if before.get("terminationGracePeriodSeconds", 0) < 0 and judged.get("terminationGracePeriodSeconds") == 1:
        take(judged, before, "terminationGracePeriodSeconds")
    problems: list[FieldProblem] = []
    if before.get("schedulingGates"):
        problems += _gated(judged, before)
    if judged != before:
        problems.append(forbidden("spec", f"{_MAY_CHANGE}{difference(before, judged, 'core.PodSpec')}"))
    return problems


def _gated(judged: Tree, before: Tree) -> list[FieldProblem]:
    """While a Pod is not scheduled, its node requirements may become stricter."""
    problems: list[FieldProblem] = []
    new, was = inner(judged, "nodeSelector"), inner(before, "nodeSelector")
    if any(new.get(key) != value for key, value in was.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        problems.append(invalid("spec.nodeSelector", new or None, detail))
    take(judged, before, "nodeSelector")
    asked: Any = subtree(judged, "affinity").get("nodeAffinity")
    given: Any = subtree(before, "affinity").get("nodeAffinity")
    if asked == given:
        return problems
    problems += _only_narrower(asked or {}, given or {})
    affinity = dict(inner(judged, "affinity"))
    affinity.pop("nodeAffinity", None)
    if given is not None:
        affinity["nodeAffinity"] = given
    if affinity or "affinity" in before:
        judged["affinity"] = affinity
    else:
        judged.pop("affinity", None)
    return problems


def _only_narrower(asked: Tree, given: Tree) -> list[FieldProblem]:
    name = "requiredDuringSchedulingIgnoredDuringExecution"
    if name not in given:
        return []
    old = items(given[name], "nodeSelectorTerms")
    new = items(inner(asked, name), "nodeSelectorTerms")
    where = f"spec.affinity.nodeAffinity.{name}.nodeSelectorTerms"
    if old and len(old) != len(new):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [invalid(where, printed(new, "[]core.NodeSelectorTerm"), detail)]
    detail = "only additions are allowed (no mutations or deletions)"
    return [
        invalid(f"{where}[{index}]", printed(new[index], "core.NodeSelectorTerm"), detail)
        for index in range(len(old))
        if not _narrower(new[index], old[index])
    ]


def _narrower(new: Tree, old: Tree) -> bool:
    parts = ("matchExpressions", "matchFields")
    if not any(old.get(part) for part in parts):
        return not any(new.get(part) for part in parts)
    return all((items(new, part))[: len(items(old, part))] == (items(old, part)) for part in parts)


def _keep_generations(status: Tree, before: Tree) -> None:
    if not status.get("observedGeneration") and before.get("observedGeneration"):
        status["observedGeneration"] = before["observedGeneration"]
    seen: dict[str, list[int]] = {}
    for condition in items(before, "conditions"):
        seen.setdefault(condition.get("type", ""), []).append(condition.get("observedGeneration", 0))
    for condition in items(status, "conditions"):
        known = seen.get(condition.get("type", ""))
        generation = known.pop(0) if known else 0
        if generation and not condition.get("observedGeneration"):
            condition["observedGeneration"] = generation


def _restarted(status: Tree, before: Tree, spec: Tree) -> list[FieldProblem]:
    """A container that terminated for good stays terminated."""
    problems: list[FieldProblem] = []
    policy = spec.get("restartPolicy")
    own = {one.get("name", ""): one for one in items(spec, "containers")}
    new = {one.get("name", ""): one for one in items(status, "containerStatuses")}
    for index, one in until_enough(items(before, "containerStatuses"), problems):
        name = one.get("name", "")
        ended = inner(one, "state").get("terminated")
        if ended is None or name not in new or "terminated" in (new[name].get("state") or {}):
            continue
        rule = inner(own, name).get("restartPolicy") or policy
        if rule == "Never" or (rule == "OnFailure" and ended.get("exitCode", 0) == 0):
            detail = "may not be transitioned to non-terminated state"
            problems.append(forbidden(f"status.containerStatuses[{index}].state", detail))
    return problems


def _addresses(status: Tree, before: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    hosts = [one.get("ip", "") for one in items(status, "hostIPs")]
    for field, given in (("podIPs", [one.get("ip", "") for one in items(status, "podIPs")]), ("hostIPs", hosts)):
        known = {one.get("ip", "") for one in items(before, field)}
        if field == "hostIPs" and given and status.get("hostIP", "") != given[0]:
            problems.append(invalid("status.hostIPs[0].ip", given[0], "must be equal to `hostIP`"))
        for index, address in until_enough(given, problems):
            problems += [] if address in known else each(f"status.{field}[{index}]", address, ip_address(address))
        families = {ip_family(address) for address in given}
        if len(given) > 1 and (len(families) != len(given) or len(given) > 2):
            shown = printed(status[field], "[]core.PodIP" if field == "podIPs" else "[]core.HostIP")
            problems.append(invalid(f"status.{field}", shown, "may specify no more than one IP for each IP family"))
    return problems
