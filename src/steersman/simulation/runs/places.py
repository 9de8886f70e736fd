"""Places: the requests at which a schedule can put a fault.

Guarantee: the same run has the same places, in every process. A place names no address, no time and no uid.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from steersman.wire import WRITE_VERBS, HttpRequest, ResourcePath, parse_path

#: What the resource of a call of an external system begins with.
EXTERNAL = "external:"
#: The verb of a call of a webhook; its resource is the path.
REVIEW = "review"
_WRITES = frozenset({"create", "update", "patch", "apply", "delete", "deletecollection"})
#: The group of Leases, and those of Events.
_LEASES, _EVENTS = "coordination.k8s.io", frozenset({"", "events.k8s.io"})


class Place(msgspec.Struct, frozen=True, order=True, kw_only=True):
    """One request of an actor: the ``occurrence``-th one with this verb and target."""

    actor: str
    verb: str
    #: The resource as in RBAC (``sites/status``); a path for other requests.
    resource: str
    #: ``namespace/name``, or what is known of it.
    key: str = ""
    occurrence: int = 1
    #: The API group of the resource; empty for the core group.
    group: str = ""
    #: Whether the client accepts any state that the server has cached: ``resourceVersion=0``.
    any_version: bool = False

    @property
    def is_write(self) -> bool:
        """Whether the request can change something."""
        return self.verb in _WRITES or self.is_external

    @property
    def is_external(self) -> bool:
        """Whether it is a call of an external system."""
        return self.resource.startswith(EXTERNAL)

    @property
    def is_event(self) -> bool:
        """Whether it concerns an Event of Kubernetes."""
        return self.resource == "events" and self.group in _EVENTS

    @property
    def is_lease(self) -> bool:
        """Whether it concerns a Lease of Kubernetes."""
        return self.resource == "leases" and self.group == _LEASES

    @property
    def target(self) -> str:
        """The verb, the resource and the object in words."""
        return f"{self.verb} {self.resource}{f' {self.key}' if self.key else ''}"

    def __str__(self) -> str:
        return f"{self.actor}: {self.target}" + (f" ({_ordinal(self.occurrence)})" if self.occurrence > 1 else "")


class PlaceCounter:
    """Names the requests of a run."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, ...]] = Counter()

    def place_of(self, actor: str, request: HttpRequest) -> Place:
        """The place of the next request of an actor."""
        path = resource_path(request)
        if path is None:
            return self.named(actor, request.method.lower(), request.path, "")
        place = self.named(actor, _verb(request, path), path.rbac_resource, _key(request, path), path.group)
        any_version = ("resourceVersion", "0") in request.query
        return msgspec.structs.replace(place, any_version=True) if any_version else place

    def named(self, actor: str, verb: str, resource: str, key: str, group: str = "") -> Place:
        """The place of the next event of this sort."""
        sort = (actor, verb, resource, key, group)
        self._seen[sort] += 1
        return Place(actor=actor, verb=verb, resource=resource, key=key, occurrence=self._seen[sort], group=group)


def resource_path(request: HttpRequest) -> ResourcePath | None:
    """The resource that a request concerns; None for discovery and the like."""
    try:
        return parse_path(request.path)
    except ValueError:
        return None


def _verb(request: HttpRequest, path: ResourcePath) -> str:
    if request.method == "GET":
        if path.name:
            return "get"
        return "watch" if any(name == "watch" and value in {"1", "true"} for name, value in request.query) else "list"
    if request.method == "DELETE" and not path.name:
        return "deletecollection"
    if request.method == "PATCH" and (request.header("Content-Type") or "").startswith("application/apply-patch"):
        return "apply"
    return WRITE_VERBS.get(request.method, request.method.lower())


def _key(request: HttpRequest, path: ResourcePath) -> str:
    name = path.name or ""
    if not name and request.method == "POST":
        name = _name_in(request.body or b"")
    return f"{path.namespace}/{name}" if path.namespace else name


class _Metadata(msgspec.Struct):
    name: str = ""
    generate_name: str = msgspec.field(default="", name="generateName")


class _Named(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_decoder = msgspec.json.Decoder(_Named)


def _name_in(body: bytes) -> str:
    try:
        metadata = _decoder.decode(body).metadata
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    return metadata.name or (f"{metadata.generate_name}*" if metadata.generate_name else "")


def _ordinal(number: int) -> str:
    suffix = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"
