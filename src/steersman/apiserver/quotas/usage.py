"""The quota usage of an object: one rule for most resources, and special rules for Services and claims."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from steersman.apiserver.quotas.amounts import Amounts, added, highest
from steersman.apiserver.quotas.scopes import selects
from steersman.apiserver.registry.builtin.types.resource_names import is_native
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, metadata, subtree
from steersman.objects import Quantity

_ONE: Final = Quantity(1)
_STORAGE_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_OF_STORAGE_CLASS: Final = ".storageclass.storage.k8s.io/"
_CLAIMS: Final = ("persistentvolumeclaims", "requests.storage")
_OF_DEVICE_CLASS: Final = ".deviceclass.resource.k8s.io/devices"
_DEVICE_CLASS: Final = "deviceclass.resource.kubernetes.io/"
#: The number of devices that count for a claim that takes all devices of a class.
_ALL_DEVICES: Final = 32


def count_name(group: str, resource: str) -> str:
    """The name of the quota limit on the number of objects of a resource."""
    return f"count/{resource}.{group}" if group else f"count/{resource}"


def is_extended_request(name: str) -> bool:
    """Whether a limit with this name is on the requests of an extended resource."""
    return name.startswith("requests.") and (not is_native(name) or name.startswith(f"requests.{_DEVICE_CLASS}"))


class UsageRules:
    """The rules for most resources: each object counts as one, under fixed names and in no scope."""

    def __init__(self, *names: str) -> None:
        self._names = frozenset(names)

    def tracked(self, names: Iterable[str]) -> set[str]:
        """The names of limits that these objects count toward."""
        return set(names) & self._names

    def is_in_scope(self, scope: Tree, obj: Tree) -> bool:
        """Whether an object is in a scope of a quota."""
        del scope, obj
        return False

    def missing(self, names: set[str], obj: Tree) -> str:
        """The message about what an object must specify for a quota; empty if it specifies enough."""
        del names, obj
        return ""

    def usage(self, obj: Tree) -> Amounts:
        """The usage of an object, by name."""
        del obj
        return dict.fromkeys(self._names, _ONE)


class ServiceRules(UsageRules):
    """Services also use node ports and load balancers."""

    def __init__(self) -> None:
        super().__init__("count/services", "services", "services.nodeports", "services.loadbalancers")

    def usage(self, obj: Tree) -> Amounts:
        spec = subtree(obj, "spec")
        ports, type_ = items(spec, "ports"), spec.get("type")
        used = {"count/services": _ONE, "services": _ONE}
        if type_ == "LoadBalancer":
            used["services.loadbalancers"] = _ONE
            if spec.get("allocateLoadBalancerNodePorts") is False:
                ports = [port for port in ports if port.get("nodePort")]
        if type_ in {"NodePort", "LoadBalancer"}:
            used["services.nodeports"] = Quantity(len(ports))
        return used


class VolumeClaimRules(UsageRules):
    """PersistentVolumeClaims also use storage, in total and of their class."""

    def tracked(self, names: Iterable[str]) -> set[str]:
        endings = tuple(f"{_OF_STORAGE_CLASS}{name}" for name in _CLAIMS)
        fixed = {"count/persistentvolumeclaims", *_CLAIMS}
        return {name for name in names if name in fixed or name.endswith(endings)}

    def is_in_scope(self, scope: Tree, obj: Tree) -> bool:
        """Whether the scope selects a VolumeAttributesClass of the claim: in its spec, current or target."""
        if scope["scopeName"] != "VolumeAttributesClass":
            return False
        status = subtree(obj, "status")
        names: set[str] = {
            subtree(obj, "spec").get("volumeAttributesClassName") or "",
            status.get("currentVolumeAttributesClassName") or "",
            inner(status, "modifyVolumeStatus").get("targetVolumeAttributesClassName") or "",
        }
        return any(selects(scope, name) for name in names - {""} or {""})

    def usage(self, obj: Tree) -> Amounts:
        spec = subtree(obj, "spec")
        annotations = inner(metadata(obj), "annotations")
        class_: str = annotations.get(_STORAGE_CLASS_ANNOTATION, spec.get("storageClassName")) or ""
        used = {"persistentvolumeclaims": _ONE, "count/persistentvolumeclaims": _ONE}
        asked: str | None = subtree(spec, "resources", "requests").get("storage")
        if asked is not None:
            allocated: str = subtree(obj, "status", "allocatedResources").get("storage", "0")
            amount = max(Quantity(asked), Quantity(allocated))
            used["requests.storage"] = (
                amount if not amount % 1 else Quantity.exact(amount.value(), format=amount.format)
            )
        if class_:
            used |= {f"{class_}{_OF_STORAGE_CLASS}{name}": used[name] for name in _CLAIMS if name in used}
        return used


class DeviceClaimRules(UsageRules):
    """ResourceClaims also use devices of their classes, which can count as extended resources too."""

    def __init__(self, extended: dict[str, str]) -> None:
        """``extended`` maps device classes to the names of their extended resources, or to an empty name."""
        super().__init__("count/resourceclaims.resource.k8s.io")
        self._extended = extended

    def tracked(self, names: Iterable[str]) -> set[str]:
        devices = {f"requests.{_DEVICE_CLASS}{name}" for name in self._extended}
        devices |= {f"requests.{name}" for name in self._extended.values() if name}
        names = set(names)
        own = {name for name in names if name.endswith(_OF_DEVICE_CLASS)}
        return super().tracked(names) | own | {name for name in names & devices if is_extended_request(name)}

    def usage(self, obj: Tree) -> Amounts:
        by_class: Amounts = {}
        for request in items(subtree(obj, "spec", "devices"), "requests"):
            # Of several alternatives, the highest count for each class applies.
            options = items(request, "firstAvailable") or [inner(request, "exactly")]
            by_class = added(by_class, highest(map(_devices, options)))
        used = super().usage(obj)
        for class_, amount in by_class.items():
            used[f"{class_}{_OF_DEVICE_CLASS}"] = used[f"requests.{_DEVICE_CLASS}{class_}"] = amount
            if self._extended.get(class_):
                used[f"requests.{self._extended[class_]}"] = amount
        return used


def _devices(request: Tree) -> Amounts:
    mode = request.get("allocationMode")
    number = _ALL_DEVICES if mode == "All" else request.get("count", 0) if mode == "ExactCount" else 0
    return {request.get("deviceClassName", ""): Quantity(number)}
