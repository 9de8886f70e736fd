"""The reconcilers of the controllers. Each is imported on first use, because most of them import all core kinds."""

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names

if TYPE_CHECKING:
    from steersman.controlplane.aggregated_roles import AggregatedRoles as AggregatedRoles
    from steersman.controlplane.claim_protection import ClaimProtection as ClaimProtection
    from steersman.controlplane.garbage_collector import GarbageCollector as GarbageCollector
    from steersman.controlplane.namespaces import Namespaces as Namespaces
    from steersman.controlplane.quota_usage import QuotaUsage as QuotaUsage
    from steersman.controlplane.root_ca import RootCertificates as RootCertificates
    from steersman.controlplane.service_accounts import ServiceAccounts as ServiceAccounts
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.controlplane.aggregated_roles": ["AggregatedRoles"],
            "steersman.controlplane.claim_protection": ["ClaimProtection"],
            "steersman.controlplane.garbage_collector": ["GarbageCollector"],
            "steersman.controlplane.namespaces": ["Namespaces"],
            "steersman.controlplane.quota_usage": ["QuotaUsage"],
            "steersman.controlplane.root_ca": ["RootCertificates"],
            "steersman.controlplane.service_accounts": ["ServiceAccounts"],
        },
    )
