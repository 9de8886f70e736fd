"""The key that signs tokens of service accounts, as JSON web tokens.

Guarantees
- The server signs tokens with ES256, so that other programs can verify them with the published key. Without the package
  ``cryptography``, it signs them with HS256 and publishes no key.
- Each algorithm has its own key, derived from one secret, so a token cannot select the key of another algorithm.
- No message contains the key.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

#: The length of the secret, in bytes.
KEY_BYTES: Final = hashlib.sha256().block_size
#: The order of the curve P-256.
_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
#: The length of a P-256 coordinate, and of each half of a signature, in bytes.
_HALF: Final = 32
#: The maximum number of cached verified tokens: a client sends the same token with every request.
_VERIFIED_MAX: Final = 1024


class SigningKey:
    """Signs tokens and verifies their signatures."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        #: The digests of tokens whose signatures are valid.
        self._verified: dict[bytes, None] = {}

    def signed(self, claims: bytes) -> str:
        """Sign claims, given as JSON, and return the token."""
        private = self._private
        if private is None:
            text = encoded(b'{"alg":"HS256"}') + b"." + encoded(claims)
            return (text + b"." + encoded(hmac.digest(self._secret, text, "sha256"))).decode()
        header = msgspec.json.encode({"alg": "ES256", "kid": self.public["kid"]})
        text = encoded(header) + b"." + encoded(claims)
        return (text + b"." + encoded(_sign(private, text))).decode()

    def has_signed(self, token: bytes) -> bool:
        """Whether this key signed a token."""
        digest = hashlib.sha256(token).digest()
        if digest in self._verified:
            return True
        if not self._is_valid(token):
            return False
        if len(self._verified) >= _VERIFIED_MAX:
            self._verified.pop(next(iter(self._verified)))
        self._verified[digest] = None
        return True

    def _is_valid(self, token: bytes) -> bool:
        text, _, signature = token.rpartition(b".")
        try:
            header: Any = msgspec.json.decode(decoded(text.partition(b".")[0]))
            given = decoded(signature)
        except (ValueError, msgspec.DecodeError, RecursionError):
            return False
        if encoded(given) != signature:
            # Base64 has several texts for the same bytes: accept only the canonical one.
            return False
        algorithm: Any = cast("dict[str, Any]", header).get("alg") if isinstance(header, dict) else None
        if algorithm == "HS256":
            return hmac.compare_digest(hmac.digest(self._secret, text, "sha256"), given)
        return algorithm == "ES256" and self._private is not None and _has_signed(self._private, text, given)

    @cached_property
    def public(self) -> Mapping[str, str]:
        """The public key as a JSON web key; empty without a public key."""
        private = self._private
        if private is None:
            return {}
        from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 - an extra
            Encoding,
            PublicFormat,
        )

        public = private.public_key()
        der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        numbers = public.public_numbers()
        point = {name: encoded(value.to_bytes(_HALF, "big")) for name, value in (("x", numbers.x), ("y", numbers.y))}
        kid = encoded(hashlib.sha256(der).digest()).decode()
        key = {"use": "sig", "kty": "EC", "kid": kid, "crv": "P-256", "alg": "ES256"}
        return key | {name: value.decode() for name, value in point.items()}

    @cached_property
    def _private(self) -> EllipticCurvePrivateKey | None:
        try:
            from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - an extra
        except ImportError:
            return None
        number = int.from_bytes(hashlib.sha512(b"ES256" + self._secret).digest(), "big")
        return ec.derive_private_key(number % (_ORDER - 1) + 1, ec.SECP256R1())


def _sign(private: EllipticCurvePrivateKey, text: bytes) -> bytes:
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - an extra
    from cryptography.hazmat.primitives.asymmetric import ec, utils  # noqa: PLC0415

    halves = utils.decode_dss_signature(private.sign(text, ec.ECDSA(hashes.SHA256())))
    return b"".join(half.to_bytes(_HALF, "big") for half in halves)


def _has_signed(private: EllipticCurvePrivateKey, text: bytes, signature: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - an extra
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec, utils  # noqa: PLC0415

    if len(signature) != 2 * _HALF:
        return False
    halves = (int.from_bytes(signature[:_HALF], "big"), int.from_bytes(signature[_HALF:], "big"))
    try:
        private.public_key().verify(utils.encode_dss_signature(*halves), text, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def encoded(content: bytes) -> bytes:
    """Bytes as a part of a token."""
    return base64.urlsafe_b64encode(content).rstrip(b"=")


def decoded(text: bytes) -> bytes:
    """The bytes of a part of a token. Raises ValueError if it is malformed."""
    if b"=" in text:
        raise ValueError("padded")
    return base64.b64decode(text + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
