"""The kubeconfig of a served API server.

Guarantees: it is self-contained, only its owner can read it, and it is replaced atomically. A file with any other
content is never replaced.
"""

from __future__ import annotations

import base64
import os
import stat
from pathlib import Path
from typing import Any

import yaml

from steersman.apiserver.serving.private_files import write_private
from steersman.transport import PemKeyPair

#: No kubeconfig of this server is longer, in bytes.
_LONGEST = 64 * 1024


def write_kubeconfig(
    path: Path, *, url: str, authority: bytes, user: PemKeyPair | str, name: str = "steersman"
) -> None:
    """Write the kubeconfig of one user of the server at ``url``; ``authority`` is a certificate as PEM.

    The user has a certificate with its key, or a token.

    Raises `ValueError` if the file exists and is not such a kubeconfig: it may hold access to other clusters.
    """
    if path.exists() and not _is_ours(path, name):
        raise ValueError(
            f"{path} already exists and is not a kubeconfig of this server; remove it, or choose another file"
        )
    cluster = {"server": url, "certificate-authority-data": _encoded(authority)}
    credentials = (
        {"token": user}
        if isinstance(user, str)
        else {"client-certificate-data": _encoded(user.certificate), "client-key-data": _encoded(user.key)}
    )
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
        # Another user may have planted it: reading a pipe would block the start, and reading a device would never end.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode) or state.st_size > _LONGEST:
                return False
            document: Any = yaml.safe_load(file.read())
        return [each["name"] for each in (*document["clusters"], *document["contexts"])] == [name, name]
    except (yaml.YAMLError, KeyError, TypeError, UnicodeDecodeError):
        return False


def _encoded(text: bytes) -> str:
    return base64.b64encode(text).decode()
