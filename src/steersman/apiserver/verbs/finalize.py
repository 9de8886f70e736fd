"""finalize: the subresource of a Namespace by which its own finalizers are taken away; the last one ends it."""

from __future__ import annotations

from steersman.apiserver.answers import answer
from steersman.apiserver.bodies import read_body
from steersman.apiserver.context import VerbContext
from steersman.apiserver.presenting import form_for
from steersman.apiserver.registry.definition import Tree
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.verbs.options import write_options
from steersman.apiserver.verbs.update import Change, read_replacement
from steersman.transport import ServerResponse


async def finalize(context: VerbContext, request: ServerRequest) -> ServerResponse:
    """Answer a PUT of a Namespace's finalizers."""
    form = form_for(context.definition, request)
    body = read_body(request, context.limits.body)
    options = write_options(request, "UpdateOptions")

    def replacement(_: Tree) -> Tree:
        return read_replacement(context, request, body, options)

    uid: str = replacement({})["metadata"].get("uid", "")
    change = Change(context, request, options, replacement, uid=uid, part="finalize")
    return answer(request, form.one(await change.make()))
