"""Requests for certificates: what Go's libraries would read is what is checked, in one pass over the text."""

from base64 import b64encode

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding

from samples.embedded import Raw
from steersman.apiserver import ApiServer
from steersman.apiserver.registry.builtin.cluster.pem import certificate_problem, request_problem

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
LABEL = b"CERTIFICATE REQUEST"
UNREADABLE = "PEM block type must be CERTIFICATE REQUEST"


def signed(group):
    name = x509.Name([x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, group)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(name)
    return builder.sign(Ed25519PrivateKey.generate(), None)


def block(content, label=LABEL):
    return b"-----BEGIN %b-----\n%b\n-----END %b-----\n" % (label, content, label)


def written(content):
    return block(b64encode(content))


@pytest.fixture
async def raw():
    async with ApiServer(kinds=["certificates.k8s.io/v1"]) as server:
        yield Raw(server.handler)


@pytest.mark.parametrize("before", [b"", b"words\n", block(b"!"), block(b"!", b"X"), b"-----BEGIN X-----\n"])
async def test_a_client_certificate_never_names_administrators(raw, before):
    """A signer reads the first block that is valid; the check reads the same one."""
    spec = {
        "request": b64encode(before + written(signed("system:masters").public_bytes(Encoding.DER))).decode(),
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"],
    }
    kind = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
    answer = await raw.post(REQUESTS, kind | {"metadata": {"name": "a"}, "spec": spec})
    assert (answer.code, answer.body["message"].rpartition(": ")[2]) == (
        403,
        "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed",
    )


def test_the_first_valid_block_counts():
    request = signed("staff").public_bytes(Encoding.DER)
    for text in (
        block(b"!") + written(request),
        b"-----BEGIN X-----\n" + written(request),
        block(b"a: b\n\n" + b64encode(request)),
        written(request).replace(b"\n", b" \t\r\n"),
        written(request).removesuffix(b"\n"),
        written(request) + block(b"", b"X"),
    ):
        assert request_problem(text) == ""
    for text in (b"", b"x" + written(request), block(b"", b"X") + written(request), written(request)[:-3]):
        assert request_problem(text) == UNREADABLE


def test_a_request_of_another_version_is_rejected():
    request = signed("staff").public_bytes(Encoding.DER)
    version = request.index(b"\x02\x01\x00") + 2
    other = request[:version] + b"\x07" + request[version + 1 :]
    assert request_problem(written(other)) == "asn1: structure error: tags don't match"


@pytest.mark.parametrize("line", [b"-----BEGIN X-----\n", b"a: b\n", b"-----BEGIN X-----\n-----END Y-----\n"])
@pytest.mark.parametrize("problem", [request_problem, certificate_problem])
def test_a_long_text_is_read_in_one_pass(line, problem):
    """A megabyte takes a moment; if each line were searched to the end, it would take hours."""
    assert problem(b"-----BEGIN X-----\n" + line * (1_000_000 // len(line)))
