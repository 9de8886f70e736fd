"""A Kubernetes API server over a pluggable store, in this process or on a port.

Guarantees
- It answers like kube-apiserver: one conformance suite sends the same requests to both and compares the answers.
- A write is one atomic step of the store, published to every watch in the order of its revision, or it did not happen.
- It works on JSON and schemas, never on the client's types: what it stores does not depend on the writer.
- It depends on no client and no cache: all input arrives as requests.
- Missing features are rejected, never ignored.

`ApiServer` is the server, ``server.transport(user)`` connects to it without a socket, and `serve` puts it on a port.
The other public names are for its options: `User` for tokens, `Access` and `Decision` for an authorizer, `Plugin` and
`Attributes` for admission, `AuditFile`, `Limits`, the stores, `CustomSubresource` and `PathRequest` for functions of yours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names

# Imported on first use: a server imports only what it serves.
if TYPE_CHECKING:
    from steersman.apiserver.admission import (
        AdmissionFunction as AdmissionFunction,
        Attributes as Attributes,
        Plugin as Plugin,
    )
    from steersman.apiserver.chain import (
        Access as Access,
        AuditFile as AuditFile,
        AuditHook as AuditHook,
        Authorizer as Authorizer,
        Decision as Decision,
        Rbac as Rbac,
        RequestLimits as RequestLimits,
        always_allow as always_allow,
    )
    from steersman.apiserver.context import Limits as Limits
    from steersman.apiserver.custom_resources import CustomSubresource as CustomSubresource, Validator as Validator
    from steersman.apiserver.errors import RequestRejected as RequestRejected
    from steersman.apiserver.handlers import (
        Answer as Answer,
        PathHandler as PathHandler,
        PathRequest as PathRequest,
        SubresourceHandler as SubresourceHandler,
        SubresourceRequest as SubresourceRequest,
    )
    from steersman.apiserver.identity import IN_PROCESS as IN_PROCESS, User as User
    from steersman.apiserver.options import ServerOptions as ServerOptions
    from steersman.apiserver.quotas import (
        DEVICE_CLASSES as DEVICE_CLASSES,
        counted_resources as counted_resources,
        recounted as recounted,
    )
    from steersman.apiserver.registry import Definition as Definition, Strategy as Strategy
    from steersman.apiserver.request import (
        ChainHandler as ChainHandler,
        NextHandler as NextHandler,
        RequestInfo as RequestInfo,
        Route as Route,
        ServerRequest as ServerRequest,
    )
    from steersman.apiserver.server import ApiServer as ApiServer
    from steersman.apiserver.serving import (
        Authority as Authority,
        CertificateProcess as CertificateProcess,
        CertificateSource as CertificateSource,
        Served as Served,
        ServerCertificates as ServerCertificates,
        serve as serve,
        write_kubeconfig as write_kubeconfig,
    )
    from steersman.apiserver.storage import (
        Change as Change,
        Compacted as Compacted,
        JournaledStorage as JournaledStorage,
        MemoryStorage as MemoryStorage,
        Page as Page,
        Record as Record,
        Storage as Storage,
        StorageError as StorageError,
        Watching as Watching,
    )
    from steersman.apiserver.storage.ownership import check_owned_folder as check_owned_folder
    from steersman.apiserver.webhooks import (
        CallFailed as CallFailed,
        ReviewHandler as ReviewHandler,
        ServiceReference as ServiceReference,
        ServiceResolver as ServiceResolver,
        WebhookCaller as WebhookCaller,
        WebhookTarget as WebhookTarget,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "steersman.apiserver.admission": ["AdmissionFunction", "Attributes", "Plugin"],
            "steersman.apiserver.chain": [
                "Access",
                "AuditFile",
                "AuditHook",
                "Authorizer",
                "Decision",
                "Rbac",
                "RequestLimits",
                "always_allow",
            ],
            "steersman.apiserver.context": ["Limits"],
            "steersman.apiserver.custom_resources": ["CustomSubresource", "Validator"],
            "steersman.apiserver.errors": ["RequestRejected"],
            "steersman.apiserver.handlers": [
                "Answer",
                "PathHandler",
                "PathRequest",
                "SubresourceHandler",
                "SubresourceRequest",
            ],
            "steersman.apiserver.identity": ["IN_PROCESS", "User"],
            "steersman.apiserver.options": ["ServerOptions"],
            "steersman.apiserver.quotas": ["DEVICE_CLASSES", "counted_resources", "recounted"],
            "steersman.apiserver.registry": ["Definition", "Strategy"],
            "steersman.apiserver.request": ["ChainHandler", "NextHandler", "RequestInfo", "Route", "ServerRequest"],
            "steersman.apiserver.server": ["ApiServer"],
            "steersman.apiserver.serving": [
                "Authority",
                "CertificateProcess",
                "CertificateSource",
                "Served",
                "ServerCertificates",
                "serve",
                "write_kubeconfig",
            ],
            "steersman.apiserver.storage": [
                "Change",
                "Compacted",
                "JournaledStorage",
                "MemoryStorage",
                "Page",
                "Record",
                "Storage",
                "StorageError",
                "Watching",
            ],
            "steersman.apiserver.storage.ownership": ["check_owned_folder"],
            "steersman.apiserver.webhooks": [
                "CallFailed",
                "ReviewHandler",
                "ServiceReference",
                "ServiceResolver",
                "WebhookCaller",
                "WebhookTarget",
            ],
        },
    )

__all__ = [
    "Access",
    "Attributes",
    "AuditFile",
    "Authority",
    "CustomSubresource",
    "Decision",
    "JournaledStorage",
    "Limits",
    "MemoryStorage",
    "PathRequest",
    "Plugin",
    "Record",
    "RequestLimits",
    "Served",
    "ServerOptions",
    "Storage",
    "StorageError",
    "SubresourceRequest",
    "User",
    "WebhookTarget",
    "serve",
]
