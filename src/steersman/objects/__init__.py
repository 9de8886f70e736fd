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
from steersman.objects.difference import as_read as as_read, encode as encode, to_json as to_json
from steersman.objects.document import (
    decode as decode,
    is_partial as is_partial,
    origin_of as origin_of,
    raw_of as raw_of,
)
from steersman.objects.identity import (
    GroupKind as GroupKind,
    GroupVersion as GroupVersion,
    GroupVersionKind as GroupVersionKind,
    GroupVersionResource as GroupVersionResource,
    Key as Key,
)
from steersman.objects.intorstring import IntOrString as IntOrString, scaled_value as scaled_value
from steersman.objects.metadata import (
    ListMeta as ListMeta,
    ManagedFieldsEntry as ManagedFieldsEntry,
    ObjectMeta as ObjectMeta,
    OwnerReference as OwnerReference,
)
from steersman.objects.options import (
    PrinterColumn as PrinterColumn,
    ResourceOptions as ResourceOptions,
    Scale as Scale,
    Scope as Scope,
)
from steersman.objects.owners import (
    controller_of as controller_of,
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
from steersman.objects.scheme import Scheme as Scheme
from steersman.objects.selectors import FieldSelector as FieldSelector, Selector as Selector
from steersman.objects.struct import Struct as Struct, field as field, replace as replace
from steersman.objects.time import (
    MicroTime as MicroTime,
    format_duration as format_duration,
    format_time as format_time,
    parse_duration as parse_duration,
    parse_time as parse_time,
)
from steersman.objects.unstructured import Kind as Kind, Unstructured as Unstructured
