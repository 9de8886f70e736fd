"""The namespaces that every server has."""

from __future__ import annotations

from steersman.apiserver.context import Backend
from steersman.apiserver.registry.definition import Tree
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.verbs.create import create_object
from steersman.apiserver.verbs.options import WriteOptions
from steersman.wire import Request

SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


async def create_system_namespaces(backend: Backend) -> None:
    """Create the missing ones, if the server serves namespaces."""
    definition = backend.registry.find("", "v1", "namespaces")
    if definition is None:
        return
    context = backend.context(definition)
    for name in SYSTEM_NAMESPACES:
        record, _ = await backend.storage.get(definition.storage_key("", name))
        if record is not None:
            continue
        obj: Tree = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}}
        definition.strategy.default(obj)
        request = ServerRequest(Request("POST", "/api/v1/namespaces", headers=(("User-Agent", "kube-apiserver"),)))
        await create_object(context, request, obj, WriteOptions())
