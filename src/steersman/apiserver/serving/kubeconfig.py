"""The kubeconfig of a served API server.

Guarantees: it is self-contained, only its owner can read it, and it is replaced atomically. A file with any other
content is never replaced.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml

from steersman.apiserver.serving.certificates import Credentials
from steersman.apiserver.serving.private_files import write_private


def write_kubeconfig(path: Path, *, url: str, authority: bytes, user: Credentials, name: str = "steersman") -> None:
    """Write the kubeconfig of one user of the server at ``url``; ``authority`` is a certificate as PEM.

    Raises `ValueError` if the file exists and is not such a kubeconfig: it may hold access to other clusters.
    """
    if path.exists() and not _is_ours(path, name):
        raise ValueError(
            f"{path} already exists and is not a kubeconfig of this server; remove it, or choose another file"
        )
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


def _is_ours(path: Path, name: str) -> bool:
    try:
        document: Any = yaml.safe_load(path.read_bytes())
        return [each["name"] for each in (*document["clusters"], *document["contexts"])] == [name, name]
    except (yaml.YAMLError, KeyError, TypeError, UnicodeDecodeError):
        return False


def _encoded(text: bytes) -> str:
    return base64.b64encode(text).decode()
