"""list: a collection, whole or in pages, as of one revision.

Guarantees
- All pages of one list show one revision. If that revision is gone, 410 says so and offers to continue without it.
- A list is never older than what its client asks for, nor than the answers to its own writes.
- An object is decoded only if a selector needs it.
"""

from __future__ import annotations

import asyncio
import binascii
import re
from base64 import b64decode, urlsafe_b64encode
from typing import Any

import msgspec

from steersman.apiserver.context import VerbContext
from steersman.apiserver.errors import bad_request, expired, too_large_resource_version
from steersman.apiserver.forms import ListMetadata, ShardInfo, form_for
from steersman.apiserver.go_types.reader import Unreadable, read_written
from steersman.apiserver.go_types.shapes import Shape
from steersman.apiserver.go_types.written_values import parse_pairs
from steersman.apiserver.request import ServerRequest
from steersman.apiserver.storage import Compacted, FutureRevision, Page, Record
from steersman.apiserver.verbs.get import await_revision
from steersman.apiserver.verbs.options import not_a_number, read_version, refuse_options, wrong_version
from steersman.apiserver.verbs.responses import answer_records
from steersman.apiserver.watching.pace import Pace
from steersman.apiserver.watching.selection import Selection, check_syntax
from steersman.apiserver.watching.shard_selectors import requested_shards
from steersman.errors import UNREADABLE
from steersman.golang import json_problem
from steersman.objects.field_problems import FieldProblem, problem
from steersman.transport import ServerResponse
from steersman.wire import InvalidOption, ListOptions, first_values

_LIST_EXPIRED = "The resourceVersion for the provided list is too old."
_CONTINUE_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
_NOT_BASE64 = re.compile("[^A-Za-z0-9_-]")
_URL_SAFE = str.maketrans("-_+/", "+/!!")
#: Number of objects read at a time when a selector may exclude any of them.
_LOOKED_AT = 1000


async def list_(context: VerbContext, request: ServerRequest) -> ServerResponse:
    """Answer a GET of a collection."""
    form = form_for(context.definition, request)
    records, meta = await Listing(context, request, list_options(request)).read()
    return await answer_records(context, request, form, records, meta)


def list_options(request: ServerRequest) -> ListOptions:
    """The options of a list; 400 or 422 if they are invalid."""
    try:
        options = ListOptions.from_query(request.wire.query)
    except InvalidOption as option:
        raise not_a_number(option) from None
    check_syntax(options.label_selector, options.field_selector)
    problems: list[FieldProblem] = []
    match = options.resource_version_match
    if match:
        problems += _match_problems(options, match)
    if "sendInitialEvents" in first_values(request.wire.query):
        words = "sendInitialEvents is forbidden for list"
        problems.append(problem("sendInitialEvents", "FieldValueForbidden", "", words))
    if problems:
        raise refuse_options("ListOptions", problems)
    return options


def _match_problems(options: ListOptions, match: str) -> list[FieldProblem]:
    path, problems = "resourceVersionMatch", list[FieldProblem]()
    if not options.resource_version:
        words = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        problems.append(problem(path, "FieldValueForbidden", "", words))
    if options.continue_:
        words = "resourceVersionMatch is forbidden when continue is provided"
        problems.append(problem(path, "FieldValueForbidden", "", words))
    if match not in {"Exact", "NotOlderThan"}:
        words = 'supported values: "Exact", "NotOlderThan", ""'
        problems.append(problem(path, "FieldValueNotSupported", match, words))
    if match == "Exact" and options.resource_version == "0":
        words = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        problems.append(problem(path, "FieldValueForbidden", "", words))
    return problems


#: The type of a continue token in kube-apiserver.
_TOKEN = Shape(
    "struct",
    "storage.continueToken",
    node={"properties": {"v": {"type": "string"}, "rv": {"type": "integer"}, "start": {"type": "string"}}},
)


class Listing:
    """One list, or one page of it."""

    def __init__(self, context: VerbContext, request: ServerRequest, options: ListOptions) -> None:
        info = request.info
        self._context = context
        self._options = options
        self._selection = Selection(
            context.definition, namespace=info.namespace, labels=options.label_selector, fields=options.field_selector
        )
        self._selection.select_shards(requested_shards(request, context.features))
        self._limit = max(0, options.limit or 0)
        #: The key with which the page begins, and one after which it does.
        self._start = self._after = ""
        #: The revision shown; 0 means the current one.
        self._revision = 0
        #: Whether an index is used, which covers only the current revision.
        self._is_indexed = False

    async def read(self) -> tuple[list[Record], ListMetadata]:
        """The objects of the page, and the list's metadata."""
        records, meta = await self._read()
        shards = self._selection.shards
        if shards is not None:
            meta = msgspec.structs.replace(meta, shard_info=ShardInfo(str(shards)))
        return records, meta

    async def _read(self) -> tuple[list[Record], ListMetadata]:
        await self._begin()
        self._is_indexed = self._selection.has_index and not self._options.continue_ and not self._revision
        try:
            if self._selection.name:
                return await self._by_name()
            if self._selection.by_content:
                return await self._selected()
            page = await self._page(self._after, self._limit)
        except Compacted:
            raise self._expired() from None
        except FutureRevision as future:
            raise too_large_resource_version(future.revision, future.current) from None
        if not page.remaining:
            return page.records, ListMetadata(resource_version=str(page.revision))
        token = self._token(page.records[-1].key + "\0", page.revision)
        meta = ListMetadata(resource_version=str(page.revision), continue_=token, remaining_item_count=page.remaining)
        return page.records, meta

    async def _begin(self) -> None:
        """Determine where the page begins, and which revision it shows."""
        options = self._options
        try:
            version = read_version(options.resource_version)
        except ValueError as error:
            wrong = wrong_version(options.resource_version, error)
            raise bad_request(f"invalid resource version: {wrong}") from None
        if options.continue_:
            if version:
                raise bad_request("specifying resource version is not allowed when using continue")
            self._start, self._revision = self._read_token(options.continue_)
            self._after = _before(self._start)
            if options.resource_version == "0":
                self._limit = 0
            return
        if options.resource_version == "0":
            # kube-apiserver answers these from memory, without paging.
            self._limit = 0
        elif options.resource_version_match == "Exact" or (
            version and self._limit and not options.resource_version_match
        ):
            await await_revision(self._context, version)
            self._revision = version
        elif version:
            await await_revision(self._context, version)

    async def _page(self, after: str, limit: int) -> Page:
        page = await self._context.storage.list(
            self._selection.prefix, after=after, limit=limit, revision=self._revision
        )
        return page._replace(records=await self._context.all_readable(page.records))

    async def _by_name(self) -> tuple[list[Record], ListMetadata]:
        """At most one object of each namespace; within one namespace it is looked up directly."""
        selection, storage = self._selection, self._context.storage
        if selection.prefix == self._context.definition.prefix and self._context.definition.namespaced:
            return await self._selected()
        record, revision = await storage.get(selection.prefix + selection.name, revision=self._revision)
        # A page that begins after the object does not have it.
        is_before = record is None or record.key <= self._after
        record = None if record is None or is_before else await self._context.readable(record)
        records = [record] if record is not None and self._matches(record) else []
        return records, ListMetadata(resource_version=str(revision))

    async def _selected(self) -> tuple[list[Record], ListMetadata]:
        records: list[Record] = []
        after, limit, pace = self._after, self._limit, Pace()
        while True:
            page = await self._page(after, _LOOKED_AT if limit else 0)
            self._revision = page.revision
            for index, record in enumerate(page.records):
                if pace.is_due(record):
                    await asyncio.sleep(0)
                if not self._matches(record):
                    continue
                records.append(record)
                if len(records) == limit:
                    more = await self._has_more(page, index)
                    token = self._token(record.key + "\0", page.revision) if more else ""
                    return records, ListMetadata(resource_version=str(page.revision), continue_=token)
            if not page.remaining:
                return records, ListMetadata(resource_version=str(page.revision))
            after = page.records[-1].key

    async def _has_more(self, page: Page, index: int) -> bool:
        """Whether more objects may follow; with an index, whether they do."""
        rest, remaining, pace = page.records[index + 1 :], page.remaining, Pace()
        while self._is_indexed:
            for record in rest:
                if pace.is_due(record):
                    await asyncio.sleep(0)
                if self._selection.is_indexed(record):
                    return True
            if not remaining:
                return False
            following = await self._page((rest or page.records)[-1].key, _LOOKED_AT)
            rest, remaining = following.records, following.remaining
        return bool(rest) or remaining > 0

    def _matches(self, record: Record) -> bool:
        # A past object may be gone, so its labels are not worth caching.
        window = None if self._revision else self._context.feed.window(self._context.definition.prefix)
        return self._selection.matches(record, window)

    # tokens

    def _token(self, start: str, revision: int, *, slash: str = "/") -> str:
        if self._context.definition.ttl is not None:
            # kube-apiserver does not keep Events in memory, and encodes their token differently.
            slash = ""
        relative = slash + start.removeprefix(self._selection.prefix)
        token: dict[str, Any] = {"v": "meta.k8s.io/v1", "rv": revision, "start": relative}
        return urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")

    def _read_token(self, text: str) -> tuple[str, int]:
        """The first key of a page, and the revision that it shows."""
        try:
            raw = b64decode(text.translate(_URL_SAFE) + "=" * (-len(text) % 4), validate=True)
        except (binascii.Error, ValueError):
            raise _bad_token(f": illegal base64 data at input byte {_first_bad(text)}") from None
        try:
            msgspec.json.decode(raw)
            token = read_written(parse_pairs(raw), _TOKEN).tree
        except UNREADABLE as error:
            raise _bad_token(f": {json_problem(raw, error, 'storage.continueToken')}") from None
        except Unreadable as error:
            raise _bad_token(f": {error}") from None
        version, revision, start = token.get("v", ""), token.get("rv", 0), token.get("start", "")
        if version != "meta.k8s.io/v1":
            raise _bad_token(f": server does not recognize this encoded version {version}")
        if revision == 0:
            raise _bad_token(": incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
        if not start:
            raise _bad_token(": encoded start key empty (version meta.k8s.io/v1)")
        relative = start.removeprefix("/")
        if "//" in start or relative.endswith("/") or any(part in {".", ".."} for part in relative.split("/")):
            raise _bad_token(f": {start}")
        return self._selection.prefix + relative, max(0, revision)

    def _expired(self) -> Exception:
        if self._options.continue_:
            # kube-apiserver omits the slash here, and accepts both forms.
            return expired(_CONTINUE_EXPIRED, continue_=self._token(self._start, -1, slash=""))
        return expired(_LIST_EXPIRED)


def _before(key: str) -> str:
    """The key after which a page begins, in place of the one with which it does."""
    # No key has the last character of Unicode.
    return key.removesuffix("\0") if key.endswith("\0") else f"{key[:-1]}{chr(ord(key[-1]) - 1)}\U0010ffff"


def _first_bad(text: str) -> int:
    """Where Go stops decoding base64: at the first invalid character, or at a dangling last one."""
    match = _NOT_BASE64.search(text)
    return len(text[: match.start()].encode()) if match else len(text) - 1


def _bad_token(why: str) -> Exception:
    return bad_request(f"invalid continue token: continue key is not valid{why}")
