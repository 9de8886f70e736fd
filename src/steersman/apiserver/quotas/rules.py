"""The usage rules of each resource."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from steersman.apiserver.quotas.pod_usage import PodRules
from steersman.apiserver.quotas.usage import (
    DeviceClaimRules,
    ServiceRules,
    UsageRules,
    VolumeClaimRules,
    count_name,
    is_extended_request,
)
from steersman.apiserver.registry.builtin.types.trees import Tree, subtree

PODS: Final = ("", "pods")
SERVICES: Final = ("", "services")
VOLUME_CLAIMS: Final = ("", "persistentvolumeclaims")
DEVICE_CLAIMS: Final = ("resource.k8s.io", "resourceclaims")
DEVICE_CLASSES: Final = ("resource.k8s.io", "deviceclasses")
#: Resources that quotas also count by their plain names, without ``count/``.
_OLD_NAMES: Final = frozenset({"configmaps", "replicationcontrollers", "resourcequotas", "secrets"})
_OWN: Final[Mapping[tuple[str, str], UsageRules]] = {
    PODS: PodRules(),
    SERVICES: ServiceRules(),
    VOLUME_CLAIMS: VolumeClaimRules(),
}


def usage_rules(name: tuple[str, str], classes: Iterable[Tree] = ()) -> UsageRules:
    """The rules of a resource, by group and name. The rules of ResourceClaims need the stored DeviceClasses."""
    if name == DEVICE_CLAIMS:
        extended = (
            (tree["metadata"]["name"], subtree(tree, "spec").get("extendedResourceName") or "") for tree in classes
        )
        return DeviceClaimRules(dict(extended))
    return _OWN.get(name) or _counting(*name)


@lru_cache(maxsize=1024)
def _counting(group: str, resource: str) -> UsageRules:
    names = [count_name(group, resource)]
    return UsageRules(*names, resource) if not group and resource in _OLD_NAMES else UsageRules(*names)


def counted_resources(limits: Iterable[str]) -> set[tuple[str, str]]:
    """The group and name of each resource whose objects count toward the limits of a quota."""
    names = set(limits)
    found = {name for name, rules in _OWN.items() if rules.tracked(names)}
    found |= {("", name) for name in names & _OLD_NAMES}
    for name in names:
        if name.startswith("count/"):
            resource, _, group = name.removeprefix("count/").partition(".")
            found.add((group, resource))
        elif is_extended_request(name) or DeviceClaimRules({}).tracked([name]):
            found.add(DEVICE_CLAIMS)
    return found
