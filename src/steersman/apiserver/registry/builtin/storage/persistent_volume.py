"""PersistentVolumes: their capacity, their source, and the few changes that are allowed."""

from __future__ import annotations

from posixpath import normpath

from steersman.aio import utc_now
from steersman.apiserver.registry.builtin.persistent_volume_claim import access_modes, volume_mode
from steersman.apiserver.registry.builtin.pods.defaults import fill_volume
from steersman.apiserver.registry.builtin.pods.scheduling import node_selector
from steersman.apiserver.registry.builtin.pods.warnings import term_warnings
from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.internal_form import difference, printed
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, metadata, subtree, take
from steersman.apiserver.registry.builtin.types.volume_sources import JUDGED_AS, MISNAMED, VOLUME_SOURCES
from steersman.apiserver.registry.strategy import WHOLE
from steersman.objects import Quantity, format_time
from steersman.objects.field_problems import (
    IMMUTABLE,
    NOT_POSITIVE,
    FieldProblem,
    each,
    forbidden,
    invalid,
    required,
    unchanged,
    unsupported,
)
from steersman.schemas.names import dns_subdomain

_POLICIES = ("Delete", "Recycle", "Retain")
_INLINE = "may not be specified in the context of inline volumes"
_MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options"
#: Sources that accept the annotation with mount options.
_MOUNTED = frozenset(
    {
        "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "nfs", "rbd", "quobyte", "iscsi", "cinder", "cephfs",
        "azureFile", "vsphereVolume", "azureDisk", "photonPersistentDisk",
    }
)  # fmt: skip
_GONE = {
    "cephfs": ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    "photonPersistentDisk": ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    "scaleIO": ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    "storageos": ("storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    "glusterfs": ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    "rbd": ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
}
_OLD_ANNOTATIONS = {
    "volume.beta.kubernetes.io/storage-class": 'deprecated since v1.8; use "storageClassName" attribute instead',
    _MOUNT_OPTIONS: 'deprecated since v1.31; use "mountOptions" attribute instead',
}
_RECYCLED = (
    "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning."
)


def fill_source(spec: Tree) -> None:
    """Default the fields of a volume's source."""
    names = ("hostPath", "iscsi", "rbd", "azureDisk", "scaleIO")
    source = {"name": "", **{name: spec[name] for name in names if name in spec}}
    if len(source) > 1:
        fill_volume(source)


class PersistentVolumeStrategy(BuiltinStrategy):
    """How PersistentVolumes behave."""

    judges_changes = False

    def default(self, obj: Tree) -> None:
        """Normalize the volume to the form of its type. Keep an empty capacity, because its error message quotes it."""
        is_empty = subtree(obj, "spec").get("capacity") == {}
        super().default(obj)
        if is_empty:
            obj["spec"]["capacity"] = {}

    def fill(self, obj: Tree) -> None:
        spec: Tree = obj["spec"]
        spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
        spec.setdefault("volumeMode", "Filesystem")
        obj["status"].setdefault("phase", "Pending")
        fill_source(spec)

    def prepare_create(self, obj: Tree) -> None:
        """Set the phase to Pending."""
        obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": format_time(utc_now())}

    def prepare_status(self, obj: Tree, old: Tree) -> None:
        """Restore the spec, and set the time of a phase change."""
        super().prepare_status(obj, old)
        status, before = obj["status"], subtree(old, "status")
        time = status.get("lastPhaseTransitionTime")
        if status.get("phase") == before.get("phase"):
            if time is None:
                take(status, before, "lastPhaseTransitionTime")
        elif time is None or time == before.get("lastPhaseTransitionTime"):
            status["lastPhaseTransitionTime"] = format_time(utc_now())

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        return volume_problems("spec", subtree(obj, "spec"), metadata(obj).get("name", "")) + _mount_options(obj)

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Check that the source does not change. Validates everything twice, as kube-apiserver does."""
        spec, before = subtree(obj, "spec"), subtree(old, "spec")
        once = volume_problems("spec", spec, metadata(obj).get("name", ""))
        problems = [WHOLE, *once, *_mount_options(obj), WHOLE, *once]
        new, was = _source(spec), _source(before)
        if "controllerExpandSecretRef" not in inner(was, "csi") and "csi" in was and "csi" in new:
            kept = {name: value for name, value in new["csi"].items() if name != "controllerExpandSecretRef"}
            new = new | {"csi": kept}
        if new != was:
            shown = difference(was, new, "core.PersistentVolumeSource")
            detail = f"spec.persistentvolumesource is immutable after creation\n{shown}"
            problems.append(forbidden("spec.persistentvolumesource", detail))
        problems += unchanged("volumeMode", spec.get("volumeMode"), before.get("volumeMode"))
        affinity = spec.get("nodeAffinity")
        if before.get("nodeAffinity") is not None and affinity != before["nodeAffinity"]:
            detail = f"{IMMUTABLE}, except for updating from beta label to GA"
            problems.append(invalid("nodeAffinity", printed(affinity, "*core.VolumeNodeAffinity"), detail))
        name = "volumeAttributesClassName"
        if before.get(name) is not None and spec.get(name) is None:
            problems.append(forbidden(f"spec.{name}", "update from non-nil value to nil is forbidden"))
        return problems

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        """Warnings about deprecated annotations, policies, labels and sources."""
        del old
        spec, annotations = subtree(obj, "spec"), inner(metadata(obj), "annotations")
        found = [
            f"metadata.annotations[{name}]: {said}" for name, said in _OLD_ANNOTATIONS.items() if name in annotations
        ]
        if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
            found.append(f"spec.persistentVolumeReclaimPolicy: {_RECYCLED}")
        path = "spec.nodeAffinity.required.nodeSelectorTerms"
        for index, term in enumerate(items(subtree(spec, "nodeAffinity", "required"), "nodeSelectorTerms")):
            found += term_warnings(f"{path}[{index}]", term)
        return found + [f"spec.{shown}: {said}" for name, (shown, said) in _GONE.items() if name in spec]


def _source(spec: Tree) -> Tree:
    return {name: spec[name] for name in VOLUME_SOURCES if spec.get(name) is not None}


def _mount_options(obj: Tree) -> list[FieldProblem]:
    if _MOUNT_OPTIONS not in inner(metadata(obj), "annotations") or _MOUNTED & _source(subtree(obj, "spec")).keys():
        return []
    path = f"metadata.annotations.{_MOUNT_OPTIONS}"
    return [forbidden(path, "may not specify mount options for this volume type")]


def volume_problems(path: str, spec: Tree, name: str, *, inline: bool = False) -> list[FieldProblem]:
    """Validate the spec of a volume, or the inline spec of an attachment."""
    problems = [
        forbidden(f"{path}.{field}", _INLINE) for field in ("claimRef", "capacity") if inline and spec.get(field)
    ]
    if inline and spec.get("csi") is None:
        problems.append(required(f"{path}.csi", "has to be specified in the context of inline volumes"))
    modes = items(spec, "accessModes")
    problems += [] if modes else [required(f"{path}.accessModes")]
    problems += access_modes(f"{path}.accessModes", modes)
    problems += [] if inline else _capacity(f"{path}.capacity", spec)
    problems += _policy(f"{path}.persistentVolumeReclaimPolicy", spec, inline=inline)
    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        problems += [forbidden(f"{path}.nodeAffinity", _INLINE)] if inline else _affinity(path, affinity)
    problems += _sources(path, spec, name, bound=affinity is not None and not inline)
    is_recycled = spec.get("persistentVolumeReclaimPolicy") == "Recycle"
    if is_recycled and normpath(inner(spec, "hostPath").get("path") or ".").strip("/") == "":
        detail = "may not be 'recycle' for a hostPath mount of '/'"
        problems.append(forbidden(f"{path}.persistentVolumeReclaimPolicy", detail))
    return problems + _classes(path, spec, inline=inline)


def _capacity(path: str, spec: Tree) -> list[FieldProblem]:
    capacity = inner(spec, "capacity")
    problems = [] if capacity else [required(path)]
    if "storage" not in capacity or len(capacity) > 1:
        problems.append(unsupported(path, spec.get("capacity"), ("storage",)))
    for name, amount in capacity.items():
        quantity = Quantity(amount)
        if quantity.value() < 0:
            problems.append(invalid(f"{path}[{name}]", quantity.value(), "must be a valid resource quantity"))
        if quantity <= 0:
            problems.append(invalid(f"{path}[{name}]", quantity.printed(), NOT_POSITIVE))
    return problems


def _policy(path: str, spec: Tree, *, inline: bool) -> list[FieldProblem]:
    policy = spec.get("persistentVolumeReclaimPolicy")
    if not policy:
        return []
    if inline:
        return [] if policy == "Retain" else [forbidden(path, "may only be Retain in the context of inline volumes")]
    return [] if policy in _POLICIES else [unsupported(path, policy, _POLICIES)]


def _affinity(path: str, affinity: Tree) -> list[FieldProblem]:
    where = f"{path}.nodeAffinity.required"
    if affinity.get("required") is None:
        return [required(where, "must specify required node constraints")]
    return node_selector(where, affinity["required"])


def _sources(path: str, spec: Tree, name: str, *, bound: bool) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    given = _source(spec)
    for index, (source, value) in enumerate(given.items()):
        if index and source != "flexVolume":
            where = f"{path}.{MISNAMED.get(source, source)}"
            problems.append(forbidden(where, "may not specify more than 1 volume type"))
            continue
        where = f"{path}.{JUDGED_AS.get(source, source)}"
        found = VOLUME_SOURCES[source](where, value)
        if source == "iscsi":
            after = 0 if value.get("targetPortal") else 1
            found[after:after] = _initiator(where, value, name)
        problems += found
        if source == "local" and not bound:
            problems.append(required(f"{path}.nodeAffinity", "Local volume requires node affinity"))
    return problems if given else [*problems, required(path, "must specify a volume type")]


def _initiator(path: str, source: Tree, name: str) -> list[FieldProblem]:
    portal = source.get("targetPortal", "")
    if source.get("initiatorName") is None or len(f"{name}:{portal}".encode()) <= 64:
        return []
    detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified."
    return [invalid(f"{path}.targetportal", portal, detail)]


def _classes(path: str, spec: Tree, *, inline: bool) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    name, mode, attributes = (spec.get(one) for one in ("storageClassName", "volumeMode", "volumeAttributesClassName"))
    if name:
        where = f"{path}.storageClassName"
        problems += [forbidden(where, _INLINE)] if inline else each(where, name, dns_subdomain(name))
    if not inline:
        problems += volume_mode(f"{path}.volumeMode", mode)
    elif mode not in {None, "Filesystem"}:
        detail = "may not specify volumeMode other than Filesystem in the context of inline volumes"
        problems.append(forbidden(f"{path}.volumeMode", detail))
    if attributes is not None and not inline:
        where = f"{path}.volumeAttributesClassName"
        empty = [required(where, "an empty string is disallowed")]
        problems += each(where, attributes, dns_subdomain(attributes)) if attributes else empty
        if spec.get("csi") is None:
            problems.append(required(f"{path}.csi", "has to be specified when using volumeAttributesClassName"))
    return problems
