"""Where a configuration is found: in a pod, and in which order the places are asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from steersman.client.configuration.config import Config, TokenFile
from steersman.client.configuration.discovery_order import discover_config
from steersman.client.configuration.pod_config import in_cluster_config
from steersman.errors import ConfigError

PEM = b"-----BEGIN CERTIFICATE-----\nbm90IHJlYWw=\n-----END CERTIFICATE-----\n"


def document(server: str) -> dict[str, Any]:
    return {
        "current-context": "x",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "contexts": [{"name": "x", "context": {"cluster": "c"}}],
    }


def written(path: Path, content: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return str(path)


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


# -- in a pod


@pytest.fixture
def service_account(tmp_path: Path) -> Path:
    folder = tmp_path / "serviceaccount"
    for name, content in (("token", "sesame\n"), ("ca.crt", PEM), ("namespace", "web")):
        written(folder / name, content)
    return folder


@pytest.fixture
def in_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")


@pytest.mark.usefixtures("in_pod")
def test_a_pod_uses_its_service_account(service_account: Path) -> None:
    config = in_cluster_config(service_account)
    assert config.server == "https://10.0.0.1:443"
    assert config.namespace == "web"
    assert config.tls.ca_file == f"{service_account}/ca.crt"
    assert config.auth == TokenFile(f"{service_account}/token")


@pytest.mark.usefixtures("in_pod")
def test_an_ipv6_address_stands_in_brackets(service_account: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    assert in_cluster_config(service_account).server == "https://[fd00::1]:443"


@pytest.mark.usefixtures("in_pod")
def test_a_service_account_may_lack_all_but_the_token(service_account: Path) -> None:
    (service_account / "ca.crt").unlink()
    (service_account / "namespace").unlink()
    config = in_cluster_config(service_account)
    assert (config.tls.ca_file, config.namespace) == (None, "default")
    (service_account / "token").write_text("\n")
    with pytest.raises(ConfigError, match="automountServiceAccountToken"):
        in_cluster_config(service_account)


# -- the order


def test_what_is_said_wins_over_what_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_pod: None, service_account: Path
) -> None:
    """Each step takes away the source that won, and the next one wins."""

    explicit = Config("https://server-1")
    argument = written(tmp_path / "argument", document("https://server-2"))
    monkeypatch.setenv("KUBECONFIG", written(tmp_path / "variable", document("https://server-3")))
    home = written(tmp_path / "home/.kube/config", document("https://server-4"))

    def found(config: Config | None = None, kubeconfig: str | None = None) -> str:
        return discover_config(config, kubeconfig=kubeconfig, service_account=service_account).server

    assert found(explicit, argument) == "https://server-1"
    assert found(None, argument) == "https://server-2"
    assert found() == "https://server-3"
    monkeypatch.delenv("KUBECONFIG")
    assert found() == "https://server-4"
    written(Path(home), "clusters: null")
    assert found() == "https://10.0.0.1:443"
    Path(home).unlink()
    assert found() == "https://10.0.0.1:443"


def test_the_default_file_is_not_read_beside_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistyped KUBECONFIG must not lead to another cluster."""
    written(tmp_path / "home/.kube/config", document("https://a"))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "mistyped"))
    with pytest.raises(ConfigError, match="mistyped"):
        discover_config()


def test_a_broken_file_is_not_passed_over(tmp_path: Path, in_pod: None, service_account: Path) -> None:
    written(tmp_path / "home/.kube/config", "a: [")
    with pytest.raises(ConfigError, match="line 2"):
        discover_config(service_account=service_account)


def test_nothing_found_tells_all_that_was_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_pod: None, service_account: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/a:{written(tmp_path / 'b', '')}")
    with pytest.raises(ConfigError) as caught:
        discover_config(service_account=tmp_path / "nowhere")
    message = str(caught.value)
    for part in (
        f"{tmp_path}/a does not exist",
        f"{tmp_path}/b has no contexts",
        f"{tmp_path}/nowhere/token",
        "set KUBECONFIG",
    ):
        assert part in message
    with pytest.raises(ConfigError, match='context "prod"'):
        discover_config(context="prod", service_account=service_account)
