"""A certificate authority in a folder: it signs the certificates of its server and its users.

Guarantees
- The authority is created once and kept with mode 0600; its certificates stay valid after a restart.
- An authority that another user owns, can read or could have planted is not used: its key would create administrators.
- Certificates and keys of servers and users are created anew each time and are never written to disk here.
- A server's certificate is valid for loopback, and for one more host if requested.
"""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from steersman import aio
from steersman.apiserver.serving.private_files import write_private
from steersman.apiserver.storage.ownership import read_owned

#: Clocks differ a little; a certificate that is valid slightly early does no harm.
_BACKDATED = timedelta(hours=1)
_AUTHORITY_LIFE = timedelta(days=3650)
_LIFE = timedelta(days=365)
_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


@dataclass(frozen=True, slots=True)
class Credentials:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


class Authority:
    """Signs certificates; loaded from a folder, or created there: ``Authority(folder)``."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = folder / "authority.pem"
        # The mode of a symbolic link's target does not say who can change the link.
        if os.path.lexists(file):
            text = read_owned(file, secret=True)
            try:
                key, self._certificate = (
                    serialization.load_pem_private_key(text, None),
                    x509.load_pem_x509_certificate(text),
                )
            except (ValueError, TypeError, UnsupportedAlgorithm):
                key = None
            if not isinstance(key, ec.EllipticCurvePrivateKey):
                raise ValueError(
                    f"{file} does not hold an authority of this server; remove the file, and a new one is created"
                )
            self._key = key
        else:
            self._key = ec.generate_private_key(ec.SECP256R1())
            self._certificate = _self_signed(self._key)
            # One file, so that a certificate never exists without its key.
            write_private(file, _key_pem(self._key) + self.certificate)

    @property
    def certificate(self) -> bytes:
        """The authority's own certificate, as PEM."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def server(self, host: str = "127.0.0.1") -> Credentials:
        """Credentials of a server on loopback and on a host."""
        names: list[x509.GeneralName] = [x509.DNSName(name) for name in _NAMES]
        addresses = dict.fromkeys(["127.0.0.1", "::1"])
        try:
            addresses[str(ipaddress.ip_address(host))] = None
        except ValueError:
            if host not in _NAMES:
                names.append(x509.DNSName(host))
        names += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "steersman")])
        return self._issue(subject, ExtendedKeyUsageOID.SERVER_AUTH, x509.SubjectAlternativeName(names))

    def client(self, user: str, *, groups: tuple[str, ...] = ()) -> Credentials:
        """Client credentials of ``user``, a member of ``groups``."""
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, user)])
        return self._issue(subject, ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def _issue(
        self, subject: x509.Name, usage: x509.ObjectIdentifier, names: x509.SubjectAlternativeName | None
    ) -> Credentials:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(subject, self._certificate.subject, key.public_key(), _LIFE)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return Credentials(certificate.public_bytes(serialization.Encoding.PEM), _key_pem(key))


def _self_signed(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"steersman {aio.new_uid()[:8]}")])
    return (
        _builder(name, name, key.public_key(), _AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, life: timedelta
) -> x509.CertificateBuilder:
    moment = aio.now()
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
