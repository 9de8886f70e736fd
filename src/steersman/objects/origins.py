"""Where a decoded struct came from.

Every struct decoded from a document carries an `Origin`: the document and the struct's place in the order of
decoding. Decoding the same bytes again meets the structs in the same order, so an origin leads back to the JSON
object it was read from, with all the fields our types do not know. The origin is an ordinary (hidden) field of the
struct, which is why `copy.copy`, `copy.deepcopy`, `msgspec.structs.replace` and moving a part elsewhere all keep it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import count, repeat
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, UnsetType

if TYPE_CHECKING:
    from steersman.objects.document import Document

#: The wire name of the hidden field. DEL is legal in JSON and never a name in a Kubernetes API.
ORIGIN_KEY = "\x7forigin"


class Origin(msgspec.Struct, frozen=True, gc=False, eq=False):
    """A place in a document. All origins are equal, so that equality of structs means equality of their values."""

    document: Document
    ordinal: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (Origin, UnsetType))

    __hash__ = None  # type: ignore[assignment]

    def __copy__(self) -> Origin:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Origin:
        return self


class _Decoding(threading.local):
    """The origins of the document that this thread is decoding. Decoding never waits, so a thread has at most one."""

    origins: Iterator[Origin] | None = None


decoding = _Decoding()


def origins_in(document: Document) -> Iterator[Origin]:
    """The origins of a document's structs, in the order of decoding."""
    return map(Origin, repeat(document), count())


def next_origin() -> Origin | UnsetType:
    """Give the origin of the struct being made: unset for one that a program constructs."""
    origins = decoding.origins
    return UNSET if origins is None else next(origins)


class _AnyInstance(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return True


class OriginSlot(metaclass=_AnyInstance):
    """The type that the hidden field decodes as: whatever stands under its name in a document is not believed.

    An origin comes from the decoder alone. (msgspec asks whether what its hook returns is an instance: it always is.)
    """


class tracking:  # noqa: N801 - reads as a statement: `with tracking(document):`
    """Give every struct decoded inside the block an origin in ``document``."""

    __slots__ = ("_document",)

    def __init__(self, document: Document) -> None:
        self._document = document

    def __enter__(self) -> None:
        decoding.origins = origins_in(self._document)

    def __exit__(self, *_: object) -> None:
        decoding.origins = None
