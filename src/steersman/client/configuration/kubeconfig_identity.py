"""Makes a `Config` of a context, its cluster and its user, by kubectl's rules.

- A token or a client certificate takes precedence over an exec plugin. A token file takes precedence over a token,
  which is the fallback while the file is unreadable.
- Credentials are never sent to an ``http://`` server.
- Configurations that cannot work are errors when read: a certificate without its key, two passwords for one user, a
  legacy auth provider.
"""

from __future__ import annotations

import base64
import os
from typing import Any, cast

import msgspec

from steersman.client.configuration.config import (
    Auth,
    BasicAuth,
    BearerToken,
    Config,
    ExecPlugin,
    Impersonation,
    InteractiveMode,
    Origin,
    TokenFile,
)
from steersman.client.configuration.kubeconfig_entry import Entry, quoted, type_name
from steersman.client.configuration.secrecy import Hidden
from steersman.errors import ConfigError
from steersman.transport import TlsMaterial

EXEC_V1 = "client.authentication.k8s.io/v1"
EXEC_V1BETA1 = "client.authentication.k8s.io/v1beta1"
# The reserved name of the extension whose content is passed to an exec plugin.
_EXEC_EXTENSION = "client.authentication.k8s.io/exec"

_REPLACEMENTS = {
    "gcp": "install gke-gcloud-auth-plugin and run `gcloud container clusters get-credentials CLUSTER` again",
    "azure": "install kubelogin of Azure and run `kubelogin convert-kubeconfig`",
    "oidc": "install the kubectl plugin oidc-login (kubelogin) and set it as the user's exec plugin",
    "openstack": "install client-keystone-auth and set it as the user's exec plugin",
}
_REPLACEMENT = "ask the cluster's owner for an exec plugin (user.exec) or a token"


def build_config(name: str, context: Entry, *, cluster: Entry, user: Entry | None, files: tuple[str, ...]) -> Config:
    """Return the configuration of a context."""
    server = cluster.text("server")
    if not server:
        raise cluster.error("server is missing; set the address of the API server, such as https://10.0.0.1:6443")
    identity = user if user is not None else Entry("user", context.source, {})
    ca_file, ca_data = cluster.material("certificate-authority")
    insecure = cluster.flag("insecure-skip-tls-verify")
    if insecure and (ca_file or ca_data):
        raise cluster.error("insecure-skip-tls-verify and a certificate authority are mutually exclusive; remove one")
    tls = _tls(
        identity, ca_file=ca_file, ca_data=ca_data, server_name=cluster.text("tls-server-name"), insecure=insecure
    )
    auth = _auth(identity, cluster, tls)
    if server.startswith("http://"):
        tls, auth = TlsMaterial(), None
    origin = Origin(
        context=name,
        cluster=context.text("cluster"),
        user=context.text("user"),
        files=_holders(files, context, cluster, user),
    )
    impersonation = _impersonation(identity)
    namespace, proxy_url = context.text("namespace") or "default", cluster.text("proxy-url") or None
    disable_compression = cluster.flag("disable-compression")
    problem = ""
    try:
        return Config(
            server,
            tls=tls,
            auth=auth,
            impersonation=impersonation,
            namespace=namespace,
            proxy_url=proxy_url,
            disable_compression=disable_compression,
            origin=origin,
        )
    except ConfigError as error:
        problem = str(error)
    raise ConfigError(f"{origin}: {problem}")


def _holders(files: tuple[str, ...], *entries: Entry | None) -> tuple[str, ...]:
    holding = {entry.source for entry in entries if entry is not None}
    return tuple(file for file in files if file in holding)


def _tls(user: Entry, *, ca_file: str | None, ca_data: bytes | None, server_name: str, insecure: bool) -> TlsMaterial:
    certificate_file, certificate_data = user.material("client-certificate")
    key_file: str | None = None
    key_data: bytes | None = None
    # A key without a certificate is ignored, as kubectl does.
    if certificate_file or certificate_data:
        key_file, key_data = user.material("client-key")
        if not key_file and not key_data:
            raise user.error("client-certificate needs a client-key; add client-key or client-key-data")
    return TlsMaterial(
        ca_file=ca_file,
        ca_data=ca_data,
        certificate_file=certificate_file,
        certificate_data=certificate_data,
        key_file=key_file,
        key_data=key_data,
        server_name=server_name or None,
        insecure_skip_verify=insecure,
    )


def _auth(user: Entry, cluster: Entry, tls: TlsMaterial) -> Auth | None:
    provider = user.nested("auth-provider")
    if provider is not None:
        kind = provider.text("name")
        raise user.error(
            f"auth-provider {quoted(kind)} is not supported; use an exec plugin instead: "
            f"{_REPLACEMENTS.get(kind, _REPLACEMENT)}"
        )
    token, token_file = user.text("token"), user.path("tokenFile")
    username, password = user.text("username"), user.text("password")
    if (token or token_file) and (username or password):
        raise user.error("a token and a user name or password are both set; remove one")
    if token_file:
        if not token:
            user.read("tokenFile", token_file)
        return TokenFile(token_file, fallback=Hidden(token) if token else None)
    if token:
        return BearerToken(token)
    if username or password:
        return BasicAuth(username, password)
    plugin = user.nested("exec")
    has_certificate = bool(tls.certificate_file or tls.certificate_data)
    return None if plugin is None or has_certificate else _exec_plugin(plugin, cluster)


def _exec_plugin(plugin: Entry, cluster: Entry) -> ExecPlugin:
    if plugin.source is None:
        raise plugin.error("a kubeconfig given as text must not run a program; use a token or a certificate")
    command = plugin.text("command")
    if not command:
        raise plugin.error("command is missing; set the program to run")
    # A bare name is looked up in PATH.
    if os.sep in command:
        command = plugin.resolved("command", command)
    return ExecPlugin(
        command,
        plugin.texts("args"),
        env=_environment(plugin),
        api_version=_exec_version(plugin),
        interactive_mode=_interactive_mode(plugin),
        install_hint=plugin.text("installHint"),
        cluster_info=Hidden(_cluster_info(cluster)) if plugin.flag("provideClusterInfo") else None,
    )


def _exec_version(plugin: Entry) -> str:
    version = plugin.text("apiVersion")
    if version not in {EXEC_V1, EXEC_V1BETA1}:
        said = f"apiVersion {quoted(version)} is not supported" if version else "apiVersion is missing"
        raise plugin.error(f"{said}; the plugin must speak {EXEC_V1} or {EXEC_V1BETA1}: update it and its entry here")
    return version


def _interactive_mode(plugin: Entry) -> InteractiveMode:
    match plugin.text("interactiveMode"):
        case "Never" | "IfAvailable" | "Always" as mode:
            return mode
        case "" if plugin.text("apiVersion") == EXEC_V1BETA1:
            return "IfAvailable"
        case "":
            raise plugin.error(
                f"interactiveMode is missing, which {EXEC_V1} requires; set Never, IfAvailable or Always"
            )
        case other:
            raise plugin.error(f"interactiveMode {quoted(other)} is unknown; set Never, IfAvailable or Always")


def _environment(plugin: Entry) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for index, item in enumerate(plugin.items("env")):
        place = f"{plugin.what}: env[{index}]"
        if not isinstance(item, dict):
            raise Entry(place, plugin.source, {}).error(
                f"it must be a mapping with name and value, not {type_name(item)}"
            )
        variable = Entry(place, plugin.source, cast("dict[str, Any]", item))
        name, value = variable.text("name"), variable.text("value")
        if not name or "=" in name or "\0" in name or "\0" in value:
            raise variable.error(
                "name must be the name of an environment variable, value a string without null characters"
            )
        pairs.append((name, value))
    return pairs


def _cluster_info(cluster: Entry) -> bytes:
    """Return ``spec.cluster`` for a plugin, with certificates instead of file names."""
    ca_file, ca_data = cluster.material("certificate-authority")
    if ca_file:
        ca_data = cluster.read("certificate-authority", ca_file)
    info: dict[str, Any] = {"server": cluster.text("server")}
    for key in ("tls-server-name", "proxy-url"):
        if cluster.text(key):
            info[key] = cluster.text(key)
    for key in ("insecure-skip-tls-verify", "disable-compression"):
        if cluster.flag(key):
            info[key] = True
    if ca_data:
        info["certificate-authority-data"] = base64.b64encode(ca_data).decode("ascii")
    info["config"] = None
    for item in cluster.items("extensions"):
        if isinstance(item, dict):
            extension = cast("dict[str, Any]", item)
            if extension.get("name") == _EXEC_EXTENSION:
                info["config"] = extension.get("extension")
    return msgspec.json.encode(info)


def _impersonation(user: Entry) -> Impersonation | None:
    name, uid = user.text("as"), user.text("as-uid")
    groups, extra = user.texts("as-groups"), user.lists_of_texts("as-user-extra")
    if not name:
        if uid or groups or extra:
            raise user.error("as-uid, as-groups or as-user-extra is set without as, the user to impersonate")
        return None
    return Impersonation(user=name, uid=uid, groups=groups, extra=extra)
