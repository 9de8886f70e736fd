"""The kubeconfig files of an engine.

Guarantees: a file is self-contained (certificates and keys inside), and only its owner can read it. Its current context
`admin` uses a client certificate; the context `admin-token` is the same user with a token.
"""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import yaml

from steersman.testing.certificates import KeyPair


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
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        yaml.safe_dump(document, file, sort_keys=False)


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
