"""Whom an API server takes us for, with every kind of credentials."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from steersman import Client
from steersman.errors import Unauthorized
from steersman.testing.engine.environment import Environment
from steersman.testing.engine.kubectl import run_kubectl

V1 = "client.authentication.k8s.io/v1"


async def whoami(kubeconfig: Path) -> dict[str, Any]:
    async with Client.connect(kubeconfig=kubeconfig) as client:
        return await asked(client)


async def asked(client: Client) -> dict[str, Any]:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    answer = json.loads(await client.request("POST", path, body=json.dumps(review).encode()))
    return answer["status"]["userInfo"]


class Cluster:
    """A cluster, as seen by users that a test makes up."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        content = yaml.safe_load(kubeconfig.read_text())
        self.folder = folder
        self.cluster = content["clusters"][0]["cluster"]
        users = {item["name"]: item["user"] for item in content["users"]}
        self.certificate = base64.b64decode(users["admin"]["client-certificate-data"]).decode()
        self.key = base64.b64decode(users["admin"]["client-key-data"]).decode()
        self.token = users["admin-token"]["token"]

    def kubeconfig(self, user: dict[str, Any]) -> Path:
        content = {
            "current-context": "x",
            "clusters": [{"name": "c", "cluster": self.cluster}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        }
        return self.written("config", yaml.safe_dump(content))

    def written(self, name: str, content: str) -> Path:
        path = self.folder / name
        path.write_text(content)
        return path

    def plugin(self, **status: Any) -> dict[str, Any]:
        answer = {"apiVersion": V1, "kind": "ExecCredential", "status": status}
        self.written("answer", json.dumps(answer))
        self.written("plugin", f"#!/bin/sh\ncd '{self.folder}'\necho run >> runs\ncat answer\n").chmod(0o700)
        return {
            "exec": {"command": "./plugin", "apiVersion": V1, "interactiveMode": "Never", "provideClusterInfo": True}
        }

    @property
    def runs(self) -> int:
        return (self.folder / "runs").read_text().count("run")


@pytest.fixture
def cluster(api_server: Any, tmp_path: Path) -> Cluster:
    return Cluster(api_server.kubeconfig, tmp_path)


async def test_a_token_a_certificate_and_a_plugin_are_all_accepted(cluster: Cluster) -> None:
    cluster.written("cert.pem", cluster.certificate)
    cluster.written("key.pem", cluster.key)
    cluster.written("token", cluster.token + "\n")
    for user in (
        {"token": cluster.token},
        {"tokenFile": "token"},
        {"client-certificate": "cert.pem", "client-key": "key.pem"},
        cluster.plugin(token=cluster.token),
        cluster.plugin(clientCertificateData=cluster.certificate, clientKeyData=cluster.key),
    ):
        assert "system:masters" in (await whoami(cluster.kubeconfig(user)))["groups"]


@pytest.mark.parametrize("user", [{"token": "wrong"}, {"token": "wrong", "as": "jane"}])
async def test_wrong_credentials_are_unauthorized(cluster: Cluster, user: dict[str, Any]) -> None:
    with pytest.raises(Unauthorized):
        await whoami(cluster.kubeconfig(user))


async def test_a_token_that_expires_is_renewed_within_the_request(cluster: Cluster) -> None:
    """The server refuses the token that is held; the file, and the plugin, have a new one by then."""
    file = cluster.written("token", "expired")
    async with Client.connect(kubeconfig=cluster.kubeconfig({"tokenFile": "token"})) as client:
        with pytest.raises(Unauthorized):
            await asked(client)
        file.write_text(cluster.token)
        assert "system:masters" in (await asked(client))["groups"]

    async with Client.connect(kubeconfig=cluster.kubeconfig(cluster.plugin(token="expired"))) as client:
        with pytest.raises(Unauthorized):
            await asked(client)
        cluster.plugin(token=cluster.token)
        assert "system:masters" in (await asked(client))["groups"]
        before = cluster.runs
        assert "system:masters" in (await asked(client))["groups"]
        assert cluster.runs == before


async def test_impersonation_means_the_same_as_with_kubectl(cluster: Cluster) -> None:
    user = {
        "token": cluster.token,
        "as": "jane",
        "as-uid": "7",
        "as-groups": ["one", "two", "system:masters"],
        "as-user-extra": {"acme.com/rôle 100%": ["x", "y z"], "scopes": ["v"]},
    }
    kubeconfig = cluster.kubeconfig(user)
    kubectl = Environment.read().program("kubectl")
    shown = await run_kubectl(kubectl, ["auth", "whoami", "-o", "json"], kubeconfig=kubeconfig)
    theirs = json.loads(shown)["status"]["userInfo"]

    ours = await whoami(kubeconfig)

    assert ours == theirs
    assert ours["username"] == "jane"
    assert ours["extra"]["acme.com/rôle 100%"] == ["x", "y z"]
