"""A type without a status: nothing that a program sets there would arrive."""

from __future__ import annotations

from typing import Any

import pytest

from steersman import Client, ObjectMeta, Resource, Spec, Status


@pytest.mark.parametrize("verb", ["save", "update", "apply"])
async def test_a_status_that_the_type_does_not_have_is_refused(
    client: Client, namespace: str, crd_group: str, verb: str
) -> None:
    """The server answers 404 to a write of the status, and drops the status in a write of the object."""

    class Note(Resource[Spec, None], group=crd_group, version="v1"):
        """A note."""

    await client.install(Note)
    metadata = ObjectMeta(name="milk", namespace=namespace)
    note: Any = await client.create(Note(metadata=metadata, spec=Spec()))
    if verb == "apply":
        note = Note(metadata=metadata, spec=Spec())
        await client.apply(Note.only(metadata=metadata))
    note.status = Status(observed_generation=1)
    with pytest.raises(
        TypeError, match=r"the type Note has no status, .* as in class Note\(Resource\[NoteSpec, NoteStatus\]\)"
    ):
        await getattr(client, verb)(note)
