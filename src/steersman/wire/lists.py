"""Lists: split into the bytes of their items without decoding them.

Guarantees
- The items are the server's bytes, unchanged.
- Every item is a copy: keeping one does not keep the page it came from.
- A list that is read page by page ends: `PageCount` bounds its bytes, its pages and its empty pages.
"""

import msgspec

from steersman.errors import UNREADABLE, ProtocolError
from steersman.objects import GroupVersionKind, Key

#: This many pages in a row may be empty: a server may filter after it has cut a page.
_EMPTY_MAX = 500
#: A list of more pages, or a continue token of more bytes, is that of a faulty server.
_PAGES_MAX, _TOKEN_MAX = 50_000, 64 * 1024
#: After this many, the client waits this many seconds before it asks for the next.
_EMPTY_QUICK, _EMPTY_DELAY = 10, 0.02


class RawList(msgspec.Struct, frozen=True, kw_only=True):
    """A list or one page of it. Items of built-in kinds lack `kind` and `apiVersion`: see those of the list."""

    items: list[bytes]
    resource_version: str = ""
    continue_: str = ""
    remaining_item_count: int | None = None
    api_version: str = ""
    kind: str = ""
    #: The shard selector that the server applied; empty if it applied none, or does not say so for this kind.
    shard_selector: str = ""

    @property
    def size(self) -> int:
        """The bytes of all items."""
        return sum(map(len, self.items))


class _ShardInfo(msgspec.Struct):
    selector: str = ""


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None
    shard_info: _ShardInfo | None = None


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


class _Kinded(msgspec.Struct):
    kind: str = ""


_list_decoder = msgspec.json.Decoder(_List)
_named_decoder = msgspec.json.Decoder(_Named)
_kinded_decoder = msgspec.json.Decoder(_Kinded)


def split_list(body: bytes) -> RawList:
    """Parse a list without decoding its items; raises ProtocolError if it is not a list."""
    try:
        page = _list_decoder.decode(body)
    except UNREADABLE as error:
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
        shard_selector=meta.shard_info.selector if meta.shard_info is not None else "",
    )


def check_list_kind(page: RawList, kind: GroupVersionKind, *, metadata_only: bool = False) -> None:
    """Raise ProtocolError if a list has another kind than its request asked for.

    Only a CRD can choose the name of its list. Then every item names its own kind.
    """
    given, expected = (page.api_version, page.kind), (kind.api_version, f"{kind.kind}List")
    if not page.kind or given == expected or (metadata_only and given == _METADATA_LIST):
        return
    if given[0] == expected[0] and "." in kind.group and all(_kind_of(raw) == kind.kind for raw in page.items):
        return
    shown = [f"{name} of {version}" for version, name in (given, expected)]
    raise ProtocolError(f"the server returned {shown[0]:.200} in place of {shown[1]}; check the server's address")


_METADATA_LIST = ("meta.k8s.io/v1", "PartialObjectMetadataList")


class PageCount:
    """Counts the pages of a list, one namespace after the other, so that a server with ever new continue tokens comes to an end."""

    def __init__(self, max_bytes: int | None = None, advice: str = "") -> None:
        self._max_bytes = max_bytes
        #: What to do about a list that is too long.
        self._advice = advice
        #: Bytes of items so far.
        self.size = 0
        self._empty = self._pages = 0
        self._token = ""

    def add(self, page: RawList) -> float:
        """Count a page; return how many seconds to wait before the next one. Raise ProtocolError for one too many."""
        self.add_bytes(page.size)
        if not page.continue_:
            # What follows is another namespace, which may have the same tokens.
            self.rewind(self.size)
            return 0.0
        if page.continue_ == self._token:
            raise ProtocolError("the server returned the same continue token twice")
        if len(page.continue_) > _TOKEN_MAX:
            raise ProtocolError(f"the server returned a continue token of {len(page.continue_)} characters")
        self._pages += 1
        if self._pages >= _PAGES_MAX:
            raise ProtocolError(
                f"the list has more than {_PAGES_MAX} pages; ask for larger ones, or select fewer objects"
            )
        self._token = page.continue_
        self._empty = 0 if page.items else self._empty + 1
        if self._empty >= _EMPTY_MAX:
            raise ProtocolError(f"the server returned {_EMPTY_MAX} pages in a row without items, and there are more")
        return _EMPTY_DELAY if self._empty > _EMPTY_QUICK else 0.0

    def rewind(self, size: int) -> None:
        """Start over with a first page, after so many bytes of items that stay."""
        self.size, self._empty, self._pages, self._token = size, 0, 0, ""

    def add_bytes(self, size: int) -> None:
        """Count the bytes of items. Raise ProtocolError if the list becomes too long."""
        self.size += size
        if self._max_bytes is not None and self.size > self._max_bytes:
            raise ProtocolError(f"the list has more than {self._max_bytes >> 20} MiB; {self._advice}")


def key_of(raw: bytes) -> Key:
    """Parse the key of an object from its bytes; both parts are empty if it cannot be read."""
    try:
        metadata = _named_decoder.decode(raw).metadata
    except UNREADABLE:
        return Key("", "")
    return Key(metadata.namespace or "", metadata.name or "")


def _kind_of(raw: bytes) -> str:
    try:
        return _kinded_decoder.decode(raw).kind
    except UNREADABLE:
        return ""
