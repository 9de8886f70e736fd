"""The kinds that are stable since Kubernetes 1.37: trust anchors, certificates of Pods, device taints, migrations."""

from __future__ import annotations

from typing import Any

from conformance.bodies import Tree, merged, named
from conformance.scenario import delete, get, patch, post, put, scenario
from conformance.scenarios.certificates import CERTIFICATE, LINES, REQUEST, pem

BUNDLES = "/apis/certificates.k8s.io/v1/clustertrustbundles"
REQUESTS = "/apis/certificates.k8s.io/v1/namespaces/{ns}/podcertificaterequests"
RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
MIGRATIONS = "/apis/storagemigration.k8s.io/v1/storageversionmigrations"

AUTHORITY = pem(
    "CERTIFICATE",
    "MIHdMIGQoAMCAQICAQcwBQYDK2VwMA4xDDAKBgNVBAMMA29uZTAeFw0yNDAxMDEw",
    "MDAwMDBaFw0zNDAxMDEwMDAwMDBaMA4xDDAKBgNVBAMMA29uZTAqMAUGAytlcAMh",
    "AN2rkrLxWo1VqZahlA2ImU5tq9IllaTwt4MfUOMvf7ezoxMwETAPBgNVHRMBAf8E",
    "BTADAQH/MAUGAytlcANBAOqx1i0ki/n2fxmzT9v51Zop43N+IHJmNc3wvigAo7a+",
    "GWg1tHqjwUYdUMNKe9eNL6h7Qo6wgfFPp0RSFseEUwE=",
)
OTHER = pem(
    "CERTIFICATE",
    "MIHdMIGQoAMCAQICAQcwBQYDK2VwMA4xDDAKBgNVBAMMA3R3bzAeFw0yNDAxMDEw",
    "MDAwMDBaFw0zNDAxMDEwMDAwMDBaMA4xDDAKBgNVBAMMA3R3bzAqMAUGAytlcAMh",
    "AMj4aI68BTnyJKT35vr4s978K2SxZm90fRXxRFPrCLG9oxMwETAPBgNVHRMBAf8E",
    "BTADAQH/MAUGAytlcANBAKPGu/UUFLaWjYx32W9wg3MK68M6zvZRL+6IvZUMLbyP",
    "6BKiMVPky87b1p1rQ+cYkpxgcY/i5jlbufxodb/90w8=",
)
#: A certificate whose basic constraints say that it is no authority's.
LEAF = pem(
    "CERTIFICATE",
    "MIHcMIGPoAMCAQICAQcwBQYDK2VwMA8xDTALBgNVBAMMBGxlYWYwHhcNMjQwMTAx",
    "MDAwMDAwWhcNMzQwMTAxMDAwMDAwWjAPMQ0wCwYDVQQDDARsZWFmMCowBQYDK2Vw",
    "AyEA2U/2d1zPzmX5OdHehctLUPtM4ycVsqnYsCQ7Mg/fXVijEDAOMAwGA1UdEwEB",
    "/wQCMAAwBQYDK2VwA0EAWWiYFQsaGaVKj1jz+SlQ+ROAgKDgDJoHZNyR0EUCvYJ9",
    "TFKQDOxsROZkXVWfS7Oh4742T4k0yPM+QMcy3cH3Aw==",
)
WITH_HEADERS = AUTHORITY.replace("-----\n", "-----\nA: b\n\n", 1)
#: Requests in DER: for an Ed25519 key, for a key of an unusual curve, and for a short RSA key.
STUB = f"{''.join(LINES)}N"
P224 = (
    "MIGoMFcCAQAwADBOMBAGByqGSM49AgEGBSuBBAAhAzoABO8RNJ3oMWjYuL/gjKhX3DXkPXTXcNtihiwQsbTsLdhWbD9E4nC/KrCnpQdl8GqRBz1kghJv"
    "S/mLoAAwCgYIKoZIzj0EAwIDQQAwPgIdAKPwFb8+gh3HQf6d3/gMaGNGy2qYAO8gSF1HcfQCHQDBVHACjq6tjyYZJAUdSZPEkE8JKJ7/Vk7I/DXN"
)
RSA = (
    "MIIBPzCBqQIBADAAMIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQCV3GjhoisPRf6VNmSejv6al9ueGH4q41zyWDVfs51eiO4Zvl9bRyNi6jVZumnS"
    "jyaV3nbvTVr3huXPXZPl7S//siDf1iXzeXp+AulZsyyPn2kgFQT0bqBhgVxbdzYUBylTr0IDxkH5nLQ1oJgZnaVdVokl/jk3g059KrHO281nlQIDAQAB"
    "oAAwDQYJKoZIhvcNAQELBQADgYEACjOtltLH+7XuVK6kkLCjDbxpkG7rC4DteidV1Y6eaSrtraJFHK10Xdguys2/olfwuUH3YUcs5vrY/veN5oTDOIJ1"
    "Ww15gAR6mGC58IvitYmpJH1/pTj9p+vCJfBL2XWeAJOlfsVnBJQ1TihXCNhD0fLiAIgfvaR1hyLYXUEokMA="
)


def bundle(text: str = AUTHORITY, signer: str = "", name: str = "{free}", **metadata: Any) -> Tree:
    spec = {"trustBundle": text} | ({"signerName": signer} if signer else {})
    made = named("certificates.k8s.io/v1", "ClusterTrustBundle", name, spec=spec)
    return merged(made, {"metadata": metadata})


def request(**spec: Any) -> Tree:
    given = {
        "signerName": "example.com/s",
        **{f"{name}Name": "a" for name in ("pod", "serviceAccount", "node")},
        **{f"{name}UID": "u" for name in ("pod", "serviceAccount", "node")},
        "stubPKCS10Request": STUB,
    }
    return named("certificates.k8s.io/v1", "PodCertificateRequest", "a", spec=merged(given, spec))


def rule(taint: Tree | None = None, **selector: Any) -> Tree:
    spec: Tree = {"taint": merged({"key": "example.com/odd", "effect": "NoSchedule"}, taint or {})}
    return named(
        "resource.k8s.io/v1",
        "DeviceTaintRule",
        "{free}",
        spec=spec | ({"deviceSelector": selector} if selector else {}),
    )


def migration(name: str = "{free}", **resource: Any) -> Tree:
    spec = {"resource": merged({"group": "apps", "resource": "deployments"}, resource)}
    return named("storagemigration.k8s.io/v1", "StorageVersionMigration", name, spec=spec)


def condition(type_: str, status: str = "True", **fields: Any) -> Tree:
    return {
        "type": type_,
        "status": status,
        "reason": "R",
        "message": "m",
        "lastTransitionTime": "2024-01-02T03:04:05Z",
        **fields,
    }


def status(*given: Tree, **fields: Any) -> Tree:
    return {"status": {"conditions": list(given), **fields}}


def trial(name: str, path: str, *bodies: Tree) -> Any:
    steps = (post(path, body, dryRun="All") for body in bodies)
    return scenario(f"trials-of-{name}", "Kinds, Status errors", *steps)


def life(name: str, path: str, body: Tree, *steps: tuple[str, Tree], one: str = "{free}") -> Any:
    """An object that is created, and patched through endpoints."""
    changes = [patch(f"{path}/{one}{endpoint}", change) for endpoint, change in steps]
    return scenario(
        name,
        "Kinds, Subresources, Status errors",
        post(path, body),
        *changes,
        get(f"{path}/{one}"),
        delete(f"{path}/{one}"),
    )


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
ISSUED, DENIED, REFUSED = condition("Issued"), condition("Denied"), condition("Failed")
SUCCEEDED, FAILED, RUNNING = condition("Succeeded"), condition("Failed"), condition("Running")
#: Conditions with one mistake each, and one with all.
ODD = (
    {"type": "", "status": "", "reason": "", "message": "", "lastTransitionTime": None},
    condition("a b"),
    condition("A", "Perhaps"),
    condition("A", reason="0"),
    condition("A", reason="x" * 1025),
    condition("A", message="x" * 32769),
    condition("A", observedGeneration=-1),
)

SCENARIOS = [
    trial(
        "trust-bundles",
        BUNDLES,
        bundle(),
        bundle(AUTHORITY + OTHER),
        bundle(""),
        bundle("x"),
        bundle(REQUEST),
        bundle(LEAF),
        bundle(CERTIFICATE),
        bundle(WITH_HEADERS),
        bundle(AUTHORITY + LEAF + REQUEST),
        bundle(AUTHORITY * 3),
        bundle(pem("CERTIFICATE", "YQ==")),
        bundle("x" * 1048577),
    ),
    trial(
        "trust-bundle-names",
        BUNDLES,
        *(
            bundle(signer=signer, name=name)
            for signer, name in (
                ("", "a:b"),
                ("", "A"),
                ("example.com/s", "a"),
                ("example.com/s", "example.com:s:a"),
                ("example.com/s", "example.com:s:A"),
                ("example.com/s", "example.com:s:"),
                ("x", "x:a"),
                ("a/b/c", "a:b:c:d"),
            )
        ),
        merged(bundle(signer="example.com/s"), {"metadata": {"name": None, "generateName": "example.com:s:"}}),
        merged(bundle(signer="example.com/s"), {"metadata": {"name": None, "generateName": "x"}}),
    ),
    life(
        "trust-bundle-changes",
        BUNDLES,
        bundle(signer="example.com/s", name="example.com:s:{free}"),
        ("", {"spec": {"trustBundle": OTHER}}),
        ("", {"spec": {"trustBundle": "x"}}),
        ("", {"spec": {"signerName": "example.com/t"}}),
        ("", {"metadata": {"labels": {"a": "b c"}}}),
        ("", {"spec": {"signerName": None}}),
        one="example.com:s:{free}",
    ),
    scenario(
        "trust-bundle-updates",
        "Kinds, Selectors, Table",
        post(BUNDLES, bundle(signer="example.com/{free}", name="example.com:{free}:a")),
        put(
            f"{BUNDLES}/example.com:{{free}}:a", bundle(OTHER, signer="example.com/{free}", name="example.com:{free}:a")
        ),
        get(BUNDLES, fieldSelector="spec.signerName=example.com/{free}"),
        get(BUNDLES, fieldSelector="spec.trustBundle=x"),
        get(f"{BUNDLES}/example.com:{{free}}:a", accept=TABLE),
        delete(f"{BUNDLES}/example.com:{{free}}:a"),
    ),
    trial(
        "pod-certificate-requests",
        REQUESTS,
        request(),
        request(signerName=""),
        request(signerName="x"),
        request(podName="A"),
        request(podUID=""),
        request(podUID="x" * 129),
        request(serviceAccountName="", serviceAccountUID=""),
        request(nodeName="a b", nodeUID="x" * 129),
        request(stubPKCS10Request=None),
        request(stubPKCS10Request="YQ=="),
        request(stubPKCS10Request=P224),
        request(stubPKCS10Request=RSA),
        request(stubPKCS10Request="QUFB" * 2732),
    ),
    trial(
        "pod-certificate-lifetimes",
        REQUESTS,
        *(request(maxExpirationSeconds=seconds) for seconds in (None, 3599, 3600, 86401, 7862400, 7862401)),
        *(
            request(signerName=signer, maxExpirationSeconds=86401)
            for signer in ("kubernetes.io/s", "a.kubernetes.io/s", "akubernetes.io/s")
        ),
    ),
    trial(
        "pod-certificate-annotations",
        REQUESTS,
        *(
            request(unverifiedUserAnnotations=given)
            for given in (
                {"example.com/A": "b"},
                {"a": "b"},
                {"": "b"},
                {"a b/c": "d"},
                {"example.com/a": "x" * 262144},
            )
        ),
    ),
    life(
        "pod-certificate-request-changes",
        REQUESTS,
        request(),
        ("", {"spec": {"podName": "b"}}),
        ("", {"spec": {"maxExpirationSeconds": 3600}}),
        ("", status(DENIED)),
        ("", {"metadata": {"labels": {"a": "b"}}}),
        one="a",
    ),
    life(
        "pod-certificate-denial",
        REQUESTS,
        request(),
        ("/status", status(condition("Odd"))),
        ("/status", status(DENIED, REFUSED)),
        ("/status", status(condition("Denied", "False"))),
        ("/status", status(DENIED, certificateChain="x")),
        ("/status", status(certificateChain="x")),
        ("/status", status(DENIED)),
        ("/status", status(DENIED | {"message": "n"})),
        ("/status", status()),
        ("/status", {"metadata": {"labels": {"a": "b"}}, "spec": {"podName": "b"}}),
        one="a",
    ),
    life(
        "pod-certificate-conditions",
        REQUESTS,
        request(),
        *(("/status", status(one)) for one in ODD),
        ("/status", status(DENIED, DENIED)),
        one="a",
    ),
    life(
        "pod-certificate-chains",
        REQUESTS,
        request(),
        *(
            ("/status", status(ISSUED, certificateChain=chain))
            for chain in ("", "x", REQUEST, pem("CERTIFICATE", "YQ=="), AUTHORITY, CERTIFICATE, "x" * 102401)
        ),
        (
            "/status",
            status(
                ISSUED,
                certificateChain=CERTIFICATE,
                notBefore="2024-01-01T00:00:00Z",
                notAfter="2034-01-01T00:00:00Z",
                beginRefreshAt="2030-01-01T00:00:00Z",
            ),
        ),
        (
            "/status",
            status(
                ISSUED,
                certificateChain=CERTIFICATE,
                notBefore="2024-01-01T00:00:01Z",
                notAfter="2034-01-01T00:00:00Z",
                beginRefreshAt="2030-01-01T00:00:00Z",
            ),
        ),
        one="a",
    ),
    scenario(
        "pod-certificate-selectors",
        "Kinds, Selectors, Table",
        post(REQUESTS, request(unverifiedUserAnnotations={"example.com/a": "b"})),
        *(
            get(REQUESTS, fieldSelector=f"{field}={value}")
            for field, value in (
                ("spec.podName", "a"),
                ("spec.podName", "b"),
                ("spec.nodeName", "a"),
                ("spec.signerName", "example.com/s"),
                ("spec.podUID", "u"),
            )
        ),
        get(REQUESTS, accept=TABLE),
        put(f"{REQUESTS}/a", request()),
        delete(f"{REQUESTS}/a"),
    ),
    trial(
        "device-taint-rules",
        RULES,
        *(
            rule(taint)
            for taint in (
                {},
                {"key": ""},
                {"key": "a b"},
                {"key": None},
                {"value": "v"},
                {"value": "a b"},
                {"effect": ""},
                {"effect": None},
                {"effect": "Odd"},
                {"effect": "None"},
                {"effect": "NoExecute", "timeAdded": "2024-01-01T00:00:00Z"},
                {"key": "", "value": "a b", "effect": "x"},
            )
        ),
    ),
    trial(
        "device-taint-selectors",
        RULES,
        *(
            rule(**selector)
            for selector in (
                {"driver": "example.com"},
                {"driver": ""},
                {"driver": "a b"},
                {"driver": "x" * 64},
                {"pool": "a/b"},
                {"pool": ""},
                {"pool": "A/b c"},
                {"pool": "x" * 254},
                {"device": "a"},
                {"device": ""},
                {"device": "A"},
                {"driver": "A", "pool": "B", "device": "C"},
            )
        ),
    ),
    life(
        "device-taint-rule-changes",
        RULES,
        rule({"timeAdded": "2024-01-01T00:00:00Z"}),
        ("", {"spec": {"taint": {"value": "v"}}}),
        ("", {"spec": {"taint": {"effect": "Odd"}}}),
        ("", {"spec": {"deviceSelector": {"pool": "p"}}}),
        ("", status(condition("EvictionInProgress"))),
        ("", {"metadata": {"labels": {"a": "b"}}}),
    ),
    life(
        "device-taint-rule-status",
        RULES,
        rule({"timeAdded": "2024-01-01T00:00:00Z"}),
        ("/status", status(condition("EvictionInProgress"))),
        *(("/status", status(one)) for one in ODD),
        ("/status", status(*(condition(f"C{index}") for index in range(9)))),
        ("/status", {"metadata": {"labels": {"a": "b"}}, "spec": {"taint": {"value": "v"}}}),
    ),
    scenario(
        "device-taint-rule-updates",
        "Kinds, Table",
        post(RULES, rule({"value": "v", "timeAdded": "2024-01-01T00:00:00Z"})),
        put(f"{RULES}/{{free}}", rule()),
        delete(f"{RULES}/{{free}}"),
    ),
    trial(
        "storage-migrations",
        MIGRATIONS,
        *(
            migration(**resource)
            for resource in (
                {},
                {"resource": ""},
                {"resource": None},
                {"resource": "A b"},
                {"resource": "a.b"},
                {"group": ""},
                {"group": "A b"},
                {"resource": "", "group": "x_y"},
            )
        ),
    ),
    life(
        "storage-migration-changes",
        MIGRATIONS,
        migration(),
        ("", {"spec": {"resource": {"resource": "daemonsets"}}}),
        ("", status(RUNNING)),
        ("", {"metadata": {"labels": {"a": "b"}}}),
    ),
    life(
        "storage-migration-status",
        MIGRATIONS,
        migration(),
        ("/status", status(RUNNING, resourceVersion="0")),
        ("/status", status(RUNNING, resourceVersion="x")),
        ("/status", status(RUNNING, resourceVersion="5")),
        ("/status", {"status": {"resourceVersion": "6"}}),
        ("/status", {"status": {"resourceVersion": None}}),
        ("/status", status(SUCCEEDED, FAILED)),
        ("/status", status(SUCCEEDED)),
        ("/status", status(FAILED)),
        ("/status", status(SUCCEEDED, condition("Odd"))),
        ("/status", {"metadata": {"labels": {"a": "b"}}}),
    ),
    life(
        "failed-storage-migration",
        MIGRATIONS,
        migration(),
        ("/status", status(FAILED)),
        ("/status", status(condition("Failed", "False"))),
        ("/status", status()),
        *(("/status", status(FAILED, one)) for one in ODD),
        ("/status", status(FAILED, FAILED)),
    ),
    scenario(
        "storage-migration-table",
        "Kinds, Table",
        post(MIGRATIONS, migration()),
        get(f"{MIGRATIONS}/{{free}}", accept=TABLE),
        patch(f"{MIGRATIONS}/{{free}}/status", status(RUNNING)),
        get(f"{MIGRATIONS}/{{free}}", accept=TABLE),
        put(f"{MIGRATIONS}/{{free}}", migration()),
        delete(f"{MIGRATIONS}/{{free}}"),
    ),
]
