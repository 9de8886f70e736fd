"""review: POST of a kind that is a question, such as SubjectAccessReview; nothing is stored."""

from __future__ import annotations

import msgspec

from steersman.apiserver.admission.plugins import Attributes
from steersman.apiserver.answers import answer
from steersman.apiserver.context import VerbContext
from steersman.apiserver.decoding.body import read_object
from steersman.apiserver.documents import copied
from steersman.apiserver.forms import form_for
from steersman.apiserver.registry.definition import Tree
from steersman.apiserver.request import ServerRequest, read_body
from steersman.apiserver.storage import Record
from steersman.apiserver.verbs.managed_fields import managed_update
from steersman.apiserver.verbs.object_names import take_namespace
from steersman.apiserver.verbs.options import write_options
from steersman.transport import ServerResponse


async def review(context: VerbContext, request: ServerRequest) -> ServerResponse:
    """Answer a POST with the question itself, with its answer filled in."""
    definition = context.definition
    assert definition.review is not None
    # Reviews cannot be listed, so they have no tables.
    form = form_for(definition, request, tables=False)
    body = read_body(request, context.limits.body)
    options = write_options(request, "CreateOptions")

    def read() -> Tree:
        tree = read_object(definition, request, body, options.field_validation)
        take_namespace(definition, request.info.namespace, tree["metadata"])
        return managed_update(context, request, None, tree, options.field_manager)

    tree = await context.workers.run(read, size=request.size)
    attributes = Attributes(
        context,
        request,
        "CREATE",
        namespace=request.info.namespace,
        name=tree["metadata"].get("name", ""),
        obj=tree,
        old=None,
        dry_run=options.dry_run,
    )
    await context.admission.admit(attributes)
    question: Tree = copied(tree)
    await definition.review(tree, request)
    # reject an invalid review first; no plugin sees the answer
    attributes.obj = question
    await context.admission.validate(attributes)
    return answer(request, form.one(Record("", msgspec.json.encode(tree), 0, 0)), status=201)
