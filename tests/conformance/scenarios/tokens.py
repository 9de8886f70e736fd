"""Tokens of service accounts: who gets one, what is said in it, and for how long it is believed."""

from __future__ import annotations

import base64
import json
from typing import Any

from conformance.bodies import POD, SECRET, SERVICE_ACCOUNT, merged, pod, secret, service_account
from conformance.protobuf_encoding import PROTOBUF, Protobuf
from conformance.scenario import Call, call, delete, get, post, put, scenario

REQUEST = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"}
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
NODES = "/api/v1/nodes"
TOKEN = f"{SERVICE_ACCOUNT}/a/token"
HOME = "https://kubernetes.default.svc"
OTHER = "11111111-2222-3333-4444-555555555555"


def asked(path: str = TOKEN, *, metadata: dict[str, Any] | None = None, as_: str = "", **spec: Any) -> Call:
    """A request for a token."""
    body = REQUEST | {"spec": spec} | ({"metadata": metadata} if metadata else {})
    return post(path, body, as_=as_)


def bound(kind: str, name: str, *, as_: str = "", **more: str) -> Call:
    """A request for a token that is bound to an object."""
    return asked(as_=as_, boundObjectRef={"kind": kind, "apiVersion": "v1", "name": name} | more)


def reviewed(token: str, *audiences: str) -> Call:
    """A question whose token it is."""
    spec: dict[str, Any] = {"token": token} | ({"audiences": list(audiences)} if audiences else {})
    return post(REVIEWS, {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": spec})


def part(tree: Any) -> str:
    """A part of a token that says this."""
    return base64.urlsafe_b64encode(json.dumps(tree).encode()).rstrip(b"=").decode()


def resource(tree: Any) -> Any:
    """What discovery tells of service accounts."""
    return [each for each in tree["resources"] if each["name"].startswith("serviceaccounts")]


ACCOUNT = post(SERVICE_ACCOUNT, service_account(), as_="a")
RUNS = {"serviceAccountName": "a", "automountServiceAccountToken": False}

SCENARIOS = [
    scenario(
        "asked-for",
        "Subresources, Kinds",
        ACCOUNT,
        *[asked(**spec) for spec in ({}, {"audiences": ["x", "y"]}, {"audiences": []}, {"audiences": ["x", "x", ""]}, {"expirationSeconds": 600}, {"expirationSeconds": 100000}, {"expirationSeconds": 1 << 32}, {"expirationSeconds": 3607}, {"expirationSeconds": None, "boundObjectRef": None})],
        *[post(TOKEN, body) for body in ({}, REQUEST, REQUEST | {"spec": None, "metadata": None}, REQUEST | {"spec": {}, "status": {"token": "mine"}}, b"null", {"spec": {}})],
        asked(metadata={"name": "a"}),
        asked(metadata={"uid": "$uid:a", "namespace": "{ns}", "labels": {"a": "b c"}, "annotations": {"a": "b"}, "generateName": "x-"}),
        asked(metadata={"resourceVersion": "5", "finalizers": ["x"], "ownerReferences": [{}], "creationTimestamp": "2020-01-01T00:00:00Z", "generation": 4}),
        get(f"{SERVICE_ACCOUNT}/a"),
    ),
    scenario(
        "refused",
        "Subresources, Status errors, fieldValidation, dryRun",
        ACCOUNT,
        *[asked(expirationSeconds=seconds) for seconds in (599, 0, -1, (1 << 32) + 1, "a", 1.5)],
        asked(audiences="x"),
        asked(color="red"),
        post(TOKEN, REQUEST | {"spec": {"color": "red"}}, fieldValidation="Strict"),
        post(TOKEN, REQUEST | {"spec": {}}, dryRun="All"),
        post(TOKEN, REQUEST | {"spec": {}}, dryRun="some"),
        *[asked(metadata=metadata) for metadata in ({"name": "b"}, {"name": "Bad_"}, {"namespace": "other"}, {"uid": OTHER})],
        asked(metadata={"uid": OTHER}, expirationSeconds=1),
        asked(f"{SERVICE_ACCOUNT}/none/token"),
        asked(f"{SERVICE_ACCOUNT}/none/token", metadata={"name": "other"}),
        asked(f"{SERVICE_ACCOUNT}/none/token", expirationSeconds=1),
        asked("/api/v1/namespaces/{free}/serviceaccounts/a/token"),
        asked("/api/v1/serviceaccounts/a/token"),
        *[post(TOKEN, body) for body in (b"", b"[]", {"kind": "TokenRequest", "apiVersion": "v1"}, {"kind": "ServiceAccount", "apiVersion": "v1"}, REQUEST | {"apiVersion": "authentication.k8s.io/v1beta1"})],
        delete("/api/v1/namespaces/{ns}"),
        asked(),
        asked(f"{SERVICE_ACCOUNT}/none/token"),
    ),
    scenario(
        "verbs",
        "Subresources, Discovery",
        ACCOUNT,
        get(TOKEN),
        put(TOKEN, REQUEST),
        call("PATCH", TOKEN, {}, content="application/merge-patch+json"),
        delete(TOKEN),
        call("HEAD", TOKEN),
        get(f"{SERVICE_ACCOUNT}/none/token"),
        get(f"{TOKEN}/more"),
        asked(f"{TOKEN}/more"),
        get("/api/v1", focus=resource),
        get("/openapi/v3/api/v1", focus=lambda tree: [(path, sorted(tree["paths"][path]), tree["paths"][path]["post"]["x-kubernetes-group-version-kind"]) for path in tree["paths"] if path.endswith("/token")]),
    ),
    scenario(
        "forms",
        "Negotiation, Table, PartialObjectMetadata",
        ACCOUNT,
        post(TOKEN, b"kind: TokenRequest\napiVersion: authentication.k8s.io/v1\nspec: {expirationSeconds: 700}\n", content="application/yaml"),
        post(TOKEN, Protobuf(REQUEST | {"spec": {"expirationSeconds": 700, "audiences": ["x"], "boundObjectRef": {"kind": "X"}}}), content=PROTOBUF),
        post(TOKEN, Protobuf(REQUEST | {"metadata": {"name": "a"}, "spec": {"expirationSeconds": 700, "audiences": ["x"]}}), content=PROTOBUF),
        post(TOKEN, b"{}", content="text/plain"),
        *[post(TOKEN, REQUEST, accept=accept) for accept in ("application/yaml", "text/html", "application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")],
    ),
    scenario(
        "bound",
        "Subresources, Kinds",
        ACCOUNT,
        post(SERVICE_ACCOUNT, service_account("b")),
        post(POD, pod("p", **RUNS), as_="p"),
        post(POD, pod("q", **RUNS | {"serviceAccountName": "b"})),
        post(POD, pod("on", **RUNS, nodeName="{free}")),
        post(POD, pod("lost", **RUNS, nodeName="{free2}")),
        post(SECRET, secret("s")),
        post(NODES, {"metadata": {"name": "{free}"}}),
        *[bound(*ref) for ref in (("Pod", "p"), ("Pod", "on"), ("Pod", "lost"), ("Pod", "q"), ("Pod", "none"), ("Pod", ""), ("Secret", "s"), ("Secret", "none"), ("Secret", ""), ("Node", "{free}"), ("Node", "{free2}"), ("ConfigMap", "s"), ("pod", "p"), ("", ""))],
        bound("Pod", "p", uid="$uid:p"),
        *[bound(kind, name, uid=OTHER) for kind, name in (("Pod", "p"), ("Pod", "q"), ("Secret", "s"), ("Node", "{free}"))],
        *[bound("Pod", "p", apiVersion=version) for version in ("", "v2", "a/b/c", "apps/v1")],
        bound("Job", "p", apiVersion="batch/v1"),
        bound("Job", "p", apiVersion="a/b/c"),
        asked(boundObjectRef={}),
        asked(expirationSeconds=1, boundObjectRef={"kind": "X"}),
        asked(expirationSeconds=3607, boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "on"}),
        asked(expirationSeconds=3607, audiences=["x", HOME], boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "on"}),
        bound("Pod", "on", as_="t"),
        reviewed("${t.status.token}"),
        bound("Pod", "lost", as_="t"),
        reviewed("${t.status.token}"),
        bound("Node", "{free}", as_="t"),
        reviewed("${t.status.token}"),
        bound("Secret", "s", as_="t"),
        reviewed("${t.status.token}"),
        delete(f"{NODES}/{{free}}"),
    ),
    scenario(
        "reviewed",
        "Kinds",
        ACCOUNT,
        asked(as_="t"),
        reviewed("${t.status.token}"),
        *[reviewed("${t.status.token}", *audiences) for audiences in (("x",), ("x", HOME), (f"{HOME}.cluster.local",), (HOME, HOME))],
        asked(audiences=["x", "y"], as_="u"),
        *[reviewed("${u.status.token}", *audiences) for audiences in ((), ("y",), ("z", "y", "x"))],
        *[reviewed(token) for token in ("${t.status.token}AAAA", "x${t.status.token}", "a.b.c", "${t.status.token}.x", f"{part({'alg': 'none'})}.{part({'iss': HOME})}.", f"{part({})}.{part({'iss': HOME})}.AAAA", f"{part([])}.{part({'iss': HOME})}.AAAA", f"{part({'alg': 'HS256'})}.{part({'iss': 'other'})}.AAAA", f"{part({'alg': 'HS256'})}.{part([HOME])}.AAAA", f"{part({'alg': 'HS256'})}.{part({'iss': HOME})}.A=AA")],
    ),
    scenario(
        # A token is reviewed once: kube-apiserver believes what it believed ten seconds ago.
        "ended",
        "Kinds, Delete",
        ACCOUNT,
        *[post(POD, pod(name, **RUNS, nodeName="{free}")) for name in ("gone", "another", "going")],
        *[post(SECRET, secret(name)) for name in ("gone", "another")],
        *[post(NODES, {"metadata": {"name": name}}) for name in ("{free}", "{free2}")],
        *[bound("Pod", name, as_=f"pod{name}") for name in ("gone", "another", "going")],
        *[bound("Secret", name, as_=f"secret{name}") for name in ("gone", "another")],
        bound("Node", "{free}", as_="nodegone"),
        bound("Node", "{free2}", as_="nodeanother"),
        asked(as_="account"),
        asked(as_="late"),
        asked(as_="elsewhere", audiences=["x"]),
        *[delete(f"{POD}/{name}", {"gracePeriodSeconds": 0}) for name in ("gone", "another")],
        delete(f"{POD}/going"),
        *[delete(f"{SECRET}/{name}") for name in ("gone", "another")],
        *[delete(f"{NODES}/{name}") for name in ("{free}", "{free2}")],
        post(POD, pod("another", **RUNS)),
        post(SECRET, secret("another")),
        post(NODES, {"metadata": {"name": "{free2}"}}),
        *[reviewed(f"${{{name}.status.token}}") for name in ("podgone", "podanother", "podgoing", "secretgone", "secretanother", "nodegone", "nodeanother")],
        delete(f"{SERVICE_ACCOUNT}/a"),
        reviewed("${account.status.token}"),
        reviewed("${elsewhere.status.token}"),
        ACCOUNT,
        reviewed("${late.status.token}"),
        reviewed("${elsewhere.status.token}", "x"),
        post(SERVICE_ACCOUNT, merged(service_account("f"), {"metadata": {"finalizers": ["a.b/c"]}})),
        asked(f"{SERVICE_ACCOUNT}/f/token", as_="t"),
        delete(f"{SERVICE_ACCOUNT}/f"),
        asked(f"{SERVICE_ACCOUNT}/f/token"),
        reviewed("${t.status.token}"),
        delete(f"{NODES}/{{free2}}"),
        alone=True,  # kube-apiserver hears of a deleted account by a watch, later the more others do
    ),
]  # fmt: skip
