"""The values of the variables in CEL expressions about a write."""

from __future__ import annotations

from typing import Any, Final

from steersman.apiserver.go_types.shapes import Place, Shape, referred, shape_of
from steersman.apiserver.registry.definition import Definition, Tree
from steersman.apiserver.webhooks.matches import Subject, read_namespace
from steersman.apiserver.webhooks.reviews import options
from steersman.cel import typed
from steersman.objects import GroupVersionKind


def _struct(name: str, **fields: Shape) -> Shape:
    """The shape of a struct that no schema has."""
    made = Shape("struct", name)
    made.fields = {field: Place(shape, (), False, False) for field, shape in fields.items()}
    return made


_KIND: Final = _struct("v1.GroupVersionKind")
_RESOURCE: Final = _struct("v1.GroupVersionResource")
_REQUEST: Final = _struct(
    "v1.AdmissionRequest",
    kind=_KIND,
    requestKind=_KIND,
    resource=_RESOURCE,
    requestResource=_RESOURCE,
    userInfo=referred("io.k8s.api.authentication.v1.UserInfo"),
)


def request_values(subject: Subject, target: Definition, obj: Tree | None, old: Tree | None) -> dict[str, Any]:
    """The variables for a write in the version of a resource, except `namespace_value`.

    Objects of custom kinds are JSON. All others have types, as in kube-apiserver since 1.37.
    """
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
    form = attributes.view.definition if attributes.view is not None else target
    seen = {"object": typed_object(obj, form), "oldObject": typed_object(old, form)}
    return seen | {"request": typed(request, _REQUEST), "namespaceObject": None}


def typed_object(tree: Tree | None, definition: Definition) -> Any:
    """An object with the types of its fields; one of a custom kind unchanged."""
    shape = None if definition.custom else shape_of(definition.gvk)
    return tree if shape is None else typed(tree, shape)


async def namespace_value(subject: Subject) -> Any:
    """The Namespace of a write; None for Namespaces and cluster-scoped objects. Rejects the write if it is gone."""
    if not subject.namespace or subject.is_namespace:
        return None
    return typed(await read_namespace(subject), referred("io.k8s.api.core.v1.Namespace"))


def _kind(gvk: GroupVersionKind) -> Tree:
    return {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}


def _resource(definition: Definition) -> Tree:
    return {"group": definition.gvk.group, "version": definition.gvk.version, "resource": definition.resource}
