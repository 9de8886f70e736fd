"""PodSecurity: which Pods the labels of a namespace forbid, in which words, and about what they warn."""

from __future__ import annotations

from typing import Any

from conformance.bodies import (
    NAMESPACE,
    Tree,
    container,
    cron_job,
    daemon_set,
    deployment,
    job,
    merged,
    named,
    namespace,
    pod,
    pod_spec,
    replica_set,
    stateful_set,
    template,
)
from conformance.scenario import Step, Until, get, patch, post, put, scenario

HERE = f"{NAMESPACE}/{{free}}"
POD = f"{HERE}/pods"
ROWS = "Kinds, Status errors"
LABEL = "pod-security.kubernetes.io/"
#: What the level restricted demands of a Pod and of a container.
SAFE_POD = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
SAFE = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
PRIVILEGED = {"privileged": True}


def labels(**modes: str) -> dict[str, str]:
    """Labels by the names of modes, ``enforce_version`` among them."""
    return {LABEL + mode.replace("_", "-"): value for mode, value in modes.items()}


def labeled(**modes: str) -> Step:
    """A new namespace with these labels."""
    return post(NAMESPACE, namespace("{free}", labels=labels(**modes)))


def relabeled(**modes: str) -> Tree:
    return {"metadata": {"labels": labels(**modes)}}


def tried(*bodies: Tree) -> list[Step]:
    return [post(POD, body, dryRun="All") for body in bodies]


def secured(security: Tree | None = None, **fields: Any) -> Tree:
    """A Pod whose container has this security context."""
    return pod(containers=[container(**({} if security is None else {"securityContext": security}), **fields)])


def both(security: Tree, of_container: Tree | None = None, **spec: Any) -> Tree:
    """A Pod with this security context, as have its two containers."""
    each = {"securityContext": security if of_container is None else of_container}
    two = [container(**each), container(**each) | {"name": "other"}]
    return pod(securityContext=security, containers=two, **spec)


def safe(security: Tree | None = None, of_pod: Tree | None = None, **spec: Any) -> Tree:
    """A Pod that the level restricted allows, and what is changed in it."""
    one = container(securityContext=merged(SAFE, security or {}))
    return pod(**{"containers": [one], "securityContext": merged(SAFE_POD, of_pod or {})} | spec)


def profile(field: str, kind: str) -> Tree:
    return {field: {"type": kind} | ({"localhostProfile": "p"} if kind == "Localhost" else {})}


def probed(**fields: Any) -> Tree:
    return pod(containers=[container(**fields)])


def volumes(**sources: Tree) -> Tree:
    return pod(volumes=[{"name": name.lower(), name: source} for name, source in sources.items()])


APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/main"
SECCOMP = "container.seccomp.security.alpha.kubernetes.io/main"
SYSCTLS = (
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_rmem",
    "kernel.msgmax",
)  # fmt: skip

#: Pods in a namespace that enforces the level baseline.
BASELINE = {
    "allowed": [pod(), safe(), secured({}), secured(PRIVILEGED | {"privileged": False})],
    "app-armor": [
        *(both(profile("appArmorProfile", kind)) for kind in ("RuntimeDefault", "Localhost", "Unconfined")),
        pod(securityContext=profile("appArmorProfile", "Unconfined")),
        secured(profile("appArmorProfile", "Unconfined")),
    ],
    "app-armor-annotations": [
        merged(pod(), {"metadata": {"annotations": {APP_ARMOR: value}}})
        for value in ("unconfined", "runtime/default", "localhost/a")
    ],
    "capabilities": [
        secured({"capabilities": {"add": ["NET_ADMIN"]}}),
        secured({"capabilities": {"add": ["CHOWN", "SYS_TIME", "BPF", "KILL"], "drop": ["ALL"]}}),
        secured({"capabilities": {"add": ["AUDIT_WRITE", "NET_BIND_SERVICE", "SYS_CHROOT"]}}),
        both({}, {"capabilities": {"add": ["SYS_TIME", "ALL"]}}),
    ],
    "host-namespaces": [
        pod(hostNetwork=True), pod(hostPID=True), pod(hostIPC=True), pod(hostNetwork=True, hostIPC=True, hostPID=True),
    ],
    "host-paths": [
        volumes(hostPath={"path": "/a"}),
        pod(volumes=[{"name": name, "hostPath": {"path": "/a"}} for name in ("b", "a")]),
        volumes(emptyDir={}, nfs={"server": "s", "path": "/p"}),
    ],
    "host-ports": [
        probed(ports=[{"containerPort": 80, "hostPort": 8080}]),
        probed(ports=[{"containerPort": 80, "hostPort": 90}, {"containerPort": 81, "hostPort": 8081}]),
        pod(
            containers=[
                container(ports=[{"containerPort": 80, "hostPort": 80}]),
                container(ports=[{"containerPort": 81, "hostPort": 81}]) | {"name": "other"},
            ]
        ),
        probed(ports=[{"containerPort": 80}]),
    ],
    "hosts-of-probes": [
        probed(livenessProbe={"httpGet": {"port": 80, "host": "10.0.0.1"}}),
        probed(readinessProbe={"tcpSocket": {"port": 80, "host": "b"}}, startupProbe={"httpGet": {"port": 80, "host": "a"}}),
        probed(lifecycle={"preStop": {"httpGet": {"port": 80, "host": "c"}}, "postStart": {"exec": {"command": ["a"]}}}),
        probed(lifecycle={"postStart": {"tcpSocket": {"port": 80, "host": "d"}}}),
        pod(containers=[
            container(name=name, livenessProbe={"httpGet": {"port": 80, "host": "e"}}) for name in ("z", "y")
        ]),
        probed(livenessProbe={"httpGet": {"port": 80}}, readinessProbe={"tcpSocket": {"port": 80}}),
    ],
    "privileged": [
        secured(PRIVILEGED), both({}, PRIVILEGED),
        pod(initContainers=[container(securityContext=PRIVILEGED) | {"name": "init"}]),
    ],
    "proc-mounts": [
        secured({"procMount": "Default"}), secured({"procMount": "Unmasked"}),
        pod(hostUsers=False, containers=[container(securityContext={"procMount": "Unmasked"})]),
    ],
    "se-linux": [
        both({"seLinuxOptions": {"type": "spc_t"}}),
        secured({"seLinuxOptions": {"user": "u", "role": "r"}}),
        pod(securityContext={"seLinuxOptions": {"type": "a_t", "user": "u"}}, containers=[
            container(securityContext={"seLinuxOptions": {"type": "b_t"}}),
        ]),
        secured({"seLinuxOptions": {"type": "container_engine_t", "level": "s0"}}),
        secured({"seLinuxOptions": {"type": "container_kvm_t"}}),
    ],
    "seccomp": [
        *(both(profile("seccompProfile", kind)) for kind in ("RuntimeDefault", "Localhost", "Unconfined")),
        secured(profile("seccompProfile", "Unconfined")),
        pod(securityContext=profile("seccompProfile", "Unconfined")),
        merged(pod(), {"metadata": {"annotations": {SECCOMP: "unconfined"}}}),
    ],
    "sysctls": [pod(securityContext={"sysctls": [{"name": name, "value": "1"} for name in SYSCTLS]})],
    "host-processes": [
        both({"windowsOptions": {"hostProcess": True}}, hostNetwork=True, os={"name": "windows"}),
        pod(securityContext={"windowsOptions": {"hostProcess": False}}, os={"name": "windows"}),
    ],
    "several": [
        pod(hostPID=True, volumes=[{"name": "v", "hostPath": {"path": "/"}}], containers=[
            container(securityContext=PRIVILEGED | {"capabilities": {"add": ["SYS_ADMIN"]}}),
            container(securityContext=PRIVILEGED) | {"name": "other"},
        ]),
    ],
}  # fmt: skip

#: Pods in a namespace that enforces the level restricted.
RESTRICTED = {
    "allowed": [safe(), safe({"capabilities": {"add": ["NET_BIND_SERVICE"]}}), safe(of_pod={"runAsUser": 1})],
    "smallest": [pod(), both({}), pod(initContainers=[container() | {"name": "init"}])],
    "escalation": [safe({"allowPrivilegeEscalation": True}), safe({"allowPrivilegeEscalation": None})],
    "capabilities": [
        safe({"capabilities": {"drop": ["NET_RAW"]}}), safe({"capabilities": {"add": ["CHOWN"]}}),
        safe({"capabilities": {"add": ["SYS_TIME", "CHOWN"], "drop": []}}), safe({"capabilities": None}),
    ],
    "volumes": [
        safe(volumes=[
            {"name": "a", "hostPath": {"path": "/"}},
            {"name": "b", "nfs": {"server": "s", "path": "/p"}},
            {"name": "c", "gitRepo": {"repository": "r"}},
            {"name": "d", "emptyDir": {}},
            {"name": "e", "configMap": {"name": "c"}},
        ]),
        safe(volumes=[{"name": "a", "iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2024-01.com.example:a", "lun": 0}}]),
        safe(volumes=[
            {"name": "a", "downwardAPI": {"items": []}}, {"name": "b", "image": {"reference": "i"}},
            {"name": "c", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "d", "secret": {"secretName": "s"}},
            {"name": "e", "projected": {"sources": []}}, {"name": "f", "csi": {"driver": "d"}},
        ]),
    ],
    "users": [
        safe(of_pod={"runAsNonRoot": False}), safe({"runAsNonRoot": False}), safe(of_pod={"runAsNonRoot": None}),
        safe({"runAsNonRoot": True}, {"runAsNonRoot": None}), safe({"runAsNonRoot": False}, {"runAsNonRoot": False}),
        safe(of_pod={"runAsUser": 0}), safe({"runAsUser": 0}, {"runAsUser": 0}), safe({"runAsUser": 0}),
    ],
    "seccomp": [
        safe(of_pod={"seccompProfile": None}), safe(profile("seccompProfile", "Localhost"), {"seccompProfile": None}),
        safe(of_pod=profile("seccompProfile", "Unconfined")), safe(profile("seccompProfile", "Unconfined")),
    ],
    "windows": [
        pod(os={"name": "windows"}), pod(os={"name": "windows"}, securityContext={"runAsNonRoot": True}),
        pod(os={"name": "linux"}),
    ],
    "own-users": [
        safe({"runAsUser": 0, "runAsNonRoot": False}, hostUsers=False),
        safe({"procMount": "Unmasked"}, hostUsers=False), safe({"runAsUser": 0}, hostUsers=True),
    ],
    "with-the-baseline": [pod(hostNetwork=True), secured(PRIVILEGED), safe(hostPID=True)],
}  # fmt: skip

#: Pods in namespaces that enforce a level as of these versions.
VERSIONS = {
    "sysctls": ("baseline", ("v1.0", "v1.26", "v1.27", "v1.29", "v1.32", "latest"), BASELINE["sysctls"]),
    "se-linux": ("baseline", ("v1.30", "v1.31"), [secured({"seLinuxOptions": {"type": "container_engine_t"}})]),
    "hosts-of-probes": ("baseline", ("v1.33", "v1.34"), BASELINE["hosts-of-probes"][:2]),
    "seccomp-annotations": (
        "baseline",
        ("v1.18", "v1.19"),
        [
            merged(pod(), {"metadata": {"annotations": {SECCOMP: value}}})
            for value in ("unconfined", "docker/default", "localhost/a", "runtime/default", "odd")
        ] + [
            merged(both({}), {"metadata": {"annotations": {
                SECCOMP: "unconfined", SECCOMP.replace("main", "other"): "unconfined",
                "seccomp.security.alpha.kubernetes.io/pod": "unconfined",
            }}})
        ],
    ),
    "seccomp": ("baseline", ("v1.18", "v1.19"), BASELINE["seccomp"][2:3]),
    "proc-mounts": ("baseline", ("v1.34", "v1.35"), BASELINE["proc-mounts"]),
    "smallest": ("restricted", ("v1.0", "v1.7", "v1.8", "v1.19", "v1.22", "v1.23", "v1.36", "v1.99"), [pod()]),
    "windows": ("restricted", ("v1.24", "v1.25"), [pod(os={"name": "windows"})]),
    "root": ("restricted", ("v1.22", "v1.23"), [safe({"runAsUser": 0})]),
    "own-users": ("restricted", ("v1.34", "v1.35"), RESTRICTED["own-users"]),
    "capabilities": ("restricted", ("v1.21", "v1.22"), BASELINE["capabilities"]),
    "newer-than-the-server": ("baseline", ("v1.1000",), [secured(PRIVILEGED), pod()]),
}  # fmt: skip


def _of_versions(level: str, versions: tuple[str, ...], bodies: list[Tree]) -> list[Step]:
    """One namespace for each version, which enforces the level as of that version."""
    steps: list[Step] = []
    for version in versions:
        name = f"{{free}}-{version.replace('.', '-')}"
        body = namespace(name, labels=labels(enforce=level, enforce_version=version))
        steps += [post(NAMESPACE, body), *(post(f"{NAMESPACE}/{name}/pods", each, dryRun="All") for each in bodies)]
    return steps


def _workloads(spec: Tree) -> list[Step]:
    """Every kind with a template of this Pod."""
    made = template(**spec)
    apps, batch = "/apis/apps/v1/namespaces/{free}", "/apis/batch/v1/namespaces/{free}"
    once = {"template": {"spec": pod_spec(restartPolicy="Never", **spec)}}
    controller = named("v1", "ReplicationController", "a", spec={"selector": {"app": "a"}, "template": made})
    return [
        post(f"{apps}/deployments", deployment(template=made)),
        post(f"{apps}/replicasets", replica_set(template=made)),
        post(f"{apps}/statefulsets", stateful_set(template=made)),
        post(f"{apps}/daemonsets", daemon_set(template=made)),
        post(f"{batch}/jobs", job(**once)),
        post(f"{batch}/cronjobs", cron_job(jobTemplate={"spec": once})),
        post(f"{HERE}/replicationcontrollers", controller),
        post(f"{HERE}/podtemplates", named("v1", "PodTemplate", "a", template=made)),
    ]


DEPLOYMENT = "/apis/apps/v1/namespaces/{free}/deployments"


def _existing(*bodies: Tree, warning: str, **modes: str) -> list[Step]:
    """A namespace with Pods that its next level forbids, once the server sees them."""
    return [
        post(NAMESPACE, namespace("{free}")),
        *(post(POD, body, focus=lambda tree: tree["kind"]) for body in bodies),
        Until(patch(HERE, relabeled(**modes), dryRun="All"), 200, warning),
    ]


#: A namespace that got its level after its Pod, once the server enforces it.
LATER: list[Step] = [
    *_existing(secured(PRIVILEGED), warning="a: privileged", enforce="baseline"),
    patch(HERE, relabeled(enforce="baseline", warn="privileged")),
    Until(post(POD, secured(PRIVILEGED), dryRun="All"), 403),
]


def debugged(**security: Any) -> Step:
    """The addition of an ephemeral container to a Pod."""
    name = "odd" if security else "debug"
    added = {"name": name, "image": "i", "securityContext": security}
    return patch(f"{POD}/a/ephemeralcontainers", {"spec": {"ephemeralContainers": [added]}}, "strategic")


def _called(name: str, body: Tree) -> Tree:
    return merged(body, {"metadata": {"name": name}})


SCENARIOS = [
    *(scenario(f"baseline-{name}", ROWS, labeled(enforce="baseline"), tried(*bodies)) for name, bodies in BASELINE.items()),
    *(scenario(f"restricted-{name}", ROWS, labeled(enforce="restricted"), tried(*bodies)) for name, bodies in RESTRICTED.items()),
    *(scenario(f"version-of-{name}", ROWS, _of_versions(*each)) for name, each in VERSIONS.items()),
    scenario("stored", ROWS, labeled(enforce="baseline"), post(POD, secured(PRIVILEGED)), post(POD, pod()), get(f"{POD}/a")),
    scenario("generated-name", ROWS, labeled(enforce="baseline"), tried(merged(secured(PRIVILEGED), {"metadata": {"name": None, "generateName": "a-"}}))),
    scenario("invalid-pod", ROWS, labeled(enforce="baseline"), tried(secured(PRIVILEGED, imagePullPolicy="Odd"))),
    scenario("applied", "Kinds, Apply", labeled(enforce="baseline"), patch(f"{POD}/a", secured(PRIVILEGED), "apply", fieldManager="me"),
             patch(f"{POD}/a", pod(), "apply", fieldManager="me", focus=lambda tree: tree["kind"])),
    scenario("privileged", ROWS, labeled(enforce="privileged", warn="privileged", audit="privileged"), tried(secured(PRIVILEGED))),
    scenario("warned", ROWS, labeled(warn="baseline"), tried(secured(PRIVILEGED), pod())),
    scenario("warned-of-a-version", ROWS, labeled(warn="baseline", warn_version="v1.20"), tried(secured(PRIVILEGED), BASELINE["hosts-of-probes"][0])),
    scenario("audited", ROWS, labeled(audit="restricted"), tried(secured(PRIVILEGED))),
    scenario("warned-beyond", ROWS, labeled(enforce="baseline", warn="restricted"), tried(secured(PRIVILEGED), pod(), safe())),
    scenario("warned-of-a-later-version", ROWS, labeled(enforce="baseline", enforce_version="v1.30", warn_version="v1.34"), tried(BASELINE["hosts-of-probes"][0])),
    scenario("only-a-version", ROWS, labeled(enforce_version="v1.30"), tried(secured(PRIVILEGED))),
    scenario("not-warned", ROWS, labeled(enforce="baseline", warn="privileged"), _workloads({"hostPID": True})[:2]),
    scenario("workloads-warned", ROWS, labeled(warn="baseline"), _workloads({"hostPID": True})),
    scenario("workloads-of-an-enforced-level", ROWS, labeled(enforce="restricted", enforce_version="v1.30"), _workloads({})),
    scenario("workloads-allowed", ROWS, labeled(enforce="baseline"), _workloads({})),
    scenario("workload-changed", "Kinds, Subresources", labeled(warn="baseline"), post(DEPLOYMENT, deployment()),
             patch(f"{DEPLOYMENT}/a", {"spec": {"template": {"spec": {"hostPID": True}}}}), patch(f"{DEPLOYMENT}/a", {"metadata": {"labels": {"a": "b"}}}),
             patch(f"{DEPLOYMENT}/a/scale", {"spec": {"replicas": 3}}), patch(f"{DEPLOYMENT}/a/status", {"status": {"replicas": 1}})),
    scenario("pod-changed", "Kinds, Subresources", LATER, patch(f"{POD}/a", {"metadata": {"labels": {"a": "b"}}}),
             patch(f"{POD}/a", {"spec": {"containers": [{"name": "main", "image": "new"}]}}, "strategic"),
             patch(f"{POD}/a/status", {"status": {"phase": "Running"}}), patch(f"{POD}/a", {"spec": {"activeDeadlineSeconds": 5}})),
    scenario("ephemeral-containers", "Kinds, Subresources", labeled(enforce="baseline"), post(POD, pod()), debugged(), debugged(**PRIVILEGED), get(f"{POD}/a")),
    scenario("ephemeral-container-of-a-forbidden-pod", "Kinds, Subresources", LATER, debugged()),
    scenario("forbidden-pod-resized", "Kinds, Subresources", LATER, patch(f"{POD}/a/resize", {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}}, "strategic")),
    scenario("pod-bound", "Subresources", LATER, post(f"{POD}/a/binding", named("v1", "Binding", "a", target={"kind": "Node", "name": "n"}))),
    scenario("pod-evicted", "Subresources", LATER, post(f"{POD}/a/eviction", named("policy/v1", "Eviction", "a"))),
    scenario("labels-odd", ROWS, labeled(enforce="odd"), labeled(enforce=""), labeled(audit="Baseline"), labeled(warn="all")),
    scenario("labels-odd-versions", ROWS, *(labeled(enforce="baseline", enforce_version=version) for version in
             ("v1", "1.30", "v1.01", "v2.0", "v1.30.1", "", "v1.99999999999999999999", "v1.9223372036854775807")),
             labeled(audit_version="v1."), labeled(warn_version="newest")),
    scenario("labels-all-odd", ROWS, labeled(enforce="a", enforce_version="b", audit="c", audit_version="d", warn="e", warn_version="f")),
    scenario("labels-of-others", ROWS, labeled(exempt="yes", odd="1"), tried(secured(PRIVILEGED))),
    scenario("labels-changed", ROWS, labeled(enforce="baseline"), patch(HERE, relabeled(enforce="odd")), patch(HERE, relabeled(warn="odd", audit_version="1")),
             put(HERE, namespace("{free}", labels=labels(enforce="restricted"))), patch(HERE, relabeled(enforce="privileged")), patch(HERE, {"metadata": {"labels": None}})),
    scenario("labels-of-a-generated-name", ROWS, post(NAMESPACE, {"metadata": {"generateName": "{free}", "labels": labels(enforce="odd")}})),
    scenario("existing-pod", ROWS, _existing(secured(PRIVILEGED), warning="a: privileged", enforce="baseline"), patch(HERE, relabeled(enforce="baseline")), get(HERE)),
    scenario("existing-pods", ROWS, _existing(
        *(_called(name, body) for name, body in {"c": secured(PRIVILEGED), "b": secured(PRIVILEGED), "a": pod(hostPID=True), "d": pod()}.items()),
        warning="b (and 1 other pod)", enforce="baseline"), patch(HERE, relabeled(enforce="baseline")), patch(HERE, relabeled(enforce="restricted"))),
    scenario("existing-pods-alike", ROWS, _existing(
        *(_called(name, pod(hostPID=True)) for name in "cab"), warning="a (and 2 other pods)", enforce="baseline"),
        # A patch compares with the cached namespace in kube-apiserver; a list waits until its cache is fresh.
        *(step for modes in ({"enforce": "restricted"}, {"enforce": "baseline"}, {"enforce_version": "v1.30"}, {"warn": "restricted"}, {"enforce": "privileged"})
          for step in (patch(HERE, relabeled(**modes)), get(NAMESPACE, fieldSelector="metadata.name={free}")))),
]  # fmt: skip
