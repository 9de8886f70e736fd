"""The readiness rules: built-in kinds that are not ready merely by existing, and custom kinds. Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeAlias

from steersman.kinds import index
from steersman.objects import Status, declared_hints, structs_in
from steersman.patterns.readiness.fields import at, condition, generation, holds, items, number, one_line, quoted, word
from steersman.patterns.readiness.pods import pod
from steersman.patterns.readiness.result import Readiness, failed, ready, stale, unobserved, waits
from steersman.patterns.readiness.workloads import cron_job, daemon_set, deployment, job, replica_set, stateful_set

Rule: TypeAlias = Callable[[Any], Readiness]

#: Conditions that mean ready on custom kinds; the first that an object has decides.
_GOOD = {
    "Ready": ("it is ready", "it is not ready"),
    "Available": ("it is available", "it is not available"),
    "Succeeded": ("it has succeeded", "it has not succeeded"),
    "Complete": ("it is complete", "it is not complete"),
    "Completed": ("it has completed", "it has not completed"),
    "Healthy": ("it is healthy", "it is not healthy"),
    "Established": ("it is established", "it is not established"),
}


_EXISTS = ready("it exists", reason="Exists")


def exists(obj: Any) -> Readiness:
    """Ready when the object exists."""
    del obj
    return _EXISTS


def custom(obj: Any) -> Readiness:
    """The conventions of custom kinds: conditions, and the generation that they observed.

    Stalled and Failed mean that waiting does not help, Reconciling that work is in progress. Otherwise the first of Ready,
    Available, Succeeded, Complete, Completed, Healthy and Established that the object has must be True.

    An object with none of them is ready when it exists, with one exception: a kind declared in Python with a status of `Status`
    reports conditions, so an object without conditions has not been reconciled yet.
    """
    if at(obj, "status", "observed_generation") is not None and (late := unobserved(obj)) is not None:
        return late
    for kind, words in (("Stalled", "it is stalled"), ("Failed", "it has failed")):
        found = condition(obj, kind)
        if holds(found):
            return _late(obj, found) or failed(word(at(found, "reason"), kind), _said(found, words))
    found = condition(obj, "Reconciling")
    if holds(found):
        return waits(word(at(found, "reason"), "Reconciling"), _said(found, "it is being reconciled"))
    for kind in _GOOD:
        found = condition(obj, kind)
        if found is not None:
            return _late(obj, found) or _of_condition(found, kind)
    if reports_conditions(obj.__class__) and next(items(obj, "status", "conditions"), None) is None:
        return waits("NotObserved", "its controller has reported no condition yet")
    return exists(obj)


def _late(obj: Any, found: Any) -> Readiness | None:
    """The result for a condition about an older generation; None if it is up to date or names no generation."""
    seen, asked = at(found, "observed_generation"), generation(obj)
    # Some controllers write 0 instead of leaving it out.
    return stale(seen, asked) if isinstance(seen, int) and 0 < seen < asked else None


def _of_condition(found: Any, kind: str) -> Readiness:
    good, bad = _GOOD[kind]
    if holds(found):
        return ready(good, reason=kind)
    return waits(word(at(found, "reason"), f"Not{kind}"), _said(found, bad))


def _said(found: Any, words: str) -> str:
    said = quoted(found)
    return f"{words}: {said}" if said else words


@cache
def reports_conditions(cls: type[Any]) -> bool:
    """Whether a class was declared with a status of `Status`."""
    hints = declared_hints(cls) if hasattr(cls, "__resource__") else {}
    return any(issubclass(each, Status) for each in structs_in(hints.get("status")))


def _condition_true(kind: str, words: str) -> Rule:
    """A rule for kinds whose readiness is one condition."""

    def rule(obj: Any) -> Readiness:
        found = condition(obj, kind)
        if holds(found):
            return ready(f"it is {kind.lower()}", reason=kind)
        return waits(word(at(found, "reason"), f"Not{kind}"), _said(found, words))

    return rule


def _claim(obj: Any) -> Readiness:
    phase = at(obj, "status", "phase")
    if phase == "Bound":
        return ready(f"it is bound to {at(obj, 'spec', 'volume_name') or 'a volume'}", reason="Bound")
    if phase == "Lost":
        return failed("Lost", f"the volume {at(obj, 'spec', 'volume_name')} that it was bound to is lost")
    storage = at(obj, "spec", "storage_class_name")
    which = f" of storage class {storage}" if storage else ""
    return waits(
        "Pending",
        f"no volume{which} is bound to it yet; a class with WaitForFirstConsumer binds one when a Pod uses the claim",
    )


def _volume(obj: Any) -> Readiness:
    phase = at(obj, "status", "phase")
    if phase in {"Available", "Bound"}:
        return ready(f"its phase is {phase}", reason=phase)
    said = quoted(at(obj, "status"))
    words = f"its phase is {phase or 'Pending'}{f': {said}' if said else ''}"
    return failed("Failed", words) if phase == "Failed" else waits(word(phase, "Pending"), words)


def _service(obj: Any) -> Readiness:
    if at(obj, "spec", "type") != "LoadBalancer":
        return exists(obj)
    for place in items(obj, "status", "load_balancer", "ingress"):
        where = at(place, "ip") or at(place, "hostname")
        return ready(f"its load balancer is at {where}" if where else "it has a load balancer")
    return waits("NoLoadBalancer", "no load balancer has given it an address yet")


def _namespace(obj: Any) -> Readiness:
    phase = at(obj, "status", "phase")
    if phase == "Active":
        return ready("it is active", reason="Active")
    return waits(word(phase, "NotActive"), f"its phase is {phase}" if phase else "it has no phase yet")


def _crd(obj: Any) -> Readiness:
    names = condition(obj, "NamesAccepted")
    if at(names, "status") == "False":
        return failed(word(at(names, "reason"), "NamesNotAccepted"), f"its names are not accepted: {quoted(names)}")
    return _established(obj)


_established = _condition_true("Established", "its resources are not served yet")


def _autoscaler(obj: Any) -> Readiness:
    for kind in ("AbleToScale", "ScalingActive"):
        found = condition(obj, kind)
        if found is None:
            # autoscaling/v1 has no conditions.
            if at(obj, "api_version") == "autoscaling/v1":
                return exists(obj)
            return waits("NotObserved", "its controller has not looked at it yet")
        # A target with 0 replicas disables scaling on purpose.
        if not holds(found) and at(found, "reason") != "ScalingDisabled":
            return waits(word(at(found, "reason"), f"Not{kind}"), f"it cannot scale: {quoted(found)}")
    return ready("it can scale")


def _disruption_budget(obj: Any) -> Readiness:
    if (late := unobserved(obj)) is not None:
        return late
    found = condition(obj, "DisruptionAllowed")
    if at(found, "reason") == "SyncFailed":
        return waits("SyncFailed", f"its Pods cannot be counted: {quoted(found)}")
    allowed = number(obj, "status", "disruptions_allowed")
    return ready(f"{allowed} {'disruption is' if allowed == 1 else 'disruptions are'} allowed")


def _signing_request(obj: Any) -> Readiness:
    for kind, words in (("Denied", "it was denied"), ("Failed", "no certificate could be issued")):
        found = condition(obj, kind)
        if holds(found):
            return failed(word(at(found, "reason"), kind), _said(found, words))
    if not holds(condition(obj, "Approved")):
        return waits("NotApproved", "it is not approved yet")
    if not at(obj, "status", "certificate"):
        return waits("NotIssued", "it is approved, but its certificate is not issued yet")
    return ready("its certificate is issued", reason="Issued")


def _resource_claim(obj: Any) -> Readiness:
    if at(obj, "status", "allocation") is None:
        return waits("Pending", "no device is allocated yet; that happens when a Pod that uses the claim is scheduled")
    return ready("its devices are allocated", reason="Allocated")


def _attachment(obj: Any) -> Readiness:
    if at(obj, "status", "attached"):
        return ready("the volume is attached", reason="Attached")
    said = one_line(at(obj, "status", "attach_error", "message"))
    return waits("NotAttached", f"the volume is not attached{f': {said}' if said else ' yet'}")


#: The rules of built-in kinds, for all versions, that check more than existence.
RULES: Final[dict[tuple[str, str], Rule]] = {
    ("", "Namespace"): _namespace,
    ("", "Node"): _condition_true("Ready", "it is not ready"),
    ("", "PersistentVolume"): _volume,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Pod"): pod,
    ("", "ReplicationController"): replica_set,
    ("", "Service"): _service,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _crd,
    ("apiregistration.k8s.io", "APIService"): _condition_true("Available", "it is not available"),
    ("apps", "DaemonSet"): daemon_set,
    ("apps", "Deployment"): deployment,
    ("apps", "ReplicaSet"): replica_set,
    ("apps", "StatefulSet"): stateful_set,
    ("autoscaling", "HorizontalPodAutoscaler"): _autoscaler,
    ("batch", "CronJob"): cron_job,
    ("batch", "Job"): job,
    ("certificates.k8s.io", "CertificateSigningRequest"): _signing_request,
    ("networking.k8s.io", "ServiceCIDR"): _condition_true("Ready", "it is not ready"),
    ("policy", "PodDisruptionBudget"): _disruption_budget,
    ("resource.k8s.io", "ResourceClaim"): _resource_claim,
    ("storage.k8s.io", "VolumeAttachment"): _attachment,
}

#: Other kinds of these groups are ready when they exist, whatever their conditions.
BUILT_IN_GROUPS: Final = frozenset(group for group, _ in index.MODULES.values())


def rule_of(group: str, kind: str) -> Rule:
    """The rule of a kind."""
    return RULES.get((group, kind)) or (exists if group in BUILT_IN_GROUPS else custom)
