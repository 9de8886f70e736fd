"""The kubeconfig of a served API server.

Guarantees: it is complete by itself, only its owner can read it, and it is replaced in one step.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml

from steersman.apiserver.serving.certificates import Credentials
from steersman.apiserver.serving.private_files import write_private


def write_kubeconfig(path: Path, *, url: str, authority: bytes, user: Credentials, name: str = "steersman") -> None:
    """Write the kubeconfig of one user of the server at ``url``; ``authority`` is a certificate as PEM."""
    cluster = {"server": url, "certificate-authority-data": _encoded(authority)}
    credentials = {"client-certificate-data": _encoded(user.certificate), "client-key-data": _encoded(user.key)}
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": "admin", "user": credentials}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "admin"}}],
        "current-context": name,
    }
    write_private(path, yaml.safe_dump(document, sort_keys=False).encode())


def _encoded(text: bytes) -> str:
    return base64.b64encode(text).decode()
