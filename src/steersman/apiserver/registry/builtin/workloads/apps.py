"""Deployments, ReplicaSets, StatefulSets, DaemonSets and ReplicationControllers."""

from __future__ import annotations

import re
from collections.abc import Mapping

from steersman.apiserver.errors import bad_request
from steersman.apiserver.registry.builtin.hidden_fields import TEMPLATE_GENERATION
from steersman.apiserver.registry.builtin.persistent_volume_claim import claim, fill_claim
from steersman.apiserver.registry.builtin.pod_disruption_budget import amount, at_most_all, count_or_share
from steersman.apiserver.registry.builtin.pods.defaults import fill_template
from steersman.apiserver.registry.builtin.pods.validation import pod_annotations, pod_template
from steersman.apiserver.registry.builtin.types.internal_form import printed
from steersman.apiserver.registry.builtin.types.labels import (
    annotations,
    compiled,
    is_empty,
    label_selector,
    labels,
    shown_selector,
)
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, metadata, subtree
from steersman.apiserver.registry.builtin.workloads.workload import (
    MISMATCH,
    WorkloadStrategy,
    always_running,
    selector_problems,
    template_problems,
)
from steersman.golang import parse_int
from steersman.objects.field_problems import (
    FieldProblem,
    each,
    forbidden,
    invalid,
    not_negative,
    required,
    unchanged,
    unsupported,
    until_enough,
)
from steersman.schemas.names import dns_label


class DeploymentStrategy(WorkloadStrategy):
    """How Deployments behave."""

    names_pods = True
    status_parts = ("updatedReplicas", "readyReplicas", "availableReplicas")
    status_counts = (
        *("observedGeneration", "replicas", *status_parts),
        *("unavailableReplicas", "terminatingReplicas", "collisionCount"),
    )

    def fill(self, obj: Tree) -> None:
        spec: Tree = obj["spec"]
        spec.setdefault("replicas", 1)
        strategy: Tree = spec["strategy"]
        if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
            rolling: Tree = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", "25%")
            rolling.setdefault("maxSurge", "25%")
        spec.setdefault("revisionHistoryLimit", 10)
        spec.setdefault("progressDeadlineSeconds", 600)
        fill_template(spec["template"])

    def prepare_status(self, obj: Tree, old: Tree) -> None:
        """Restore the labels too."""
        super().prepare_status(obj, old)
        if "labels" in metadata(old):
            metadata(obj)["labels"] = metadata(old)["labels"]
        else:
            metadata(obj).pop("labels", None)

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        spec = subtree(obj, "spec")
        selector = spec.get("selector")
        problems = not_negative("spec.replicas", spec.get("replicas"))
        problems += selector_problems("spec.selector", selector, "deployment")
        problems += template_problems(
            "spec.template", spec["template"], selector, kind="ReplicaSet", unusable="invalid label selector"
        )
        problems += _deployment_strategy("spec.strategy", spec["strategy"])
        for name in ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
            problems += not_negative(f"spec.{name}", spec.get(name))
        deadline = spec.get("progressDeadlineSeconds")
        if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
            problems.append(invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
        return problems

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """The selector is immutable."""
        new, before = subtree(obj, "spec").get("selector"), subtree(old, "spec").get("selector")
        return self.validate_create(obj) + unchanged("spec.selector", new, before, printed=shown_selector(new))


def _deployment_strategy(path: str, strategy: Tree) -> list[FieldProblem]:
    type_, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if type_ == "Recreate":
        detail = "may not be specified when strategy `type` is 'Recreate'"
        return [] if rolling is None else [forbidden(f"{path}.rollingUpdate", detail)]
    if type_ != "RollingUpdate":
        return [unsupported(path, printed(strategy, "apps.DeploymentStrategy"), ("Recreate", "RollingUpdate"))]
    fewer, more = (inner(strategy, "rollingUpdate").get(name) for name in ("maxUnavailable", "maxSurge"))
    where = f"{path}.rollingUpdate"
    problems = count_or_share(f"{where}.maxUnavailable", fewer) + count_or_share(f"{where}.maxSurge", more)
    if amount(fewer) == 0 and amount(more) == 0:
        problems.append(invalid(f"{where}.maxUnavailable", fewer, "may not be 0 when `maxSurge` is 0"))
    return problems + at_most_all(f"{where}.maxUnavailable", fewer)


class ReplicaSetStrategy(WorkloadStrategy):
    """How ReplicaSets behave."""

    names_pods = True
    status_parts = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    status_counts = ("replicas", *status_parts, "observedGeneration", "terminatingReplicas")

    def fill(self, obj: Tree) -> None:
        obj["spec"].setdefault("replicas", 1)
        fill_template(obj["spec"]["template"])

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        spec = subtree(obj, "spec")
        selector = spec.get("selector")
        problems = not_negative("spec.replicas", spec.get("replicas"))
        problems += not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
        problems += selector_problems("spec.selector", selector, "deployment")
        return problems + template_problems(
            "spec.template", spec["template"], selector, kind="ReplicaSet", unusable="invalid label selector"
        )

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """The selector is immutable."""
        new, before = subtree(obj, "spec").get("selector"), subtree(old, "spec").get("selector")
        return self.validate_create(obj) + unchanged("spec.selector", new, before, printed=shown_selector(new))


class ReplicationControllerStrategy(WorkloadStrategy):
    """How ReplicationControllers behave."""

    declared_fields = re.compile(r"spec\.(replicas|minReadySeconds)")

    default_propagation = "orphan"
    names_pods = True
    status_parts = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    status_counts = ("replicas", *status_parts, "observedGeneration")

    def fill(self, obj: Tree) -> None:
        """Default the selector and the labels to those of the template."""
        spec: Tree = obj["spec"]
        spec.setdefault("replicas", 1)
        template = spec.get("template")
        if template is None:
            return
        fill_template(template)
        own = inner(template, "metadata").get("labels")
        if own:
            spec["selector"] = spec.get("selector") or dict(own)
            metadata(obj)["labels"] = metadata(obj).get("labels") or dict(own)

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        spec = subtree(obj, "spec")
        selector: Mapping[str, str] = inner(spec, "selector")
        problems = [] if selector else [required("spec.selector")]
        problems += not_negative("spec.replicas", spec.get("replicas"))
        problems += not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
        template = spec.get("template")
        if template is None:
            return [*problems, required("spec.template")]
        own = subtree(template, "metadata", "labels")
        if any(own.get(key) != value for key, value in selector.items()):
            problems.append(invalid("spec.template.metadata.labels", own or None, MISMATCH))
        return (
            problems
            + pod_template("spec.template", template)
            + always_running("spec.template", template, "ReplicationController")
        )


class StatefulSetStrategy(WorkloadStrategy):
    """How StatefulSets behave."""

    names = "label"
    status_parts = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    status_counts = ("replicas", *status_parts, "observedGeneration", "collisionCount")
    ready_field = "status.readyReplicas"

    def fill(self, obj: Tree) -> None:
        spec: Tree = obj["spec"]
        spec.setdefault("podManagementPolicy", "OrderedReady")
        strategy: Tree = spec["updateStrategy"]
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
            strategy.setdefault("rollingUpdate", {})
        rolling = strategy.get("rollingUpdate")
        if rolling is not None and strategy["type"] == "RollingUpdate":
            rolling.setdefault("partition", 0)
            rolling.setdefault("maxUnavailable", 1)
        retention: Tree = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        retention.setdefault("whenDeleted", "Retain")
        retention.setdefault("whenScaled", "Retain")
        spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", 10)
        fill_template(spec["template"])
        for index, template in enumerate(items(spec, "volumeClaimTemplates")):
            fill_claim(template["spec"])
            template["status"].setdefault("phase", "Pending")
            typed = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}
            spec["volumeClaimTemplates"][index] = typed | {
                name: template[name] for name in template if name not in typed
            }

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        """Warnings about the template and the revision limit."""
        found = super().warnings(obj, old)
        if subtree(obj, "spec").get("revisionHistoryLimit", 0) < 0:
            said = "a negative value retains all historical revisions; a value >= 0 is recommended"
            found.append(f"spec.revisionHistoryLimit: {said}")
        return found

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        return self._judge(subtree(obj, "spec"), new=True)

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Few fields may change."""
        spec, before = subtree(obj, "spec"), subtree(old, "spec")
        problems = self._judge(spec, new=False)
        for name, shown in (
            ("selector", shown_selector(spec.get("selector"))),
            ("volumeClaimTemplates", printed(spec.get("volumeClaimTemplates"), "[]core.PersistentVolumeClaim")),
            ("serviceName", spec.get("serviceName", "")),
            ("podManagementPolicy", spec.get("podManagementPolicy", "")),
        ):
            problems += unchanged(f"spec.{name}", spec.get(name), before.get(name), printed=shown)
        return problems

    def _judge(self, spec: Tree, *, new: bool) -> list[FieldProblem]:
        problems: list[FieldProblem] = []
        policy = spec.get("podManagementPolicy", "")
        if policy not in {"OrderedReady", "Parallel"}:
            where = "spec.podManagementPolicy"
            problems.append(
                invalid(where, policy, "must be 'OrderedReady' or 'Parallel'") if policy else required(where)
            )
        problems += _stateful_strategy("spec.updateStrategy", spec["updateStrategy"])
        retention = inner(spec, "persistentVolumeClaimRetentionPolicy")
        for name in ("whenDeleted", "whenScaled"):
            if retention and retention.get(name) not in {"Retain", "Delete"}:
                where = f"spec.persistentVolumeClaimRetentionPolicy.{name}"
                problems.append(unsupported(where, retention.get(name, ""), ("Retain", "Delete")))
        for index, template in until_enough(items(spec, "volumeClaimTemplates") if new else (), problems):
            problems += claim(f"spec.volumeClaimTemplates[{index}].spec", inner(template, "spec"))
        problems += not_negative("spec.replicas", spec.get("replicas"))
        problems += not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
        problems += not_negative("spec.ordinals.start", inner(spec, "ordinals").get("start"))
        service = spec.get("serviceName", "")
        if new and service:
            problems += each("spec.serviceName", service, dns_label(service))
        selector = spec.get("selector")
        problems += selector_problems("spec.selector", selector, "statefulset")
        problems += _stateful_template(spec, selector)
        return problems + always_running("spec.template", spec["template"], "StatefulSet")


def _stateful_strategy(path: str, strategy: Tree) -> list[FieldProblem]:
    type_, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if type_ == "OnDelete":
        if rolling is None:
            return []
        shown = printed(rolling, "apps.RollingUpdateStatefulSetStrategy")
        return [invalid(f"{path}.rollingUpdate", shown, "only allowed for updateStrategy 'RollingUpdate'")]
    if type_ == "RollingUpdate":
        return _stateful_rolling(f"{path}.rollingUpdate", inner(strategy, "rollingUpdate"))
    shown = printed(strategy, "apps.StatefulSetUpdateStrategy")
    return [invalid(path, shown, "must be 'RollingUpdate' or 'OnDelete'")]


def _stateful_rolling(path: str, rolling: Tree) -> list[FieldProblem]:
    problems = not_negative(f"{path}.partition", rolling.get("partition"))
    fewer = rolling.get("maxUnavailable")
    if fewer is None:
        return problems
    where = f"{path}.maxUnavailable"
    problems += count_or_share(where, fewer)
    if amount(fewer) == 0:
        problems.append(invalid(where, fewer, "cannot be 0"))
    return problems + at_most_all(where, fewer)


def _stateful_template(spec: Tree, selector: Tree | None) -> list[FieldProblem]:
    matcher = compiled(selector)
    if matcher is None:
        return [invalid("spec.selector", shown_selector(selector), "")]
    template = spec["template"]
    meta, pod = inner(template, "metadata"), dict(inner(template, "spec"))
    for name in ("subdomain", "hostname"):
        pod.pop(name, None)
    claimed = dict.fromkeys(one["metadata"].get("name", "") for one in items(spec, "volumeClaimTemplates"))
    if claimed:
        # Each Pod gets a claim for each of these, with the same name.
        made = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claimed]
        pod["volumes"] = made + [one for one in items(pod, "volumes") if one.get("name", "") not in claimed]
    problems: list[FieldProblem] = []
    own = meta.get("labels")
    if (selector is None or not is_empty(selector)) and not matcher.matches(own or {}):
        problems.append(invalid("spec.template.metadata.labels", own, MISMATCH))
    problems += pod_template("spec.template", {"metadata": meta, "spec": pod})
    problems += labels("spec.template.labels", own)
    problems += annotations("spec.template.annotations", meta.get("annotations"))
    return problems + pod_annotations("spec.template.annotations", meta.get("annotations"), pod)


class DaemonSetStrategy(WorkloadStrategy):
    """How DaemonSets behave."""

    status_counts = (
        *("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"),
        *("observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount"),
    )

    def fill(self, obj: Tree) -> None:
        spec: Tree = obj["spec"]
        strategy: Tree = spec["updateStrategy"]
        if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
            rolling: Tree = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", 1)
        for name in ("maxUnavailable", "maxSurge") if "rollingUpdate" in strategy else ():
            strategy["rollingUpdate"].setdefault(name, 0)
        spec.setdefault("revisionHistoryLimit", 10)
        fill_template(spec["template"])
        # An internal field of the server is always present, and the creator owns it.
        try:
            _note(obj, _noted(obj))
        except ValueError as error:
            raise bad_request(f'DaemonSet in version "v1" cannot be handled as a DaemonSet: {error}') from None

    def prepare_create(self, obj: Tree) -> None:
        """Start the template generation at one."""
        super().prepare_create(obj)
        _note(obj, max(1, _noted(obj)))

    def prepare_update(self, obj: Tree, old: Tree) -> None:
        """Increment the template generation if the template changed."""
        super().prepare_update(obj, old)
        changed = subtree(obj, "spec", "template") != subtree(old, "spec", "template")
        # Like an int64 of Go, the largest one is followed by the smallest, which is then refused.
        _note(obj, (_noted(old) + (1 if changed else 0) + 2**63) % 2**64 - 2**63)

    def prepare_status(self, obj: Tree, old: Tree) -> None:
        """Restore the template generation too."""
        super().prepare_status(obj, old)
        _note(obj, _noted(old))

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        spec = subtree(obj, "spec")
        selector, template = spec.get("selector"), spec["template"]
        problems = label_selector("spec.selector", selector)
        matcher = compiled(selector)
        own = inner(template, "metadata").get("labels")
        if matcher is not None and not matcher.matches(own or {}):
            problems.append(invalid("spec.template.metadata.labels", own, MISMATCH))
        if selector is not None and is_empty(selector):
            problems.append(
                invalid("spec.selector", shown_selector(selector), "empty selector is invalid for daemonset")
            )
        problems += pod_template("spec.template", template) + always_running("spec.template", template, "DaemonSet")
        problems += not_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
        problems += not_negative("spec.templateGeneration", _noted(obj))
        problems += _daemon_strategy("spec.updateStrategy", spec["updateStrategy"])
        return problems + not_negative("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """The selector is immutable, and the template generation only grows."""
        new, before = subtree(obj, "spec").get("selector"), subtree(old, "spec").get("selector")
        problems = unchanged("spec.selector", new, before, printed=shown_selector(new))
        if (generation := _noted(obj)) < _noted(old):
            problems.append(invalid("spec.templateGeneration", generation, "must not be decremented"))
        return problems + self.validate_create(obj)


def _noted(obj: Tree) -> int:
    """The template generation in an annotation. Raises ValueError in Go's words."""
    return parse_int(inner(metadata(obj), "annotations").get(TEMPLATE_GENERATION, "0"))


def _note(obj: Tree, generation: int) -> None:
    meta = metadata(obj)
    meta["annotations"] = inner(meta, "annotations") | {TEMPLATE_GENERATION: str(generation)}


def _daemon_strategy(path: str, strategy: Tree) -> list[FieldProblem]:
    type_, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if type_ == "OnDelete":
        return []
    if type_ != "RollingUpdate":
        return [unsupported(path, printed(strategy, "apps.DaemonSetUpdateStrategy"), ("RollingUpdate", "OnDelete"))]
    if rolling is None:
        return [required(f"{path}.rollingUpdate")]
    where, fewer, more = f"{path}.rollingUpdate", rolling.get("maxUnavailable"), rolling.get("maxSurge")
    problems = count_or_share(f"{where}.maxUnavailable", fewer) + count_or_share(f"{where}.maxSurge", more)
    problems += at_most_all(f"{where}.maxUnavailable", fewer) + at_most_all(f"{where}.maxSurge", more)
    if amount(fewer) and amount(more):
        problems.append(invalid(f"{where}.maxSurge", more, "may not be set when maxUnavailable is non-zero"))
    elif not amount(fewer) and not amount(more):
        problems.append(required(f"{where}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return problems
