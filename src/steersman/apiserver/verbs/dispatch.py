"""Select the verb that answers a request."""

from __future__ import annotations

from steersman.apiserver.answers import page_not_found
from steersman.apiserver.context import Verb, VerbContext
from steersman.apiserver.errors import bad_request, method_not_allowed, no_such_resource, not_found, not_supported
from steersman.apiserver.registry.subresources import BINDING
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.verbs import subresources
from steersman.apiserver.verbs.component_statuses import COMPONENT_STATUS, component_statuses
from steersman.apiserver.verbs.create import create
from steersman.apiserver.verbs.delete import delete
from steersman.apiserver.verbs.delete_collection import delete_collection
from steersman.apiserver.verbs.get import get
from steersman.apiserver.verbs.list import list_
from steersman.apiserver.verbs.patch import patch
from steersman.apiserver.verbs.review import review
from steersman.apiserver.verbs.update import update
from steersman.apiserver.verbs.watch import watch
from steersman.transport import ServerResponse

_VERBS: dict[str, Verb] = {
    "create": create,
    "get": get,
    "list": list_,
    "watch": watch,
    "update": update,
    "patch": patch,
    "delete": delete,
    "deletecollection": delete_collection,
}
_OF_COLLECTIONS = frozenset({"create", "list", "watch", "deletecollection"})
_ANYWHERE = frozenset({"list", "watch"})
_OF_SUBRESOURCES: dict[str, Verb] = {"get": get, "update": update, "patch": patch}


async def perform(context: VerbContext, request: ServerRequest) -> ServerResponse:
    """Answer a request for a served resource."""
    definition, info = context.definition, request.info
    if definition.deprecation and info.verb in {*definition.verbs, "watch"}:
        request.warn(definition.deprecation)
    if request.size:
        request.size = max(request.size, definition.strategy.counts_as(request.size))
    verb = _perform_custom if definition.custom else _perform_builtin
    return await context.workers.in_turn(verb(context, request), size=request.size, user=request.user.name)


async def _perform_builtin(context: VerbContext, request: ServerRequest) -> ServerResponse:
    definition, info = context.definition, request.info
    if info.subresource:
        return await _subresource(context, request)
    verb = _VERBS.get(info.verb) if definition.gvk != COMPONENT_STATUS else component_statuses
    if verb is None or info.verb not in definition.verbs or request.wire.method == "HEAD":
        raise not_supported(definition.named, "watch") if info.verb == "watch" else method_not_allowed()
    if info.verb == "create":
        if info.name:
            raise method_not_allowed()
        if definition.review is not None:
            verb = review
        elif definition.gvk == BINDING:
            verb = subresources.create_binding
    elif not info.name and info.verb not in _OF_COLLECTIONS:
        raise method_not_allowed()
    if definition.namespaced and not info.namespace and info.verb not in _ANYWHERE:
        # Only reads work across namespaces; an object is always in one.
        raise no_such_resource() if info.name else method_not_allowed()
    if not definition.namespaced and info.is_namespaced:
        raise no_such_resource()
    return await verb(context, request)


async def _perform_custom(context: VerbContext, request: ServerRequest) -> ServerResponse:
    """Custom resources have a single handler for all requests, with its own checks of paths and names."""
    definition, info = context.definition, request.info
    anywhere = definition.namespaced and info.verb in _ANYWHERE
    if definition.namespaced != bool(info.namespace) and not anywhere:
        return page_not_found()
    if info.subresource:
        own = definition.subresources.get(info.subresource)
        if own is not None and not info.subpath:
            return await subresources.call_handler(context, request, own)
        known = (definition.has_status and info.subresource == "status") or (
            definition.scale and info.subresource == "scale"
        )
        if not known:
            raise not_found(definition.named, info.name)
        return await _subresource(context, request)
    verb = _VERBS.get(info.verb)
    if verb is None or request.wire.method == "HEAD":
        raise method_not_allowed()
    if not info.name and info.verb not in _OF_COLLECTIONS:
        raise bad_request("name must be provided")
    return await verb(context, request)


async def _subresource(context: VerbContext, request: ServerRequest) -> ServerResponse:
    definition, info = context.definition, request.info
    if definition.namespaced != info.is_namespaced:
        raise no_such_resource()
    if info.subpath and not definition.custom and info.subresource != "proxy":
        raise no_such_resource()
    own = definition.subresources.get(info.subresource)
    if own is not None:
        if info.verb not in own.verbs:
            raise method_not_allowed()
        if own.gvk == definition.gvk:
            return await _OF_SUBRESOURCES[info.verb](context, request)
        return await subresources.SUBRESOURCE_VERBS[definition.gvk, info.subresource](context, request)
    if info.subresource == "status" and definition.has_status:
        verb = _OF_SUBRESOURCES.get(info.verb)
        if verb is None:
            raise method_not_allowed()
        return await verb(context, request)
    if info.subresource == "scale" and definition.scale is not None:
        return await subresources.answer_scale(context, request)
    raise no_such_resource()
