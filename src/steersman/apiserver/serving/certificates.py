"""A certificate authority in a folder: it signs the certificates of its server and its users.

Guarantees
- The authority is created once and kept with mode 0600; its certificates stay valid after a restart.
- An authority that another user owns, can read or could have planted is not used: its key would create administrators.
- Certificates and keys of servers and users are created anew each time and are never written to disk here.
- A server's certificate is valid for loopback, and for one more host if requested.
"""

from __future__ import annotations

import os
from pathlib import Path

from steersman.apiserver.serving.certificate_process import server_names
from steersman.apiserver.serving.private_files import write_private
from steersman.apiserver.storage.ownership import read_owned
from steersman.transport import CertificateIssuer, PemKeyPair


class Authority:
    """Signs certificates; loaded from a folder, or created there: ``Authority(folder)``."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = folder / "authority.pem"
        # The mode of a symbolic link's target does not say who can change the link.
        if os.path.lexists(file):
            issuer = CertificateIssuer.load(read_owned(file, secret=True))
            if issuer is None:
                raise ValueError(
                    f"{file} does not hold an authority of this server; remove the file, and a new one is created"
                )
        else:
            issuer = CertificateIssuer.create()
            # One file, so that a certificate never exists without its key.
            write_private(file, issuer.key + issuer.certificate)
        self._issuer = issuer

    @property
    def certificate(self) -> bytes:
        """The authority's own certificate, as PEM."""
        return self._issuer.certificate

    def server(self, host: str = "127.0.0.1") -> PemKeyPair:
        """The key pair of a server on loopback and on a host."""
        return self._issuer.server(server_names(host))

    def client(self, user: str, *, groups: tuple[str, ...] = ()) -> PemKeyPair:
        """Client credentials of ``user``, a member of ``groups``."""
        return self._issuer.client(user, groups=groups)
