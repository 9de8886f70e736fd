"""Client: reads and writes objects of any kind, typed or untyped, on any Kubernetes API server.

Guarantees
- **No lost fields.** A write keeps fields that our types do not declare. `update` rejects a partially read object.
- **No silent repetition.** The client retries a write only if the server certainly did not process it. A write that may
  have happened raises `OutcomeUnknown`.
- **Every failure is an `ApiError`**, in bounded time. Its message names the operation, the object and the next step.
- **Secrets are hidden** in logs, reprs and messages.
- Tested on Kubernetes 1.36. Works from 1.27 on, except watches with initial events, which need 1.32.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from steersman.client.bindings import Attempt
from steersman.client.client import Client, ClientOptions, Connecting
from steersman.client.config import BasicAuth, BearerToken, Config, ExecPlugin, Impersonation, TokenFile
from steersman.client.credentials import Credentials
from steersman.client.discovery import Discovery
from steersman.client.observed_client import ObservedClient
from steersman.client.observing import Before, CachedReads, Intent, Intents, Write, WriteObserver
from steersman.client.patch_documents import MergePatch, Patch, StrategicPatch
from steersman.client.reads import ListSelection, MetadataReader, Reader, WatchSelection
from steersman.client.results import (
    Added,
    Bookmark,
    Deleted,
    ListOf,
    Modified,
    Outcome,
    ServerWarning,
    Undecodable,
    WatchEvent,
)
from steersman.client.retries import RateLimit, RetryPolicy, retry_on_conflict
from steersman.client.secrecy import Hidden
from steersman.client.session import RequestObserver
from steersman.client.watches import Watch
from steersman.client.writes import Deletion, PatchTarget

if TYPE_CHECKING:
    from steersman.client.discovery_order import discover_config
    from steersman.client.events import EventRecorder, EventStatistics
    from steersman.client.extracting import extract_applied
    from steersman.client.in_cluster import in_cluster_config
    from steersman.client.kubeconfig import Kubeconfig, load_kubeconfig, parse_kubeconfig, read_kubeconfig

#: Imported on first use: a client in a Pod, or one with an explicit Config, reads no kubeconfig.
_LATER = {
    "EventRecorder": "events",
    "EventStatistics": "events",
    "Kubeconfig": "kubeconfig",
    "discover_config": "discovery_order",
    "extract_applied": "extracting",
    "in_cluster_config": "in_cluster",
    "load_kubeconfig": "kubeconfig",
    "parse_kubeconfig": "kubeconfig",
    "read_kubeconfig": "kubeconfig",
}

__all__ = [
    "Added",
    "Attempt",
    "BasicAuth",
    "BearerToken",
    "Before",
    "Bookmark",
    "CachedReads",
    "Client",
    "ClientOptions",
    "Config",
    "Connecting",
    "Credentials",
    "Deleted",
    "Deletion",
    "Discovery",
    "EventRecorder",
    "EventStatistics",
    "ExecPlugin",
    "Hidden",
    "Impersonation",
    "Intent",
    "Intents",
    "Kubeconfig",
    "ListOf",
    "ListSelection",
    "MergePatch",
    "MetadataReader",
    "Modified",
    "ObservedClient",
    "Outcome",
    "Patch",
    "PatchTarget",
    "RateLimit",
    "Reader",
    "RequestObserver",
    "RetryPolicy",
    "ServerWarning",
    "StrategicPatch",
    "TokenFile",
    "Undecodable",
    "Watch",
    "WatchEvent",
    "WatchSelection",
    "Write",
    "WriteObserver",
    "discover_config",
    "extract_applied",
    "in_cluster_config",
    "load_kubeconfig",
    "parse_kubeconfig",
    "read_kubeconfig",
    "retry_on_conflict",
]


def __getattr__(name: str) -> Any:
    """Import rarely used names on first access."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
