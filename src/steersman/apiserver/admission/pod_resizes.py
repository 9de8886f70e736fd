"""Rejects a change of a running Pod's resources that its Node does not support or has no capacity for."""

from __future__ import annotations

from steersman.apiserver.admission.plugins import AdmissionOperation, Attributes, Plugin
from steersman.apiserver.documents import decode_stored
from steersman.apiserver.errors import RequestRejected, forbidden
from steersman.apiserver.registry.builtin.pods.resources import aggregate
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, metadata
from steersman.errors import StatusCause
from steersman.golang import quoted_in_full
from steersman.objects import Quantity


class _RunningPods(Plugin):
    operations: frozenset[AdmissionOperation] = frozenset({"UPDATE"})
    resources = frozenset({("", "pods")})


class PodResizes(_RunningPods):
    """The plugin PodResizeValidator."""

    async def validate(self, attributes: Attributes) -> None:
        """Check that a resized Pod fits on its Node."""
        if attributes.subresource != "resize" or not _is_changed(attributes):
            return
        pod, node = attributes.obj or {}, await _node(attributes)
        system = inner(metadata(node), "labels").get("kubernetes.io/os", "linux")
        if system != "linux":
            name = quoted_in_full(node["metadata"]["name"])
            why = f"pod resize is only supported on linux nodes, node {name} is {quoted_in_full(system)}"
            raise _refused(attributes, why, "UnsupportedPlatform")
        if lacking := _lacking(inner(pod, "spec"), inner(inner(node, "status"), "allocatable")):
            why = f"node didn't have enough allocatable resources: {'; '.join(lacking)}"
            raise _refused(attributes, why, "NodeCapacity")


class NodeFeatures(_RunningPods):
    """The plugin NodeDeclaredFeatureValidator."""

    async def validate(self, attributes: Attributes) -> None:
        """Check that the Node of a changed Pod has the features that the change needs."""
        if attributes.subresource not in {"", "resize"} or not _is_changed(attributes):
            return
        needed = _needed(inner(attributes.obj or {}, "spec"), inner(attributes.old or {}, "spec"))
        if not needed:
            return
        node = await _node(attributes)
        declared = items(inner(node, "status"), "declaredFeatures")
        missing = [name for name in needed if name not in declared]
        if missing:
            name = quoted_in_full(node["metadata"]["name"])
            raise attributes.refused(
                f"pod update requires features {', '.join(missing)} which are not available on node {name}"
            )


def _is_changed(attributes: Attributes) -> bool:
    """Whether a write changes the spec of a Pod that has a Node."""
    obj, old = attributes.obj, attributes.old
    if obj is None or old is None or not inner(obj, "spec").get("nodeName"):
        return False
    return metadata(obj).get("generation") != metadata(old).get("generation")


async def _node(attributes: Attributes) -> Tree:
    name = inner(attributes.obj or {}, "spec")["nodeName"]
    record = await attributes.context.read("", "nodes", "", name)
    if record is None:
        raise attributes.refused(f"node {quoted_in_full(name)} not found")
    return decode_stored(record)


def _needed(spec: Tree, old: Tree) -> list[str]:
    """The features that a change of resources needs."""
    needed = ["InPlacePodLevelResourcesVerticalScaling"] if spec.get("resources") != old.get("resources") else []
    pairs = zip(items(spec, "initContainers"), items(old, "initContainers"), strict=False)
    if any(new.get("resources") != one.get("resources") and one.get("restartPolicy") != "Always" for new, one in pairs):
        needed.append("InPlacePodVerticalScalingInitContainers")
    return needed


def _lacking(spec: Tree, allocatable: Tree) -> list[str]:
    """The resources of which a Pod requests more than its Node can allocate, as messages."""
    requests: Tree = aggregate(spec, "requests") | inner(inner(spec, "resources"), "requests")
    lacking: list[str] = []
    for name in ("cpu", "memory"):
        wanted = Quantity(requests.get(name, 0)) + Quantity(inner(spec, "overhead").get(name, 0))
        had = Quantity(allocatable.get(name, 0))
        if wanted > had:
            numbers = (each.milli_value() if name == "cpu" else each.value() for each in (wanted, had))
            lacking.append("{}, requested: {}, allocatable: {}".format(name, *numbers))
    return lacking


def _refused(attributes: Attributes, why: str, reason: str) -> RequestRejected:
    return forbidden(attributes.definition.named, attributes.name, why, (StatusCause(reason=reason),))
