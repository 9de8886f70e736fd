"""Client: reads and writes objects of any kind, typed or untyped, on any Kubernetes API server.

Guarantees
- **No lost fields.** A write keeps fields that our types do not declare. `update` rejects a partially read object.
- **No silent repetition.** The client retries a write only if the server certainly did not process it. A write that may
  have happened raises `OutcomeUnknown`.
- **Every failure is an `ApiError`**, in bounded time. Its message names the operation, the object and the next step.
- **Secrets are hidden** in logs, reprs and messages.
- Tested on Kubernetes 1.37. Works from 1.27 on, except watches with initial events, which need 1.32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names
from steersman.client.bindings import VerbCall as VerbCall, is_gone as is_gone
from steersman.client.client import Client as Client, ClientOptions as ClientOptions, Connecting as Connecting
from steersman.client.configuration.bounded_file import read_bounded_file as read_bounded_file
from steersman.client.configuration.config import (
    BasicAuth as BasicAuth,
    BearerToken as BearerToken,
    Config as Config,
    ExecPlugin as ExecPlugin,
    Impersonation as Impersonation,
    TokenFile as TokenFile,
)
from steersman.client.configuration.secrecy import Hidden as Hidden
from steersman.client.credentials.credentials import (
    Credentials as Credentials,
    ImpersonatingCredentials as ImpersonatingCredentials,
    StaticCredentials as StaticCredentials,
)
from steersman.client.credentials.identity import credentials_for as credentials_for
from steersman.client.discovery import Discovery as Discovery
from steersman.client.patch_documents import (
    MergePatch as MergePatch,
    Patch as Patch,
    StrategicPatch as StrategicPatch,
)
from steersman.client.request_sender import RequestObserver as RequestObserver
from steersman.client.results import (
    Added as Added,
    Bookmark as Bookmark,
    Deleted as Deleted,
    ListOf as ListOf,
    Modified as Modified,
    OperationResult as OperationResult,
    ServerWarning as ServerWarning,
    Undecodable as Undecodable,
    WatchEvent as WatchEvent,
)
from steersman.client.retries import (
    RateLimit as RateLimit,
    RetryPolicy as RetryPolicy,
    retry_on_conflict as retry_on_conflict,
)
from steersman.client.selections import (
    KeyLike as KeyLike,
    ListSelection as ListSelection,
    WatchSelection as WatchSelection,
)
from steersman.client.stages.applies import ApplyStage as ApplyStage
from steersman.client.stages.observers import (
    ApplyMemory as ApplyMemory,
    Before as Before,
    CachedForm as CachedForm,
    Intent as Intent,
    ObjectCache as ObjectCache,
    Write as Write,
    WriteObserver as WriteObserver,
    nothing_before as nothing_before,
)
from steersman.client.stages.pipeline import Pipeline as Pipeline
from steersman.client.stages.prepared_apply import (
    NO_VERSION as NO_VERSION,
    PreparedApply as PreparedApply,
    prepare_apply as prepare_apply,
    start_of_metadata as start_of_metadata,
)
from steersman.client.stages.scoped_reads import KindScope as KindScope, ScopedReads as ScopedReads
from steersman.client.transports import transport_for as transport_for
from steersman.client.unserved_kinds import kind_not_served as kind_not_served
from steersman.client.verbs.reader import MetadataReader as MetadataReader, Reader as Reader
from steersman.client.verbs.verbs import Deletion as Deletion, PatchTarget as PatchTarget, Verbs as Verbs
from steersman.client.watches import Watch as Watch

# Imported on first use: a client in a Pod, or one with an explicit Config, reads no kubeconfig.
if TYPE_CHECKING:
    from steersman.client.applied_intent import (
        extract_applied as extract_applied,
        intent_of as intent_of,
        merge_schema_of as merge_schema_of,
    )
    from steersman.client.configuration.discovery_order import discover_config as discover_config
    from steersman.client.configuration.kubeconfig import (
        Kubeconfig as Kubeconfig,
        load_kubeconfig as load_kubeconfig,
        parse_kubeconfig as parse_kubeconfig,
        read_kubeconfig as read_kubeconfig,
    )
    from steersman.client.configuration.pod_config import in_cluster_config as in_cluster_config, in_pod as in_pod
    from steersman.client.events.recorder import EventRecorder as EventRecorder, EventStatistics as EventStatistics
    from steersman.client.raw_reads import RawReads as RawReads, RawWatch as RawWatch
    from steersman.client.redaction import redacted_text as redacted_text
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.client.applied_intent": ["extract_applied", "intent_of", "merge_schema_of"],
            "steersman.client.configuration.discovery_order": ["discover_config"],
            "steersman.client.configuration.kubeconfig": [
                "Kubeconfig",
                "load_kubeconfig",
                "parse_kubeconfig",
                "read_kubeconfig",
            ],
            "steersman.client.configuration.pod_config": ["in_cluster_config", "in_pod"],
            "steersman.client.events.recorder": ["EventRecorder", "EventStatistics"],
            "steersman.client.raw_reads": ["RawReads", "RawWatch"],
            "steersman.client.redaction": ["redacted_text"],
        },
    )

__all__ = [
    "Added",
    "BearerToken",
    "Bookmark",
    "ClientOptions",
    "Config",
    "Deleted",
    "ExecPlugin",
    "Impersonation",
    "ListOf",
    "Modified",
    "OperationResult",
    "RateLimit",
    "RetryPolicy",
    "ServerWarning",
    "StrategicPatch",
    "TokenFile",
    "Undecodable",
    "Watch",
    "WatchEvent",
]
