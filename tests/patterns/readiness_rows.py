"""What is to be said of objects of every kind: a tree, the verdict, and the words."""

from __future__ import annotations

from typing import Any

from patterns.readiness_forms import FAILED, READY, WAITS, condition, with_status
from patterns.readiness_workload_rows import DEPLOYMENTS, JOBS, OTHER_WORKLOADS, PODS, deployment


def claim(phase: str | None, **spec: Any) -> dict[str, Any]:
    return with_status("v1", "PersistentVolumeClaim", spec=spec, status={"phase": phase} if phase else {})


def service(kind: str, *ingress: dict[str, Any]) -> dict[str, Any]:
    return with_status("v1", "Service", spec={"type": kind}, status={"loadBalancer": {"ingress": [*ingress]}})


def reports(api_version: str, kind: str, *conditions: dict[str, Any], **status: Any) -> dict[str, Any]:
    return with_status(api_version, kind, spec={}, status={"conditions": [*conditions], **status})


CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
HPA = ("autoscaling/v2", "HorizontalPodAutoscaler")
CSR = ("certificates.k8s.io/v1", "CertificateSigningRequest")
PDB = ("policy/v1", "PodDisruptionBudget")

PENDING = "no volume of storage class fast is bound to it yet; a class with WaitForFirstConsumer binds one when a Pod uses the claim"

OTHERS = {
    "claim": (claim("Bound", volumeName="pv-1"), READY, "it is bound to pv-1"),
    "claim, pending": (
        claim("Pending", storageClassName="fast"),
        WAITS,
        PENDING,
    ),
    "claim, lost": (
        claim("Lost", volumeName="pv-1"),
        FAILED,
        "the volume pv-1 that it was bound to is lost",
    ),
    "volume": (with_status("v1", "PersistentVolume", status={"phase": "Available"}), READY, "its phase is Available"),
    "volume, released": (
        with_status("v1", "PersistentVolume", status={"phase": "Released"}),
        WAITS,
        "its phase is Released",
    ),
    "volume, failed": (
        with_status("v1", "PersistentVolume", status={"phase": "Failed", "message": "recycler is gone"}),
        FAILED,
        "its phase is Failed: recycler is gone",
    ),
    "Service": (service("ClusterIP"), READY, "it exists"),
    "Service, name": (service("ExternalName"), READY, "it exists"),
    "Service, balanced": (service("LoadBalancer", {"ip": "1.2.3.4"}), READY, "its load balancer is at 1.2.3.4"),
    "Service, unbalanced": (service("LoadBalancer"), WAITS, "no load balancer has given it an address yet"),
    "Ingress": (with_status("networking.k8s.io/v1", "Ingress", spec={}), READY, "it exists"),
    "Namespace": (with_status("v1", "Namespace", status={"phase": "Active"}), READY, "it is active"),
    "Namespace, new": (with_status("v1", "Namespace"), WAITS, "it has no phase yet"),
    "Namespace, going": (
        with_status("v1", "Namespace", status={"phase": "Terminating"}),
        WAITS,
        "its phase is Terminating",
    ),
    "Node": (reports("v1", "Node", condition("Ready")), READY, "it is ready"),
    "Node, lost": (
        reports(
            "v1", "Node", condition("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
        ),
        WAITS,
        "it is not ready: NodeStatusUnknown: Kubelet stopped posting node status.",
    ),
    "ServiceCIDR": (with_status("networking.k8s.io/v1", "ServiceCIDR", spec={}), WAITS, "it is not ready"),
    "CRD": (reports(*CRD, condition("NamesAccepted"), condition("Established")), READY, "it is established"),
    "CRD, new": (with_status(*CRD), WAITS, "its resources are not served yet"),
    "CRD, names": (
        reports(*CRD, condition("NamesAccepted", "False", "ListKindConflict", '"List" is already in use')),
        FAILED,
        'its names are not accepted: ListKindConflict: "List" is already in use',
    ),
    "APIService": (
        reports("apiregistration.k8s.io/v1", "APIService", condition("Available", "False", "MissingEndpoints", "none")),
        WAITS,
        "it is not available: MissingEndpoints: none",
    ),
    "HPA": (reports(*HPA, condition("AbleToScale"), condition("ScalingActive")), READY, "it can scale"),
    "HPA, new": (with_status(*HPA), WAITS, "its controller has not looked at it yet"),
    "HPA, v1": (with_status("autoscaling/v1", HPA[1]), READY, "it exists"),
    "HPA, blind": (
        reports(
            *HPA, condition("AbleToScale"), condition("ScalingActive", "False", "FailedGetResourceMetric", "no cpu")
        ),
        WAITS,
        "it cannot scale: FailedGetResourceMetric: no cpu",
    ),
    "HPA, at rest": (
        reports(*HPA, condition("AbleToScale"), condition("ScalingActive", "False", "ScalingDisabled", "0 replicas")),
        READY,
        "it can scale",
    ),
    "PDB": (reports(*PDB, observedGeneration=2, disruptionsAllowed=1), READY, "1 disruption is allowed"),
    "PDB, unseen": (reports(*PDB), WAITS, "its controller has not looked at it yet"),
    "PDB, failing": (
        reports(*PDB, condition("DisruptionAllowed", "False", "SyncFailed", "no scale"), observedGeneration=2),
        WAITS,
        "its Pods cannot be counted: SyncFailed: no scale",
    ),
    "CSR": (with_status(*CSR), WAITS, "it is not approved yet"),
    "CSR, approved": (
        reports(*CSR, condition("Approved")),
        WAITS,
        "it is approved, but its certificate is not issued yet",
    ),
    "CSR, issued": (reports(*CSR, condition("Approved"), certificate="LS0="), READY, "its certificate is issued"),
    "CSR, denied": (
        reports(*CSR, condition("Denied", "True", "Refused", "who are you")),
        FAILED,
        "it was denied: Refused: who are you",
    ),
    "ResourceClaim": (
        with_status("resource.k8s.io/v1", "ResourceClaim", spec={}),
        WAITS,
        "no device is allocated yet; that happens when a Pod that uses the claim is scheduled",
    ),
    "ResourceClaim, allocated": (
        with_status("resource.k8s.io/v1", "ResourceClaim", spec={}, status={"allocation": {}}),
        READY,
        "its devices are allocated",
    ),
    "VolumeAttachment": (
        with_status(
            "storage.k8s.io/v1",
            "VolumeAttachment",
            spec={},
            status={"attached": False, "attachError": {"message": "busy"}},
        ),
        WAITS,
        "the volume is not attached: busy",
    ),
    "ConfigMap": (with_status("v1", "ConfigMap", data={"a": "b"}), READY, "it exists"),
    "deleting": (
        with_status("v1", "ConfigMap", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}),
        WAITS,
        "it is being deleted; held by a/b",
    ),
    "deleting, though complete": (
        deployment() | {"metadata": {"name": "a", "generation": 2, "deletionTimestamp": "2026-01-01T00:00:00Z"}},
        WAITS,
        "it is being deleted",
    ),
}


def widget(*conditions: dict[str, Any], **status: Any) -> dict[str, Any]:
    return reports("example.com/v1", "Widget", *conditions, **status)


CUSTOM = {
    "nothing said": (with_status("example.com/v1", "Widget"), READY, "it exists"),
    "other conditions": (widget(condition("Synced", "False")), READY, "it exists"),
    "ready": (widget(condition("Ready")), READY, "it is ready"),
    "not ready": (
        widget(condition("Ready", "False", "Pulling", "2 of\n  3 layers")),
        WAITS,
        "it is not ready: Pulling: 2 of 3 layers",
    ),
    "unknown": (widget(condition("Ready", "Unknown")), WAITS, "it is not ready"),
    "Ready before Available": (
        widget(condition("Available"), condition("Ready", "False", "No", "no")),
        WAITS,
        "it is not ready: No: no",
    ),
    "available": (widget(condition("Available")), READY, "it is available"),
    "succeeded": (widget(condition("Succeeded", "False", "Running")), WAITS, "it has not succeeded: Running"),
    "stalled": (
        widget(condition("Ready", "False"), condition("Stalled", "True", "BadSpec", "size is odd")),
        FAILED,
        "it is stalled: BadSpec: size is odd",
    ),
    "failed": (widget(condition("Failed", "True", "Broken", "it broke")), FAILED, "it has failed: Broken: it broke"),
    "reconciling": (
        widget(condition("Ready"), condition("Reconciling", "True", "Growing", "to 3")),
        WAITS,
        "it is being reconciled: Growing: to 3",
    ),
    "old status": (
        widget(condition("Ready"), observedGeneration=1),
        WAITS,
        "its controller has not seen the last change yet (generation 2, seen 1)",
    ),
    "old condition": (
        widget(condition("Ready", observedGeneration=1), observedGeneration=2),
        WAITS,
        "its controller has not seen the last change yet (generation 2, seen 1)",
    ),
    "old stall": (
        widget(condition("Stalled", observedGeneration=1)),
        WAITS,
        "its controller has not seen the last change yet (generation 2, seen 1)",
    ),
    "present": (widget(condition("Ready", observedGeneration=2), observedGeneration=2), READY, "it is ready"),
    "strange forms": (
        with_status("example.com/v1", "Widget", status={"conditions": {"Ready": "no"}, "observedGeneration": "x"}),
        WAITS,
        "its controller has not looked at it yet",
    ),
    "strange conditions": (
        with_status("example.com/v1", "Widget", status={"conditions": ["Ready", 3]}),
        READY,
        "it exists",
    ),
    "strange status": (with_status("example.com/v1", "Widget", status="fine"), READY, "it exists"),
}

TABLE: dict[str, tuple[dict[str, Any], str, str]] = {
    f"{title}: {name}": row
    for title, rows in (
        ("Deployment", DEPLOYMENTS),
        ("workload", OTHER_WORKLOADS),
        ("Job", JOBS),
        ("Pod", PODS),
        ("other", OTHERS),
        ("custom", CUSTOM),
    )
    for name, row in rows.items()
}
