"""Certificates that are good, and certificates with exactly one thing wrong."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from steersman import aio


class Authority:
    """A certificate authority whose files lie in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"authority {folder.name}")])
        certificate = (
            self._builder(self._name, self._key, days=(-1, 1))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.file = folder / "ca.pem"
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def _builder(self, subject, key, *, days: tuple[int, int]) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(aio.utc_now() + timedelta(days=days[0]))
            .not_valid_after(aio.utc_now() + timedelta(days=days[1]))
        )

    def issue(self, name: str, *, days: tuple[int, int] = (-1, 1)) -> tuple[Path, Path]:
        """A certificate for a host name or an address, valid between two days from now; the files of it and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        try:
            host: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(name))
        except ValueError:
            host = x509.DNSName(name)
        builder = self._builder(subject, key, days=days)
        builder = builder.add_extension(x509.SubjectAlternativeName([host]), critical=False)
        certificate_file, key_file = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        certificate_file.write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        key_file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return certificate_file, key_file

    def server(self, name: str = "127.0.0.1", *, days: tuple[int, int] = (-1, 1), clients: Authority | None = None):
        """The TLS side of a server; with ``clients`` it wants a certificate of that authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.issue(name, days=days))
        if clients is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(clients.file)
        return context
