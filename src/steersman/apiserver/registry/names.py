"""The rules for names, labels and keys, for the rest of the registry."""

from steersman.schemas.names import (
    dns_1035_label,
    dns_label,
    dns_subdomain,
    dns_subdomain_with_underscores,
    expected,
    label_value,
    path_segment,
    qualified_name,
    too_long,
)

__all__ = [
    "dns_1035_label",
    "dns_label",
    "dns_subdomain",
    "dns_subdomain_with_underscores",
    "expected",
    "label_value",
    "path_segment",
    "qualified_name",
    "too_long",
]
