"""PodCertificateRequests: their immutable spec, and the certificate that a signer issues once."""

from __future__ import annotations

from base64 import b64decode
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from steersman.aio import utc_now
from steersman.apiserver.registry.builtin.cluster.pem import PemBlock, pem_blocks, request_key
from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.conditions import conditions
from steersman.apiserver.registry.builtin.types.internal_form import printed
from steersman.apiserver.registry.builtin.types.signers import is_kubernetes_signer, signer_name, user_annotations
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, subtree
from steersman.golang import is_email
from steersman.objects import format_time, parse_time
from steersman.objects.field_problems import (
    IMMUTABLE,
    FieldProblem,
    each,
    invalid,
    invalid_without_value,
    required,
    too_long,
    unsupported,
    until_enough,
)
from steersman.schemas.names import dns_subdomain

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

_SIGNER, _REQUEST, _SECONDS = "spec.signerName", "spec.stubPKCS10Request", "spec.maxExpirationSeconds"
_ANNOTATIONS = "spec.unverifiedUserAnnotations"
_CHAIN, _CONDITIONS = "status.certificateChain", "status.conditions"
_NOT_BEFORE, _NOT_AFTER, _REFRESH = "status.notBefore", "status.notAfter", "status.beginRefreshAt"
_FINAL = ("Issued", "Denied", "Failed")
_UID_MAX, _REQUEST_MAX, _CHAIN_MAX = 128, 10 * 1024, 100 * 1024
_HOUR, _DAY = 3600, 24 * 3600
_CERTIFICATE = "CERTIFICATE"
_MARGIN = timedelta(minutes=10)


class PodCertificateRequestStrategy(BuiltinStrategy):
    """How PodCertificateRequests behave."""

    status_keeps_metadata = True

    def fill(self, obj: Tree) -> None:
        spec = obj["spec"]
        if spec.get("maxExpirationSeconds") is None:
            spec["maxExpirationSeconds"] = _DAY

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        spec = subtree(obj, "spec")
        signer: str = spec.get("signerName", "")
        problems = signer_name(_SIGNER, signer) + user_annotations(
            _ANNOTATIONS, inner(spec, "unverifiedUserAnnotations")
        )
        for about in ("pod", "serviceAccount", "node"):
            name, uid = spec.get(f"{about}Name", ""), spec.get(f"{about}UID", "")
            problems += each(f"spec.{about}Name", name, dns_subdomain(name))
            if not uid:
                problems.append(invalid(f"spec.{about}UID", uid, "must not be empty"))
            if len(uid.encode()) > _UID_MAX:
                problems.append(too_long(f"spec.{about}UID", _UID_MAX))
        longest = _DAY if is_kubernetes_signer(signer) else 91 * _DAY
        seconds: int = spec["maxExpirationSeconds"]
        if not _HOUR <= seconds <= longest:
            problems.append(invalid(_SECONDS, seconds, f"must be in the range [{_HOUR}, {longest}]"))
        return problems + _stub(spec.get("stubPKCS10Request") or "")

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Check that the spec does not change."""
        if obj["spec"] == old["spec"]:
            return []
        return [invalid("spec", printed(obj["spec"], "certificates.PodCertificateRequestSpec"), IMMUTABLE)]

    def validate_status(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """Check that a request is decided once, and that an issued certificate fits it."""
        new, before = subtree(obj, "status"), subtree(old, "status")
        given = items(new, "conditions")
        problems = _decision(given) + conditions(_CONDITIONS, given)
        if problems:
            return problems
        if _state(before):
            detail = "immutable after PodCertificateRequest is issued, denied, or failed"
            return [] if _filled(new) == _filled(before) else [invalid_without_value("status", detail)]
        match _state(new):
            case "Denied" | "Failed":
                detail = "non-condition status fields must be empty when denying or failing the PodCertificateRequest"
                return [] if _filled(new).keys() <= {"conditions"} else [invalid_without_value("status", detail)]
            case "Issued":
                return _issued(subtree(old, "spec"), new)
            case _:
                detail = 'status is immutable unless transitioning to "Issued", "Denied", or "Failed"'
                return [] if _filled(new) == _filled(before) else [invalid_without_value("status", detail)]


def _filled(status: Tree) -> Tree:
    return {name: value for name, value in status.items() if value}


def _state(status: Tree) -> str:
    """How a request was decided; empty if it is pending."""
    return next((one["type"] for one in items(status, "conditions") if one.get("type") in _FINAL), "")


def _stub(text: str) -> list[FieldProblem]:
    if not text:
        detail = "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set"
        return [invalid_without_value("spec", detail)]
    data = b64decode(text)
    if len(data) > _REQUEST_MAX:
        return [too_long(_REQUEST, _REQUEST_MAX)]
    key = request_key(data)
    if key is None:
        return [invalid_without_value(_REQUEST, "must be a valid PKCS#10 CSR")]
    wrong, detail = _key_problem(key)
    return [invalid(_REQUEST, wrong or text, detail)] if detail else []


def _key_problem(key: object) -> tuple[str, str]:
    """What a message shows of a key that is not allowed, and why it is not."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa  # noqa: PLC0415 - an extra

    if isinstance(key, rsa.RSAPublicKey):
        if key.key_size in {3072, 4096}:
            return "", ""
        return f"{key.key_size}-bit modulus", "RSA keys must have modulus size 3072 or 4096"
    if isinstance(key, ec.EllipticCurvePublicKey):
        if isinstance(key.curve, ec.SECP256R1 | ec.SECP384R1 | ec.SECP521R1):
            return "", ""
        name = key.curve.name.replace("secp224r1", "P-224")
        return f"curve {name}", "elliptic public keys must use curve P256, P384, or P521"
    if isinstance(key, ed25519.Ed25519PublicKey):
        return "", ""
    return "", "unknown public key type; supported types are Ed25519, ECDSA, and RSA"


def _decision(given: list[Tree]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    known = 0
    for index, one in until_enough(given, problems):
        path, type_, status = f"{_CONDITIONS}.[{index}]", one.get("type", ""), one.get("status", "")
        if type_ not in _FINAL:
            problems.append(unsupported(f"{path}.type", type_, _FINAL))
            continue
        known += 1
        if known > 1:
            detail = 'There may be at most one condition with type "Issued", "Denied", or "Failed"'
            problems.append(invalid(f"{path}.type", type_, detail))
        if status != "True":
            problems.append(unsupported(f"{path}.status", status, ("True",)))
    return problems


def _issued(spec: Tree, status: Tree) -> list[FieldProblem]:
    """The problems of an issued certificate; the first kind of them that there is."""
    chain: str = status.get("certificateChain", "")
    data = chain.encode()
    if len(data) > _CHAIN_MAX:
        return [too_long(_CHAIN, _CHAIN_MAX)]
    blocks = list(pem_blocks(data))
    leaf = blocks[0].certificate() if blocks else None
    if leaf is None or blocks[0].type != _CERTIFICATE:
        if not blocks:
            detail = "issued certificate chain must contain at least one certificate"
        elif blocks[0].type != _CERTIFICATE:
            detail = "issued certificate chain must consist entirely of CERTIFICATE PEM blocks"
        else:
            detail = "leaf certificate does not parse as valid X.509"
        return [invalid(_CHAIN, chain, detail)]
    problems = _names(leaf)
    if leaf.public_key() != request_key(b64decode(spec.get("stubPKCS10Request") or "")):
        detail = "leaf certificate was not issued to the requested public key"
        return [*problems, invalid(_CHAIN, chain, detail)]
    for path, name, detail in (
        (_NOT_BEFORE, "notBefore", "must be present and consistent with the issued certificate"),
        (_NOT_AFTER, "notAfter", "must be present and consistent with the issued certificate"),
        (_REFRESH, "beginRefreshAt", "must be present and in the range [notbefore+10min, notafter-10min]"),
    ):
        if not status.get(name):
            problems.append(required(path, detail))
    if problems:
        return problems
    return _times(spec, status, leaf) or _rest(chain, blocks[1:])


def _names(leaf: Certificate) -> list[FieldProblem]:
    from cryptography import x509  # noqa: PLC0415 - an extra

    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    problems: list[FieldProblem] = []
    for _, name in until_enough(names.get_values_for_type(x509.DNSName), problems):
        if not name:
            problems.append(invalid(_CHAIN, name, "leaf certificate should not contain empty DNSName"))
        if ".." in name:
            problems.append(invalid(_CHAIN, name, "leaf certificate's DNSName should not contain '..'"))
        if name.startswith(".") or name.endswith("."):
            problems.append(invalid(_CHAIN, name, "leaf certificate's DNSName should not start or end with '.'"))
    for _, name in until_enough(names.get_values_for_type(x509.RFC822Name), problems):
        if not is_email(name):
            problems.append(invalid(_CHAIN, name, "leaf certificate should not contain invalid EmailAddress"))
    return problems


def _times(spec: Tree, status: Tree, leaf: Certificate) -> list[FieldProblem]:
    """The first problem of the times in a status, which must be those of the certificate."""
    begin, end = leaf.not_valid_before_utc, leaf.not_valid_after_utc
    not_before, not_after, refresh = (parse_time(status[name]) for name in ("notBefore", "notAfter", "beginRefreshAt"))
    lifetime, longest = end - begin, spec["maxExpirationSeconds"]
    shown = int(lifetime.total_seconds()) * 10**9
    for path, value, wrong, detail in (
        (
            _NOT_BEFORE,
            not_before,
            not_before != begin,
            "must be set to the NotBefore time encoded in the leaf certificate",
        ),
        (
            _NOT_BEFORE,
            not_before,
            abs(not_before - utc_now()) >= timedelta(minutes=5),
            "must be set to within 5 minutes of kube-apiserver's current time",
        ),
        (_NOT_AFTER, not_after, not_after != end, "must be set to the NotAfter time encoded in the leaf certificate"),
        (_CHAIN, shown, lifetime < timedelta(hours=1), "leaf certificate lifetime must be >= 1 hour"),
        (
            _CHAIN,
            shown,
            lifetime > timedelta(seconds=longest),
            f"leaf certificate lifetime must be <= spec.maxExpirationSeconds ({longest})",
        ),
        (_REFRESH, refresh, refresh < not_before + _MARGIN, "must be at least 10 minutes after status.notBefore"),
        (_REFRESH, refresh, refresh > not_after - _MARGIN, "must be at least 10 minutes before status.notAfter"),
    ):
        if wrong:
            return [invalid(path, _time(value) if isinstance(value, datetime) else value, detail)]
    return []


def _time(value: datetime) -> str:
    return format_time(value)


def _rest(chain: str, blocks: list[PemBlock]) -> list[FieldProblem]:
    for block in blocks:
        if block.type != _CERTIFICATE:
            # The misspelled word is kube-apiserver's.
            return [invalid(_CHAIN, chain, "issued certificate chain must consist entirely of CERTFICATE PEM blocks")]
        if block.certificate() is None:
            return [invalid(_CHAIN, chain, "intermediate certificate does not parse as valid X.509")]
    return []
