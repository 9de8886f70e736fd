"""Objects: kinds, metadata, typed resources, and the values inside them. Pure: no IO, no clock, no randomness.

Guarantees
- **No lost fields.** An object that was read and is written back keeps every field its type does not declare, also
  after `copy`, `deepcopy`, `replace`, pickling, or moving a part of it into another object.
- **Unset is not default.** Unset fields are not sent; set fields are sent, even if they equal the default.
- **Lenient decoding, strict validation.** Any object a server stores can be read, whatever a type requires of new ones.
"""

from msgspec import UNSET as UNSET, UnsetType as UnsetType

from steersman.objects.conditions import (
    Condition as Condition,
    find_condition as find_condition,
    is_true as is_true,
    set_condition as set_condition,
)
from steersman.objects.difference import (
    as_read as as_read,
    differing_fields as differing_fields,
    encode as encode,
    fingerprint as fingerprint,
    same_json as same_json,
    to_json as to_json,
)
from steersman.objects.document import (
    Tree as Tree,
    decode as decode,
    decode_custom as decode_custom,
    decode_manifest as decode_manifest,
    decoder_for as decoder_for,
    encode_custom as encode_custom,
    is_partial as is_partial,
    origin_of as origin_of,
    raw_of as raw_of,
)
from steersman.objects.hints import (
    StructShape as StructShape,
    declared_hints as declared_hints,
    field_shapes as field_shapes,
    is_struct as is_struct,
    loosen as loosen,
    structs_in as structs_in,
    unwrap as unwrap,
    wire_names as wire_names,
)
from steersman.objects.identity import (
    GroupKind as GroupKind,
    GroupVersion as GroupVersion,
    GroupVersionKind as GroupVersionKind,
    GroupVersionResource as GroupVersionResource,
    Key as Key,
)
from steersman.objects.int_or_string import IntOrString as IntOrString, scaled_value as scaled_value
from steersman.objects.metadata import (
    SERVER_BOOKKEEPING as SERVER_BOOKKEEPING,
    SERVER_METADATA as SERVER_METADATA,
    ListMeta as ListMeta,
    ManagedFieldsEntry as ManagedFieldsEntry,
    ObjectMeta as ObjectMeta,
    OwnerReference as OwnerReference,
)
from steersman.objects.misuse import nearest as nearest, similar_names as similar_names
from steersman.objects.options import (
    PrinterColumn as PrinterColumn,
    ResourceOptions as ResourceOptions,
    ScaleSubresource as ScaleSubresource,
    Scope as Scope,
    plural_of as plural_of,
)
from steersman.objects.owners import (
    check_cluster_scoped as check_cluster_scoped,
    controller_of as controller_of,
    hashed_name as hashed_name,
    is_manager_of as is_manager_of,
    is_owned_by as is_owned_by,
    owner_reference as owner_reference,
    set_owner as set_owner,
)
from steersman.objects.quantity import Quantity as Quantity
from steersman.objects.resource import (
    Object as Object,
    PartialObjectMetadata as PartialObjectMetadata,
    Resource as Resource,
    Spec as Spec,
    Status as Status,
)
from steersman.objects.reviews import (
    JSON_PATCH_TYPE as JSON_PATCH_TYPE,
    AdmissionOperation as AdmissionOperation,
    AdmissionRequest as AdmissionRequest,
    AdmissionResponse as AdmissionResponse,
    AdmissionReview as AdmissionReview,
    ConversionRequest as ConversionRequest,
    ConversionResponse as ConversionResponse,
    ConversionReview as ConversionReview,
    UserInfo as UserInfo,
)
from steersman.objects.selectors import (
    FieldSelector as FieldSelector,
    LabelRequirement as LabelRequirement,
    Selector as Selector,
    check_equalities as check_equalities,
)
from steersman.objects.struct import Struct as Struct, field as field, replace as replace, wire_name as wire_name
from steersman.objects.time import (
    MicroTime as MicroTime,
    format_duration as format_duration,
    format_time as format_time,
    parse_duration as parse_duration,
    parse_time as parse_time,
)
from steersman.objects.unstructured import (
    AnyObject as AnyObject,
    Kind as Kind,
    Unstructured as Unstructured,
    encode_any as encode_any,
    has_status_subresource as has_status_subresource,
    kind_name as kind_name,
    raw_bytes as raw_bytes,
    read_in_part as read_in_part,
    resource_version_of as resource_version_of,
    tree_as_read as tree_as_read,
    tree_of as tree_of,
    uid_of as uid_of,
    version_number as version_number,
    was_read as was_read,
)

__all__ = [
    "Condition",
    "IntOrString",
    "ListMeta",
    "ManagedFieldsEntry",
    "MicroTime",
    "Object",
    "ObjectMeta",
    "OwnerReference",
    "PartialObjectMetadata",
    "PrinterColumn",
    "Quantity",
    "ScaleSubresource",
    "Selector",
    "Struct",
    "controller_of",
    "decode",
    "encode",
    "field",
    "hashed_name",
    "is_owned_by",
    "is_true",
    "owner_reference",
    "parse_duration",
    "replace",
]
