"""kube-apiserver with a client certificate for webhooks: the port answers it, and no other client."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

import pytest
import yaml
from webhooks.replica import shop_defaults

from samples.eventually import eventually
from samples.shops import OldShop, Shop, ShopSpec, admission, old_shops, shop
from steersman import ObjectMeta
from steersman.testing import Engine
from steersman.transport import CertificateIssuer, HttpTransport, TlsMaterial
from steersman.webhooks import WebhookEndpoint, WebhookServer, admission_path, serve_webhooks
from steersman.wire import HttpRequest


def admission_configuration(folder: Path, issuer: CertificateIssuer) -> Path:
    """The file for `--admission-control-config-file`, with a kubeconfig for all webhooks."""
    pair = issuer.client("kube-apiserver")
    user = {
        "client-certificate-data": base64.b64encode(pair.certificate).decode(),
        "client-key-data": base64.b64encode(pair.key).decode(),
    }
    kubeconfig = folder / "webhooks-kubeconfig.yaml"
    kubeconfig.write_text(
        yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "users": [{"name": "*", "user": user}]})
    )
    group = "apiserver.config.k8s.io/v1"
    configuration = {"apiVersion": group, "kind": "WebhookAdmissionConfiguration", "kubeConfigFile": str(kubeconfig)}
    plugins = [
        {"name": f"{kind}AdmissionWebhook", "configuration": configuration} for kind in ("Mutating", "Validating")
    ]
    file = folder / "admission.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": group, "kind": "AdmissionConfiguration", "plugins": plugins}))
    return file


@pytest.mark.slow
async def test_the_port_answers_the_api_server_alone(tmp_path: Path):
    """Any Pod can reach the port; only the API server has the certificate."""
    issuer, authority = CertificateIssuer.create(), tmp_path / "client-ca.crt"
    authority.write_bytes(issuer.certificate)
    flags = {"kube-apiserver": [f"--admission-control-config-file={admission_configuration(tmp_path, issuer)}"]}
    endpoint = WebhookEndpoint(port=0, install=True, client_ca_file=str(authority), client_names=("kube-apiserver",))
    server = WebhookServer([shop_defaults, old_shops()])
    async with (
        Engine.start(flags=flags) as engine,
        engine.client(field_manager="tests") as client,
    ):
        await client.install(Shop, OldShop)
        async with serve_webhooks(server, endpoint, client, name="shops") as served:
            await eventually(lambda: served.registered)
            made = Shop(metadata=ObjectMeta(name="corner"), spec=ShopSpec(host="a", replicas=5))
            async with asyncio.timeout(60):
                while (await client.create(made, dry_run=True)).spec.image != "nginx":  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            await client.create(made)
            async with asyncio.timeout(60):
                while (await client.get(OldShop, "corner")).spec.size != "large":  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            transport = HttpTransport(served.address, tls=TlsMaterial(ca_data=served.certificates.ca_bundle))
            try:
                request = HttpRequest("POST", admission_path(Shop, mutates=True), body=admission(shop()))
                async with await transport.send(request) as response:
                    assert response.status == 403
            finally:
                await transport.close()
