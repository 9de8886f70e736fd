"""A certificate authority that issues certificates for servers and clients. Needs the package ``cryptography``.

Guarantees
- Certificates are backdated by an hour, because clocks differ.
- Keys are P-256 elliptic-curve keys. They appear only in the PEM that the caller asks for, never in a `repr`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from steersman import aio
from steersman.transport.tls import PemKeyPair

#: The clock of a peer may be behind.
_BACKDATED = timedelta(hours=1)
_AUTHORITY_LIFE = timedelta(days=3650)
_LIFE = timedelta(days=365)


class CertificateIssuer:
    """A certificate authority: ``CertificateIssuer.create()``, or ``CertificateIssuer.load(pem)`` with key and certificate."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self._key = key
        self._certificate = certificate

    @classmethod
    def create(cls, *, life: timedelta = _AUTHORITY_LIFE) -> CertificateIssuer:
        """Create an authority with a new key."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"steersman {aio.new_uid()[:8]}")])
        certificate = (
            _builder(name, name, key.public_key(), life)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        return cls(key, certificate)

    @classmethod
    def load(cls, pem: bytes) -> CertificateIssuer | None:
        """Load an authority from the PEM of its key and certificate.

        Returns None if one is missing, if they do not match, or if the certificate is not that of an authority.
        """
        try:
            key, certificate = serialization.load_pem_private_key(pem, None), x509.load_pem_x509_certificate(pem)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            return None
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
            return None
        if not _is_authority(certificate):
            return None
        return cls(key, certificate)

    @property
    def certificate(self) -> bytes:
        """Its own certificate, as PEM."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key(self) -> bytes:
        """Its key, as PEM."""
        return _key_pem(self._key)

    def server(self, names: Iterable[str], *, life: timedelta = _LIFE) -> PemKeyPair:
        """Issue a certificate for a server with these host names and addresses."""
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "steersman")])
        alternatives = x509.SubjectAlternativeName([_general_name(name) for name in names])
        return self._issue(subject, ExtendedKeyUsageOID.SERVER_AUTH, alternatives, life)

    def client(self, user: str, *, groups: tuple[str, ...] = ()) -> PemKeyPair:
        """Issue a client certificate for ``user`` with these groups."""
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, user)])
        return self._issue(subject, ExtendedKeyUsageOID.CLIENT_AUTH, None, _LIFE)

    def _issue(
        self,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName | None,
        life: timedelta,
    ) -> PemKeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(subject, self._certificate.subject, key.public_key(), life)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return PemKeyPair(certificate.public_bytes(serialization.Encoding.PEM), _key_pem(key))


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    """The validity period of a certificate, and the names and addresses for which it is valid."""

    begins: datetime
    ends: datetime
    names: frozenset[str]
    pem: bytes = field(repr=False)

    def age(self, now: datetime) -> float:
        """The part of its validity period that has passed: 0 when new, 1 when expired."""
        return (now - self.begins) / (self.ends - self.begins)

    def is_valid(self, now: datetime) -> bool:
        """Whether it has begun and not ended. A clock that was wrong makes certificates of the future."""
        return self.begins <= now < self.ends

    def is_issued_by(self, authority: CertificateFacts) -> bool:
        """Whether an authority signed it."""
        try:
            signer = x509.load_pem_x509_certificate(authority.pem)
            x509.load_pem_x509_certificate(self.pem).verify_directly_issued_by(signer)
        except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
            return False
        return True

    def has_key(self, pem: bytes) -> bool:
        """Whether a text is its private key."""
        try:
            key = serialization.load_pem_private_key(pem, None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            return False
        return key.public_key() == x509.load_pem_x509_certificate(self.pem).public_key()


def certificates_in(pem: bytes) -> list[CertificateFacts]:
    """The certificates in a PEM text; empty if it is unreadable."""
    try:
        found = x509.load_pem_x509_certificates(pem)
    except ValueError:
        return []
    return [
        CertificateFacts(
            each.not_valid_before_utc,
            each.not_valid_after_utc,
            _names_of(each),
            each.public_bytes(serialization.Encoding.PEM),
        )
        for each in found
    ]


def common_name(der: bytes) -> str:
    """The common name of a certificate in DER; empty if it has none."""
    names = x509.load_der_x509_certificate(der).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if names else ""


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, ValueError):
        return False


def _names_of(certificate: x509.Certificate) -> frozenset[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    addresses = map(str, names.get_values_for_type(x509.IPAddress))
    return frozenset((*names.get_values_for_type(x509.DNSName), *addresses))


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, life: timedelta
) -> x509.CertificateBuilder:
    moment = aio.utc_now()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(moment - _BACKDATED)
        .not_valid_after(moment + life)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
