"""The configuration of a pod: the service account that Kubernetes mounts into it."""

from __future__ import annotations

import os

from steersman.client.configuration.bounded_file import read_bounded_file, reason
from steersman.client.configuration.config import Config, Origin, TokenFile
from steersman.client.configuration.secrecy import printable
from steersman.errors import ConfigError
from steersman.transport import TlsMaterial, join_host_port

SERVICE_ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"

_FILE_LIMIT = 4 << 20


def in_pod() -> bool:
    """Whether this process runs in a Pod: Kubernetes tells every container where its API server is."""
    return all(_server())


def _server() -> tuple[str, str]:
    return os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "")


def in_cluster_config(folder: str | os.PathLike[str] = SERVICE_ACCOUNT_FOLDER) -> Config:
    """Return the configuration of the pod this process runs in.

    The server comes from ``KUBERNETES_SERVICE_HOST`` and ``KUBERNETES_SERVICE_PORT``. Token, certificate authority and
    namespace come from the service account's files in `folder`. Raises ConfigError outside a pod, or if the pod mounts
    no service account.
    """
    host, port = _server()
    if not in_pod():
        raise ConfigError("not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not both set")
    place = os.fspath(folder)
    token_file = f"{place}/token"
    if not (_content(token_file) or b"").strip():
        raise ConfigError(
            f"in a pod, but {token_file} is empty or missing: does the pod set automountServiceAccountToken: false?"
        )
    ca_file = f"{place}/ca.crt"
    namespace = (_content(f"{place}/namespace") or b"").decode("utf-8", "replace").strip()
    return Config(
        f"https://{join_host_port(host, port)}",
        # Without a certificate authority, the system's own are the safe choice.
        tls=TlsMaterial(ca_file=ca_file) if _content(ca_file) else TlsMaterial(),
        auth=TokenFile(token_file),
        namespace=namespace or "default",
        origin=Origin(files=(place,)),
    )


def _content(file: str) -> bytes | None:
    problem = ""
    try:
        return read_bounded_file(file, limit=_FILE_LIMIT)
    except FileNotFoundError:
        return None
    except OSError as error:
        problem = reason(error)
    raise ConfigError(f"cannot read {printable(file, limit=400)}: {problem}")
