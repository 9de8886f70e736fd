"""Options of requests: a client prints them into queries and bodies, a server parses them.

Guarantees
- `from_query(to_query())` returns the same options, but for shards; unset options are not printed.
- An invalid value is never ignored: parsing raises `InvalidOption`.
- Values are parsed as in kube-apiserver: the first of a repeated name counts, and a flag is true unless its value is
  `false` or `0`.
"""

from collections.abc import Iterable
from typing import Literal, Self

import msgspec

from steersman.golang import parse_int
from steersman.wire.requests import Pairs
from steersman.wire.shards import SHARD_PARAMETER, ShardSelector

FieldValidation = Literal["Ignore", "Warn", "Strict"]
PropagationPolicy = Literal["Orphan", "Background", "Foreground"]
ResourceVersionMatch = Literal["", "NotOlderThan", "Exact"]


class InvalidOption(ValueError):
    """An option in a query has an invalid value."""

    def __init__(self, option: str, value: str) -> None:
        super().__init__(option, value)
        self.option = option
        self.value = value

    def __str__(self) -> str:
        return f"{self.option}: {self.value[:80]!r} is not a value for it"


def first_values(query: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The value of each name in a query; the first one counts, as in kube-apiserver."""
    values: dict[str, str] = {}
    for name, value in query:
        values.setdefault(name, value)
    return values


def _flag(values: dict[str, str], name: str) -> bool | None:
    value = values.get(name)
    return None if value is None else value != "0" and value.lower() != "false"


def _integer(values: dict[str, str], name: str) -> int | None:
    text = values.get(name)
    if text is None:
        return None
    try:
        return parse_int(text)
    except ValueError:
        raise InvalidOption(name, text) from None


def is_watch(query: Iterable[tuple[str, str]]) -> bool:
    """Whether the query of a GET on a collection requests a watch."""
    return bool(_flag(first_values(query), "watch"))


def _printed_shards(shards: ShardSelector | None) -> Pairs:
    return () if shards is None else ((SHARD_PARAMETER, str(shards)),)


class _Selection(msgspec.Struct, frozen=True, kw_only=True):
    """The common options of lists and watches."""

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    timeout_seconds: int | None = None

    def to_query(self) -> Pairs:
        """Print as a query."""
        texts = (
            ("labelSelector", self.label_selector),
            ("fieldSelector", self.field_selector),
            ("resourceVersion", self.resource_version),
            ("resourceVersionMatch", self.resource_version_match),
            ("timeoutSeconds", "" if self.timeout_seconds is None else str(self.timeout_seconds)),
        )
        return tuple(pair for pair in texts if pair[1])

    @classmethod
    def _from_values(cls, values: dict[str, str]) -> Self:
        return cls(
            label_selector=values.get("labelSelector", ""),
            field_selector=values.get("fieldSelector", ""),
            resource_version=values.get("resourceVersion", ""),
            resource_version_match=values.get("resourceVersionMatch", ""),
            timeout_seconds=_integer(values, "timeoutSeconds"),
        )


class CollectionOptions(_Selection, frozen=True, kw_only=True):
    """Options for deleting a collection.

    They have no shard selector: a server without the feature ignores it, and deletes everything.
    """

    @classmethod
    def from_query(cls, query: Iterable[tuple[str, str]]) -> Self:
        """Parse from a query; other names are ignored."""
        return cls._from_values(first_values(query))


class ListOptions(_Selection, frozen=True, kw_only=True):
    """Options for reading a collection: selection, version and page size."""

    limit: int | None = None
    continue_: str = ""
    #: Not parsed from a query, where it is an expression that only a server can read.
    shards: ShardSelector | None = None

    def next_page(self, continue_: str) -> Self:
        """The options of the next page: the token replaces the resourceVersion, which must not be repeated."""
        return msgspec.structs.replace(self, continue_=continue_, resource_version="", resource_version_match="")

    def to_query(self) -> Pairs:
        limit = () if self.limit is None else (("limit", str(self.limit)),)
        token = (("continue", self.continue_),) if self.continue_ else ()
        return (*super().to_query(), *limit, *token, *_printed_shards(self.shards))

    @classmethod
    def from_query(cls, query: Iterable[tuple[str, str]]) -> Self:
        """Parse from a query; other names are ignored."""
        values = first_values(query)
        limit, token = _integer(values, "limit"), values.get("continue", "")
        return msgspec.structs.replace(cls._from_values(values), limit=limit, continue_=token)


class WatchOptions(_Selection, frozen=True, kw_only=True):
    """Options of a watch: selection, start version and duration."""

    allow_bookmarks: bool = False
    send_initial_events: bool | None = None
    #: Not parsed from a query, as in `ListOptions`.
    shards: ShardSelector | None = None

    def to_query(self) -> Pairs:
        """Print as a query, `watch=true` included."""
        pairs = [("watch", "true"), *super().to_query()]
        if self.allow_bookmarks:
            pairs.append(("allowWatchBookmarks", "true"))
        if self.send_initial_events is not None:
            pairs.append(("sendInitialEvents", "true" if self.send_initial_events else "false"))
        return (*pairs, *_printed_shards(self.shards))

    @classmethod
    def from_query(cls, query: Iterable[tuple[str, str]]) -> Self:
        """Parse from a query; other names are ignored."""
        values = first_values(query)
        bookmarks, initial = bool(_flag(values, "allowWatchBookmarks")), _flag(values, "sendInitialEvents")
        return msgspec.structs.replace(cls._from_values(values), allow_bookmarks=bookmarks, send_initial_events=initial)


class WriteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for creating or replacing an object."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: FieldValidation | None = None

    def to_query(self) -> Pairs:
        """Print as a query."""
        pairs: list[tuple[str, str]] = []
        if self.field_manager:
            pairs.append(("fieldManager", self.field_manager))
        if self.field_validation is not None:
            pairs.append(("fieldValidation", self.field_validation))
        if self.dry_run:
            pairs.append(("dryRun", "All"))
        return tuple(pairs)


class PatchOptions(WriteOptions, frozen=True, kw_only=True):
    """Options for patching an object; `force`, for apply only, takes fields over from other managers."""

    force: bool | None = None

    def to_query(self) -> Pairs:
        force = () if self.force is None else (("force", "true" if self.force else "false"),)
        return (*super().to_query(), *force)


class Preconditions(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Conditions for deleting an object; a mismatch is a Conflict."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for deleting objects, sent as a body. The selection of a collection is `CollectionOptions`, sent as a query."""

    propagation_policy: PropagationPolicy | None = None
    preconditions: Preconditions | None = None
    grace_period_seconds: int | None = None
    dry_run: bool = False

    def to_body(self) -> bytes | None:
        """Print as a body; None if nothing is set, since then no body is needed."""
        options = {
            "gracePeriodSeconds": self.grace_period_seconds,
            "preconditions": self.preconditions,
            "propagationPolicy": self.propagation_policy,
            "dryRun": ("All",) if self.dry_run else None,
        }
        given = {name: value for name, value in options.items() if value is not None}
        return msgspec.json.encode({"kind": "DeleteOptions", "apiVersion": "v1", **given}) if given else None
