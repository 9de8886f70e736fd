"""The kubeconfig files of an engine.

Guarantees: a file is self-contained (certificates and keys inside), and only its owner can read it. Its current context
`admin` uses a client certificate; the context `admin-token` is the same user with a token.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml

from steersman.testing.engine.certificates import KeyPair, write_secret


def write_kubeconfig(path: Path, *, url: str, ca_file: Path, admin: KeyPair, token: str) -> None:
    """Write a kubeconfig for the API server at `url`."""
    users: dict[str, dict[str, str]] = {
        "admin": {
            "client-certificate-data": _encoded(admin.certificate_file),
            "client-key-data": _encoded(admin.key_file),
        },
        "admin-token": {"token": token},
    }
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "engine", "cluster": {"server": url, "certificate-authority-data": _encoded(ca_file)}}],
        "users": [{"name": name, "user": user} for name, user in users.items()],
        "contexts": [{"name": name, "context": {"cluster": "engine", "user": name}} for name in users],
        "current-context": "admin",
    }
    write_secret(path, yaml.safe_dump(document, sort_keys=False).encode())


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
