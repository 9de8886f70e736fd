"""The subresources ``ephemeralcontainers`` and ``resize`` of a Pod: what they may change."""

from __future__ import annotations

from typing import Any

from steersman.apiserver.registry.builtin.pods.defaults import fill_pod_resources
from steersman.apiserver.registry.builtin.pods.profiles import MIRROR
from steersman.apiserver.registry.builtin.pods.resources import quality_of_service
from steersman.apiserver.registry.builtin.strategy import restore_metadata
from steersman.apiserver.registry.builtin.types.internal_form import difference
from steersman.apiserver.registry.builtin.types.resource_names import COMPUTE
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, metadata, subtree, take
from steersman.golang import quoted
from steersman.objects.field_problems import FieldProblem, forbidden, invalid

_EPHEMERAL = "spec.ephemeralContainers"
_LISTS = ("containers", "initContainers")
_ONLY_COMPUTE = "only cpu and memory resources are mutable"
#: The path that kube-apiserver reports for problems of a whole Pod.
_WHOLE_POD = ""


def _is_mirror(pod: Tree) -> bool:
    return MIRROR in inner(metadata(pod), "annotations")


def keep_all_but_ephemeral(obj: Tree, old: Tree) -> None:
    """Restore everything except the ephemeral containers."""
    added = {"ephemeralContainers": subtree(obj, "spec").get("ephemeralContainers")}
    obj["spec"] = dict(subtree(old, "spec"))
    take(obj, old, "status")
    restore_metadata(obj, old)
    if added["ephemeralContainers"]:
        obj["spec"] |= added
    else:
        obj["spec"].pop("ephemeralContainers", None)


def ephemeral_problems(obj: Tree, old: Tree, problems: list[FieldProblem]) -> list[FieldProblem]:
    """Check that a write only adds ephemeral containers, and neither changes nor removes any."""
    if _is_mirror(old):
        return [forbidden(_WHOLE_POD, "static pods do not support ephemeral containers")]
    new = {one.get("name", ""): one for one in items(subtree(obj, "spec"), "ephemeralContainers")}
    for one in items(subtree(old, "spec"), "ephemeralContainers"):
        name = one.get("name", "")
        subject = f"existing ephemeral containers {quoted(name)}"
        if name not in new:
            problems.append(forbidden(_EPHEMERAL, f"{subject} may not be removed\n"))
        elif new[name] != one:
            shown = difference(one, new[name], "core.EphemeralContainer")
            problems.append(forbidden(_EPHEMERAL, f"{subject} may not be changed\n{shown}"))
    return problems


def keep_all_but_resources(obj: Tree, old: Tree) -> None:
    """Restore everything except the resources of the Pod and its containers.

    If the containers are not the same, keep them as they are: validation rejects them.
    """
    new, before = subtree(obj, "spec"), subtree(old, "spec")
    if any(len(items(new, name)) != len(items(before, name)) for name in _LISTS):
        return
    made = dict(before)
    if new.get("resources") is not None:
        take(made, new, "resources")
    for name in _LISTS:
        if items(new, name):
            made[name] = _resized(items(new, name), items(before, name))
    if made.get("resources") is not None:
        made["resources"] = dict(made["resources"])
        fill_pod_resources(made)
    obj["spec"] = made
    take(obj, old, "status")
    restore_metadata(obj, old)


def _resized(new: list[Tree], before: list[Tree]) -> list[Tree]:
    if [one.get("name") for one in new] != [one.get("name") for one in before]:
        return new
    resized: list[Tree] = []
    for one, was in zip(new, before, strict=True):
        made = dict(was)
        take(made, one, "resources")
        take(made, one, "resizePolicy")
        resized.append(made)
    return resized


def resize_problems(obj: Tree, old: Tree, problems: list[FieldProblem]) -> list[FieldProblem]:
    """Check that a resize changes only CPU and memory, removes no amount, and keeps the QoS class."""
    new, before = subtree(obj, "spec"), subtree(old, "spec")
    if _is_mirror(old):
        return [forbidden(_WHOLE_POD, "static pods cannot be resized")]
    if inner(before, "os").get("name") == "windows":
        return [forbidden(_WHOLE_POD, "windows pods cannot be resized")]
    problems = [*problems, *_whole(obj, old)]
    moved = _order(new, before)
    if moved:
        return problems + moved
    for name in ("initContainers", "containers"):
        for index, (one, was) in enumerate(zip(items(new, name), items(before, name), strict=True)):
            problems += _removed(f"spec.{name}[{index}].resources", one, was)
    problems += [
        forbidden("spec", _ONLY_COMPUTE)
        for one, was in zip(items(new, "containers"), items(before, "containers"), strict=True)
        if _without_compute(one, was) != was
    ]
    for index, (one, was) in enumerate(zip(items(new, "initContainers"), items(before, "initContainers"), strict=True)):
        problems += _init(f"spec.initContainers[{index}]", one, was)
    return problems


def _whole(obj: Tree, old: Tree) -> list[FieldProblem]:
    """The problems of a Pod as a whole."""
    problems: list[FieldProblem] = []
    new, before = subtree(obj, "spec"), subtree(old, "spec")
    class_ = subtree(old, "status").get("qosClass") or quality_of_service(before)
    if class_ != quality_of_service(new):
        shown = subtree(obj, "status").get("qosClass", "")
        problems.append(invalid("spec", shown, "Pod QOS Class may not change as a result of resizing"))
    running = [one for one in items(subtree(old, "status"), "containerStatuses") if "running" in inner(one, "state")]
    if running and running[0].get("resources") is None:
        problems.append(forbidden("spec", "Pod running on node without support for resize"))
    own, was = new.get("resources"), before.get("resources")
    if not any(inner(one or {}, part) for one in (own, was) for part in ("requests", "limits")):
        return problems
    if was is not None and own is None:
        return [*problems, forbidden("spec.resources", "pod-level resources cannot be removed")]
    if was is not None:
        problems += _removed("spec.resources", {"resources": own}, {"resources": was}, "pod-level resource")
    kept = _without_compute({"resources": own}, {"resources": was or {}})["resources"]
    if kept != (was or {}):
        problems.append(forbidden("spec", f"{_ONLY_COMPUTE} at pod-level"))
    return problems


def _order(new: Tree, before: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for field in _LISTS:
        names, known = ([one.get("name") for one in items(spec, field)] for spec in (new, before))
        if len(names) != len(known):
            problems.append(forbidden(f"spec.{field}", f"{field} may not be added or removed on resize"))
            continue
        problems += [
            forbidden(f"spec.{field}[{index}].name", f"{field} may not be renamed or reordered on resize")
            for index, name in enumerate(known)
            if names[index] != name
        ]
    return problems


def _removed(path: str, one: Tree, was: Tree, noun: str = "resource") -> list[FieldProblem]:
    return [
        forbidden(f"{path}.{part}", f"{noun} {part} cannot be removed")
        for part in ("requests", "limits")
        if inner(inner(was, "resources"), part).keys() - inner(inner(one, "resources"), part).keys()
    ]


def _without_compute(one: Tree, was: Tree) -> Tree:
    """A copy of a container with the CPU and memory of another."""
    resources: dict[str, Any] = {}
    for part in ("limits", "requests"):
        before = inner(inner(was, "resources"), part)
        kept = {name: amount for name, amount in inner(inner(one, "resources"), part).items() if name not in COMPUTE}
        kept |= {name: amount for name, amount in before.items() if name in COMPUTE}
        if kept:
            resources[part] = kept
    return {**one, "resources": resources}


def _init(path: str, one: Tree, was: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    if _without_compute(one, was) != was:
        detail = "only cpu and memory resources for init or sidecar containers are mutable"
        problems.append(forbidden(path, detail))
    if one != was and one.get("restartPolicy") != "Always":
        detail = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
        restarts = [each for each in items(one, "resizePolicy") if each.get("restartPolicy") == "RestartContainer"]
        problems += [forbidden(path, detail) for _ in restarts]
    return problems
