"""The values of the variables in CEL expressions about a write."""

from __future__ import annotations

from typing import Any

from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.webhooks.matches import Subject, read_namespace
from steersman.apiserver.webhooks.reviews import options
from steersman.objects import GroupVersionKind


def request_values(subject: Subject, target: Definition, obj: Tree | None, old: Tree | None) -> dict[str, Any]:
    """The variables for a write in the version of a resource, except `namespace_value`."""
    attributes = subject.attributes
    user, source = attributes.request.user, attributes.definition
    info: Tree = {"username": user.name, "uid": user.uid, "groups": list(user.groups)}
    info["extra"] = {name: list(values) for name, values in user.extra.items()}
    request: Tree = {
        "kind": _kind(subject.kind if attributes.view is not None else target.gvk),
        "resource": _resource(target),
        "requestKind": _kind(subject.kind),
        "requestResource": _resource(source),
        "operation": attributes.operation,
        "userInfo": {name: value for name, value in info.items() if value},
        "dryRun": attributes.dry_run,
        "options": options(attributes),
    }
    named = {"subResource": attributes.subresource, "requestSubResource": attributes.subresource}
    named |= {"name": subject.name, "namespace": subject.namespace}
    request |= {name: value for name, value in named.items() if value}
    return {"object": obj, "oldObject": old, "request": request, "namespaceObject": None}


async def namespace_value(subject: Subject) -> Tree | None:
    """The Namespace of a write; None for Namespaces and cluster-scoped objects. Rejects the write if it is gone."""
    if not subject.namespace or subject.is_namespace:
        return None
    return await read_namespace(subject)


def _kind(gvk: GroupVersionKind) -> Tree:
    return {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}


def _resource(definition: Definition) -> Tree:
    return {"group": definition.gvk.group, "version": definition.gvk.version, "resource": definition.resource}
