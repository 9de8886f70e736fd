"""Permissions on signers: the authorizer decides who may approve or sign a CertificateSigningRequest."""

from __future__ import annotations

from steersman.apiserver.admission.plugins import AdmissionOperation, Attributes, Plugin
from steersman.apiserver.identity import Access
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items
from steersman.golang import quoted_in_full

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
        domain = signer.partition("/")[0]
        if not await self._allows(attributes, signer) and not await self._allows(attributes, f"{domain}/*"):
            why = f"user not permitted to {self._verb} requests with signerName {quoted_in_full(signer)}"
            raise attributes.refused(why)

    async def _allows(self, attributes: Attributes, signer: str) -> bool:
        request = attributes.request
        if request.authorizer is None:
            return True
        wanted = Access(user=request.user, verb=self._verb, group=_GROUP, version="*", resource="signers", name=signer)
        return (await request.authorizer(wanted)).allowed


def _result(csr: Tree) -> tuple[str, list[Tree]]:
    status = inner(csr, "status")
    return status.get("certificate") or "", items(status, "conditions")


def approval_permission() -> SignerPermission:
    """The plugin CertificateApproval."""
    return SignerPermission("approve", "approval")


def signing_permission() -> SignerPermission:
    """The plugin CertificateSigning."""
    return SignerPermission("sign", "status")
