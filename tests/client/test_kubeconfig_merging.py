"""Several kubeconfig files become one as they do for kubectl: the real one is asked."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings, strategies as st

from steersman.client.configuration.bounded_yaml import parse_yaml
from steersman.client.configuration.config import BasicAuth, BearerToken, Config
from steersman.client.configuration.kubeconfig import read_kubeconfig
from steersman.errors import ConfigError
from steersman.testing.engine.environment import Environment

PEM = b"-----BEGIN CERTIFICATE-----\nbm90IHJlYWw=\n-----END CERTIFICATE-----\n"


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def written(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.fixture(scope="module")
def kubectl() -> str:
    return str(Environment.read().program("kubectl"))


names = st.sampled_from(["a", "b", "c", "kind-dev", "ü/ñ"])
pems = st.sampled_from(["one", "two", "three"])


@st.composite
def clusters(draw: st.DrawFn) -> dict[str, Any]:
    cluster: dict[str, Any] = {"server": f"https://{draw(names).encode().hex()}:{draw(st.integers(1, 9999))}"}
    kind = draw(
        st.sampled_from(["", "certificate-authority", "certificate-authority-data", "insecure-skip-tls-verify"])
    )
    if kind:
        cluster[kind] = {"certificate-authority": draw(pems), "certificate-authority-data": encoded(PEM)}.get(
            kind, True
        )
    if draw(st.booleans()):
        cluster["tls-server-name"] = draw(names)
    return cluster


@st.composite
def users(draw: st.DrawFn) -> dict[str, Any]:
    user: dict[str, Any] = {}
    match draw(st.sampled_from(["token", "basic", "files", "data", "none"])):
        case "token":
            user["token"] = draw(st.sampled_from(["sesame", "2001-01-01", "1:30", "0x", "null-ish"]))
        case "basic":
            user |= {"username": draw(names), "password": "pw"}
        case "files":
            user |= {"client-certificate": draw(pems), "client-key": draw(pems)}
        case "data":
            user |= {"client-certificate-data": encoded(PEM), "client-key-data": encoded(PEM + b"key")}
        case _:
            pass
    if draw(st.booleans()):
        user |= {"as": draw(names), "as-groups": draw(st.lists(names, max_size=2))}
    return user


@st.composite
def kubeconfigs(draw: st.DrawFn) -> dict[str, Any]:
    content: dict[str, Any] = {"apiVersion": "v1", "kind": "Config"}
    if draw(st.booleans()):
        content["current-context"] = draw(names)
    contexts = st.fixed_dictionaries(
        {"cluster": names, "user": names}, optional={"namespace": st.sampled_from(["web", "db"])}
    )
    for section, element, entry in (
        ("clusters", "cluster", clusters()),
        ("users", "user", users()),
        ("contexts", "context", contexts),
    ):
        chosen = draw(st.dictionaries(names, entry, max_size=4))
        content[section] = [{"name": name, element: value} for name, value in chosen.items()] or None
    return content


def as_kubectl_means(merged: dict[str, Any], context: str) -> dict[str, Any] | None:
    """What a context of kubectl's flattened view says; None where it refers to something that does not exist."""
    found = {
        section: {item["name"]: item[section[:-1]] for item in merged[section] or []}
        for section in ("clusters", "users", "contexts")
    }
    if context not in found["contexts"]:
        return None
    refers = found["contexts"][context]
    if refers["cluster"] not in found["clusters"] or refers["user"] not in found["users"]:
        return None
    cluster, user = found["clusters"][refers["cluster"]], found["users"][refers["user"]]
    return {
        "server": cluster["server"],
        "ca": cluster.get("certificate-authority-data"),
        "insecure": cluster.get("insecure-skip-tls-verify", False),
        "server name": cluster.get("tls-server-name"),
        "certificate": user.get("client-certificate-data"),
        "key": user.get("client-key-data"),
        "token": user.get("token"),
        "basic": (user["username"], user["password"]) if "username" in user else None,
        "as": user.get("as"),
        "groups": tuple(user.get("as-groups", ())),
        "namespace": refers.get("namespace", "default"),
    }


def as_we_mean(config: Config) -> dict[str, Any]:
    def content(file: str | None, data: bytes | None) -> str | None:
        return encoded(data or Path(file or "").read_bytes()) if file or data else None

    tls, auth, impersonation = config.tls, config.auth, config.impersonation
    return {
        "server": config.server,
        "ca": content(tls.ca_file, tls.ca_data),
        "insecure": tls.insecure_skip_verify,
        "server name": tls.server_name,
        "certificate": content(tls.certificate_file, tls.certificate_data),
        "key": content(tls.key_file, tls.key_data),
        "token": auth.token.reveal() if isinstance(auth, BearerToken) else None,
        "basic": (auth.username, auth.password.reveal()) if isinstance(auth, BasicAuth) else None,
        "as": impersonation.user if impersonation else None,
        "groups": impersonation.groups if impersonation else (),
        "namespace": config.namespace,
    }


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    contents=st.lists(kubeconfigs() | st.none() | st.just(b""), min_size=1, max_size=4),
    one_line=st.booleans(),
)
def test_files_merge_as_kubectl_merges_them(kubectl: str, contents: list[Any], *, one_line: bool) -> None:
    """Every context of several random files, some missing or empty, means the same to us and to kubectl."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        files: list[str] = []
        for number, content in enumerate(contents):
            home = Path(folder, f"home-{number}")
            for pem in ("one", "two", "three"):
                written(home / pem, PEM + f"{number}-{pem}\n".encode())
            files.append(str(home / "config"))
            if content is not None:
                text = yaml.safe_dump(content, default_flow_style=one_line, allow_unicode=True) if content else b""
                written(home / "config", text)
        patch.setenv("KUBECONFIG", os.pathsep.join([*files, "", files[0]]))
        shown = subprocess.run(
            [kubectl, "config", "view", "--raw", "--flatten", "-o", "json"], check=True, capture_output=True
        )
        merged = json.loads(shown.stdout)

        ours = read_kubeconfig()

        assert ours.current_context == merged["current-context"]
        assert sorted(ours.contexts) == [item["name"] for item in merged["contexts"] or []]
        for context in ours.contexts:
            expected = as_kubectl_means(merged, context)
            if expected is None:
                with pytest.raises(ConfigError, match="does not exist"):
                    ours.config(context)
            else:
                assert as_we_mean(ours.config(context)) == expected


def test_plain_words_of_yaml_mean_what_they_mean_to_kubectl(kubectl: str, tmp_path: Path) -> None:
    """kubectl shows the content of an extension as it read it."""
    words = [
        *(
            "yes",
            "y",
            "N",
            "on",
            "Off",
            "true",
            "TRUE",
            "null",
            "~",
            "Null",
            "7",
            "-7",
            "+7",
            "007",
            "08",
            "0x1F",
            "0o17",
        ),
        *(
            "0b11",
            "1_000",
            "1.5",
            "-.5",
            "1e3",
            "1e999x",
            "1:30",
            "12:30:45",
            "2001-01-01",
            "2001-01-01T00:00:00Z",
            "=",
        ),
        *(
            ".",
            "..",
            "+.",
            "0x",
            "0b2",
            "0o8",
            "abc",
            "1a",
            "_1",
            "1__0",
            '"yes"',
            "'null'",
            "!!str 1",
            "!",
            "nan",
            "inf",
        ),
        *("NaN", "ü", "", "{<<: {a: 1, b: 2}, b: 3}", "{yes: 1, 2: 3}", "|\n        a\n        b"),
    ]
    lines = "".join(f"      w{number}: {word}\n" for number, word in enumerate(words))
    text = f"extensions:\n- name: x\n  extension:\n    words:\n{lines}"
    file = tmp_path / "config"
    written(file, text)
    shown = subprocess.run(
        [kubectl, "--kubeconfig", str(file), "config", "view", "--raw", "-o", "json"], check=True, capture_output=True
    )
    theirs = json.loads(shown.stdout)["extensions"][0]["extension"]["words"]
    ours = parse_yaml(text.encode())["extensions"][0]["extension"]["words"]
    assert ours == theirs
    # Python takes True for 1, JSON does not.
    assert [name for name in ours if isinstance(ours[name], bool)] == [
        name for name in theirs if isinstance(theirs[name], bool)
    ]
