"""OpenID discovery: the issuer of service account tokens, and the keys that verify them.

Guarantee: documents, headers and rejections are those of kube-apiserver. Without the package ``cryptography``, the
server publishes no key.
"""

from __future__ import annotations

from typing import Final

import msgspec

from steersman.apiserver.discovery.negotiation import accepts
from steersman.apiserver.errors import method_not_allowed, no_media_type, no_such_resource
from steersman.apiserver.identity import AccountTokens
from steersman.apiserver.identity.account_tokens import ISSUER
from steersman.apiserver.request import Route, ServerRequest
from steersman.transport import ServerResponse
from steersman.wire import JSON

_CONFIGURATION: Final = "/.well-known/openid-configuration"
_KEYS: Final = "/openid/v1/jwks"
_KEY_SET: Final = "application/jwk-set+json"
#: The paths of the documents, with their media types.
OPENID_PATHS: Final = {_CONFIGURATION: JSON, _KEYS: _KEY_SET}
_CACHING: Final = ("Cache-Control", "public, max-age=3600")


def openid_route(tokens: AccountTokens) -> Route:
    """The route that answers both documents."""

    async def route(request: ServerRequest) -> ServerResponse | None:
        path = request.wire.path.removesuffix("/")
        media_type = OPENID_PATHS.get(path)
        if media_type is None:
            if path.startswith((f"{_CONFIGURATION}/", f"{_KEYS}/")):
                raise no_such_resource()
            return None
        if request.wire.method != "GET":
            raise method_not_allowed()
        if not accepts(request, media_type):
            raise no_media_type((media_type,))
        key = (await tokens.key()).public
        if path == _KEYS:
            document: object = {"keys": [key] if key else []}
        else:
            host = (request.wire.header("Host") or "localhost").encode(errors="replace").decode()
            document = {
                "issuer": ISSUER,
                "jwks_uri": f"https://{host}{_KEYS}",
                "response_types_supported": ["id_token"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": [key["alg"]] if key else [],
            }
        headers = (_CACHING, ("Content-Type", media_type))
        return ServerResponse(status=200, headers=headers, body=msgspec.json.encode(document))

    return route
