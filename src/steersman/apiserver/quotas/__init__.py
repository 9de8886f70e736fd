"""Quotas: the plugin ResourceQuota, which charges a write to the quotas of its namespace.

Guarantees
- Concurrent writes never exceed a quota: the server stores the usage of a write before the write itself.
- A dry run changes no quota, and neither does a rejected write.
- Without a quota in the namespace, a write costs one lookup in the store's index.
"""

from steersman.apiserver.quotas.recount import recounted as recounted
from steersman.apiserver.quotas.resource_quotas import ResourceQuotas as ResourceQuotas
from steersman.apiserver.quotas.rules import DEVICE_CLASSES as DEVICE_CLASSES, counted_resources as counted_resources
