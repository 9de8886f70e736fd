"""Names of resources such as cpu, and the rules for each."""

from __future__ import annotations

from steersman.objects import Quantity
from steersman.schemas.names import qualified_name

COMPUTE = frozenset({"cpu", "memory"})
_CONTAINER = frozenset({"cpu", "memory", "ephemeral-storage"})
_COUNTED = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
_STANDARD = (
    _CONTAINER
    | _COUNTED
    | {f"{part}.{name}" for part in ("requests", "limits") for name in _CONTAINER}
    | {"storage", "requests.storage"}
)
_HUGE = "hugepages-"


def is_huge_page(name: str) -> bool:
    """Whether it is a huge page size."""
    return name.startswith(_HUGE)


def is_native(name: str) -> bool:
    """Whether it is one of Kubernetes' own."""
    return "/" not in name or "kubernetes.io/" in name


def may_be_overcommitted(name: str) -> bool:
    """Whether it can be overcommitted."""
    return is_native(name) and not is_huge_page(name)


def is_extended(name: str) -> bool:
    """Whether it is an extended resource, such as a vendor's device."""
    return not is_native(name) and not name.startswith("requests.") and not qualified_name(f"requests.{name}")


def is_whole(name: str) -> bool:
    """Whether it is counted in integers."""
    return name in _COUNTED or is_extended(name)


def is_standard(name: str) -> bool:
    """Whether it is a standard resource without a domain."""
    return name in _STANDARD or name.startswith((_HUGE, f"requests.{_HUGE}"))


def is_for_containers(name: str) -> bool:
    """Whether a container may request it by a name without a domain."""
    return name in _CONTAINER or is_huge_page(name)


def fits_pages(name: str, amount: Quantity) -> bool:
    """Whether an amount is a whole number of pages."""
    size = Quantity(name.removeprefix(_HUGE))
    if not size.is_valid() or size <= 0 or size.milli_value() % 1000:
        return False
    return amount.value() % size.value() == 0
