"""Server-side apply and managed fields."""

from __future__ import annotations

from typing import Any

from conformance.bodies import (
    CM,
    DEPLOYMENT,
    LEASE,
    NAMESPACE,
    POD,
    ROLE,
    ROLE_BINDING,
    SERVICE,
    configmap,
    container,
    deployment,
    merged,
    named,
    namespace,
    pod,
    service,
)
from conformance.scenario import (
    Call,
    Scenario,
    Until,
    call,
    delete,
    frames,
    get,
    patch,
    post,
    put,
    scenario,
    watch,
)
from conformance.scenarios.custom import ONE as SITE, SITES, V1, site

from samples.site import GROUP

ONE, WEB, SVC, RUN = f"{CM}/a", f"{DEPLOYMENT}/a", f"{SERVICE}/a", f"{POD}/a"
LAST = "kubectl.kubernetes.io/last-applied-configuration"
UID = "11111111-2222-3333-4444-555555555555"
AS_KIM = (("Impersonate-User", "kim"),)
UNMANAGED = {"metadata": {"managedFields": [{}]}}


def apply(path: str, body: Any, manager: str = "ada", **options: Any) -> Call:
    """An apply by a manager."""
    return patch(path, body, "apply", fieldManager=manager, **options)


def forced(path: str, body: Any, manager: str = "ada", **options: Any) -> Call:
    """An apply that takes what it wants."""
    return apply(path, body, manager, force="true", **options)


def entry(manager: str = "ada", fields: Any = None, **more: Any) -> dict[str, Any]:
    """An entry of managed fields."""
    owned = {"f:data": {"f:key": {}}} if fields is None else fields
    made = {"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": owned}
    return {
        name: value for name, value in (made | {"time": "2020-01-01T00:00:00Z"} | more).items() if value is not None
    }


def data(**values: str) -> dict[str, Any]:
    """A ConfigMap that says this."""
    return configmap("a", values)


def ports(*given: dict[str, Any]) -> dict[str, Any]:
    """A Service with these ports."""
    return named("v1", "Service", "a", spec={"ports": list(given)})


def containers(*given: dict[str, Any]) -> dict[str, Any]:
    """A Pod of these containers."""
    return named("v1", "Pod", "a", spec={"containers": list(given)})


#: Bodies that cannot be applied to a ConfigMap ``a``.
REFUSED: dict[str, Any] = {
    "empty": b"",
    "null": "null",
    "a-string": '"a"',
    "a-number": "7",
    "a-list": "[]",
    "nothing": {},
    "no-yaml": "a: b: c",
    "open-brace": '{"a": ',
    "tabs": "a:\n\tb: 1\n",
    "no-kind": {"apiVersion": "v1", "metadata": {"name": "a"}},
    "no-version": {"kind": "ConfigMap", "metadata": {"name": "a"}},
    "other-kind": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}},
    "unknown-kind": {"apiVersion": "v1", "kind": "Cloud", "metadata": {"name": "a"}},
    "other-version": {"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "a"}},
    "other-group": {"apiVersion": "apps/v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
    "no-such-version": {"apiVersion": "a/b/c", "kind": "ConfigMap", "metadata": {"name": "a"}},
    "kind-a-number": {"apiVersion": "v1", "kind": 7, "metadata": {"name": "a"}},
    "lower-case": {"apiversion": "v1", "Kind": "ConfigMap", "metadata": {"name": "a"}},
    "no-metadata": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}},
    "no-name": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {"a": "1"}},
    "metadata-a-string": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": "a"},
    "name-a-number": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": 7}},
    "other-name": named("v1", "ConfigMap", "b"),
    "generated-name": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a-"}},
    "other-namespace": merged(data(a="1"), {"metadata": {"namespace": "{ns2}"}}),
    "managed-fields": merged(data(a="1"), {"metadata": {"managedFields": [entry()]}}),
    "managed-fields-empty": merged(data(a="1"), {"metadata": {"managedFields": []}}),
    "managed-fields-a-map": merged(data(a="1"), {"metadata": {"managedFields": {}}}),
    "unknown-field": merged(data(a="1"), {"color": "red"}),
    "unknown-metadata": merged(data(a="1"), {"metadata": {"color": "red"}}),
    "number-for-string": data(a=1),  # type: ignore[arg-type]
    "large-number-for-string": data(a=12345678),  # type: ignore[arg-type]
    "huge-number-for-string": data(a=2**63),  # type: ignore[arg-type]
    "large-numbers-for-string": data(a=[12345678, 1e7, 12345678.5, {"b": 12345678.0}]),  # type: ignore[arg-type]
    "large-number-for-map": named("v1", "ConfigMap", "a", data=12345678),
    "large-number-for-boolean": named("v1", "ConfigMap", "a", immutable=12345678),
    "fraction-for-string": data(a=1.5),  # type: ignore[arg-type]
    "boolean-for-string": data(a=True),  # type: ignore[arg-type]
    "map-for-string": data(a={"b": ["x", 1, None, {"c": False}]}),  # type: ignore[arg-type]
    "list-for-string": data(a=[]),  # type: ignore[arg-type]
    "string-for-map": named("v1", "ConfigMap", "a", data="x"),
    "list-for-map": named("v1", "ConfigMap", "a", data=["x", 1]),
    "number-for-map": named("v1", "ConfigMap", "a", data=7),
    "string-for-boolean": named("v1", "ConfigMap", "a", immutable="yes"),
    "list-for-boolean": named("v1", "ConfigMap", "a", immutable=[1]),
    "no-base64": named("v1", "ConfigMap", "a", binaryData={"a": "%"}),
    "bad-key": data(**{"a b": "1"}),
    "bad-label": merged(data(a="1"), {"metadata": {"labels": {"a": "b c"}}}),
    "finalizer-twice": merged(data(a="1"), {"metadata": {"finalizers": ["example.com/a", "example.com/a"]}}),
    "finalizer-null": merged(data(a="1"), {"metadata": {"finalizers": [None]}}),
    "finalizer-a-map": merged(data(a="1"), {"metadata": {"finalizers": [{}]}}),
    "finalizer-a-list": merged(data(a="1"), {"metadata": {"finalizers": [[]]}}),
    "string-for-list": merged(data(a="1"), {"metadata": {"finalizers": "example.com/a"}}),
    "time-a-map": merged(data(a="1"), {"metadata": {"creationTimestamp": {}}}),
    "no-time": merged(data(a="1"), {"metadata": {"creationTimestamp": "yesterday"}}),
    "resource-version": merged(data(a="1"), {"metadata": {"resourceVersion": "1"}}),
    "no-resource-version": merged(data(a="1"), {"metadata": {"resourceVersion": "x"}}),
    "uid": merged(data(a="1"), {"metadata": {"uid": UID}}),
}

#: What an apply of a ConfigMap may say.
TAKEN: dict[str, Any] = {
    "nothing": named("v1", "ConfigMap", "a"),
    "no-data": named("v1", "ConfigMap", "a", data={}),
    "null-data": named("v1", "ConfigMap", "a", data=None),
    "null-value": named("v1", "ConfigMap", "a", data={"a": None}),
    "no-metadata-at-all": merged(data(a="1"), {"metadata": {"labels": None}}),
    "null-managed-fields": {**data(a="1"), "metadata": {"name": "a", "managedFields": None}},
    "system-fields": merged(
        data(a="1"),
        {"metadata": {"generation": 7, "creationTimestamp": "2020-01-01T00:00:00Z"}},
    ),
    "deletion": merged(data(a="1"), {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}}),
    "labels": merged(data(a="1"), {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}),
    "null-labels": {**data(a="1"), "metadata": {"name": "a", "labels": None}},
    "finalizers": merged(data(a="1"), {"metadata": {"finalizers": ["example.com/a", "example.com/b"]}}),
    "owners": merged(
        data(a="1"),
        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": UID}]}},
    ),
    "yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  a: '1'\n  b: |\n    x\n    y\n",
    "yaml-twice": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  a: '1'\n  a: '2'\n",
    "json-twice": '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "1", "a": "2"}}',
    "two-documents": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: '1'}\n---\nkind: Other\n",
}


def _refusals() -> list[Scenario]:
    return [
        scenario(
            f"refused-{name}", "Apply, Status errors",
            apply(ONE, body), apply(ONE, body, fieldValidation="Strict"), get(ONE),
            post(CM, data(a="0")), apply(ONE, body, "ben"), forced(ONE, body, "ben"), get(ONE),
        )
        for name, body in REFUSED.items()
    ]  # fmt: skip


def _taken() -> list[Scenario]:
    return [
        scenario(
            f"taken-{name}", "Apply, fieldValidation, No-op writes",
            apply(ONE, body, dryRun="All"), apply(ONE, body, fieldValidation="Strict"), apply(ONE, body), apply(ONE, body),
            get(ONE), apply(ONE, body, "ben"), apply(ONE, data(z="9")), get(ONE), apply(ONE, body, "cleo", fieldValidation="Ignore"),
        )
        for name, body in TAKEN.items()
    ]  # fmt: skip


#: What a client may send as managed fields.
SENT: dict[str, Any] = {
    "reset": [],
    "reset-by-nothing": [{}],
    "reset-by-empty-values": [{"manager": "", "time": None}],
    "null": None,
    "one": [entry()],
    "two": [entry(), entry("ben", {"f:metadata": {"f:labels": {}}}, operation="Apply")],
    "the-same-twice": [entry(), entry(fields={"f:data": {"f:b": {}}})],
    "no-manager": [entry("")],
    "status": [entry(subresource="status")],
    "another-version": [entry(apiVersion="v2")],
    "another-group": [entry(apiVersion="apps/v1")],
    "no-version": [entry(apiVersion=None)],
    "no-operation": [entry(operation=None)],
    "unknown-operation": [entry(operation="Melt")],
    "no-type": [entry(fieldsType=None)],
    "unknown-type": [entry(fieldsType="FieldsV2")],
    "no-fields": [entry(fieldsV1=None)],
    "empty-fields": [entry(fieldsV1={})],
    "fields-a-list": [entry(fieldsV1=[1])],
    "fields-a-string": [entry(fieldsV1="f:data")],
    "fields-a-number": [entry(fieldsV1=7)],
    "fields-unknown": [entry(fieldsV1={"f:nothing": {"f:there": {}}, "x:odd": {}})],
    "fields-odd": [entry(fieldsV1={"data": {}})],
    "fields-keys": [entry(fieldsV1={"f:data": {".": {}, 'k:{"a":1}': {}, "v:3": {}, "i:0": {}}})],
    "fields-no-key": [entry(fieldsV1={"k:{": {}})],
    "fields-scalar-below": [entry(fieldsV1={"f:data": 1})],
    "no-time": [entry(time=None)],
    "wrong-time": [entry(time="yesterday")],
    "manager-too-long": [entry("m" * 129)],
    "manager-just-right": [entry("m" * 128)],
    "manager-unprintable": [entry("a\nb")],
    "manager-a-number": [entry(manager=7)],  # type: ignore[arg-type]
    "subresource-too-long": [entry(subresource="s" * 257)],
    "unknown-field": [entry(color="red")],
    "an-item-null": [None],
    "an-item-a-string": ["x"],
    "a-map": {},
    "a-string": "x",
}  # fmt: skip


def _sent() -> list[Scenario]:
    made: list[Scenario] = []
    for name, value in SENT.items():
        body = {**data(key="1"), "metadata": {"name": "a", "managedFields": value}}
        there = {**data(key="2"), "metadata": {"name": "b", "managedFields": value}}
        custom = {**site(), "metadata": {"name": "a", "managedFields": value}}
        made.append(
            scenario(
                f"sent-{name}", "Apply, Metadata, Update",
                post(CM, body), get(ONE), apply(ONE, data(key="1")), post(CM, configmap("b", {"key": "1"})),
                put(f"{CM}/b", there, fieldManager="upa"), patch(f"{CM}/b", {"metadata": {"managedFields": value}}),
                patch(f"{CM}/b", {"metadata": {"managedFields": value}, "data": {"key": "3"}}, "strategic", fieldManager="upb"),
                get(f"{CM}/b"), apply(f"{CM}/b", configmap("b", {"key": "3"})),
                post(SITES, custom), get(SITE), apply(SITE, site(), "conformance"),
                patch(SITE, {"metadata": {"managedFields": value}, "spec": {"image": "x"}}, fieldManager="upa"),
                patch(f"{SITE}/status", {"metadata": {"managedFields": value}, "status": {"replicas": 1}}, fieldManager="upb"),
            )
        )  # fmt: skip
    return made


def _of_agents() -> list[Scenario]:
    agents = {
        "kubectl": "kubectl/v1.36.0 (linux/amd64) kubernetes/0",
        "no-slash": "somebody",
        "slash-first": "/1",
        "spaces": "some body/2",
        "long": "m" * 200 + "/1",
        "not-ascii": "Zuse\u00e4\u00f6/1",
        "tab": "a\tb/1",
    }
    return [
        scenario(
            f"agent-{name}", "Apply",
            call("POST", CM, data(a="1"), headers=(("User-Agent", agent),)),
            call("PUT", ONE, data(a="2"), headers=(("User-Agent", agent),), fieldManager="named"), get(ONE),
        )
        for name, agent in agents.items()
    ]  # fmt: skip


SCENARIOS = [
    *_refusals(),
    *_taken(),
    *_sent(),
    *_of_agents(),
    scenario("options", "Apply, Status errors", patch(ONE, data(a="1"), "apply"), patch(ONE, data(a="1"), "apply", fieldManager=""), apply(ONE, data(a="1"), "m" * 129), apply(ONE, data(a="1"), "a\nb"), apply(ONE, data(a="1"), force="maybe"), apply(ONE, data(a="1"), force="0"), apply(ONE, data(a="1"), force=""), apply(ONE, data(a="1"), dryRun="Some"), apply(ONE, data(a="1"), fieldValidation="Hard"), patch(ONE, {}, "merge", force="true"), patch(ONE, {}, "merge", force="false"), patch(ONE, {"data": {"a": "2"}}, "merge", fieldManager="a\u00e4b")),
    scenario("media-types", "Apply, Patch", *(call("PATCH", path, body, content=content, fieldManager="ada") for path, body in ((ONE, data(a="1")), (SITE, site())) for content in ("application/apply-patch+cbor", "application/apply-patch+json", "application/apply-patch", "application/apply-patch+yaml; charset=utf-8", "application/yaml", "application/strategic-merge-patch+json", ""))),
    scenario("two-managers-share", "Apply", apply(ONE, data(a="1")), apply(ONE, data(a="1"), "ben"), get(ONE), apply(ONE, data(b="2")), get(ONE), apply(ONE, named("v1", "ConfigMap", "a"), "ben"), get(ONE)),
    scenario("two-managers-of-parts", "Apply", apply(ONE, data(a="1")), apply(ONE, data(b="2"), "ben"), apply(ONE, data(a="3")), apply(ONE, named("v1", "ConfigMap", "a")), get(ONE), apply(ONE, named("v1", "ConfigMap", "a"), "ben"), get(ONE)),
    scenario("conflict", "Apply, Status errors", apply(ONE, data(a="1")), apply(ONE, data(a="2"), "ben"), apply(ONE, data(a="2"), "ben", force="false"), apply(ONE, data(a="2"), "ben", dryRun="All"), get(ONE), forced(ONE, data(a="2"), "ben"), apply(ONE, data(a="1")), get(ONE)),
    scenario("conflicts-with-several", "Apply, Status errors", apply(ONE, data(a="1", b="1")), apply(ONE, data(b="1", c="1"), "ben"), patch(ONE, {"data": {"d": "1"}, "metadata": {"labels": {"x": "1"}}}, fieldManager="upa"), apply(ONE, merged(data(a="2", b="2", c="2", d="2"), {"metadata": {"labels": {"x": "2"}}}), "cleo"), get(ONE), forced(ONE, data(a="2", b="2", c="2", d="2"), "cleo"), get(ONE)),
    scenario("conflict-with-an-update", "Apply, Status errors", post(CM, data(a="1"), fieldManager="upa"), apply(ONE, data(a="2")), apply(ONE, data(a="1")), apply(ONE, data(a="2")), forced(ONE, data(a="2")), get(ONE)),
    scenario("conflict-with-a-status", "Apply, Status errors, Subresources", post(DEPLOYMENT, deployment()), patch(f"{WEB}/status", {"status": {"replicas": 1}}, fieldManager="upa"), apply(f"{WEB}/status", named("apps/v1", "Deployment", "a", status={"replicas": 2})), forced(f"{WEB}/status", named("apps/v1", "Deployment", "a", status={"replicas": 2})), get(WEB)),
    scenario("update-takes-from-an-apply", "Apply, Update", apply(ONE, data(a="1", b="1")), patch(ONE, {"data": {"a": "2"}}, fieldManager="upa"), get(ONE), patch(ONE, {"data": {"b": None}}, fieldManager="upb"), get(ONE), apply(ONE, data(a="1", b="1")), apply(ONE, data(b="1")), get(ONE)),
    scenario("update-as-it-is", "Apply, No-op writes", apply(ONE, data(a="1"), as_="a"), put(ONE, data(a="1"), fieldManager="upa"), get(ONE), put(ONE, "${a..}", fieldManager="upa"), patch(ONE, {}, fieldManager="upa"), patch(ONE, {"data": {"a": "1"}}, "strategic", fieldManager="upa"), get(ONE)),
    scenario("apply-as-it-is", "Apply, No-op writes", apply(ONE, data(a="1")), apply(ONE, data(a="1")), apply(ONE, data(a="1"), dryRun="All"), apply(ONE, data(a="1"), "ben"), apply(ONE, data(a="1"), "ben"), forced(ONE, data(a="1"), "ben"), get(ONE)),
    scenario("apply-of-less", "Apply", apply(ONE, data(a="1", b="2")), apply(ONE, data(a="1")), apply(ONE, named("v1", "ConfigMap", "a", data={})), apply(ONE, named("v1", "ConfigMap", "a")), get(ONE)),
    scenario("create-by-apply", "Apply", apply(ONE, data(a="1"), dryRun="All"), get(ONE), apply(ONE, data(a="1")), delete(ONE), apply(ONE, data(b="2"), "ben"), get(ONE)),
    scenario("apply-to-what-is-going", "Apply, Delete", apply(ONE, merged(data(a="1"), {"metadata": {"finalizers": ["example.com/a"]}})), delete(ONE), apply(ONE, merged(data(a="2"), {"metadata": {"finalizers": ["example.com/a"]}})), apply(ONE, merged(data(a="2"), {"metadata": {"finalizers": ["example.com/a", "example.com/b"]}})), apply(ONE, data(a="3"), dryRun="All"), apply(ONE, data(a="3")), get(ONE), apply(ONE, data(a="4"))),
    scenario("in-a-namespace-that-is-not", "Apply, Namespaces", apply("/api/v1/namespaces/{free}/configmaps/a", data(a="1")), apply("/api/v1/configmaps/a", data(a="1")), apply(CM, data(a="1")), apply(f"{CM}/b", data(a="1")), apply(f"{CM}/Big", configmap("Big"))),
    scenario("versions", "Apply, resourceVersion, Status errors", apply(ONE, data(a="1"), as_="a"), apply(ONE, merged(data(a="2"), {"metadata": {"resourceVersion": "$rv:a"}})), apply(ONE, merged(data(a="3"), {"metadata": {"resourceVersion": "$rv:a"}})), forced(ONE, merged(data(a="3"), {"metadata": {"resourceVersion": "$rv:a"}})), apply(ONE, merged(data(a="4"), {"metadata": {"resourceVersion": "0"}})), apply(ONE, merged(data(a="5"), {"metadata": {"resourceVersion": ""}})), apply(ONE, merged(data(a="5"), {"metadata": {"uid": "$uid:a"}})), apply(ONE, merged(data(a="6"), {"metadata": {"uid": UID}})), apply(ONE, merged(data(a="7"), {"metadata": {"uid": ""}})), get(ONE)),
    scenario("before-first-apply", "Apply", post(CM, data(a="1", b="1")), patch(ONE, UNMANAGED), get(ONE), patch(ONE, {"data": {"c": "1"}}, fieldManager="upa"), apply(ONE, data(a="1")), apply(ONE, data(b="2"), "ben"), get(ONE), forced(ONE, data(b="2"), "ben"), get(ONE)),
    scenario("before-first-apply-of-a-deployment", "Apply", post(DEPLOYMENT, deployment()), patch(WEB, UNMANAGED, "strategic"), apply(WEB, deployment(replicas=2)), forced(WEB, deployment(replicas=2)), get(WEB)),
    scenario("before-first-apply-of-a-status", "Apply, Subresources", post(DEPLOYMENT, deployment()), patch(WEB, UNMANAGED), patch(f"{WEB}/status", {"status": {"replicas": 1}}), apply(f"{WEB}/status", named("apps/v1", "Deployment", "a", status={"replicas": 1})), get(WEB)),
    scenario("many-updaters", "Apply, Update", post(CM, data(a="0"), fieldManager="upa"), *(patch(ONE, {"data": {f"k{number:02}": "1"}}, fieldManager=f"upb-{number:02}") for number in range(12)), get(ONE), apply(ONE, data(a="0", k01="1")), apply(ONE, data(k01="2")), patch(ONE, {"data": {"k03": "2"}}, fieldManager="upb-03"), get(ONE)),
    scenario("many-appliers", "Apply", *(apply(ONE, data(a="1", **{f"k{number:02}": "1"}), f"applier-{number:02}") for number in range(12)), get(ONE), forced(ONE, data(a="2"), "applier-00"), get(ONE)),
    scenario("last-applied", "Apply", post(CM, merged(data(a="1", b="1"), {"metadata": {"annotations": {LAST: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"1","b":"1"}}'}}}), fieldManager="kubectl-client-side-apply"), apply(ONE, data(a="2"), "ada"), apply(ONE, data(a="2"), "kubectl"), get(ONE), apply(ONE, data(a="3", c="1"), "kubectl"), get(ONE)),
    scenario("last-applied-and-changed", "Apply, Status errors", post(CM, merged(data(a="1", b="1"), {"metadata": {"annotations": {LAST: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"1","b":"1"}}'}}}), fieldManager="kubectl-client-side-apply"), patch(ONE, {"data": {"b": "2"}}, fieldManager="upa"), apply(ONE, data(a="2", b="3"), "kubectl"), forced(ONE, data(a="2", b="3"), "kubectl"), get(ONE)),
    scenario("last-applied-is-odd", "Apply, Status errors", post(CM, merged(data(a="1"), {"metadata": {"annotations": {LAST: "{"}}})), apply(ONE, data(a="2"), "kubectl"), patch(ONE, {"metadata": {"annotations": {LAST: '{"apiVersion":"v2","kind":"ConfigMap"}'}}}), apply(ONE, data(a="2"), "kubectl"), patch(ONE, {"metadata": {"annotations": {LAST: '{"apiVersion":"v1","kind":"ConfigMap","data":{"a":1}}'}}}), apply(ONE, data(a="2"), "kubectl"), forced(ONE, merged(data(a="<&>"), {"metadata": {"annotations": {LAST: "mine", "x": "y"}}}), "kubectl"), get(ONE)),
    scenario("labels-and-annotations", "Apply", apply(ONE, merged(data(), {"metadata": {"labels": {"a": "1"}, "annotations": {"a": "1"}}})), apply(ONE, merged(data(), {"metadata": {"labels": {"b": "1"}}}), "ben"), apply(ONE, data()), get(ONE), apply(ONE, data(), "ben"), get(ONE)),
    scenario("finalizers-are-a-set", "Apply", apply(ONE, merged(data(), {"metadata": {"finalizers": ["example.com/a", "example.com/b"]}})), apply(ONE, merged(data(), {"metadata": {"finalizers": ["example.com/c", "example.com/a"]}}), "ben"), apply(ONE, merged(data(), {"metadata": {"finalizers": ["example.com/b"]}})), get(ONE), apply(ONE, data(), "ben"), get(ONE)),
    scenario("owners-are-a-map", "Apply", *(apply(ONE, merged(data(), {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"{UID[:-1]}{number}"} for number, name in enumerate(names)]}}), manager) for manager, names in (("ada", ("x",)), ("ben", ("x", "y")), ("ada", ("z",)), ("ben", ("z", "z", "z")))), get(ONE)),
    scenario("service", "Apply, Kinds", apply(SVC, service()), get(SVC), apply(SVC, service()), apply(SVC, service(ports=[{"port": 81}])), get(SVC), apply(SVC, ports({"port": 81, "name": "x"}), "ben"), get(SVC)),
    scenario("service-ports-of-two", "Apply, Kinds", apply(SVC, service(ports=[{"name": "a", "port": 80}])), apply(SVC, ports({"name": "b", "port": 81}), "ben"), get(SVC), apply(SVC, ports({"name": "c", "port": 81, "protocol": "UDP"}), "cleo"), apply(SVC, ports({"name": "d", "port": 81, "protocol": "TCP"}), "cleo"), apply(SVC, named("v1", "Service", "a"), "ben"), get(SVC)),
    scenario("service-ports-twice", "Apply, Status errors", apply(SVC, ports({"port": 80, "name": "a"}, {"port": 80, "name": "b"})), apply(SVC, ports({"port": 80, "name": "a"}, {"port": 80, "protocol": "TCP", "name": "b"})), apply(SVC, ports({"name": "a"})), apply(SVC, ports(7)), apply(SVC, ports(None)), apply(SVC, ports({"port": "80"})), apply(SVC, ports({"port": 80.5})), apply(SVC, ports({"port": 80, "targetPort": {}})), apply(SVC, ports({"port": 80, "targetPort": 8080}, {"port": 81, "name": "b", "targetPort": "x"}))),
    scenario("service-addresses", "Apply, Kinds", apply(SVC, service(clusterIP="None")), apply(SVC, service(clusterIP="None", type="ExternalName")), apply(SVC, service()), get(SVC), delete(SVC), post(SERVICE, service(), as_="s"), apply(SVC, service()), apply(SVC, service(type="NodePort")), forced(SVC, service(type="NodePort")), get(SVC)),
    scenario("service-status", "Apply, Subresources", apply(f"{SVC}/status", named("v1", "Service", "a", status={"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}})), apply(SVC, service()), apply(f"{SVC}/status", named("v1", "Service", "a", status={"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}})), get(SVC), apply(f"{SVC}/status", named("v1", "Service", "a"), "ada"), get(SVC)),
    scenario("deployment", "Apply, Kinds, generation", apply(WEB, deployment()), get(WEB), apply(WEB, deployment()), apply(WEB, deployment(replicas=3)), apply(WEB, named("apps/v1", "Deployment", "a", spec={"replicas": 4}), "ben"), apply(WEB, named("apps/v1", "Deployment", "a", spec={"paused": True}), "ben"), apply(WEB, deployment()), get(WEB)),
    scenario("deployment-containers", "Apply, Kinds", apply(WEB, deployment()), apply(WEB, named("apps/v1", "Deployment", "a", spec={"template": {"spec": {"containers": [{"name": "side", "image": "example.com/side:1"}]}}}), "ben"), get(WEB), apply(WEB, named("apps/v1", "Deployment", "a", spec={"template": {"spec": {"containers": [{"name": "main", "image": "example.com/main:2"}]}}}), "cleo"), forced(WEB, named("apps/v1", "Deployment", "a", spec={"template": {"spec": {"containers": [{"name": "main", "image": "example.com/main:2"}]}}}), "cleo"), apply(WEB, named("apps/v1", "Deployment", "a"), "ben"), get(WEB), apply(WEB, named("apps/v1", "Deployment", "a"), "ada")),
    scenario("deployment-mistakes", "Apply, Status errors", apply(WEB, deployment(replicas="3")), apply(WEB, deployment(replicas=1.5)), apply(WEB, deployment(replicas=-1)), apply(WEB, deployment(color="red")), apply(WEB, deployment(strategy="Recreate")), apply(WEB, merged(deployment(), {"spec": {"template": {"spec": {"containers": [container(), container()]}}}})), apply(WEB, merged(deployment(), {"spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}})), apply(WEB, merged(deployment(), {"spec": {"template": {"spec": {"containers": [container(color="red")]}}}})), apply(WEB, named("apps/v1", "Deployment", "a")), apply(WEB, merged(deployment(), {"spec": {"template": {"spec": {"containers": [container(resources={"limits": {"cpu": {}}})]}}}})), apply(WEB, merged(deployment(), {"spec": {"template": {"spec": {"containers": [container(resources={"limits": {"cpu": "much"}})]}}}})), apply(WEB, merged(deployment(), {"spec": {"template": {"spec": {"containers": [container(command="x")]}}}})), get(WEB)),
    scenario("deployment-quantities", "Apply, No-op writes", *(apply(WEB, merged(deployment(), {"spec": {"template": {"spec": {"containers": [container(resources={"limits": {"cpu": cpu}})]}}}})) for cpu in ("1", "1000m", 1, 1.0, "1.0", 2)), get(WEB), apply(WEB, merged(deployment(), {"spec": {"template": {"spec": {"containers": [container(resources={"limits": {"cpu": "2000m"}})]}}}}), "ben"), get(WEB)),
    scenario("deployment-environment", "Apply, Kinds", *(apply(WEB, named("apps/v1", "Deployment", "a", spec=merged(deployment()["spec"] if manager == "ada" else {}, {"template": {"spec": {"containers": [{"name": "main", **({"image": "example.com/main:1"} if manager == "ada" else {}), "env": [{"name": name, "value": "1"} for name in names], "ports": [{"containerPort": port} for port in range(80, 80 + len(names))]}]}}})), manager) for manager, names in (("ada", ("A", "B")), ("ben", ("C", "A")), ("ada", ("D",)), ("ben", ()))), get(WEB)),
    scenario("deployment-status", "Apply, Subresources", apply(f"{WEB}/status", named("apps/v1", "Deployment", "a", status={"replicas": 1})), apply(WEB, merged(deployment(), {"status": {"replicas": 9}})), get(WEB), apply(f"{WEB}/status", merged(deployment(replicas=7), {"metadata": {"labels": {"x": "1"}, "annotations": {"y": "1"}}, "status": {"replicas": 1, "conditions": [{"type": "Available", "status": "True"}]}})), apply(f"{WEB}/status", named("apps/v1", "Deployment", "a", status={"conditions": [{"type": "Progressing", "status": "True"}]}), "ben"), get(WEB), apply(f"{WEB}/status", named("apps/v1", "Deployment", "a", status={"replicas": 1})), apply(f"{WEB}/status", named("apps/v1", "Deployment", "a", status={"color": "red"})), apply(f"{WEB}/status", named("apps/v1", "Deployment", "a", status={"replicas": -1})), get(WEB)),
    scenario("strategic-over-applied", "Apply, Patch", apply(WEB, deployment(replicas=2)), patch(WEB, {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "example.com/main:2"}]}}}}, "strategic", fieldManager="upa"), get(WEB), patch(WEB, [{"op": "replace", "path": "/spec/replicas", "value": 5}], "json", fieldManager="upb"), get(WEB), patch(WEB, {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "x"}, {"$patch": "delete", "name": "main"}]}}}}, "strategic", fieldManager="upa"), get(WEB), apply(WEB, deployment(replicas=2))),
    scenario("scale", "Apply, Subresources", apply(WEB, deployment(replicas=2)), apply(f"{WEB}/scale", named("autoscaling/v1", "Scale", "a", spec={"replicas": 3}), "ben"), forced(f"{WEB}/scale", named("autoscaling/v1", "Scale", "a", spec={"replicas": 3}), "ben"), get(WEB), apply(WEB, deployment()), apply(WEB, deployment(replicas=4)), get(WEB), apply(f"{WEB}/scale", named("autoscaling/v1", "Scale", "a", spec={"replicas": 3}), "ben"), apply(f"{WEB}/scale", named("autoscaling/v1", "Scale", "a"), "ben"), get(WEB)),
    scenario("scale-by-updates", "Apply, Subresources", post(DEPLOYMENT, deployment(replicas=2), fieldManager="upa"), put(f"{WEB}/scale", named("autoscaling/v1", "Scale", "a", spec={"replicas": 2}), fieldManager="upb"), get(WEB), patch(f"{WEB}/scale", {"spec": {"replicas": 3}}, fieldManager="upb"), get(WEB), patch(WEB, {"spec": {"replicas": 4}}, fieldManager="upa"), get(WEB), patch(f"{WEB}/scale", {"spec": {"replicas": 0}}, fieldManager="upc"), get(WEB), patch(f"{WEB}/scale", {"spec": {"replicas": 0}}, fieldManager="upc"), get(WEB), patch(f"{WEB}/scale", {"metadata": {"managedFields": [{}]}, "spec": {"replicas": 1}}, "json" if False else "merge", fieldManager="upd"), get(WEB)),
    scenario("scale-unmanaged", "Apply, Subresources", post(DEPLOYMENT, deployment(replicas=2)), patch(WEB, UNMANAGED), patch(f"{WEB}/scale", {"spec": {"replicas": 3}}), get(WEB), apply(f"{WEB}/scale", named("autoscaling/v1", "Scale", "a", spec={"replicas": 3})), get(WEB), apply(f"{WEB}/scale", named("autoscaling/v1", "Scale", "a", spec={"replicas": 4}), "ben")),
    scenario("scale-mistakes", "Apply, Status errors", apply(f"{WEB}/scale", named("autoscaling/v1", "Scale", "a", spec={"replicas": 3})), apply(WEB, deployment()), apply(f"{WEB}/scale", named("apps/v1", "Deployment", "a", spec={"replicas": 3})), apply(f"{WEB}/scale", named("autoscaling/v1", "Scale", "b", spec={"replicas": 3})), apply(f"{WEB}/scale", named("autoscaling/v1", "Scale", "a", spec={"replicas": "3"})), apply(f"{WEB}/scale", named("autoscaling/v1", "Scale", "a", spec={"replicas": -1})), apply(f"{WEB}/scale", named("autoscaling/v1", "Scale", "a", spec={"color": 3})), patch(f"{WEB}/scale", named("autoscaling/v1", "Scale", "a"), "apply"), apply(f"{WEB}/scale", merged(named("autoscaling/v1", "Scale", "a", spec={"replicas": 3}), {"metadata": {"resourceVersion": "1"}})), apply(f"{WEB}/scale", named("autoscaling/v1", "Scale", "a", spec={"replicas": 3}), dryRun="All"), get(WEB)),
    scenario("pod", "Apply, Kinds", apply(RUN, pod()), get(RUN), apply(RUN, pod()), apply(RUN, containers(container(image="example.com/main:2"))), apply(RUN, containers(container(image="example.com/main:2"), {"name": "side", "image": "x"})), apply(RUN, containers({"name": "main", "image": "example.com/main:3"}), "ben"), apply(RUN, named("v1", "Pod", "a", spec={"tolerations": [{"key": "x", "operator": "Exists"}]}), "ben"), get(RUN)),
    scenario("pod-status", "Apply, Subresources", apply(RUN, pod()), apply(f"{RUN}/status", named("v1", "Pod", "a", status={"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})), apply(f"{RUN}/status", merged(named("v1", "Pod", "a", status={"conditions": [{"type": "Ready", "status": "False"}]}), {"metadata": {"labels": {"x": "y"}}}), "ben"), get(RUN)),
    scenario("pod-bound", "Apply, Subresources", apply(RUN, pod()), post(f"{RUN}/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a", "annotations": {"x": "y"}}, "target": {"kind": "Node", "name": "n"}}), get(RUN), apply(RUN, pod()), get(RUN)),
    scenario("namespace", "Apply, Namespaces", apply(f"{NAMESPACE}/{{free}}", namespace("{free}")), get(f"{NAMESPACE}/{{free}}"), apply(f"{NAMESPACE}/{{free}}", namespace("{free}", labels={"a": "b"})), apply(f"{NAMESPACE}/{{free}}", namespace("{free}", labels={"kubernetes.io/metadata.name": "x"}), "ben"), put(f"{NAMESPACE}/{{free}}/finalize", merged(namespace("{free}"), {"spec": {"finalizers": ["kubernetes", "example.com/x"]}}), fieldManager="upa"), get(f"{NAMESPACE}/{{free}}"), apply(f"{NAMESPACE}/{{free}}/finalize", namespace("{free}"))),
    scenario("lease", "Apply, Kinds", apply(f"{LEASE}/a", named("coordination.k8s.io/v1", "Lease", "a", spec={"holderIdentity": "x", "renewTime": "2020-01-01T00:00:00.000001Z"})), apply(f"{LEASE}/a", named("coordination.k8s.io/v1", "Lease", "a", spec={"holderIdentity": "x", "renewTime": "2020-01-01T00:00:00.000001Z"})), apply(f"{LEASE}/a", named("coordination.k8s.io/v1", "Lease", "a", spec={"holderIdentity": "y"}), "ben"), apply(f"{LEASE}/a", named("coordination.k8s.io/v1", "Lease", "a", spec={"renewTime": "x"})), get(f"{LEASE}/a")),
    scenario("role-rules-are-atomic", "Apply, Kinds", *(apply(f"{ROLE}/a", named("rbac.authorization.k8s.io/v1", "Role", "a", rules=[{"apiGroups": [""], "resources": [resource], "verbs": ["get"]} for resource in resources]), manager) for manager, resources in (("ada", ("pods",)), ("ben", ("pods",)), ("ben", ("secrets",)), ("ada", ()), ("ada", ("secrets", "pods")))), get(f"{ROLE}/a"), apply(f"{ROLE}/a", named("rbac.authorization.k8s.io/v1", "Role", "a")), get(f"{ROLE}/a")),
    scenario("watched", "Apply, Watch stream", watch("w", CM), apply(ONE, data(a="1")), apply(ONE, data(a="1")), apply(ONE, data(a="1"), "ben"), forced(ONE, data(a="2")), apply(ONE, data(a="2"), dryRun="All"), delete(ONE), frames("w", 4)),
    scenario("custom", "Apply, Kinds, generation", apply(SITE, site(), dryRun="All"), apply(SITE, site()), get(SITE), apply(SITE, site()), apply(SITE, site(replicas=2), "ben"), forced(SITE, site(replicas=2), "ben"), apply(SITE, site(image="x"), "ben"), apply(SITE, site(mode="dynamic")), apply(SITE, site()), get(SITE)),
    scenario("custom-lists", "Apply, Kinds", apply(SITE, site(ports=[{"name": "http", "port": 80}], routes=[{"path": "/"}])), apply(SITE, named(f"{GROUP}/v1", "Site", "a", spec={"ports": [{"name": "https", "port": 443}]}), "ben"), get(SITE), apply(SITE, named(f"{GROUP}/v1", "Site", "a", spec={"ports": [{"name": "http", "port": 81}], "routes": [{"path": "/x"}]}), "cleo"), forced(SITE, named(f"{GROUP}/v1", "Site", "a", spec={"ports": [{"name": "http", "port": 81}], "routes": [{"path": "/x"}]}), "cleo"), apply(SITE, site()), apply(SITE, named(f"{GROUP}/v1", "Site", "a"), "ben"), get(SITE)),
    scenario("custom-settings", "Apply, Kinds", apply(SITE, site(settings={"a": {"b": [1, {"c": None}], "d": 1.5}})), apply(SITE, named(f"{GROUP}/v1", "Site", "a", spec={"settings": {"a": {"e": "x"}, "f": None}}), "ben"), get(SITE), apply(SITE, site(settings={"a": {"d": 2}})), apply(SITE, site(settings={})), get(SITE), apply(SITE, site(settings={"n": 9007199254740993, "m": 1e30})), get(SITE)),
    scenario("custom-memory", "Apply, No-op writes", *(apply(SITE, site(memory=memory)) for memory in ("1Gi", "1024Mi", 1073741824, "1", 1)), get(SITE)),
    scenario("custom-mistakes", "Apply, Status errors", *(apply(SITE, site(**spec)) for spec in ({"color": "red"}, {"replicas": "3"}, {"replicas": 51}, {"replicas": 1.5}, {"image": 7}, {"image": None}, {"image": ["x"]}, {"ports": {"name": "x"}}, {"ports": [{"port": 80}]}, {"ports": [{"name": "a", "port": 1}, {"name": "a", "port": 2}]}, {"ports": [None]}, {"routes": [{"path": "/", "color": "red"}]}, {"routes": "x"}, {"mode": "lazy"}, {"memory": "much"}, {"memory": {}}, {"settings": []}, {"settings": "x"})), apply(SITE, named(f"{GROUP}/v1", "Site", "a")), apply(SITE, named(f"{GROUP}/v1", "Other", "a")), apply(SITE, named(f"{GROUP}/v2", "Site", "a")), apply(SITE, merged(site(), {"metadata": {"labels": {"a": 1}}})), apply(SITE, merged(site(), {"metadata": {"color": "red"}})), apply(SITE, merged(site(), {"extra": 1})), apply(f"{V1}/sites/a", site()), apply(SITES, site())),
    scenario("custom-status", "Apply, Subresources", apply(f"{SITE}/status", named(f"{GROUP}/v1", "Site", "a", status={"replicas": 1})), apply(SITE, merged(site(), {"status": {"replicas": 9}})), apply(f"{SITE}/status", merged(site(image="x"), {"metadata": {"labels": {"x": "1"}}, "status": {"replicas": 1}})), get(SITE), apply(f"{SITE}/status", named(f"{GROUP}/v1", "Site", "a", status={"readyReplicas": 1}), "ben"), apply(f"{SITE}/status", named(f"{GROUP}/v1", "Site", "a", status={"replicas": "x"}), "ben"), apply(f"{SITE}/status", named(f"{GROUP}/v1", "Site", "a")), get(SITE), apply(SITE, merged(site(), {"status": "x"})), apply(SITE, merged(site(), {"status": {"color": 1}}))),
    scenario("custom-scale", "Apply, Subresources", apply(SITE, site(replicas=2)), forced(f"{SITE}/scale", named("autoscaling/v1", "Scale", "a", spec={"replicas": 3}), "ben"), get(SITE), patch(f"{SITE}/scale", {"spec": {"replicas": 4}}, fieldManager="upa"), get(SITE), apply(f"{SITE}/scale", named("autoscaling/v1", "Scale", "a", spec={"replicas": 5}), "ben"), apply(f"{SITE}/scale", named("autoscaling/v1", "Scale", "a"), "ben"), apply(f"{SITE}/scale", named("autoscaling/v1", "Scale", "a", spec={"replicas": 99}), "cleo", force="true"), get(SITE)),
    scenario("custom-before-first-apply", "Apply", post(SITES, site(replicas=2)), patch(SITE, UNMANAGED), apply(SITE, site()), apply(SITE, site(replicas=3)), get(SITE)),
    scenario("custom-update-takes", "Apply, Update", apply(SITE, site(replicas=2)), patch(SITE, {"spec": {"replicas": 3}}, fieldManager="upa"), get(SITE, as_="s"), put(SITE, merged(site(mode="dynamic"), {"metadata": {"resourceVersion": "$rv:s"}}), fieldManager="upb"), get(SITE), apply(SITE, site(replicas=2))),
    scenario("views", "Apply, Table, PartialObjectMetadata", apply(ONE, data(a="1")), call("PATCH", ONE, data(a="2"), content="application/apply-patch+yaml", fieldManager="ada", accept="application/json;as=Table;v=v1;g=meta.k8s.io"), call("PATCH", ONE, data(a="3"), content="application/apply-patch+yaml", fieldManager="ada", accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"), call("PATCH", ONE, data(a="4"), content="application/apply-patch+yaml", fieldManager="ada", accept="application/yaml"), get(CM)),
    scenario("without-the-right-to-create", "Apply, Update, Status errors", post(ROLE, named("rbac.authorization.k8s.io/v1", "Role", "a", rules=[{"apiGroups": ["", "coordination.k8s.io", GROUP], "resources": ["configmaps", "leases", "sites"], "verbs": ["get", "patch", "update"]}])), post(ROLE_BINDING, named("rbac.authorization.k8s.io/v1", "RoleBinding", "a", roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"}, subjects=[{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "kim"}])), Until(get(ONE, headers=AS_KIM), 404), apply(ONE, data(a="1"), headers=AS_KIM), apply(ONE, data(**{"a b": "1"}), headers=AS_KIM), apply(SITE, site(), headers=AS_KIM), put(f"{LEASE}/a", named("coordination.k8s.io/v1", "Lease", "a"), headers=AS_KIM), get(ONE), post(CM, data(a="1")), apply(ONE, data(a="1"), headers=AS_KIM)),
    scenario("large", "Apply, Storage", apply(ONE, data(**{f"k{number:05}": "x" * 40 for number in range(4000)})), apply(ONE, data(a="1")), get(ONE)),
]  # fmt: skip
