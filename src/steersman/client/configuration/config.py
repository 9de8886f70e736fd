"""The configuration of a client: one API server and one identity.

A `Config` is complete and frozen: file names are absolute, addresses are checked, defaults are filled in.
Its secrets are `Hidden`: printing, logging or formatting a configuration never shows them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from steersman.client.configuration.secrecy import Hidden, hide_password, printable
from steersman.errors import ConfigError
from steersman.transport import TlsMaterial

InteractiveMode = Literal["Never", "IfAvailable", "Always"]

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NOT_IN_A_URL = re.compile(r"[\x00-\x20\x7f]")


@dataclass(frozen=True, slots=True, init=False)
class BearerToken:
    """A fixed token, sent as ``Authorization: Bearer``."""

    token: Hidden[str]

    def __init__(self, token: str | Hidden[str]) -> None:
        object.__setattr__(self, "token", hidden(token))


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A bearer token in a file that another program rotates, as the kubelet does.

    The file is re-read after `reread_after` seconds, and immediately after the server rejects the token.
    `fallback` is used while the file is unreadable.
    """

    path: str
    reread_after: float = 60.0
    fallback: Hidden[str] | None = None


@dataclass(frozen=True, slots=True, init=False)
class BasicAuth:
    """A user name and a password. Kubernetes has rejected them since 1.19; proxies in front of it may accept them."""

    username: str
    password: Hidden[str]

    def __init__(self, username: str, password: str | Hidden[str]) -> None:
        object.__setattr__(self, "username", username)
        object.__setattr__(self, "password", hidden(password))


@dataclass(frozen=True, slots=True, init=False)
class ExecPlugin:
    """A program that prints credentials: ``exec`` of a kubeconfig user.

    Arguments and environment are hidden because they often carry client secrets. `cluster_info` is the JSON passed to
    the plugin as ``spec.cluster``; None passes nothing. A run ends after `timeout` seconds: by default two minutes, or
    ten if the plugin may prompt.
    """

    command: str
    args: tuple[Hidden[str], ...]
    env: tuple[tuple[str, Hidden[str]], ...]
    api_version: str
    interactive_mode: InteractiveMode
    install_hint: str
    cluster_info: Hidden[bytes] | None
    timeout: float | None

    def __init__(
        self,
        command: str,
        args: Iterable[str | Hidden[str]] = (),
        *,
        env: Iterable[tuple[str, str | Hidden[str]]] = (),
        api_version: str = "client.authentication.k8s.io/v1",
        interactive_mode: InteractiveMode = "IfAvailable",
        install_hint: str = "",
        cluster_info: Hidden[bytes] | None = None,
        timeout: float | None = None,
    ) -> None:
        values = {
            "command": command,
            "args": tuple(hidden(arg) for arg in args),
            "env": tuple((name, hidden(value)) for name, value in env),
            "api_version": api_version,
            "interactive_mode": interactive_mode,
            "install_hint": printable(install_hint),
            "cluster_info": cluster_info,
            "timeout": timeout,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)


Auth: TypeAlias = BearerToken | TokenFile | BasicAuth | ExecPlugin


@dataclass(frozen=True, slots=True, kw_only=True)
class Impersonation:
    """The user to act as: the server checks that the real user may impersonate it."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __post_init__(self) -> None:
        if not self.user:
            raise ConfigError("impersonation needs a user: a uid, groups or extra values alone are not enough")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The source of a configuration, for messages: names in a kubeconfig and the files they come from."""

    context: str = ""
    cluster: str = ""
    user: str = ""
    files: tuple[str, ...] = ()

    def __str__(self) -> str:
        files = ", ".join(self.files)
        if self.context:
            return f'context "{printable(self.context, limit=200)}" of {files}'
        return files or "an explicit Config"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Config:
    """One API server and one identity: ``Config("https://10.0.0.1:6443", auth=BearerToken(token))``.

    A client certificate is part of `tls`, not of `auth`. Raises ConfigError for an invalid value.
    """

    server: str
    tls: TlsMaterial
    auth: Auth | None
    impersonation: Impersonation | None
    namespace: str
    proxy_url: Hidden[str] | None
    disable_compression: bool
    origin: Origin = field(compare=False)

    def __init__(
        self,
        server: str,
        *,
        tls: TlsMaterial | None = None,
        auth: Auth | None = None,
        impersonation: Impersonation | None = None,
        namespace: str = "default",
        proxy_url: str | Hidden[str] | None = None,
        disable_compression: bool = False,
        origin: Origin | None = None,
    ) -> None:
        values = {
            "server": _checked_server(server),
            "tls": tls or TlsMaterial(),
            "auth": auth,
            "impersonation": impersonation,
            "namespace": _checked_namespace(namespace),
            "proxy_url": _checked_proxy(hidden(proxy_url)) if proxy_url else None,
            "disable_compression": disable_compression,
            "origin": origin or Origin(),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        shown = [repr(self.server), f"auth={self.auth!r}", f"namespace={self.namespace!r}"]
        if self.impersonation is not None:
            shown.append(f"impersonation={self.impersonation!r}")
        if self.proxy_url is not None:
            shown.append(f"proxy_url={hide_password(self.proxy_url.reveal())!r}")
        shown.append(f"from {self.origin}")
        return f"<Config {', '.join(shown)}>"


def hidden(value: str | Hidden[str]) -> Hidden[str]:
    """Return `value` wrapped in Hidden."""
    return value if isinstance(value, Hidden) else Hidden(value)


def _checked_server(server: str) -> str:
    shown = printable(hide_password(server), limit=300)
    problem = _url_problem(server, schemes=("https", "http"))
    if problem:
        raise ConfigError(f'server "{shown}": {problem}')
    parts = urlsplit(server)
    if "@" in parts.netloc:
        raise ConfigError(
            f'server "{shown}": remove the user name and password from the address; set them as credentials'
        )
    # kubectl also ignores a query and a fragment; a path is a prefix that some gateways need.
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _checked_proxy(proxy_url: Hidden[str]) -> Hidden[str]:
    url = proxy_url.reveal()
    shown = printable(hide_password(url), limit=300)
    problem = _url_problem(url, schemes=("http",))
    if problem:
        raise ConfigError(f'proxy-url "{shown}": {problem}; the connection to the server through it still uses TLS')
    return proxy_url


def _url_problem(url: str, *, schemes: tuple[str, ...]) -> str:
    wanted = f"it must start with {' or '.join(f'{scheme}://' for scheme in schemes)} and name a host"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return f"not a URL: {wanted}; a port is a number up to 65535, an IPv6 address needs brackets"
    if parts.scheme not in schemes or not parts.hostname or port == 0:
        return wanted
    # urlsplit silently drops tabs and line ends.
    return "it contains blanks or control characters" if _NOT_IN_A_URL.search(url) else ""


def _checked_namespace(namespace: str) -> str:
    if not _DNS_LABEL.fullmatch(namespace):
        raise ConfigError(
            f'namespace "{printable(namespace, limit=100)}" is invalid: use at most 63 lower case letters, digits and '
            '"-", starting and ending with a letter or a digit'
        )
    return namespace
