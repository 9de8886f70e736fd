"""Lists: split into the bytes of their items without decoding them.

Guarantees
- The items are the server's bytes, unchanged.
- Every item is a copy: keeping one does not keep the page it came from.
"""

import msgspec

from steersman.errors import ProtocolError
from steersman.objects import Key


class RawList(msgspec.Struct, frozen=True, kw_only=True):
    """A list or one page of it. Items of built-in kinds lack `kind` and `apiVersion`: see those of the list."""

    items: list[bytes]
    resource_version: str = ""
    continue_: str = ""
    remaining_item_count: int | None = None
    api_version: str = ""
    kind: str = ""


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class _List(msgspec.Struct, rename="camel"):
    # no default: a document without items is not a list
    items: list[msgspec.Raw] | None
    kind: str = ""
    api_version: str = ""
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)


class _Name(msgspec.Struct):
    name: str | None = None
    namespace: str | None = None


class _Named(msgspec.Struct):
    metadata: _Name


_list_decoder = msgspec.json.Decoder(_List)
_named_decoder = msgspec.json.Decoder(_Named)


def split_list(body: bytes) -> RawList:
    """Parse a list without decoding its items; raises ProtocolError if it is not a list."""
    try:
        page = _list_decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        # the body is not shown: it may contain Secrets
        raise ProtocolError(f"the server's response of {len(body)} bytes is not a list: {error}") from None
    meta = page.metadata
    return RawList(
        # keeping one Raw would keep the whole page
        items=[bytes(item) for item in page.items or ()],
        resource_version=meta.resource_version,
        continue_=meta.continue_,
        remaining_item_count=meta.remaining_item_count,
        api_version=page.api_version,
        kind=page.kind,
    )


def key_of(raw: bytes) -> Key:
    """Parse the key of an object from its bytes; both parts are empty if it cannot be read."""
    try:
        metadata = _named_decoder.decode(raw).metadata
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Key("", "")
    return Key(metadata.namespace or "", metadata.name or "")
