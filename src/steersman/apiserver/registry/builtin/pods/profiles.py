"""Profiles of AppArmor and seccomp in annotations, the form before they had fields.

Guarantees
- An AppArmor profile in an annotation becomes a field of its container when a Pod is created.
- No update of a Pod adds, changes or removes such an annotation: `pinned_annotations`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, metadata
from steersman.golang import quoted
from steersman.objects.field_problems import FieldProblem, forbidden, invalid

#: The prefix of AppArmor's annotations; the name of a container follows.
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
#: The annotation of a mirror Pod.
MIRROR = "kubernetes.io/config.mirror"
#: Seccomp annotations: the one for the Pod, and the prefix of those for its containers.
SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
_LOCAL = "localhost/"


def old_profiles(pod: Tree) -> list[tuple[str, Tree | None, Tree]]:
    """The AppArmor profiles that only annotations have: the annotation, the profile as a field, and its container.

    The field is None if the annotation names no profile.
    """
    annotations, spec = inner(metadata(pod), "annotations"), pod["spec"]
    profiles: list[tuple[str, Tree | None, Tree]] = []
    if not annotations or inner(spec, "os").get("name") == "windows":
        return profiles
    of_pod = inner(spec, "securityContext").get("appArmorProfile")
    for field in ("initContainers", "containers"):
        for container in items(spec, field):
            key = f"{APP_ARMOR}{container.get('name', '')}"
            if key not in annotations or inner(container, "securityContext").get("appArmorProfile") is not None:
                continue
            profile = _profile(annotations[key])
            if profile is None or profile != of_pod:
                profiles.append((key, profile, container))
    return profiles


def _profile(annotation: str) -> Tree | None:
    if annotation in {"unconfined", "runtime/default"}:
        return {"type": "Unconfined" if annotation == "unconfined" else "RuntimeDefault"}
    kind, _, name = annotation.partition("/")
    return {"type": "Localhost", "localhostProfile": name} if kind == "localhost" and name else None


def containers_with_paths(path: str, spec: Tree) -> Iterator[tuple[str, Tree]]:
    """All containers of a Pod, each with its path."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for index, one in enumerate(items(spec, field)):
            yield f"{path}.{field}[{index}]", one


def profile_annotations(path: str, given: Mapping[str, str], spec: Tree) -> list[FieldProblem]:
    """Validate the annotations: each names a container and a profile."""
    names = {one.get("name", "") for _, one in containers_with_paths("", spec)}
    problems: list[FieldProblem] = []
    for key, profile in given.items():
        if not key.startswith(APP_ARMOR):
            continue
        name = key.removeprefix(APP_ARMOR)
        if name not in names:
            problems.append(invalid(f"{path}[{key}]", name, "container not found"))
        if profile not in {"", "runtime/default", "unconfined"} and not profile.startswith(_LOCAL):
            problems.append(invalid(f"{path}[{key}]", profile, f"invalid AppArmor profile name: {quoted(profile)}"))
    return problems


def matching_profiles(given: Mapping[str, str], spec: Tree) -> list[FieldProblem]:
    """Profiles of a new Pod must be the same in annotations and fields."""
    if not given:
        return []
    problems = _mismatch("spec", "seccompProfile", given.get(SECCOMP_POD), _of(spec, "seccompProfile"))
    for where, one in containers_with_paths("spec", spec):
        annotation = given.get(f"{SECCOMP_CONTAINER}{one.get('name', '')}")
        problems += _mismatch(where, "seccompProfile", annotation, _of(one, "seccompProfile"))
    if inner(spec, "os").get("name") == "windows":
        return problems
    for where, one in containers_with_paths("spec", spec):
        annotation = given.get(f"{APP_ARMOR}{one.get('name', '')}")
        profile = _of(one, "appArmorProfile") or _of(spec, "appArmorProfile")
        problems += _mismatch(where, "appArmorProfile", annotation, profile)
    return problems


def _of(holder: Tree, field: str) -> Tree | None:
    return inner(holder, "securityContext").get(field)


def _mismatch(where: str, field: str, annotation: str | None, profile: Tree | None) -> list[FieldProblem]:
    if annotation is None or profile is None:
        return []
    path, noun = f"{where}.securityContext.{field}", field.removesuffix("Profile").lower()
    match profile.get("type", ""):
        case "Localhost" if annotation.startswith(_LOCAL):
            if profile.get("localhostProfile") == annotation.removeprefix(_LOCAL):
                return []
            return [forbidden(f"{path}.localhostProfile", f"{noun} profile in annotation and field must match")]
        case "Localhost":
            same = False
        case "Unconfined":
            same = annotation == "unconfined"
        case "RuntimeDefault":
            same = annotation == "runtime/default" or (noun == "seccomp" and annotation == "docker/default")
        case _:
            same = True
    return [] if same else [forbidden(f"{path}.type", f"{noun} type in annotation and field must match")]


def pinned_annotations(obj: Tree, old: Tree) -> list[FieldProblem]:
    """Problems of annotations that no update may add, change or remove."""
    new, before = inner(metadata(obj), "annotations"), inner(metadata(old), "annotations")
    problems: list[FieldProblem] = []
    for key in dict.fromkeys((*before, *new)):
        if key != MIRROR and not key.startswith(APP_ARMOR):
            continue
        noun = "mirror pod annotation" if key == MIRROR else "AppArmor annotations"
        if key not in before:
            problems.append(forbidden(f"metadata.annotations[{key}]", f"may not add {noun}"))
        elif new.get(key) != before[key]:
            problems.append(forbidden(f"metadata.annotations[{key}]", f"may not remove or update {noun}"))
    return problems
