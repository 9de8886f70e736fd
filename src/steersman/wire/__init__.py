"""Wire: the formats of the Kubernetes API. Pure: builds requests and parses responses, sends nothing.

Guarantees
- Client and server share this code, so they cannot drift apart: each side parses what the other prints.
- List items and watched objects are not decoded here; each is passed on as a copy of its own bytes.
- Garbage is a typed error within bounded memory and linear time, never a hang and never a guess.
"""

from steersman.wire.content import (
    AGGREGATED_DISCOVERY as AGGREGATED_DISCOVERY,
    APPLY_PATCH as APPLY_PATCH,
    JSON as JSON,
    JSON_PATCH as JSON_PATCH,
    MERGE_PATCH as MERGE_PATCH,
    PARTIAL_OBJECT_METADATA as PARTIAL_OBJECT_METADATA,
    PARTIAL_OBJECT_METADATA_LIST as PARTIAL_OBJECT_METADATA_LIST,
    PROTOBUF as PROTOBUF,
    STRATEGIC_MERGE_PATCH as STRATEGIC_MERGE_PATCH,
    YAML as YAML,
    MediaType as MediaType,
    parse_accept as parse_accept,
    parse_media_type as parse_media_type,
)
from steersman.wire.discovery import (
    ApiResource as ApiResource,
    ApiSubresource as ApiSubresource,
    DiscoveryResult as DiscoveryResult,
    GroupList as GroupList,
    parse_aggregated_discovery as parse_aggregated_discovery,
    parse_group_list as parse_group_list,
    parse_resource_list as parse_resource_list,
)
from steersman.wire.errors import (
    describe_request as describe_request,
    error_from_frame as error_from_frame,
    error_from_response as error_from_response,
    parse_warnings as parse_warnings,
    print_warning as print_warning,
    raise_for_failure as raise_for_failure,
)
from steersman.wire.frames import (
    MAX_FRAME as MAX_FRAME,
    FrameSplitter as FrameSplitter,
    FrameType as FrameType,
    WatchFrame as WatchFrame,
    decode_frame as decode_frame,
    encode_frame as encode_frame,
)
from steersman.wire.lists import (
    PageCount as PageCount,
    RawList as RawList,
    check_list_kind as check_list_kind,
    key_of as key_of,
    split_list as split_list,
)
from steersman.wire.metadata import WireManager as WireManager, WireMetadata as WireMetadata, WireOwner as WireOwner
from steersman.wire.options import (
    CollectionOptions as CollectionOptions,
    DeleteOptions as DeleteOptions,
    FieldValidation as FieldValidation,
    InvalidOption as InvalidOption,
    ListOptions as ListOptions,
    PatchOptions as PatchOptions,
    Preconditions as Preconditions,
    PropagationPolicy as PropagationPolicy,
    ResourceVersionMatch as ResourceVersionMatch,
    WatchOptions as WatchOptions,
    WriteOptions as WriteOptions,
    first_values as first_values,
    is_watch as is_watch,
)
from steersman.wire.paths import (
    ResourcePath as ResourcePath,
    group_version_path as group_version_path,
    is_segment as is_segment,
    parse_path as parse_path,
    quote_segment as quote_segment,
)
from steersman.wire.requests import (
    WRITE_VERBS as WRITE_VERBS,
    HttpRequest as HttpRequest,
    Pairs as Pairs,
    parse_query as parse_query,
    print_query as print_query,
)
from steersman.wire.resource_names import (
    find_resources as find_resources,
    near_kinds as near_kinds,
    near_names as near_names,
    preferred_resources as preferred_resources,
)
from steersman.wire.shards import (
    HASHES as HASHES,
    SHARD_GATE as SHARD_GATE,
    SHARD_PARAMETER as SHARD_PARAMETER,
    HashRange as HashRange,
    InvalidShardSelector as InvalidShardSelector,
    ShardField as ShardField,
    ShardSelector as ShardSelector,
    namespace_hash as namespace_hash,
    read_shard_bound as read_shard_bound,
    read_shard_field as read_shard_field,
    shard_hash as shard_hash,
)
from steersman.wire.table import (
    Table as Table,
    TableColumn as TableColumn,
    TableRow as TableRow,
    TableRowCondition as TableRowCondition,
    print_row as print_row,
    print_table as print_table,
)
from steersman.wire.version import ServerVersion as ServerVersion, parse_version as parse_version

#: Programs import nothing from this room: its names are for other rooms.
__all__: list[str] = []
