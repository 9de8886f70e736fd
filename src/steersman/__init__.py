"""Steersman: declare it, and Steersman keeps it true.

Typed resources, a client for any Kubernetes API server, and the real API server in your tests. A name is imported from
its room when it is first used, so that nobody waits for what they do not use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from steersman._version import __version__

if TYPE_CHECKING:
    from steersman.client import (
        Added as Added,
    )
    from steersman.client import (
        Bookmark as Bookmark,
    )
    from steersman.client import (
        Client as Client,
    )
    from steersman.client import (
        Config as Config,
    )
    from steersman.client import (
        Deleted as Deleted,
    )
    from steersman.client import (
        ListOf as ListOf,
    )
    from steersman.client import (
        MergePatch as MergePatch,
    )
    from steersman.client import (
        Modified as Modified,
    )
    from steersman.client import (
        Outcome as Outcome,
    )
    from steersman.client import (
        RateLimit as RateLimit,
    )
    from steersman.client import (
        RetryPolicy as RetryPolicy,
    )
    from steersman.client import (
        StrategicPatch as StrategicPatch,
    )
    from steersman.client import (
        Undecodable as Undecodable,
    )
    from steersman.client import (
        WatchEvent as WatchEvent,
    )
    from steersman.client import (
        retry_on_conflict as retry_on_conflict,
    )
    from steersman.objects import (
        AmbiguousItem as AmbiguousItem,
    )
    from steersman.objects import (
        AtLeastOneOf as AtLeastOneOf,
    )
    from steersman.objects import (
        AtMostOneOf as AtMostOneOf,
    )
    from steersman.objects import (
        Condition as Condition,
    )
    from steersman.objects import (
        Description as Description,
    )
    from steersman.objects import (
        EmbeddedResource as EmbeddedResource,
    )
    from steersman.objects import (
        ExactlyOneOf as ExactlyOneOf,
    )
    from steersman.objects import (
        Example as Example,
    )
    from steersman.objects import (
        Format as Format,
    )
    from steersman.objects import (
        GroupKind as GroupKind,
    )
    from steersman.objects import (
        GroupVersionKind as GroupVersionKind,
    )
    from steersman.objects import (
        GroupVersionResource as GroupVersionResource,
    )
    from steersman.objects import (
        Immutable as Immutable,
    )
    from steersman.objects import (
        IntOrString as IntOrString,
    )
    from steersman.objects import (
        Key as Key,
    )
    from steersman.objects import (
        Kind as Kind,
    )
    from steersman.objects import (
        ListAtomic as ListAtomic,
    )
    from steersman.objects import (
        ListMap as ListMap,
    )
    from steersman.objects import (
        ListSet as ListSet,
    )
    from steersman.objects import (
        MapAtomic as MapAtomic,
    )
    from steersman.objects import (
        Maximum as Maximum,
    )
    from steersman.objects import (
        MaxItems as MaxItems,
    )
    from steersman.objects import (
        MaxLength as MaxLength,
    )
    from steersman.objects import (
        MaxProperties as MaxProperties,
    )
    from steersman.objects import (
        MicroTime as MicroTime,
    )
    from steersman.objects import (
        Minimum as Minimum,
    )
    from steersman.objects import (
        MinItems as MinItems,
    )
    from steersman.objects import (
        MinLength as MinLength,
    )
    from steersman.objects import (
        MinProperties as MinProperties,
    )
    from steersman.objects import (
        MultipleOf as MultipleOf,
    )
    from steersman.objects import (
        Nullable as Nullable,
    )
    from steersman.objects import (
        Object as Object,
    )
    from steersman.objects import (
        ObjectMeta as ObjectMeta,
    )
    from steersman.objects import (
        OwnerReference as OwnerReference,
    )
    from steersman.objects import (
        PartialObjectMetadata as PartialObjectMetadata,
    )
    from steersman.objects import (
        Pattern as Pattern,
    )
    from steersman.objects import (
        PreserveUnknownFields as PreserveUnknownFields,
    )
    from steersman.objects import (
        PrinterColumn as PrinterColumn,
    )
    from steersman.objects import (
        Quantity as Quantity,
    )
    from steersman.objects import (
        Resource as Resource,
    )
    from steersman.objects import (
        Rule as Rule,
    )
    from steersman.objects import (
        Scale as Scale,
    )
    from steersman.objects import (
        Scheme as Scheme,
    )
    from steersman.objects import (
        Spec as Spec,
    )
    from steersman.objects import (
        StatusOf as StatusOf,
    )
    from steersman.objects import (
        Struct as Struct,
    )
    from steersman.objects import (
        Title as Title,
    )
    from steersman.objects import (
        Unstructured as Unstructured,
    )
    from steersman.objects import (
        field as field,
    )
    from steersman.objects import (
        replace as replace,
    )
    from steersman.objects.errors import (
        AlreadyExists as AlreadyExists,
    )
    from steersman.objects.errors import (
        ApiError as ApiError,
    )
    from steersman.objects.errors import (
        Conflict as Conflict,
    )
    from steersman.objects.errors import (
        Expired as Expired,
    )
    from steersman.objects.errors import (
        Forbidden as Forbidden,
    )
    from steersman.objects.errors import (
        Invalid as Invalid,
    )
    from steersman.objects.errors import (
        NotFound as NotFound,
    )
    from steersman.objects.errors import (
        OutcomeUnknown as OutcomeUnknown,
    )
    from steersman.objects.errors import (
        StatusError as StatusError,
    )
    from steersman.patches import (
        JsonPatch as JsonPatch,
    )
    from steersman.schemas import (
        crd_for as crd_for,
    )
    from steersman.schemas import (
        crd_yaml as crd_yaml,
    )
    from steersman.schemas import (
        validate as validate,
    )

#: Where each public name lives.
_ROOM_OF = {
    "Added": "client",
    "AlreadyExists": "objects.errors",
    "AmbiguousItem": "objects",
    "ApiError": "objects.errors",
    "AtLeastOneOf": "objects",
    "AtMostOneOf": "objects",
    "Bookmark": "client",
    "Client": "client",
    "Condition": "objects",
    "Config": "client",
    "Conflict": "objects.errors",
    "Deleted": "client",
    "Description": "objects",
    "EmbeddedResource": "objects",
    "ExactlyOneOf": "objects",
    "Example": "objects",
    "Expired": "objects.errors",
    "Forbidden": "objects.errors",
    "Format": "objects",
    "GroupKind": "objects",
    "GroupVersionKind": "objects",
    "GroupVersionResource": "objects",
    "Immutable": "objects",
    "IntOrString": "objects",
    "Invalid": "objects.errors",
    "JsonPatch": "patches",
    "Key": "objects",
    "Kind": "objects",
    "ListAtomic": "objects",
    "ListMap": "objects",
    "ListOf": "client",
    "ListSet": "objects",
    "MapAtomic": "objects",
    "MaxItems": "objects",
    "MaxLength": "objects",
    "MaxProperties": "objects",
    "Maximum": "objects",
    "MergePatch": "client",
    "MicroTime": "objects",
    "MinItems": "objects",
    "MinLength": "objects",
    "MinProperties": "objects",
    "Minimum": "objects",
    "Modified": "client",
    "MultipleOf": "objects",
    "NotFound": "objects.errors",
    "Nullable": "objects",
    "Object": "objects",
    "ObjectMeta": "objects",
    "Outcome": "client",
    "OutcomeUnknown": "objects.errors",
    "OwnerReference": "objects",
    "PartialObjectMetadata": "objects",
    "Pattern": "objects",
    "PreserveUnknownFields": "objects",
    "PrinterColumn": "objects",
    "Quantity": "objects",
    "RateLimit": "client",
    "Resource": "objects",
    "RetryPolicy": "client",
    "Rule": "objects",
    "Scale": "objects",
    "Scheme": "objects",
    "Spec": "objects",
    "StatusError": "objects.errors",
    "StatusOf": "objects",
    "StrategicPatch": "client",
    "Struct": "objects",
    "Title": "objects",
    "Undecodable": "client",
    "Unstructured": "objects",
    "WatchEvent": "client",
    "crd_for": "schemas",
    "crd_yaml": "schemas",
    "field": "objects",
    "replace": "objects",
    "retry_on_conflict": "client",
    "validate": "schemas",
}

__all__ = [
    "Added",
    "AlreadyExists",
    "AmbiguousItem",
    "ApiError",
    "AtLeastOneOf",
    "AtMostOneOf",
    "Bookmark",
    "Client",
    "Condition",
    "Config",
    "Conflict",
    "Deleted",
    "Description",
    "EmbeddedResource",
    "ExactlyOneOf",
    "Example",
    "Expired",
    "Forbidden",
    "Format",
    "GroupKind",
    "GroupVersionKind",
    "GroupVersionResource",
    "Immutable",
    "IntOrString",
    "Invalid",
    "JsonPatch",
    "Key",
    "Kind",
    "ListAtomic",
    "ListMap",
    "ListOf",
    "ListSet",
    "MapAtomic",
    "MaxItems",
    "MaxLength",
    "MaxProperties",
    "Maximum",
    "MergePatch",
    "MicroTime",
    "MinItems",
    "MinLength",
    "MinProperties",
    "Minimum",
    "Modified",
    "MultipleOf",
    "NotFound",
    "Nullable",
    "Object",
    "ObjectMeta",
    "Outcome",
    "OutcomeUnknown",
    "OwnerReference",
    "PartialObjectMetadata",
    "Pattern",
    "PreserveUnknownFields",
    "PrinterColumn",
    "Quantity",
    "RateLimit",
    "Resource",
    "RetryPolicy",
    "Rule",
    "Scale",
    "Scheme",
    "Spec",
    "StatusError",
    "StatusOf",
    "StrategicPatch",
    "Struct",
    "Title",
    "Undecodable",
    "Unstructured",
    "WatchEvent",
    "__version__",
    "crd_for",
    "crd_yaml",
    "field",
    "replace",
    "retry_on_conflict",
    "validate",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its room."""
    room = _ROOM_OF.get(name)
    if room is None:
        raise AttributeError(f"module 'steersman' has no attribute {name!r}")
    value = getattr(import_module(f"steersman.{room}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
