"""Kubeconfig files, service accounts and the order in which they are looked for."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings, strategies as st

from steersman.client.configuration.config import BasicAuth, BearerToken, Config, ExecPlugin, Impersonation, TokenFile
from steersman.client.configuration.kubeconfig import load_kubeconfig, parse_kubeconfig
from steersman.errors import ConfigError

PEM = b"-----BEGIN CERTIFICATE-----\nbm90IHJlYWw=\n-----END CERTIFICATE-----\n"
V1 = "client.authentication.k8s.io/v1"


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def document(
    *, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **context: Any
) -> dict[str, Any]:
    """A kubeconfig with one context named "x"."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", **context}}],
    }


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def written(path: Path, content: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return str(path)


def complaint(paths: Any, *, context: str | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load_kubeconfig(paths, context=context)
    return str(caught.value)


# -- reading one file


def test_everything_a_kubeconfig_says_arrives(tmp_path: Path) -> None:
    cluster = {
        "server": "https://api.example.com:6443/prefix/?a=b",
        "certificate-authority-data": encoded(PEM),
        "tls-server-name": "kubernetes",
        "proxy-url": "http://proxy.example.com:3128",
        "disable-compression": True,
    }
    user = {
        "client-certificate-data": encoded(PEM + b"cert"),
        "client-key-data": encoded(PEM + b"key"),
        "token": "sesame",
        "as": "jane",
        "as-uid": "7",
        "as-groups": ["a", "b"],
        "as-user-extra": {"scopes": ["v", "w"]},
    }
    file = written(tmp_path / "config", document(cluster=cluster, user=user, namespace="web"))

    config = load_kubeconfig(file)

    assert config.server == "https://api.example.com:6443/prefix"
    assert config.tls.ca_data == PEM
    assert config.tls.server_name == "kubernetes"
    assert config.auth == BearerToken("sesame")
    assert config.proxy_url is not None
    assert config.proxy_url.reveal() == "http://proxy.example.com:3128"
    assert config.disable_compression
    assert config.namespace == "web"
    assert config.impersonation == Impersonation(
        user="jane", uid="7", groups=("a", "b"), extra=(("scopes", ("v", "w")),)
    )
    assert (config.origin.context, config.origin.cluster, config.origin.user) == ("x", "c", "u")
    assert str(config.origin) == f'context "x" of {file}'


def test_names_of_files_count_from_the_folder_of_the_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ca.crt", "cert.pem", "key.pem"):
        written(tmp_path / "pki" / name, PEM)
    written(tmp_path / "kube" / "tokens" / "t", "sesame")
    cluster = {"certificate-authority": "../pki/ca.crt"}
    user = {
        "client-certificate": "../pki/cert.pem",
        "client-key": str(tmp_path / "pki/key.pem"),
        "tokenFile": "tokens/t",
    }
    written(tmp_path / "kube" / "config", document(cluster=cluster, user=user))
    monkeypatch.chdir(tmp_path / "pki")

    config = load_kubeconfig("../kube/config")

    assert config.tls.ca_file == str(tmp_path / "pki/ca.crt")
    assert config.tls.certificate_file == str(tmp_path / "pki/cert.pem")
    assert config.tls.key_file == str(tmp_path / "pki/key.pem")
    assert config.auth == TokenFile(str(tmp_path / "kube/tokens/t"))


def test_a_context_can_be_chosen_and_its_user_may_be_absent(tmp_path: Path) -> None:
    content = document()
    content["contexts"].append({"name": "anonymous", "context": {"cluster": "c"}})
    config = load_kubeconfig(written(tmp_path / "config", content), context="anonymous")
    assert (config.auth, config.namespace, config.origin.context) == (None, "default", "anonymous")


def test_json_is_a_kubeconfig_too(tmp_path: Path) -> None:
    text = json.dumps(document(user={"token": "sesame"}), indent="\t")
    assert load_kubeconfig(written(tmp_path / "config", text)).auth == BearerToken("sesame")


def test_anchors_and_merge_keys_work(tmp_path: Path) -> None:
    text = """
current-context: x
clusters:
- name: c
  cluster: &defaults {server: 'https://a', tls-server-name: one}
- name: d
  cluster:
    <<: *defaults
    tls-server-name: two
contexts:
- {name: x, context: {cluster: d}}
"""
    config = load_kubeconfig(written(tmp_path / "config", text))
    assert (config.server, config.tls.server_name) == ("https://a", "two")


def test_a_pipe_can_hold_the_kubeconfig(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = yaml.safe_dump(document(user={"token": "t" * 200_000}))
    writer = threading.Thread(target=lambda: pipe.write_text(text))
    writer.start()
    config = load_kubeconfig(str(pipe))
    writer.join()
    assert config.auth == BearerToken("t" * 200_000)


def test_credentials_are_not_sent_without_encryption(tmp_path: Path) -> None:
    content = document(cluster={"server": "http://localhost:8080"}, user={"token": "sesame", "as": "jane"})
    config = load_kubeconfig(written(tmp_path / "config", content))
    assert config.auth is None
    assert config.impersonation == Impersonation(user="jane")


@pytest.mark.parametrize(
    ("user", "auth"),
    [
        ({"token": "a", "exec": {"command": "x"}}, BearerToken("a")),
        ({"username": "jane", "password": "b"}, BasicAuth("jane", "b")),
        ({"client-certificate-data": encoded(PEM), "client-key-data": encoded(PEM), "exec": {"command": "x"}}, None),
        ({"token": "", "username": None, "client-key-data": ""}, None),
    ],
)
def test_one_kind_of_credentials_is_chosen(tmp_path: Path, user: dict[str, Any], auth: object) -> None:
    assert load_kubeconfig(written(tmp_path / "config", document(user=user))).auth == auth


def test_a_token_stands_in_for_a_token_file(tmp_path: Path) -> None:
    file = written(tmp_path / "config", document(user={"token": "a", "tokenFile": "missing"}))
    auth = load_kubeconfig(file).auth
    assert isinstance(auth, TokenFile)
    assert auth.fallback is not None
    assert auth.fallback.reveal() == "a"


def test_an_exec_plugin_arrives_with_its_settings(tmp_path: Path) -> None:
    plugin = {
        "command": "bin/login",
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "args": ["--for", "me"],
        "env": [{"name": "A", "value": "1"}],
        "installHint": "try \x1b[1mapt",
        "provideClusterInfo": True,
    }
    written(tmp_path / "ca.crt", PEM)
    cluster = {
        "certificate-authority": "ca.crt",
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": ["x", 1, None]}}],
    }
    auth = load_kubeconfig(written(tmp_path / "config", document(cluster=cluster, user={"exec": plugin}))).auth

    assert isinstance(auth, ExecPlugin)
    assert auth.command == str(tmp_path / "bin/login")
    assert [arg.reveal() for arg in auth.args] == ["--for", "me"]
    assert [(name, value.reveal()) for name, value in auth.env] == [("A", "1")]
    assert auth.interactive_mode == "IfAvailable"
    assert auth.install_hint == "try U+001B[1mapt"
    assert auth.cluster_info is not None
    assert json.loads(auth.cluster_info.reveal()) == {
        "server": "https://10.0.0.1:6443",
        "certificate-authority-data": encoded(PEM),
        "config": {"audience": ["x", 1, None]},
    }


# -- what is wrong, and what to do


def exec_user(**plugin: Any) -> dict[str, Any]:
    return {"exec": {"command": "x", "apiVersion": V1, "interactiveMode": "Never", **plugin}}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (document(cluster={"server": ""}), ['cluster "c"', "server is missing", "https://"]),
        (document(cluster={"server": "10.0.0.1:6443"}), ["10.0.0.1:6443", "must start with https://"]),
        (document(cluster={"server": "https://[::1"}), ["not a URL", "brackets"]),
        (document(cluster={"server": "https://a:99999"}), ["not a URL", "65535"]),
        (document(cluster={"server": "https://a\nb"}), ["control characters"]),
        (document(cluster={"server": 5}), ['cluster "c": server must be a string, not a number', "quotes"]),
        (document(cluster={"certificate-authority": "nowhere.crt"}), ["certificate-authority names", "nowhere.crt", "No such file"]),
        (document(cluster={"certificate-authority": "."}), ["certificate-authority names", "it is a directory"]),
        (document(cluster={"certificate-authority-data": "%%%"}), ["certificate-authority-data is not base64"]),
        (document(cluster={"certificate-authority-data": encoded(b"text")}), ["no PEM block"]),
        (document(cluster={"certificate-authority-data": encoded(PEM), "insecure-skip-tls-verify": True}), ["mutually exclusive"]),
        (document(cluster={"certificate-authority-data": encoded(PEM), "certificate-authority": "a"}), ["both set"]),
        (document(cluster={"insecure-skip-tls-verify": "yes please"}), ["insecure-skip-tls-verify must be true or false"]),
        (document(cluster={"proxy-url": "socks5://a:1"}), ["socks5://a:1", "must start with http://"]),
        (document(user={"client-certificate-data": encoded(PEM)}), ['user "u"', "needs a client-key"]),
        (document(user={"token": "a", "password": "b"}), ["remove one"]),
        (document(user={"tokenFile": "nowhere"}), ["tokenFile names", "No such file"]),
        (document(user={"as-groups": ["a"]}), ["without as"]),
        (document(user={"as": "a", "as-groups": [1]}), ["as-groups must be a list of strings"]),
        (document(user={"auth-provider": {"name": "gcp"}}), ["gcp", "gke-gcloud-auth-plugin"]),
        (document(user={"auth-provider": {"name": "azure"}}), ["kubelogin convert-kubeconfig"]),
        (document(user={"auth-provider": {"name": "oidc"}}), ["oidc-login"]),
        (document(user={"auth-provider": {"name": "other"}}), ["exec plugin"]),
        (document(user=exec_user(command="")), ['user "u": exec', "command is missing"]),
        (document(user=exec_user(apiVersion="")), ["apiVersion is missing", V1]),
        (document(user=exec_user(apiVersion="client.authentication.k8s.io/v1alpha1")), ["v1alpha1", "not supported", "update"]),
        (document(user=exec_user(interactiveMode=None)), ["interactiveMode is missing", "IfAvailable"]),
        (document(user=exec_user(interactiveMode="Sometimes")), ["Sometimes", "unknown"]),
        (document(user=exec_user(env=[{"value": "a"}])), ["env[0]", "name"]),
        (document(user=exec_user(env=["A=b"])), ["env[0]", "not a string"]),
        (document(namespace="Not/A/Namespace"), ["namespace", "is invalid"]),
        (document(cluster={}) | {"clusters": []}, ['context "x"', 'cluster "c" does not exist', "no clusters"]),
        (document() | {"users": [{"name": "v"}]}, ['user "u" does not exist', "The users are: v"]),
        (document() | {"current-context": "z"}, ['current-context "z" does not exist', "The contexts are: x"]),
        (document() | {"current-context": ""}, ["no current-context is set", "The contexts are: x"]),
        (document() | {"contexts": [{"name": "x", "context": {}}]}, ["no cluster is set"]),
        (document() | {"users": [{"name": "u"}, {"name": "u"}]}, ["users[1]", 'second user named "u"']),
        (document() | {"users": {"u": {}}}, ["users must be a list, not a mapping"]),
        (document() | {"users": ["u"]}, ["users[0]", "not a string"]),
        (document() | {"kind": "Pod"}, ['"Pod"', "manifest"]),
        ("a: [", ["line 2, column 1"]),
        ("- a", ["must be a mapping", "not a list"]),
        ("hello", ["must be a mapping", "not a string"]),
        ("", ["no contexts"]),
        (b"\x00\xff\xfe" * 10, ["not UTF-8"]),
        (b"\x7fELF" + bytes(range(256)), ["UTF-8"]),
    ],
)  # fmt: skip
def test_a_fault_is_named_with_file_and_remedy(tmp_path: Path, content: Any, said: list[str]) -> None:
    file = written(tmp_path / "config", content)
    message = complaint(file)
    assert file in message
    for part in said:
        assert part in message


def test_missing_files_are_named(tmp_path: Path) -> None:
    assert str(tmp_path / "a") in complaint(tmp_path / "a")
    message = complaint([tmp_path / "a", tmp_path / "b"])
    assert str(tmp_path / "a") in message
    assert str(tmp_path / "b") in message


def test_a_folder_is_not_a_kubeconfig(tmp_path: Path) -> None:
    assert "it is a directory" in complaint(tmp_path)


def test_a_long_list_of_contexts_is_cut(tmp_path: Path) -> None:
    content = document()
    content["contexts"] = [{"name": f"context-{number:03}", "context": {}} for number in range(200)]
    message = complaint(written(tmp_path / "config", content))
    assert "context-019 and 180 more" in message


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("a: &a [b, *a]", id="an alias of itself"),
        pytest.param(
            "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10) if n else 'x'}]\n" for n in range(12)), id="alias bomb"
        ),
        pytest.param("".join(f"a{n}: &a{n} {{{'<<: *a' + str(n - 1) if n else 'x: 1'}}}\n" for n in range(400_000 // 8)), id="merges"),
        pytest.param("- " * 100_000, id="deep blocks"),
        pytest.param("[" * 100_000, id="deep lists"),
        pytest.param("{a: " * 100_000, id="deep mappings"),
        pytest.param("- a\n" * 1_000_000, id="many values"),
        pytest.param("a" * (9 << 20), id="large"),
        pytest.param("? " * 100_000, id="deep keys"),
        pytest.param("x: " + "1" * 1_000_000, id="a long number"),
        pytest.param("x: !!python/object/apply:os.system ['true']", id="a tag that would run a program"),
        pytest.param("!!binary x", id="a tag"),
    ],
)  # fmt: skip
def test_hostile_files_are_refused_quickly(tmp_path: Path, content: str) -> None:
    """Ten seconds would be far more than any of these takes."""
    file = written(tmp_path / "config", content)
    done = threading.Event()
    messages: list[str] = []

    def load() -> None:
        messages.append(complaint(file))
        done.set()

    threading.Thread(target=load, daemon=True).start()
    assert done.wait(10)
    assert len(messages[0]) < 1000


def test_a_pipe_without_a_writer_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "no data within" in complaint(str(tmp_path / "pipe"))


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KNOWN = [
    *("server", "certificate-authority", "certificate-authority-data", "insecure-skip-tls-verify", "proxy-url"),
    *("tls-server-name", "extensions", "token", "tokenFile", "client-certificate", "client-certificate-data"),
    *(
        "client-key-data",
        "username",
        "password",
        "as",
        "as-groups",
        "as-user-extra",
        "exec",
        "auth-provider",
        "cluster",
    ),
    *("user", "namespace", "name", "command", "apiVersion", "args", "env", "interactiveMode", "provideClusterInfo"),
]
entries = st.dictionaries(st.sampled_from(KNOWN), values, max_size=4)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    entry=entries, plugin=entries, value=values, place=st.sampled_from(["cluster", "user", "context", "plugin", "top"])
)
def test_any_structure_gives_a_config_or_a_config_error(entry: Any, plugin: Any, value: Any, place: str) -> None:
    content = document(user=exec_user(**plugin) if place == "plugin" else {})
    if place == "top":
        content["clusters" if value else "users"] = value
    elif place != "plugin":
        content[f"{place}s"][0][place] |= entry
    text = json.dumps(content)
    with contextlib.suppress(ConfigError):
        assert isinstance(parse_kubeconfig(text), Config)
    with tempfile.NamedTemporaryFile("w") as file, contextlib.suppress(ConfigError):
        file.write(text)
        file.flush()
        assert isinstance(load_kubeconfig(file.name), Config)


@settings(max_examples=300, deadline=None)
@given(noise=st.binary(max_size=400) | st.text(max_size=400).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_noise_gives_a_config_error(noise: bytes) -> None:
    with pytest.raises(ConfigError):
        parse_kubeconfig(noise)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_damaged_file_gives_a_config_or_a_config_error(data: st.DataObject) -> None:
    text = bytearray(yaml.safe_dump(document(user={"token": "sesame"}, namespace="web")).encode())
    for _ in range(data.draw(st.integers(1, 5))):
        place = data.draw(st.integers(0, len(text) - 1))
        text[place : place + data.draw(st.integers(0, 5))] = data.draw(st.binary(max_size=5))
    with contextlib.suppress(ConfigError):
        assert isinstance(parse_kubeconfig(bytes(text)), Config)


@pytest.mark.parametrize(
    "user",
    [{"tokenFile": "/etc/passwd"}, {"client-certificate": "/etc/passwd"}, exec_user(command="/bin/sh")],
)
def test_text_from_elsewhere_reads_no_file_and_runs_nothing(user: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="given as text"):
        parse_kubeconfig(json.dumps(document(user=user)))
