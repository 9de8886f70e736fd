"""A Kubernetes API server over a pluggable store, in this process or on a port.

Guarantees
- It answers like kube-apiserver: one conformance suite sends the same requests to both and compares the answers.
- A write is one atomic step of the store, published to every watch in the order of its revision, or it did not happen.
- It works on JSON and schemas, never on the client's types: what it stores does not depend on the writer.
- It depends on no client and no cache: all input arrives as requests.
- Missing features are rejected, never ignored.

`ApiServer` is the server, ``server.transport(user)`` connects to it without a socket, and `serve` puts it on a port.
The rest is for its options: `User` and tokens, `Access` and `Decision` for an authorizer, `Plugin` and `Attributes` for
admission, `AuditFile`, `Limits`, the stores; and for your own kinds (`Definition`, `Strategy`), paths (`Route`) and
handlers (`ChainHandler`; more in ``steersman.apiserver.chain``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steersman.apiserver.admission import AdmissionFunction, Attributes, Plugin
from steersman.apiserver.chain import (
    Access,
    AuditFile,
    AuditHook,
    Authorizer,
    Decision,
    Rbac,
    RequestLimits,
    always_allow,
)
from steersman.apiserver.context import Limits
from steersman.apiserver.errors import Refused
from steersman.apiserver.identity import User
from steersman.apiserver.registry import Definition, Strategy
from steersman.apiserver.request import ChainHandler, Next, RequestInfo, Route, ServerRequest
from steersman.apiserver.server import ApiServer
from steersman.apiserver.storage import JournaledStorage, MemoryStorage, Storage, StorageError

if TYPE_CHECKING:
    from steersman.apiserver.serving import Authority, Served, serve, write_kubeconfig

#: Imported on first use: they need the package cryptography, which a server without a port does not.
_OF_PORTS = frozenset({"Authority", "Served", "serve", "write_kubeconfig"})

__all__ = [
    "Access",
    "AdmissionFunction",
    "ApiServer",
    "Attributes",
    "AuditFile",
    "AuditHook",
    "Authority",
    "Authorizer",
    "ChainHandler",
    "Decision",
    "Definition",
    "JournaledStorage",
    "Limits",
    "MemoryStorage",
    "Next",
    "Plugin",
    "Rbac",
    "Refused",
    "RequestInfo",
    "RequestLimits",
    "Route",
    "Served",
    "ServerRequest",
    "Storage",
    "StorageError",
    "Strategy",
    "User",
    "always_allow",
    "serve",
    "write_kubeconfig",
]


def __getattr__(name: str) -> Any:
    """Import what only a port needs, on first use."""
    if name not in _OF_PORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from steersman.apiserver import serving  # noqa: PLC0415 - see _OF_PORTS
    except ModuleNotFoundError as error:
        if error.name != "cryptography":
            raise
        raise ModuleNotFoundError(
            "certificates need the package cryptography: pip install 'steersman[server]'", name=error.name
        ) from error
    return getattr(serving, name)


def __dir__() -> list[str]:
    return sorted(__all__)
