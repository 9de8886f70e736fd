"""finalize: the subresource that removes a Namespace's own finalizers; without any, the Namespace is deleted."""

from __future__ import annotations

from steersman.apiserver.answers import answer
from steersman.apiserver.bodies import read_body
from steersman.apiserver.context import VerbContext
from steersman.apiserver.forms import form_for
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
    read = await context.workers.run(lambda: read_replacement(context, request, body, options), size=request.size)
    first = [read]
    uid: str = read["metadata"].get("uid", "")

    def replacement(_: Tree) -> Tree:
        # Each attempt modifies its tree.
        return first.pop() if first else read_replacement(context, request, body, options)

    change = Change(context, request, options, replacement, uid=uid, part="finalize")
    change.replaces = True
    return answer(request, form.one(await change.make()))
