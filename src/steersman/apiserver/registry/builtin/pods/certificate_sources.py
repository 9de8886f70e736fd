"""Projected sources of volumes with certificates: trust anchors, and certificates for a Pod."""

from __future__ import annotations

from collections.abc import Callable

from steersman.apiserver.registry.builtin.types.file_paths import not_reserved
from steersman.apiserver.registry.builtin.types.internal_form import printed
from steersman.apiserver.registry.builtin.types.labels import label_selector, shown_selector
from steersman.apiserver.registry.builtin.types.signers import (
    bundle_name,
    is_kubernetes_signer,
    signer_name,
    user_annotations,
)
from steersman.apiserver.registry.builtin.types.trees import Tree, inner
from steersman.objects.field_problems import FieldProblem, each, invalid, required, unsupported

_KEYS = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
_PATHS = ("credentialBundlePath", "keyPath", "certificateChainPath")
_SHORTEST, _DAY = 3600, 24 * 3600
#: Checks that no other source writes to a path.
_Once = Callable[[str], list[FieldProblem]]


def trust_bundle(path: str, source: Tree, once: _Once) -> list[FieldProblem]:
    """Check a source of trust anchors: one bundle by name, or those of a signer."""
    name, signer = source.get("name"), source.get("signerName")
    if name is not None and signer is not None:
        shown = printed(source, "core.ClusterTrustBundleProjection")
        problems = [invalid(path, shown, "only one of name and signerName may be used")]
    elif name is not None:
        problems = _named(path, name, source.get("labelSelector"))
    elif signer is not None:
        problems = [] if signer else [required(f"{path}.signerName", "must be a valid signer name")]
        problems += signer_name(f"{path}.signerName", signer)
        problems += label_selector(f"{path}.labelSelector", source.get("labelSelector"))
    else:
        problems = [required(path, "either name or signerName must be specified")]
    target: str = source.get("path", "")
    problems += [] if target else [required(f"{path}.path")]
    return problems + not_reserved(f"{path}.path", target) + once(target)


def _named(path: str, name: str, selector: Tree | None) -> list[FieldProblem]:
    where = f"{path}.name"
    problems = [] if name else [required(where, "must be a valid object name")]
    signer = name.rpartition(":")[0].replace(":", "/")
    wrong = bundle_name(name, signer)
    problems += each(where, name, (f"not a valid clustertrustbundlename: {said}" for said in wrong))
    if selector is not None:
        detail = "labelSelector must be unset if name is specified"
        problems.append(invalid(f"{path}.labelSelector", shown_selector(selector), detail))
    return problems


def pod_certificate(path: str, source: Tree, once: _Once) -> list[FieldProblem]:
    """Check a source that requests a certificate for its Pod."""
    signer: str = source.get("signerName", "")
    problems = signer_name(f"{path}.signerName", signer)
    problems += user_annotations(f"{path}.userAnnotations", inner(source, "userAnnotations"))
    type_ = source.get("keyType", "")
    if type_ not in _KEYS:
        problems.append(unsupported(f"{path}.keyType", type_, _KEYS))
    seconds, longest = source.get("maxExpirationSeconds"), _DAY if is_kubernetes_signer(signer) else 91 * _DAY
    if seconds is not None:
        where, subject = f"{path}.maxExpirationSeconds", "if provided, maxExpirationSeconds must be"
        problems += [invalid(where, seconds, f"{subject} >= {_SHORTEST}")] if seconds < _SHORTEST else []
        problems += [invalid(where, seconds, f"{subject} <= {longest}")] if seconds > longest else []
    given = [name for name in _PATHS if source.get(name)]
    for name in given:
        problems += not_reserved(f"{path}.{name}", source[name]) + once(source[name])
    if not given:
        detail = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
        problems.append(required(path, detail))
    return problems
