"""Objects of cert-manager's kinds, valid and invalid."""

from __future__ import annotations

from typing import Any

API = "/apis/cert-manager.io/v1"


def issuer(name: str, **spec: Any) -> dict[str, Any]:
    """An Issuer."""
    return {"apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": name}, "spec": spec}


def certificate(name: str, issuer: str, **spec: Any) -> dict[str, Any]:
    """A Certificate that is valid unless ``spec`` makes it invalid; None leaves a field out."""
    whole = {
        "secretName": f"{name}-tls",
        "dnsNames": [f"{name}.example.com"],
        "issuerRef": {"name": issuer},
        "privateKey": {"algorithm": "ECDSA"},
        **spec,
    }
    kept = {key: value for key, value in whole.items() if value is not None}
    return {"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": name}, "spec": kept}


def certificate_request(name: str, request: str, **spec: Any) -> dict[str, Any]:
    """A CertificateRequest; ``request`` is a certificate signing request in base64."""
    whole = {"request": request, "issuerRef": {"name": "elsewhere"}, **spec}
    return {"apiVersion": "cert-manager.io/v1", "kind": "CertificateRequest", "metadata": {"name": name}, "spec": whole}


#: Objects that the server or the webhook rejects, or accepts with warnings: resource and body, by what is wrong.
DOUBTFUL: dict[str, tuple[str, dict[str, Any]]] = {
    "no name at all": ("certificates", certificate("odd", "root", dnsNames=None)),
    "no Secret": ("certificates", certificate("odd", "root", secretName="")),
    "no issuer": ("certificates", certificate("odd", "root", issuerRef=None)),
    "an issuer without a name": ("certificates", certificate("odd", "root", issuerRef={"name": ""})),
    "an issuer of an unknown kind": ("certificates", certificate("odd", "root", issuerRef={"name": "a", "kind": "B"})),
    "a weak key": ("certificates", certificate("odd", "root", privateKey={"algorithm": "RSA", "size": 1024})),
    "a key of an unknown sort": ("certificates", certificate("odd", "root", privateKey={"algorithm": "DSA"})),
    "a long common name": ("certificates", certificate("odd", "root", commonName="a" * 65)),
    "a short life": ("certificates", certificate("odd", "root", duration="1m", renewBefore="2m")),
    "a duration that is none": ("certificates", certificate("odd", "root", duration="a day")),
    "an address that is none": ("certificates", certificate("odd", "root", ipAddresses=["1.2.3"])),
    "a usage that is none": ("certificates", certificate("odd", "root", usages=["guess"])),
    "several mistakes": (
        "certificates",
        certificate("odd", "", dnsNames=None, emailAddresses=["none"], revisionHistoryLimit=-1),
    ),
    "an unknown field": ("certificates", certificate("colored", "root", color="red")),
    "an issuer of no type": ("issuers", issuer("odd")),
    "an issuer of two types": ("issuers", issuer("odd", selfSigned={}, ca={"secretName": "a"})),
    "an issuer without its Secret": ("issuers", issuer("odd", ca={"secretName": ""})),
    "an incomplete Vault": ("issuers", issuer("odd", vault={"server": "", "path": "", "auth": {}})),
    "an incomplete ACME server": (
        "issuers",
        issuer("odd", acme={"server": "", "privateKeySecretRef": {"name": ""}, "solvers": [{}]}),
    ),
    "a request that is none": ("certificaterequests", certificate_request("odd", "bm90aGluZw==")),
    "a request of another user": ("certificaterequests", certificate_request("odd", "bm90aGluZw==", username="bob")),
}
