"""A certificate authority for one engine, and the files of the certificates it signs.

Guarantees: every engine has its own authority and keys, never reused. Only the owner can read a key file. The server's
certificate is valid for loopback only.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from steersman.apiserver.serving import Authority
from steersman.transport import PemKeyPair


@dataclass(frozen=True, slots=True)
class KeyPair:
    """The files of a certificate and its private key."""

    certificate_file: Path
    key_file: Path


class CertificateAuthority:
    """Signs the certificates of one engine and writes them into a directory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._authority = Authority(folder)
        self.certificate_file = folder / "ca.crt"
        write_secret(self.certificate_file, self._authority.certificate)

    def server(self, name: str) -> KeyPair:
        """Make a certificate for a server on loopback."""
        return self._written(name, self._authority.server())

    def client(self, name: str, *, user: str, groups: tuple[str, ...] = ()) -> KeyPair:
        """Make a client certificate for `user`, a member of `groups`."""
        return self._written(name, self._authority.client(user, groups=groups))

    def _written(self, name: str, credentials: PemKeyPair) -> KeyPair:
        pair = KeyPair(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        write_secret(pair.certificate_file, credentials.certificate)
        write_secret(pair.key_file, credentials.key)
        return pair


def write_signing_key(path: Path) -> None:
    """Write a new key that signs service account tokens, in the form from which kube-apiserver can verify them."""
    form = serialization.PrivateFormat.TraditionalOpenSSL
    key = ec.generate_private_key(ec.SECP256R1())
    write_secret(path, key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))


def write_secret(path: Path, content: bytes) -> None:
    """Create a file that only its owner can read, from the beginning."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
