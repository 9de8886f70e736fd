"""Permissions on signers: the authorizer decides who may approve, sign and publish in their names."""

from __future__ import annotations

from steersman.apiserver.admission.plugins import AdmissionOperation, Attributes, Plugin
from steersman.apiserver.errors import invalid
from steersman.apiserver.identity import Access
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items
from steersman.apiserver.registry.collector_changes import is_collection
from steersman.golang import quoted_in_full
from steersman.objects.field_problems import forbidden

_GROUP = "certificates.k8s.io"


class SignerPermission(Plugin):
    """Requires a verb on the resource ``signers`` for a write to a subresource of a CertificateSigningRequest."""

    operations: frozenset[AdmissionOperation] = frozenset({"UPDATE"})
    resources = frozenset({(_GROUP, "certificatesigningrequests")})

    def __init__(self, verb: str, subresource: str) -> None:
        self._verb = verb
        self._subresource = subresource

    async def validate(self, attributes: Attributes) -> None:
        """Check the permission of the user."""
        obj, old = attributes.obj, attributes.old
        if attributes.subresource != self._subresource or obj is None or old is None:
            return
        if self._subresource == "status" and _result(obj) == _result(old):
            return
        signer: str = inner(old, "spec").get("signerName", "")
        if not await _may(attributes, self._verb, signer):
            why = f"user not permitted to {self._verb} requests with signerName {quoted_in_full(signer)}"
            raise attributes.refused(why)


class BundlePermission(Plugin):
    """Requires the verb ``attest`` on the resource ``signers`` for a write of a signer's ClusterTrustBundle."""

    operations: frozenset[AdmissionOperation] = frozenset({"CREATE", "UPDATE"})
    resources = frozenset({(_GROUP, "clustertrustbundles")})

    async def validate(self, attributes: Attributes) -> None:
        """Check the permission of the user."""
        obj, old = attributes.obj or {}, attributes.old
        signer: str = inner(obj, "spec").get("signerName", "")
        if not signer or is_collection(obj, old) or await _may(attributes, "attest", signer):
            return
        raise attributes.refused(f"user not permitted to attest for signerName {quoted_in_full(signer)}")


class PodCertificatePermission(Plugin):
    """Requires the verb ``sign`` for a changed status of a PodCertificateRequest.

    In kube-apiserver this is a rule of the kind, so it cannot be disabled, and the rejection is a 422.
    """

    operations: frozenset[AdmissionOperation] = frozenset({"UPDATE"})
    resources = frozenset({(_GROUP, "podcertificaterequests")})

    async def validate(self, attributes: Attributes) -> None:
        """Check the permission of the user."""
        obj, old = attributes.obj or {}, attributes.old or {}
        if attributes.subresource != "status" or inner(obj, "status") == inner(old, "status"):
            return
        signer: str = inner(old, "spec").get("signerName", "")
        if not await _may(attributes, "sign", signer):
            who = quoted_in_full(attributes.request.user.name)
            why = f'User {who} is not permitted to "sign" for signer {quoted_in_full(signer)}'
            problem = forbidden("spec.signerName", why)
            raise invalid(attributes.definition.gvk, attributes.name, [problem])


async def _may(attributes: Attributes, verb: str, signer: str) -> bool:
    """Whether the user has a permission on a signer, or on all signers of its domain."""
    request = attributes.request
    if request.authorizer is None:
        return True
    for name in (signer, f"{signer.partition('/')[0]}/*"):
        wanted = Access(user=request.user, verb=verb, group=_GROUP, version="*", resource="signers", name=name)
        if (await request.authorizer(wanted)).allowed:
            return True
    return False


def _result(csr: Tree) -> tuple[str, list[Tree]]:
    status = inner(csr, "status")
    return status.get("certificate") or "", items(status, "conditions")


def approval_permission() -> SignerPermission:
    """The plugin CertificateApproval."""
    return SignerPermission("approve", "approval")


def signing_permission() -> SignerPermission:
    """The plugin CertificateSigning."""
    return SignerPermission("sign", "status")
