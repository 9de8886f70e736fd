"""Answers with stored objects: one, or a list, in the form and media type that the client asked for.

Guarantees
- Whole objects in their stored version are copied. Worker threads compute all other answers, if they are long.
- A long list is encoded while it is sent; see `LongList`.
"""

from __future__ import annotations

from functools import partial

from steersman.apiserver.answers import answer, answer_list
from steersman.apiserver.context import VerbContext
from steersman.apiserver.encodings import LongList
from steersman.apiserver.forms import Form, ListMetadata
from steersman.apiserver.forms.form import WholeForm
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.storage import Record
from steersman.transport import ServerResponse

#: A list of more objects, or of more bytes, is encoded while it is sent: a slow client must not hold a copy of it.
_AT_ONCE = 500
_BYTES_AT_ONCE = 512 * 1024
#: The size in bytes that a table cell counts as, in addition to its object.
_CELL = 64


async def answer_object(
    context: VerbContext, request: ServerRequest, form: Form, record: Record, *, status: int = 200
) -> ServerResponse:
    """Answer with an object."""
    if _is_copied(form, [record]):
        return answer(request, form.one(record), status=status)
    size = len(record.value) + _weight(form)
    body = await context.workers.answer(partial(form.one, record), size=size, user=request.user.name)
    return answer(request, body, status=status)


async def answer_records(
    context: VerbContext, request: ServerRequest, form: Form, records: list[Record], meta: ListMetadata
) -> ServerResponse:
    """Answer with a list of objects."""
    workers, user = context.workers, request.user.name
    is_copied, weight = _is_copied(form, records), _weight(form)
    size = sum(len(record.value) + weight for record in records[:_AT_ONCE])
    if len(records) <= _AT_ONCE and size <= _BYTES_AT_ONCE:
        work = partial(form.page, records, meta)
        return answer(request, work() if is_copied else await workers.answer(work, size=size, user=user))
    body = LongList(
        form.head(meta),
        records,
        form,
        media_type=request.media_type,
        workers=workers,
        user=user,
        weight=None if is_copied else weight,
    )
    if not is_copied and context.definition.conversion is not None:
        # A conversion that fails is an error of the request, not the end of its connection.
        await body.check()
    return answer_list(request, body)


def _is_copied(form: Form, records: list[Record]) -> bool:
    """Whether the JSON of objects is a copy of their stored bytes."""
    if not isinstance(form, WholeForm):
        return False
    conversion = form.definition.conversion
    return conversion is None or all(map(conversion.is_same, records))


def _weight(form: Form) -> int:
    """The size in bytes that an object counts as in addition to its own."""
    return 0 if isinstance(form, WholeForm) else len(form.definition.columns) * _CELL
