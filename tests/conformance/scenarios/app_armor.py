"""AppArmor profiles in annotations: which are valid, and that no update of a Pod adds, changes or removes one."""

from __future__ import annotations

from conformance.bodies import (
    DEPLOYMENT,
    NAMESPACE,
    POD,
    Tree,
    container,
    cron_job,
    deployment,
    job,
    merged,
    namespace,
    pod,
    template,
)
from conformance.scenario import Step, get, patch, post, put, scenario

ROWS = "Kinds, Status errors, Subresources"
PREFIX = "container.apparmor.security.beta.kubernetes.io/"
MAIN = f"{PREFIX}main"
SAFE = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [container(securityContext={"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}})],
}
SECCOMP = {
    "seccomp.security.alpha.kubernetes.io/pod": "runtime/default",
    "container.seccomp.security.alpha.kubernetes.io/main": "unconfined",
}
INIT = [container() | {"name": "first"}]
DEBUGGER = {"name": "debugger", "image": "x"}


def annotated(body: Tree, **annotations: str) -> Tree:
    """A body with these profiles, by the names of containers."""
    return merged(body, {"metadata": {"annotations": {PREFIX + name: value for name, value in annotations.items()}}})


def profiled(type_: str, local: str = "") -> Tree:
    """A security context with a profile."""
    return {"appArmorProfile": {"type": type_} | ({"localhostProfile": local} if local else {})}


def changes(path: str) -> list[Step]:
    """Each change of an annotation that a patch can make."""
    values = ("unconfined", "runtime/default", "localhost/b", "odd", "", None)
    return [patch(path, {"metadata": {"annotations": {MAIN: value}}}) for value in values]


SCENARIOS = [
    scenario(
        "created",
        ROWS,
        [post(POD, annotated(pod(), main=value), dryRun="All") for value in ("unconfined", "runtime/default", "localhost/a", "localhost/", "localhost", "localhost//a", "localhost/../a", "docker/default", "Unconfined", "foo", "")],
        post(POD, annotated(pod(), other="unconfined"), dryRun="All"),
        post(POD, annotated(pod(), other="foo"), dryRun="All"),
        post(POD, annotated(pod(initContainers=INIT), first="unconfined"), dryRun="All"),
        post(POD, annotated(pod(os={"name": "windows"}), main="unconfined"), dryRun="All"),
    ),
    scenario(
        "beside-fields",
        ROWS,
        [
            post(POD, annotated(pod(containers=[container(securityContext=context)]), main=value), dryRun="All")
            for value in ("unconfined", "runtime/default", "localhost/a")
            for context in (profiled("Unconfined"), profiled("RuntimeDefault"), profiled("Localhost", "a"), profiled("Localhost", "b"), {})
        ],
        [post(POD, annotated(pod(securityContext=profiled(type_)), main="unconfined"), dryRun="All") for type_ in ("Unconfined", "RuntimeDefault")],
        [post(POD, pod(securityContext=profiled(type_)), dryRun="All") for type_ in ("Unconfined", "RuntimeDefault")],
        [post(POD, pod(containers=[container(securityContext=context)]), dryRun="All") for context in (profiled("Unconfined"), profiled("Localhost", "a"))],
    ),
    scenario(
        "later",
        ROWS,
        post(POD, pod()),
        changes(f"{POD}/a"),
        changes(f"{POD}/a/status"),
        changes(f"{POD}/a/ephemeralcontainers"),
        changes(f"{POD}/a/resize"),
        patch(f"{POD}/a", {"apiVersion": "v1", "kind": "Pod", "metadata": {"annotations": {MAIN: "unconfined"}}}, "apply", fieldManager="x"),
        put(f"{POD}/a", annotated(pod(), main="unconfined")),
        get(f"{POD}/a", focus=lambda tree: tree["metadata"].get("annotations")),
        post(f"{POD}/a/binding", {"metadata": {"name": "a", "annotations": {MAIN: "unconfined", "b": "c"}}, "target": {"kind": "Node", "name": "n"}}),
        get(f"{POD}/a", focus=lambda tree: tree["metadata"].get("annotations")),
    ),
    scenario(
        "changed",
        ROWS,
        post(POD, annotated(pod(), main="runtime/default")),
        changes(f"{POD}/a"),
        changes(f"{POD}/a/status"),
        changes(f"{POD}/a/ephemeralcontainers"),
        changes(f"{POD}/a/resize"),
        patch(f"{POD}/a", {"metadata": {"annotations": {"b": "c"}}}),
        patch(f"{POD}/a/ephemeralcontainers", {"spec": {"ephemeralContainers": [DEBUGGER]}}, "strategic"),
        patch(f"{POD}/a", {"metadata": {"annotations": {f"{PREFIX}debugger": "unconfined"}}}),
        get(f"{POD}/a", focus=lambda tree: (tree["metadata"].get("annotations"), tree["spec"]["containers"])),
    ),
    scenario(
        "restricted",
        ROWS,
        post(NAMESPACE, namespace("{free}", labels={"pod-security.kubernetes.io/enforce": "restricted"})),
        post(f"{NAMESPACE}/{{free}}/pods", pod(**SAFE)),
        changes(f"{NAMESPACE}/{{free}}/pods/a"),
        [post(f"{NAMESPACE}/{{free}}/pods", annotated(pod("b", **SAFE), main=value)) for value in ("unconfined", "foo")],
        [patch(f"{NAMESPACE}/{{free}}/pods/a", {"metadata": {"annotations": {key: "unconfined"}}}) for key in ("seccomp.security.alpha.kubernetes.io/pod", "container.seccomp.security.alpha.kubernetes.io/main")],
    ),
    scenario(
        "templates",
        ROWS,
        [
            post(path, made(template=annotated(template(**spec), **{name: value})), dryRun="All")
            for path, made, spec in ((DEPLOYMENT, deployment, {}), ("/apis/batch/v1/namespaces/{ns}/jobs", job, {"restartPolicy": "Never"}))
            for name, value in (("main", "unconfined"), ("main", "foo"), ("other", "unconfined"))
        ],
        post(DEPLOYMENT, deployment(template=annotated(template(), main="runtime/default"))),
        patch(f"{DEPLOYMENT}/a", {"spec": {"template": {"metadata": {"annotations": {MAIN: "unconfined"}}}}}),
        [post(DEPLOYMENT, deployment("b", template=merged(template(**spec), {"metadata": {"annotations": SECCOMP}})), dryRun="All") for spec in ({}, {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}})],
        [post(POD, merged(pod(**spec), {"metadata": {"annotations": SECCOMP}}), dryRun="All") for spec in ({}, {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}, {"securityContext": {"seccompProfile": {"type": "Unconfined"}}})],
        post("/apis/batch/v1/namespaces/{ns}/cronjobs", merged(cron_job(), {"spec": {"jobTemplate": {"spec": {"template": {"metadata": {"annotations": {MAIN: "foo"}}}}}}}), dryRun="All"),
    ),
]  # fmt: skip
