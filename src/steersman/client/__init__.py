"""Client: reading and writing objects of any kind, typed or not, on any Kubernetes API server.

Guarantees
- **No lost fields.** A write keeps what our types do not know; an object read in part is never written whole.
- **No silent repetition.** Only what the server certainly did not process is sent again. What may have happened
  raises `OutcomeUnknown`.
- **Every failure is an `ApiError`**, in bounded time, and says what was tried, on which object, and what to do next.
- **No secret is shown** in a log, a repr or a message.
- Kubernetes 1.27 and later; watches with initial events need 1.32.
"""

from steersman.client.bindings import Attempt
from steersman.client.client import Client, ClientOptions, Connecting
from steersman.client.config import BasicAuth, BearerToken, Config, ExecPlugin, Impersonation, TokenFile
from steersman.client.credentials import Credentials, CredentialsError
from steersman.client.discovery import Discovery
from steersman.client.discovery_order import discover_config
from steersman.client.in_cluster import in_cluster_config
from steersman.client.installing import NotEstablished
from steersman.client.kubeconfig import load_kubeconfig
from steersman.client.missing import KindNotServed
from steersman.client.reads import MetadataReader, Reader
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
from steersman.client.watches import Watch
from steersman.client.writes import MergePatch, NotAnIntent, PartialObject, Patch, StrategicPatch

__all__ = [
    "Added",
    "Attempt",
    "BasicAuth",
    "BearerToken",
    "Bookmark",
    "Client",
    "ClientOptions",
    "Config",
    "Connecting",
    "Credentials",
    "CredentialsError",
    "Deleted",
    "Discovery",
    "ExecPlugin",
    "Impersonation",
    "KindNotServed",
    "ListOf",
    "MergePatch",
    "MetadataReader",
    "Modified",
    "NotAnIntent",
    "NotEstablished",
    "Outcome",
    "PartialObject",
    "Patch",
    "RateLimit",
    "Reader",
    "RetryPolicy",
    "ServerWarning",
    "StrategicPatch",
    "TokenFile",
    "Undecodable",
    "Watch",
    "WatchEvent",
    "discover_config",
    "in_cluster_config",
    "load_kubeconfig",
    "retry_on_conflict",
]
