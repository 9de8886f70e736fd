"""Makes the credentials for a `Config`."""

from __future__ import annotations

from steersman.client.configuration.config import BasicAuth, BearerToken, Config, ExecPlugin, TokenFile
from steersman.client.credentials.credentials import (
    Credentials,
    ImpersonatingCredentials,
    StaticCredentials,
    basic_headers,
    bearer_headers,
)
from steersman.client.credentials.token_file import TokenFileCredentials


def credentials_for(config: Config) -> Credentials:
    """Return credentials for `config`; reads and runs nothing until first use."""
    inner = _inner(config)
    return inner if config.impersonation is None else ImpersonatingCredentials(inner, config.impersonation)


def _inner(config: Config) -> Credentials:
    match config.auth:
        case None:
            return StaticCredentials()
        case BearerToken() as auth:
            return StaticCredentials(bearer_headers(auth.token))
        case BasicAuth() as auth:
            return StaticCredentials(basic_headers(auth))
        case TokenFile() as auth:
            return TokenFileCredentials(auth)
        case ExecPlugin() as auth:
            from steersman.client.credentials.exec_plugin import ExecCredentials  # noqa: PLC0415 - few kubeconfigs name a plugin

            return ExecCredentials(auth)
