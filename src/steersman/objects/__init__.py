"""Objects: kinds, metadata, typed resources, and the values inside them. Pure: no IO, no clock, no randomness.

Guarantees
- **No lost fields.** An object that was read and is written back keeps every field its type does not declare, also
  after `copy`, `deepcopy`, `replace`, pickling, or moving a part of it into another object.
- **Unset is not default.** Unset fields are not sent; set fields are sent, even if they equal the default.
- **Lenient decoding, strict validation.** Any object a server stores can be read, whatever a type requires of new ones.
"""

from msgspec import UNSET, UnsetType

from steersman.objects.conditions import Condition, find_condition, is_true, set_condition
from steersman.objects.difference import as_read, encode, to_json
from steersman.objects.document import decode, is_partial, origin_of, raw_of
from steersman.objects.identity import GroupKind, GroupVersion, GroupVersionKind, GroupVersionResource, Key
from steersman.objects.intorstring import IntOrString, scaled_value
from steersman.objects.metadata import ListMeta, ManagedFieldsEntry, ObjectMeta, OwnerReference
from steersman.objects.options import PrinterColumn, ResourceOptions, Scale, Scope
from steersman.objects.owners import controller_of, is_owned_by, owner_reference, set_owner
from steersman.objects.quantity import Quantity
from steersman.objects.resource import Object, PartialObjectMetadata, Resource, Spec, Status
from steersman.objects.scheme import Scheme
from steersman.objects.selectors import FieldSelector, Selector
from steersman.objects.struct import Struct, field, replace
from steersman.objects.time import MicroTime, format_duration, format_time, parse_duration, parse_time
from steersman.objects.unstructured import Kind, Unstructured

__all__ = [
    "UNSET",
    "Condition",
    "FieldSelector",
    "GroupKind",
    "GroupVersion",
    "GroupVersionKind",
    "GroupVersionResource",
    "IntOrString",
    "Key",
    "Kind",
    "ListMeta",
    "ManagedFieldsEntry",
    "MicroTime",
    "Object",
    "ObjectMeta",
    "OwnerReference",
    "PartialObjectMetadata",
    "PrinterColumn",
    "Quantity",
    "Resource",
    "ResourceOptions",
    "Scale",
    "Scheme",
    "Scope",
    "Selector",
    "Spec",
    "Status",
    "Struct",
    "UnsetType",
    "Unstructured",
    "as_read",
    "controller_of",
    "decode",
    "encode",
    "field",
    "find_condition",
    "format_duration",
    "format_time",
    "is_owned_by",
    "is_partial",
    "is_true",
    "origin_of",
    "owner_reference",
    "parse_duration",
    "parse_time",
    "raw_of",
    "replace",
    "scaled_value",
    "set_condition",
    "set_owner",
    "to_json",
]
