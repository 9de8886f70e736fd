"""Checks certificates and certificate requests in PEM, with the messages of Go's libraries."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from steersman.objects.field_problems import PROBLEMS_MAX

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes as PublicKeyTypes
    from cryptography.x509 import Certificate, CertificateSigningRequest

_BEGIN, _END, _DASHES = b"-----BEGIN ", b"\n-----END ", b"-----"
_REQUEST = "CERTIFICATE REQUEST"
_CERTIFICATE = "CERTIFICATE"


class PemBlock(NamedTuple):
    """One block of a text in PEM."""

    type: str
    has_headers: bool
    data: bytes

    def certificate(self) -> Certificate | None:
        """The certificate in the block; None if it is none."""
        from cryptography import x509  # noqa: PLC0415 - an extra, and few servers store certificates

        try:
            return x509.load_der_x509_certificate(self.data)
        except (ValueError, x509.InvalidVersion):
            return None


def pem_blocks(text: bytes) -> Iterator[PemBlock]:
    """The blocks that Go's decoder finds, in one pass: each ends at an END line, and begins at the last BEGIN before."""
    start = 0
    while (end := text.find(_END, start)) >= 0:
        begin = text.rfind(_BEGIN, start, end)
        is_line = begin == start or text[begin - 1 : begin] == b"\n"
        start, after = end + len(_END), _line_end(text, end + 1)
        if begin < 0 or not is_line:
            continue
        first = _line_end(text, begin)
        type_ = _stripped(text[begin + len(_BEGIN) : first])
        if not type_.endswith(_DASHES) or _stripped(text[start:after]) != type_:
            continue
        data = body = first + 1
        while data < end and b":" in text[data : (line := _line_end(text, data))]:
            data = line + 1
        try:
            content = b64decode(text[data : max(data, end)].translate(None, b" \t\r\n"), validate=True)
        except Error:
            continue
        yield PemBlock(type_.removesuffix(_DASHES).decode(errors="replace"), data > body, content)
        start = after


def _line_end(text: bytes, start: int) -> int:
    found = text.find(b"\n", start)
    return len(text) if found < 0 else found


def _stripped(line: bytes) -> bytes:
    return line.removesuffix(b"\r").rstrip(b" \t")


def parsed_request(text: bytes) -> CertificateSigningRequest:
    """A request for a certificate. Raises ValueError with the problem of one that cannot be read."""
    from cryptography import x509  # noqa: PLC0415 - an extra, and few servers store requests for certificates
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415

    block = next(pem_blocks(text), None)
    if block is None or block.type != _REQUEST:
        raise ValueError("PEM block type must be CERTIFICATE REQUEST")
    try:
        request = x509.load_der_x509_csr(block.data)
        request.public_key()
    except (ValueError, UnsupportedAlgorithm, x509.InvalidVersion):
        wrong = "structure error: tags don't match" if block.data else "syntax error: sequence truncated"
        raise ValueError(f"asn1: {wrong}") from None
    return request


def request_key(data: bytes) -> PublicKeyTypes | None:
    """The public key of a request in DER; None if it is no request for a certificate."""
    from cryptography import x509  # noqa: PLC0415 - an extra, and few servers store requests for certificates
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415

    try:
        return x509.load_der_x509_csr(data).public_key()
    except (ValueError, UnsupportedAlgorithm, x509.InvalidVersion):
        return None


def request_problem(text: bytes) -> str:
    """The problem of a certificate request, which must be signed with its own key; empty if it is valid."""
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - an extra
    from cryptography.hazmat.primitives.asymmetric import ec, rsa  # noqa: PLC0415

    try:
        request = parsed_request(text)
    except ValueError as wrong:
        return str(wrong)
    try:
        if request.is_signature_valid:
            return ""
    except (ValueError, UnsupportedAlgorithm):
        return "x509: cannot verify signature: algorithm unimplemented"
    key = request.public_key()
    if isinstance(key, rsa.RSAPublicKey):
        return "crypto/rsa: verification error"
    kind = "ECDSA" if isinstance(key, ec.EllipticCurvePublicKey) else "Ed25519"
    return f"x509: {kind} verification failure"


def certificate_problem(text: bytes) -> str:
    """The problem of a chain of certificates; empty for a valid chain or an empty text."""
    count = 0
    for block in pem_blocks(text):
        if block.type != _CERTIFICATE:
            return f'only CERTIFICATE PEM blocks are allowed, found "{block.type}"'
        if block.has_headers:
            return "no PEM block headers are permitted"
        count += 1
        if not block.data:
            return "found CERTIFICATE PEM block containing 0 certificates"
        if block.certificate() is None:
            return "x509: malformed certificate"
    return "" if count or not text else "must contain at least one CERTIFICATE PEM block"


def trust_problems(text: bytes) -> list[str]:
    """The problems of a bundle of trust anchors, which has at least one, each once."""
    places: dict[bytes, list[int]] = {}
    problems: list[str] = []
    for index, block in enumerate(pem_blocks(text)):
        wrong = _anchor_problem(block)
        if wrong:
            problems.append(f"entry {index} {wrong}")
            if len(problems) >= PROBLEMS_MAX:
                break
        else:
            places.setdefault(block.data, []).append(index)
    if problems:
        return problems
    if not places:
        return ["at least one trust anchor must be provided"]
    repeated = (indices for indices in places.values() if len(indices) > 1)
    return [f"duplicate trust anchor (indices [{' '.join(map(str, indices))}])" for indices in repeated]


def _anchor_problem(block: PemBlock) -> str:
    from cryptography import x509  # noqa: PLC0415 - an extra, and few servers store trust anchors

    if block.type != _CERTIFICATE:
        return f"has bad block type: {block.type}"
    if block.has_headers:
        return "has PEM block headers"
    certificate = block.certificate()
    if certificate is None:
        return "does not parse as X.509"
    try:
        is_authority = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        is_authority = False
    except ValueError:
        return "does not parse as X.509"
    return "" if is_authority else "does not have the CA bit set"
