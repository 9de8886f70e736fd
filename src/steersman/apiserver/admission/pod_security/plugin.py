"""The plugin PodSecurity: checks Pods, the templates of workloads, and the labels of namespaces."""

from __future__ import annotations

import asyncio

from steersman.apiserver.admission.plugins import AdmissionOperation, Attributes, Plugin
from steersman.apiserver.admission.pod_security.checks import CheckedPod, Violation
from steersman.apiserver.admission.pod_security.levels import (
    PREFIX,
    PRIVILEGED,
    LevelVersion,
    NamespaceLevels,
    namespace_levels,
)
from steersman.apiserver.documents import decode_stored
from steersman.apiserver.errors import invalid
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, subtree

_TEMPLATE = ("spec", "template")
#: The path of the Pod template in a workload, by group and resource.
_TEMPLATES = {
    ("", "podtemplates"): ("template",),
    ("", "replicationcontrollers"): _TEMPLATE,
    ("apps", "daemonsets"): _TEMPLATE,
    ("apps", "deployments"): _TEMPLATE,
    ("apps", "replicasets"): _TEMPLATE,
    ("apps", "statefulsets"): _TEMPLATE,
    ("batch", "cronjobs"): ("spec", "jobTemplate", *_TEMPLATE),
    ("batch", "jobs"): _TEMPLATE,
}
#: Subresources that do not change containers.
_IGNORED = frozenset({"attach", "binding", "eviction", "exec", "log", "portforward", "proxy", "status"})
_LABEL = f'"{PREFIX}'.encode()
#: The maximum number of Pods to check when the level of their namespace changes, and how many at a time.
_PODS_MAX = 3000
_PODS_AT_ONCE = 50


class PodSecurity(Plugin):
    """Rejects Pods that violate the enforced level of their namespace, and warns about Pods and workloads."""

    operations: frozenset[AdmissionOperation] = frozenset({"CREATE", "UPDATE"})
    resources = frozenset({("", "namespaces"), ("", "pods"), *_TEMPLATES})

    async def validate(self, attributes: Attributes) -> None:
        """Check a Pod, a workload or a namespace."""
        definition, obj = attributes.definition, attributes.obj
        if obj is None:
            return
        if definition.resource == "pods":
            if attributes.subresource not in _IGNORED:
                await _validate_pod(attributes, obj)
        elif attributes.subresource:
            return
        elif definition.resource == "namespaces":
            await _validate_namespace(attributes, obj)
        else:
            path = _TEMPLATES[definition.gvk.group, definition.resource]
            await _warn_about_template(attributes, subtree(obj, *path))


async def _levels(attributes: Attributes) -> NamespaceLevels | None:
    """The levels of the namespace; None if no label chooses one."""
    record = await attributes.context.read("", "namespaces", "", attributes.namespace)
    if record is None or _LABEL not in record.value:
        return None
    levels, problems = namespace_levels(inner(decode_stored(record)["metadata"], "labels"))
    if problems:
        _annotate(attributes, "error", f"Failed to parse policy: {', '.join(map(str, problems))}")
    return levels


async def _validate_pod(attributes: Attributes, obj: Tree) -> None:
    levels = await _levels(attributes)
    if levels is None or (attributes.old is not None and not _has_new_images(obj, attributes.old)):
        return
    _annotate(attributes, "enforce-policy", str(levels.enforce))
    pod = CheckedPod(obj)
    found = violations(pod, levels.enforce)
    _audit(attributes, pod, levels.audit)
    if found:
        raise attributes.refused(f'violates PodSecurity "{levels.enforce}": {_listed(found)}')
    if levels.warn != levels.enforce:
        _warn(attributes, pod, levels.warn)


def violations(pod: CheckedPod, level: LevelVersion) -> list[Violation]:
    """What of a Pod violates a level."""
    from steersman.apiserver.admission.pod_security import evaluation  # noqa: PLC0415 - few namespaces have a level

    return evaluation.violations(pod, level)


def _audit(attributes: Attributes, pod: CheckedPod, level: LevelVersion) -> None:
    if found := violations(pod, level):
        _annotate(attributes, "audit-violations", f'would violate PodSecurity "{level}": {_listed(found)}')


def _warn(attributes: Attributes, pod: CheckedPod, level: LevelVersion) -> None:
    if found := violations(pod, level):
        attributes.warn(f'would violate PodSecurity "{level}": {_listed(found)}')


def _annotate(attributes: Attributes, key: str, value: str) -> None:
    """Add an annotation to the audit event."""
    attributes.request.annotations[PREFIX + key] = value


def _listed(found: list[Violation]) -> str:
    return ", ".join(map(str, found))


def _has_new_images(obj: Tree, old: Tree) -> bool:
    """Whether an update adds or removes containers or changes their images; nothing else can violate a level."""
    spec, before = inner(obj, "spec"), inner(old, "spec")
    for field in ("containers", "initContainers"):
        if [item.get("image") for item in items(spec, field)] != [item.get("image") for item in items(before, field)]:
            return True
    images = {container.get("name"): container.get("image") for container in items(before, "ephemeralContainers")}
    return any(
        each.get("name") not in images or images[each.get("name")] != each.get("image")
        for each in items(spec, "ephemeralContainers")
    )


async def _warn_about_template(attributes: Attributes, template: Tree) -> None:
    levels = await _levels(attributes) if template else None
    if levels is not None:
        pod = CheckedPod(template)
        _audit(attributes, pod, levels.audit)
        _warn(attributes, pod, levels.warn)


async def _validate_namespace(attributes: Attributes, obj: Tree) -> None:
    labels, old_labels = _own_labels(obj), _own_labels(attributes.old or {})
    if labels == old_labels:
        return
    levels, problems = namespace_levels(labels)
    old_levels, old_problems = namespace_levels(old_labels)
    if problems and problems != old_problems:
        raise invalid(attributes.definition.gvk, attributes.name, problems)
    level, old_level = levels.enforce, old_levels.enforce
    if attributes.operation == "CREATE" or level.level == PRIVILEGED:
        return
    if level.minor != old_level.minor or level.is_stricter_than(old_level):
        await _warn_about_pods(attributes, level)


def _own_labels(namespace: Tree) -> dict[str, str]:
    labels: dict[str, str] = inner(inner(namespace, "metadata"), "labels")
    return {key: value for key, value in labels.items() if key.startswith(PREFIX)}


async def _warn_about_pods(attributes: Attributes, level: LevelVersion) -> None:
    """Warn about existing Pods that the new level would reject."""
    page = await attributes.context.storage.list(f"core/pods/{attributes.name}/")
    found: dict[str, list[str]] = {}
    for number, record in enumerate(page.records[:_PODS_MAX], start=1):
        pod = decode_stored(record)
        if words := ", ".join(violation.reason for violation in violations(CheckedPod(pod), level)):
            found.setdefault(words, []).append(pod["metadata"]["name"])
        if number % _PODS_AT_ONCE == 0:
            await asyncio.sleep(0)
    if len(page.records) > _PODS_MAX:
        checked = f"the first {_PODS_MAX} of {len(page.records)} existing pods"
        attributes.warn(f"new PodSecurity enforce level only checked against {checked}")
    if found:
        attributes.warn(
            f'existing pods in namespace "{attributes.name}" violate the new PodSecurity enforce level "{level}"'
        )
    for text in sorted(f"{_pods(names)}: {words}" for words, names in found.items()):
        attributes.warn(text)


def _pods(names: list[str]) -> str:
    others = len(names) - 1
    return f"{min(names)} (and {others} other pod{'s' * (others > 1)})" if others else names[0]
