"""Negotiation of a discovery document's form, with kube-apiserver's rejections.

Guarantees
- A client that accepts the aggregated form gets it, wherever it is in the Accept header.
- The message of a rejection depends on the path, as in kube-apiserver.
"""

from __future__ import annotations

from typing import Final, Literal

from steersman.apiserver.errors import no_media_type, not_acceptable
from steersman.apiserver.forms.negotiation import OFFERS
from steersman.apiserver.request import ServerRequest
from steersman.transport import ServerResponse
from steersman.wire import JSON, PROTOBUF, YAML, parse_accept

#: The media type of aggregated discovery.
AGGREGATED: Final = f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

_REPRESENTATION: Final = ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2")
_EXACT: Final = frozenset({JSON, "*/*"})
_TAKEN: Final = frozenset({*_EXACT, "application/*"})


def chosen_form(
    request: ServerRequest, *, has_aggregated: bool = False, exact: bool = False
) -> Literal["plain", "aggregated"]:
    """The form of the answer; 406 if there is none.

    `exact` selects between kube-apiserver's two ways to read an Accept header: exact paths do not support
    ``application/*``, and reject unknown media types with another message.
    """
    taken = {*(_EXACT if exact else _TAKEN), YAML, PROTOBUF}
    plain: str | None = None
    known = False
    for clause in parse_accept(request.wire.header("Accept")):
        known = known or clause.name in OFFERS or clause.name in taken
        if clause.name not in taken:
            continue
        if has_aggregated and clause.name == JSON and clause.representation == _REPRESENTATION:
            return "aggregated"
        if plain is None and not clause.representation[0]:
            plain = clause.name
    if plain is not None:
        request.media_type = plain if plain in OFFERS else JSON
        return "plain"
    if known or not exact:
        raise not_acceptable(OFFERS)
    raise no_media_type(OFFERS)


def takes_json(request: ServerRequest, *, exact: bool = False) -> bool:
    """Whether a client accepts JSON, whatever else it accepts."""
    taken = _EXACT if exact else _TAKEN
    return any(clause.name in taken for clause in parse_accept(request.wire.header("Accept")))


def accepts(request: ServerRequest, media_type: str) -> bool:
    """Whether the Accept header contains exactly this media type or ``*/*``."""
    return any(clause.name in {media_type, "*/*"} for clause in parse_accept(request.wire.header("Accept")))


def has_newest(request: ServerRequest, etag: str) -> bool:
    """Whether the client already has this document; only the exact tag that was sent counts."""
    return request.wire.header("If-None-Match") == etag


def not_modified(etag: str, cache_control: str) -> ServerResponse:
    """The answer to a client that has the newest document."""
    headers = (("Cache-Control", cache_control), ("ETag", etag), ("Vary", "Accept"))
    return ServerResponse(status=304, headers=headers)
