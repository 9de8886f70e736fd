"""Options of requests: a client prints them into queries and bodies, a server parses them.

Guarantees
- `from_query(to_query())` returns the same options; unset options are not printed.
- A server never silently ignores an invalid value: parsing raises `InvalidOption`.
- Values are parsed as in kube-apiserver: the first of a repeated name counts, and a flag is true unless its value is
  `false` or `0`.
"""

from collections.abc import Iterable
from typing import ClassVar, Literal, Self, cast

import msgspec

from steersman.golang import parse_int
from steersman.wire.requests import Pairs

FieldValidation = Literal["Ignore", "Warn", "Strict"]
PropagationPolicy = Literal["Orphan", "Background", "Foreground"]
ResourceVersionMatch = Literal["", "NotOlderThan", "Exact"]


class InvalidOption(ValueError):
    """An option in a query or body has an invalid value; `supported` lists the values of a closed set."""

    def __init__(self, option: str, value: str, supported: tuple[str, ...] = ()) -> None:
        super().__init__(option, value, supported)
        self.option = option
        self.value = value
        self.supported = supported

    def __str__(self) -> str:
        known = f"; supported: {', '.join(self.supported)}" if self.supported else ""
        return f"{self.option}: {self.value[:80]!r} is not a value for it{known}"


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


def _one_of(name: str, value: str | None, supported: tuple[str, ...]) -> str | None:
    if not value:
        return None
    if value not in supported:
        raise InvalidOption(name, value, supported)
    return value


def _dry_run(values: Iterable[str]) -> bool:
    given = list(values)
    for value in given:
        _one_of("dryRun", value or '""', ("All",))
    return bool(given)


def is_watch(query: Iterable[tuple[str, str]]) -> bool:
    """Whether the query of a GET on a collection requests a watch."""
    return bool(_flag(first_values(query), "watch"))


class GetOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for reading one object."""

    resource_version: str = ""

    def to_query(self) -> Pairs:
        """Print as a query."""
        return (("resourceVersion", self.resource_version),) if self.resource_version else ()

    @classmethod
    def from_query(cls, query: Iterable[tuple[str, str]]) -> Self:
        """Parse from a query; other names are ignored."""
        return cls(resource_version=first_values(query).get("resourceVersion", ""))


class ListOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for reading or deleting a collection: selection, version and page size."""

    label_selector: str = ""
    field_selector: str = ""
    limit: int | None = None
    continue_: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    timeout_seconds: int | None = None

    def next_page(self, continue_: str) -> Self:
        """The options of the next page: the token replaces the resourceVersion, which must not be repeated."""
        return msgspec.structs.replace(self, continue_=continue_, resource_version="", resource_version_match="")

    def to_query(self) -> Pairs:
        """Print as a query."""
        pairs = _selection(self)
        if self.limit is not None:
            pairs.append(("limit", str(self.limit)))
        if self.continue_:
            pairs.append(("continue", self.continue_))
        return tuple(pairs)

    @classmethod
    def from_query(cls, query: Iterable[tuple[str, str]]) -> Self:
        """Parse from a query; other names are ignored."""
        values = first_values(query)
        return cls(
            label_selector=values.get("labelSelector", ""),
            field_selector=values.get("fieldSelector", ""),
            limit=_integer(values, "limit"),
            continue_=values.get("continue", ""),
            resource_version=values.get("resourceVersion", ""),
            resource_version_match=values.get("resourceVersionMatch", ""),
            timeout_seconds=_integer(values, "timeoutSeconds"),
        )


class WatchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a watch: selection, start version and duration."""

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    timeout_seconds: int | None = None
    allow_bookmarks: bool = False
    send_initial_events: bool | None = None

    def to_query(self) -> Pairs:
        """Print as a query, `watch=true` included."""
        pairs = [("watch", "true"), *_selection(self)]
        if self.allow_bookmarks:
            pairs.append(("allowWatchBookmarks", "true"))
        if self.send_initial_events is not None:
            pairs.append(("sendInitialEvents", "true" if self.send_initial_events else "false"))
        return tuple(pairs)

    @classmethod
    def from_query(cls, query: Iterable[tuple[str, str]]) -> Self:
        """Parse from a query; other names are ignored."""
        values = first_values(query)
        return cls(
            label_selector=values.get("labelSelector", ""),
            field_selector=values.get("fieldSelector", ""),
            resource_version=values.get("resourceVersion", ""),
            resource_version_match=values.get("resourceVersionMatch", ""),
            timeout_seconds=_integer(values, "timeoutSeconds"),
            allow_bookmarks=bool(_flag(values, "allowWatchBookmarks")),
            send_initial_events=_flag(values, "sendInitialEvents"),
        )


def _selection(options: ListOptions | WatchOptions) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    if options.label_selector:
        pairs.append(("labelSelector", options.label_selector))
    if options.field_selector:
        pairs.append(("fieldSelector", options.field_selector))
    if options.resource_version:
        pairs.append(("resourceVersion", options.resource_version))
    if options.resource_version_match:
        pairs.append(("resourceVersionMatch", options.resource_version_match))
    if options.timeout_seconds is not None:
        pairs.append(("timeoutSeconds", str(options.timeout_seconds)))
    return pairs


class _WriteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The common options of writes."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: FieldValidation | None = None

    def to_query(self) -> Pairs:
        """Print as a query."""
        return tuple(self._pairs())

    def _pairs(self) -> list[tuple[str, str]]:
        pairs: list[tuple[str, str]] = []
        if self.field_manager:
            pairs.append(("fieldManager", self.field_manager))
        if self.field_validation is not None:
            pairs.append(("fieldValidation", self.field_validation))
        if self.dry_run:
            pairs.append(("dryRun", "All"))
        return pairs

    @classmethod
    def from_query(cls, query: Iterable[tuple[str, str]]) -> Self:
        """Parse from a query; other names are ignored."""
        pairs = tuple(query)
        values = first_values(pairs)
        validation = _one_of("fieldValidation", values.get("fieldValidation"), ("Ignore", "Warn", "Strict"))
        return cls(
            dry_run=_dry_run(value for name, value in pairs if name == "dryRun"),
            field_manager=values.get("fieldManager", ""),
            field_validation=cast("FieldValidation | None", validation),
        )


class CreateOptions(_WriteOptions, frozen=True, kw_only=True):
    """Options for creating an object."""


class UpdateOptions(_WriteOptions, frozen=True, kw_only=True):
    """Options for replacing an object."""


class PatchOptions(_WriteOptions, frozen=True, kw_only=True):
    """Options for patching an object; `force`, for apply only, takes fields over from other managers."""

    force: bool | None = None

    def to_query(self) -> Pairs:
        """Print as a query."""
        pairs = self._pairs()
        if self.force is not None:
            pairs.append(("force", "true" if self.force else "false"))
        return tuple(pairs)

    @classmethod
    def from_query(cls, query: Iterable[tuple[str, str]]) -> Self:
        """Parse from a query; other names are ignored."""
        pairs = tuple(query)
        return msgspec.structs.replace(super().from_query(pairs), force=_flag(first_values(pairs), "force"))


class Preconditions(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Conditions for deleting an object; a mismatch is a Conflict."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for deleting objects, sent as a body. The selection of a collection is `ListOptions`, sent as a query."""

    propagation_policy: PropagationPolicy | None = None
    preconditions: Preconditions | None = None
    grace_period_seconds: int | None = None
    dry_run: bool = False

    _POLICIES: ClassVar[tuple[str, ...]] = ("Orphan", "Background", "Foreground")

    def to_body(self) -> bytes | None:
        """Print as a body; None if nothing is set, since then no body is needed."""
        if self == _DELETE_DEFAULTS:
            return None
        return _body_encoder.encode(
            _DeleteBody(
                propagation_policy=self.propagation_policy,
                preconditions=self.preconditions,
                grace_period_seconds=self.grace_period_seconds,
                dry_run=("All",) if self.dry_run else (),
            )
        )

    @classmethod
    def from_body(cls, body: bytes) -> Self:
        """Parse a non-empty body; raises InvalidOption if it is not DeleteOptions."""
        try:
            read = _body_decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidOption("body", str(error)) from None
        if read.kind not in {"", "DeleteOptions"}:
            raise InvalidOption("kind", read.kind, ("DeleteOptions",))
        policy = _one_of("propagationPolicy", read.propagation_policy, cls._POLICIES)
        return cls(
            propagation_policy=cast("PropagationPolicy | None", policy),
            preconditions=read.preconditions,
            grace_period_seconds=read.grace_period_seconds,
            dry_run=_dry_run(read.dry_run or ()),
        )

    def to_query(self) -> Pairs:
        """Print as a query, which a server reads if there is no body; preconditions need a body."""
        if self.preconditions is not None:
            raise ValueError("the preconditions of a delete must be sent in its body")
        pairs: list[tuple[str, str]] = []
        if self.propagation_policy is not None:
            pairs.append(("propagationPolicy", self.propagation_policy))
        if self.grace_period_seconds is not None:
            pairs.append(("gracePeriodSeconds", str(self.grace_period_seconds)))
        if self.dry_run:
            pairs.append(("dryRun", "All"))
        return tuple(pairs)

    @classmethod
    def from_query(cls, query: Iterable[tuple[str, str]]) -> Self:
        """Parse from a query; other names are ignored."""
        pairs = tuple(query)
        values = first_values(pairs)
        policy = _one_of("propagationPolicy", values.get("propagationPolicy"), cls._POLICIES)
        return cls(
            propagation_policy=cast("PropagationPolicy | None", policy),
            grace_period_seconds=_integer(values, "gracePeriodSeconds"),
            dry_run=_dry_run(value for name, value in pairs if name == "dryRun"),
        )


def _delete_kind() -> str:
    return "DeleteOptions"


def _delete_api_version() -> str:
    return "v1"


class _DeleteBody(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    # factories, so that omit_defaults does not omit these constants
    kind: str = msgspec.field(default_factory=_delete_kind)
    api_version: str = msgspec.field(default_factory=_delete_api_version)
    grace_period_seconds: int | None = None
    preconditions: Preconditions | None = None
    propagation_policy: str | None = None
    dry_run: tuple[str, ...] | None = ()


_DELETE_DEFAULTS = DeleteOptions()
_body_encoder = msgspec.json.Encoder()
_body_decoder = msgspec.json.Decoder(_DeleteBody)
