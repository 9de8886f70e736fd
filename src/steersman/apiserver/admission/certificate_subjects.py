"""Rejects requests for client certificates in the administrators' group, ``system:masters``."""

from __future__ import annotations

from base64 import b64decode

from steersman.apiserver.admission.plugins import AdmissionOperation, Attributes, Plugin
from steersman.apiserver.registry.builtin.cluster.pem import parsed_request
from steersman.apiserver.registry.builtin.types.trees import inner

_SIGNER, _MASTERS = "kubernetes.io/kube-apiserver-client", "system:masters"


class CertificateSubjects(Plugin):
    """The plugin CertificateSubjectRestriction."""

    operations: frozenset[AdmissionOperation] = frozenset({"CREATE"})
    resources = frozenset({("certificates.k8s.io", "certificatesigningrequests")})

    async def validate(self, attributes: Attributes) -> None:
        """Check the groups in a request for a client certificate."""
        spec = inner(attributes.obj or {}, "spec")
        if attributes.subresource or spec.get("signerName") != _SIGNER:
            return
        try:
            groups = _organizations(b64decode(spec.get("request") or ""))
        except ValueError as wrong:
            raise attributes.refused(f"failed to parse CSR: {wrong}") from None
        if _MASTERS in groups:
            raise attributes.refused(f"use of {_SIGNER} signer with {_MASTERS} group is not allowed")


def _organizations(request: bytes) -> list[str | bytes]:
    from cryptography import x509  # noqa: PLC0415 - an extra, and few servers store requests for certificates

    subject = parsed_request(request).subject
    return [each.value for each in subject.get_attributes_for_oid(x509.NameOID.ORGANIZATION_NAME)]
