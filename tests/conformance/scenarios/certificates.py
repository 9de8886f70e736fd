"""CertificateSigningRequests: the request, its approval, its certificate."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from conformance.bodies import Tree, merged, named
from conformance.scenario import delete, get, patch, post, put, scenario

CSR = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
ONE = f"{CSR}/{{free}}"


def pem(kind: str, *lines: str) -> str:
    return "\n".join((f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""))


#: A request signed with its own key, and one whose signature has another last bit.
LINES = (
    "MIGNMEECAQAwDjEMMAoGA1UEAwwDa2ltMCowBQYDK2VwAyEADzO44IPn0l6VAUs1",
    "nLO8GEzRzM5IyB9RfEBfZCqTjV+gADAFBgMrZXADQQAp6PECkk6KoSHlRWW76wxb",
    "YZ8830k7abblhshcDBl1hG/+HgUGbw+qQ7gJJ96rJNJYNVdhxvteW/TFg5EDYpU",
)
REQUEST = pem("CERTIFICATE REQUEST", *LINES[:2], f"{LINES[2]}N")
FORGED = pem("CERTIFICATE REQUEST", *LINES[:2], f"{LINES[2]}M")
ELLIPTIC = pem(
    "CERTIFICATE REQUEST",
    "MIHHMHACAQAwDjEMMAoGA1UEAwwDa2ltMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcD",
    "QgAERbazeezaksW9vitaOjIa/s5FR0WCMXa8cl+UKtyYF6bKgVo9uAyGu78a95Fc",
    "kXPZdYxUliTvxPv/qLzvhd0lmqAAMAoGCCqGSM49BAMCA0cAMEQCID4b2/LBYVa9",
    "Hzc1yasGdDJzH5zAX7hYAVXM2+e2OwJ+AiAVh1aYpiDG/kuXAIXihiKI+P/s81x+",
    "xs9kfjLg8mhPFA==",
)
CERTIFICATE = pem(
    "CERTIFICATE",
    "MIHGMHqgAwIBAgIBBzAFBgMrZXAwDTELMAkGA1UEAwwCY2EwHhcNMjQwMTAxMDAw",
    "MDAwWhcNMzQwMTAxMDAwMDAwWjAOMQwwCgYDVQQDDANraW0wKjAFBgMrZXADIQAP",
    "M7jgg+fSXpUBSzWcs7wYTNHMzkjIH1F8QF9kKpONXzAFBgMrZXADQQArbquJwCFr",
    "Nuy8AQLKdTPihpPKnwCfXmPcfLQ2TiVJgbyzmFGZwpwZbHYqm5GqMEf5h0qz5JhV",
    "pAdPPfU/zx8M",
)


def encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


def request(text: str = REQUEST, **spec: Any) -> Tree:
    given = {"request": encoded(text), "signerName": "example.com/s", "usages": ["client auth"]}
    return named("certificates.k8s.io/v1", "CertificateSigningRequest", "{free}", spec=merged(given, spec))


def condition(type_: str, status: str = "True", **fields: Any) -> Tree:
    return {"type": type_, "status": status, "reason": "R", "message": "m", **fields}


def conditions(*given: Tree) -> Tree:
    return {"status": {"conditions": list(given)}}


def certificate(text: str) -> Tree:
    return {"status": {"certificate": encoded(text)}}


APPROVED, DENIED, FAILED = condition("Approved"), condition("Denied"), condition("Failed")
#: A condition that is the same whenever it is written.
TIMED = FAILED | {"lastUpdateTime": "2024-01-02T03:04:05Z", "lastTransitionTime": "2024-01-02T03:04:05Z"}


def without_user(body: Any) -> Any:
    """What does not tell of the user, who is another one on each server."""
    if isinstance(body, dict) and isinstance(body.get("spec"), dict):
        return body | {
            "spec": {
                name: value
                for name, value in body["spec"].items()
                if name not in {"username", "uid", "groups", "extra"}
            }
        }
    return body


def trial(name: str, *bodies: Tree) -> Any:
    return scenario(
        f"trials-of-{name}",
        "Kinds, Status errors",
        *(post(CSR, body, dryRun="All", focus=without_user) for body in bodies),
    )


def changed(name: str, *steps: tuple[str, Tree]) -> Any:
    """A request that is created, and patched through endpoints."""
    made = [patch(f"{ONE}{endpoint}", body, focus=without_user) for endpoint, body in steps]
    return scenario(
        name,
        "Kinds, Subresources, Status errors",
        post(CSR, request(), focus=without_user),
        *made,
        get(ONE, focus=without_user),
        delete(ONE),
    )


SCENARIOS = [
    trial("requests", request(), request(ELLIPTIC), request(FORGED), request(""), request("x"), request(CERTIFICATE), request(f"text\n{REQUEST}")),
    trial("signer-names", *(request(signerName=name) for name in ("", "x", "example.com", "example.com/", "/x", "a/b", "a.b/c/d", "A.b/c", "a..b/c", "a.b/C", "a.b/c.d", "kubernetes.io/legacy-unknown", f"{'x' * 64}.b/c", f"{'x.' * 130}b/c", f"a.b/{'x.' * 300}c"))),
    trial("usages", request(usages=[]), request(usages=None), request(usages=["jump"]), request(usages=["any", "any"]), request(usages=["signing", "s/mime", "Client Auth", "signing", ""])),
    trial("expirations", *(request(expirationSeconds=seconds) for seconds in (600, 599, 0, -1))),
    trial("requests-with-many-problems", request("x", usages=["jump", "jump"], signerName="x", expirationSeconds=1)),
    trial("fields-of-the-server", merged(request(username="somebody", uid="u", groups=["g"], extra={"a": ["b"]}), conditions(APPROVED)), merged(request(), certificate("x"))),
    changed("spec-stays", ("", {"spec": {"usages": ["server auth"], "signerName": "example.com/t"}}), ("", conditions(APPROVED)), ("", {"metadata": {"labels": {"a": "b"}}}), ("", {"metadata": {"labels": {"a": "b c"}}})),
    changed("approval", ("/approval", conditions(APPROVED)), ("/approval", conditions(APPROVED, condition("Other", "Unknown"))), ("/approval", conditions()), ("/approval", conditions(condition("Approved", "False")))),
    changed("denial", ("/approval", conditions(DENIED)), ("/approval", conditions(DENIED, APPROVED)), ("/approval", conditions(APPROVED))),
    changed("approval-of-nothing-else", ("/approval", merged(conditions(APPROVED), certificate(CERTIFICATE))), ("/approval", {"spec": {"usages": ["any"]}, "metadata": {"labels": {"a": "b"}}})),
    changed("invalid-conditions", ("/approval", conditions({"type": "", "status": ""})), ("/approval", conditions(condition("Odd", "Perhaps"))), ("/approval", conditions(APPROVED, APPROVED)), ("/approval", conditions(FAILED, condition("Failed", "False")))),
    changed("approval-by-status", ("/status", conditions(APPROVED)), ("/status", conditions(TIMED)), ("/status", conditions()), ("/approval", conditions(TIMED, APPROVED)), ("/status", conditions(TIMED)), ("/status", conditions(TIMED, condition("Approved", "True", reason="Other")))),
    changed("certificate", ("/status", certificate("x")), ("/status", certificate(REQUEST)), ("/status", certificate(CERTIFICATE)), ("/status", certificate(CERTIFICATE * 2)), ("/status", {"status": {"certificate": None}})),
    scenario("approval-by-put", "Kinds, Subresources", post(CSR, request(), as_="a", focus=without_user), put(f"{ONE}/approval", merged(request(), conditions(APPROVED)), focus=without_user), get(f"{ONE}/approval", focus=without_user), put(f"{ONE}/approval", request(), focus=without_user), post(f"{ONE}/approval", request()), delete(f"{ONE}/approval"), delete(ONE)),
    scenario("approval-by-apply", "Kinds, Subresources, Apply", post(CSR, request(), focus=without_user), patch(f"{ONE}/approval", merged(named("certificates.k8s.io/v1", "CertificateSigningRequest", "{free}"), conditions(APPROVED)), "apply", fieldManager="x", focus=without_user), get(ONE, focus=without_user), delete(ONE)),
    scenario("approval-of-a-missing-one", "Subresources, Status errors", get(f"{ONE}/approval"), patch(f"{ONE}/approval", conditions(APPROVED)), put(f"{ONE}/approval", request())),
]  # fmt: skip
