"""A Kubernetes API server over a pluggable store, in this process or behind a `transport.Listener`.

Guarantees
- It answers as kube-apiserver does: one conformance suite sends the same requests to both and compares the answers.
- A write is one atomic step of the store, published to every watch in the order of its revision, or it did not happen.
- It works on JSON and schemas, never on the client's types: what it stores does not depend on who wrote it.
- It knows no client and no cache: everything it is told arrives as a request.
- What is not there yet is refused, never ignored.
"""

from steersman.apiserver.admission import Admission, Attributes, NamespaceLifecycle, Plugin
from steersman.apiserver.context import Limits, VerbContext
from steersman.apiserver.errors import Refused
from steersman.apiserver.registry import Definition, Registry, Strategy
from steersman.apiserver.request import ChainHandler, Next, RequestInfo, ServerRequest, User
from steersman.apiserver.server import ApiServer, Route
from steersman.apiserver.storage import JournaledStorage, MemoryStorage, Storage

__all__ = [
    "Admission",
    "ApiServer",
    "Attributes",
    "ChainHandler",
    "Definition",
    "JournaledStorage",
    "Limits",
    "MemoryStorage",
    "NamespaceLifecycle",
    "Next",
    "Plugin",
    "Refused",
    "Registry",
    "RequestInfo",
    "Route",
    "ServerRequest",
    "Storage",
    "Strategy",
    "User",
    "VerbContext",
]
