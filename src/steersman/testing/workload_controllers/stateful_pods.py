"""The named Pods of a StatefulSet, and their claims. Pure.

Guarantees
- The Pod of an ordinal gets the same name, labels, host name and volumes as from kube-controller-manager.
- The owners of a claim follow from the retention policy of the StatefulSet.
"""

from __future__ import annotations

import copy
import re

from steersman.kinds.apps_v1 import StatefulSet
from steersman.kinds.core_v1 import (
    PersistentVolumeClaim,
    PersistentVolumeClaimVolumeSource,
    Pod,
    PodTemplateSpec,
    Volume,
)
from steersman.objects import Object, ObjectMeta, OwnerReference, owner_reference
from steersman.testing.workload_controllers import pods
from steersman.testing.workload_controllers.revisions import REVISION

_NAME = "statefulset.kubernetes.io/pod-name"
_INDEX = "apps.kubernetes.io/pod-index"
_ORDINAL = re.compile(r"(.*)-([0-9]{1,10})")


def replicas(owner: StatefulSet) -> int:
    """The requested number of Pods."""
    return 1 if owner.spec.replicas is None else owner.spec.replicas


def start(owner: StatefulSet) -> int:
    """The first ordinal."""
    return (owner.spec.ordinals.start or 0) if owner.spec.ordinals is not None else 0


def ordinal(owner: StatefulSet, pod: Pod) -> int:
    """The ordinal of a Pod; -1 if its name does not belong to the StatefulSet."""
    match = _ORDINAL.fullmatch(pod.metadata.name or "")
    return int(match[2]) if match is not None and match[1] == owner.metadata.name else -1


def is_in_range(owner: StatefulSet, pod: Pod) -> bool:
    """Whether a Pod's ordinal is among the requested ones."""
    return start(owner) <= ordinal(owner, pod) < start(owner) + replicas(owner)


def revision(pod: Pod) -> str:
    """The name of a Pod's revision."""
    return (pod.metadata.labels or {}).get(REVISION, "")


def new_pod(owner: StatefulSet, template: PodTemplateSpec, revision_name: str, number: int) -> Pod:
    """The Pod of an ordinal."""
    pod = pods.from_template(owner, template)
    give_identity(owner, pod, number)
    pod.metadata.labels = {**(pod.metadata.labels or {}), REVISION: revision_name}
    pod.spec.hostname = pod.metadata.name
    pod.spec.subdomain = owner.spec.service_name or None
    give_volumes(owner, pod, number)
    return pod


def give_identity(owner: StatefulSet, pod: Pod, number: int) -> None:
    """Name and label a Pod after its ordinal."""
    name = f"{owner.metadata.name}-{number}"
    pod.metadata.name = name
    pod.metadata.labels = {**(pod.metadata.labels or {}), _NAME: name, _INDEX: str(number)}


def give_volumes(owner: StatefulSet, pod: Pod, number: int) -> None:
    """Mount the claims of an ordinal, replacing volumes of the same names."""
    claims = {_template_name(template): claim_name(owner, template, number) for template in templates(owner)}
    volumes = [
        Volume(name=name, persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=claim))
        for name, claim in claims.items()
    ]
    pod.spec.volumes = [*volumes, *(volume for volume in pod.spec.volumes or () if volume.name not in claims)] or None


def matches(owner: StatefulSet, pod: Pod) -> bool:
    """Whether a Pod has the label and the volumes of its ordinal."""
    number = ordinal(owner, pod)
    mounted = {
        volume.name: volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes or ()
        if volume.persistent_volume_claim is not None
    }
    claims = {_template_name(template): claim_name(owner, template, number) for template in templates(owner)}
    return (pod.metadata.labels or {}).get(_NAME) == pod.metadata.name and claims.items() <= mounted.items()


def templates(owner: StatefulSet) -> list[PersistentVolumeClaim]:
    """The templates of its claims."""
    return owner.spec.volume_claim_templates or []


def _template_name(template: PersistentVolumeClaim) -> str:
    return template.metadata.name or ""


def claim_name(owner: StatefulSet, template: PersistentVolumeClaim, number: int) -> str:
    """The name of the claim of an ordinal."""
    return f"{template.metadata.name}-{owner.metadata.name}-{number}"


def new_claim(owner: StatefulSet, template: PersistentVolumeClaim, number: int) -> PersistentVolumeClaim:
    """The claim of an ordinal."""
    labels = {**(template.metadata.labels or {}), **(owner.spec.selector.match_labels or {})}
    metadata = ObjectMeta(
        name=claim_name(owner, template, number),
        namespace=owner.metadata.namespace,
        labels=labels or None,
        annotations=dict(template.metadata.annotations or {}) or None,
    )
    return PersistentVolumeClaim(metadata=metadata, spec=copy.deepcopy(template.spec))


def claim_owners(owner: StatefulSet, claim: PersistentVolumeClaim, pod: Pod) -> list[OwnerReference]:
    """The owners that a claim should have by the retention policy; other owners stay."""
    present = claim.metadata.owner_references or []
    if is_stale(claim, owner) or is_stale(claim, pod):
        # A predecessor of the same name owned it: leave it to the garbage collector.
        return present
    policy = owner.spec.persistent_volume_claim_retention_policy
    scaled = policy is not None and policy.when_scaled == "Delete"
    deleted = policy is not None and policy.when_deleted == "Delete"
    ours = {owner.metadata.uid, pod.metadata.uid}
    others = [reference for reference in present if reference.uid not in ours]
    if (scaled or deleted) and any(reference.controller for reference in others):
        return others
    if scaled and not is_in_range(owner, pod):
        return [*others, owner_reference(pod)]
    return [*others, owner_reference(owner)] if deleted else others


def is_stale(claim: PersistentVolumeClaim, owner: Object) -> bool:
    """Whether a claim refers to an earlier owner of the same name."""
    return any(
        (reference.api_version, reference.kind, reference.name) == (owner.api_version, owner.kind, owner.metadata.name)
        and reference.uid != owner.metadata.uid
        for reference in claim.metadata.owner_references or ()
    )
