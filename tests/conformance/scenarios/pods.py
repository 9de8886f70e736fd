"""Pods: what is filled in, and what is refused."""

from __future__ import annotations

from conformance.bodies import POD, container, merged, pod
from conformance.scenario import get, patch, post, scenario


def _with(**fields):
    """A pod whose container has these fields."""
    return pod(containers=[container(**fields)])


def _volume(**source):
    return pod(volumes=[{"name": "v", **source}])


def _probe(**fields):
    return _with(livenessProbe=fields)


GOOD = {
    "smallest": [pod()],
    "images": [
        _with(image=image)
        for image in (
            "a",
            "a:latest",
            "a:1",
            "example.com:5000/a",
            "a@sha256:" + "0" * 64,
            "a:latest@sha256:" + "0" * 64,
        )
    ],
    "image-pull-policies": [_with(imagePullPolicy=policy) for policy in ("Always", "Never", "IfNotPresent")],
    "restart-policies": [pod(restartPolicy=policy) for policy in ("Always", "OnFailure", "Never")],
    "ports": [
        _with(
            ports=[
                {"containerPort": 80},
                {"containerPort": 80, "protocol": "UDP"},
                {"containerPort": 443, "name": "https", "hostPort": 8443},
            ]
        )
    ],
    "environment": [
        _with(
            env=[
                {"name": "A", "value": "1"},
                {"name": "B"},
                {"name": "C", "value": ""},
                {"name": "a.b-c", "value": "$(A)"},
            ]
        ),
        _with(
            env=[
                {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "L", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
            ]
        ),
        _with(
            env=[
                {"name": "R", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                {"name": "M", "valueFrom": {"configMapKeyRef": {"name": "s", "key": "k", "optional": True}}},
            ]
        ),
        _with(envFrom=[{"configMapRef": {"name": "c"}}, {"prefix": "P_", "secretRef": {"name": "s"}}]),
    ],
    "probes": [
        _probe(httpGet={"port": 80}),
        _probe(httpGet={"port": "http", "path": "/x", "scheme": "HTTPS", "httpHeaders": [{"name": "A", "value": "b"}]}),
        _probe(tcpSocket={"port": 80}, initialDelaySeconds=5, periodSeconds=7),
        _probe(exec={"command": ["true"]}, failureThreshold=1, timeoutSeconds=9),
        _probe(grpc={"port": 80}),
        _with(readinessProbe={"httpGet": {"port": 80}, "successThreshold": 2}, startupProbe={"tcpSocket": {"port": 1}}),
    ],
    "hooks": [
        _with(lifecycle={"postStart": {"exec": {"command": ["a"]}}, "preStop": {"httpGet": {"port": 80}}}),
        _with(lifecycle={"preStop": {"sleep": {"seconds": 5}}}),
    ],
    "resources": [
        _with(resources={"limits": {"cpu": "1", "memory": "1Gi"}}),
        _with(resources={"requests": {"cpu": "500m", "memory": "64Mi"}}),
        _with(resources={"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}),
        _with(resources={"limits": {"cpu": "2", "ephemeral-storage": "1Gi"}, "requests": {"cpu": 0.1}}),
        _with(resources={"limits": {"example.com/gpu": "1"}}),
        _with(resources={"requests": {"cpu": "1000m", "memory": "1024Ki"}}),
        _with(resources={"requests": {"cpu": "0.0001", "memory": "1.5Gi"}}),
    ],
    "volumes": [
        _volume(),
        _volume(emptyDir={}),
        _volume(emptyDir={"medium": "Memory", "sizeLimit": "1Gi"}),
        _volume(configMap={"name": "c"}),
        _volume(secret={"secretName": "s"}),
        _volume(secret={"secretName": "s", "defaultMode": 256, "items": [{"key": "k", "path": "p", "mode": 420}]}),
        _volume(hostPath={"path": "/x"}),
        _volume(hostPath={"path": "/x", "type": "Directory"}),
        _volume(persistentVolumeClaim={"claimName": "c"}),
        _volume(downwardAPI={"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}),
        _volume(
            projected={
                "sources": [
                    {"serviceAccountToken": {"path": "t"}},
                    {"configMap": {"name": "c"}},
                    {"secret": {"name": "s"}},
                ]
            }
        ),
        _volume(nfs={"server": "s", "path": "/p"}),
        _volume(
            ephemeral={
                "volumeClaimTemplate": {
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
                }
            }
        ),
    ],
    "mounts": [
        pod(
            volumes=[{"name": "v", "emptyDir": {}}],
            containers=[
                container(
                    volumeMounts=[
                        {"name": "v", "mountPath": "/v"},
                        {"name": "v", "mountPath": "/w", "readOnly": True, "subPath": "x"},
                    ]
                )
            ],
        )
    ],
    "init-containers": [
        pod(initContainers=[{"name": "init", "image": "i"}]),
        pod(
            initContainers=[
                {"name": "side", "image": "i", "restartPolicy": "Always", "livenessProbe": {"httpGet": {"port": 1}}}
            ]
        ),
    ],
    "security": [
        pod(
            securityContext={
                "runAsUser": 1000,
                "fsGroup": 2000,
                "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
            }
        ),
        _with(securityContext={"privileged": True, "capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]}}),
        _with(securityContext={"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True}),
    ],
    "scheduling": [
        pod(nodeSelector={"a": "b"}, priority=None),
        pod(
            tolerations=[
                {"operator": "Exists"},
                {"key": "a", "value": "b", "effect": "NoExecute", "tolerationSeconds": 5},
            ]
        ),
        pod(
            affinity={
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
                    }
                }
            }
        ),
        pod(
            affinity={
                "podAntiAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "weight": 1,
                            "podAffinityTerm": {"topologyKey": "z", "labelSelector": {"matchLabels": {"a": "b"}}},
                        }
                    ]
                }
            }
        ),
        pod(topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]),
        pod(schedulerName="mine", runtimeClassName=None, preemptionPolicy=None),
        pod(schedulingGates=[{"name": "example.com/wait"}]),
    ],
    "network": [
        pod(hostNetwork=True, containers=[container(ports=[{"containerPort": 80}])]),
        pod(dnsPolicy="Default"),
        pod(dnsPolicy="None", dnsConfig={"nameservers": ["192.0.2.1"]}),
        pod(hostname="h", subdomain="s"),
        pod(hostAliases=[{"ip": "192.0.2.1", "hostnames": ["a"]}]),
        pod(setHostnameAsFQDN=True),
    ],
    "various": [
        pod(terminationGracePeriodSeconds=5, activeDeadlineSeconds=9),
        pod(serviceAccountName="s"),
        pod(serviceAccount="s"),
        pod(enableServiceLinks=False),
        pod(shareProcessNamespace=True),
        pod(imagePullSecrets=[{"name": "s"}]),
        pod(automountServiceAccountToken=False),
        pod(os={"name": "linux"}),
        pod(readinessGates=[{"conditionType": "example.com/x"}]),
        _with(
            command=["a"],
            args=["b", "$(C)"],
            workingDir="/w",
            stdin=True,
            tty=True,
            terminationMessagePolicy="FallbackToLogsOnError",
        ),
    ],
    "two-containers": [pod(containers=[container(), {"name": "other", "image": "b"}])],
    "warnings": [
        pod(
            containers=[
                container(),
                {"name": "dup-port", "image": "b", "ports": [{"containerPort": 80}, {"containerPort": 80}]},
            ]
        ),
        _with(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]),
        merged(
            pod(), {"metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/main": "unconfined"}}}
        ),
        pod(nodeSelector={"beta.kubernetes.io/os": "linux"}),
        pod(hostAliases=[{"ip": "192.0.2.1", "hostnames": ["a"]}, {"ip": "192.0.2.1", "hostnames": ["b"]}]),
        pod(imagePullSecrets=[{"name": "a"}, {"name": "a"}]),
        _with(resources={"requests": {"memory": "1m"}}),
        pod(terminationGracePeriodSeconds=-1),
        _volume(hostPath={"path": "/x", "type": ""}, emptyDir=None),
    ],
}

BAD = {
    "no-containers": [pod(containers=[]), pod(containers=None), merged(pod(), {"spec": None})],
    "container-names": [
        pod(containers=[{"image": "a"}]),
        pod(containers=[container(name="A_b")]),
        pod(containers=[container(), container()]),
        pod(containers=[container(name="x" * 64)]),
    ],
    "container-images": [pod(containers=[{"name": "a"}]), _with(image=""), _with(image=" a"), _with(image="a ")],
    "policies": [
        _with(imagePullPolicy="Sometimes"),
        pod(restartPolicy="Sometimes"),
        pod(dnsPolicy="Sometimes"),
        _with(terminationMessagePolicy="Sometimes"),
        pod(preemptionPolicy="Sometimes"),
    ],
    "ports": [_with(ports=[{"containerPort": port}]) for port in (0, -1, 65536)]
    + [
        _with(ports=[{}]),
        _with(ports=[{"containerPort": 80, "protocol": "HTTP"}]),
        _with(ports=[{"containerPort": 80, "name": "A_B"}]),
        _with(ports=[{"containerPort": 80, "name": "a" * 16}]),
        _with(ports=[{"containerPort": 80, "name": "x"}, {"containerPort": 81, "name": "x"}]),
        _with(ports=[{"containerPort": 80, "hostPort": 99999}]),
        _with(ports=[{"containerPort": 80, "hostPort": 5}, {"containerPort": 81, "hostPort": 5}]),
    ],
    "environment": [
        _with(env=[{"value": "1"}]),
        _with(env=[{"name": "a b"}]),
        _with(env=[{"name": "1=2"}]),
        _with(env=[{"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
        _with(env=[{"name": "A", "valueFrom": {}}]),
        _with(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nothing"}}}]),
        _with(env=[{"name": "A", "valueFrom": {"fieldRef": {}}}]),
        _with(env=[{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.nothing"}}}]),
        _with(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s"}}}]),
        _with(env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "", "key": "a b"}}}]),
        _with(envFrom=[{}]),
        _with(envFrom=[{"configMapRef": {"name": "A B"}}]),
    ],
    "probes": [
        _probe(),
        _probe(httpGet={}),
        _probe(httpGet={"port": 0}),
        _probe(httpGet={"port": "a b"}),
        _probe(httpGet={"port": 80, "scheme": "FTP"}),
        _probe(tcpSocket={}),
        _probe(exec={}),
        _probe(exec={"command": []}),
        _probe(httpGet={"port": 80}, tcpSocket={"port": 80}),
        _probe(httpGet={"port": 80}, periodSeconds=-1),
        _probe(httpGet={"port": 80}, successThreshold=2),
        _probe(httpGet={"port": 80}, initialDelaySeconds=-5, timeoutSeconds=-5, failureThreshold=-5),
        _with(lifecycle={"postStart": {}}),
        _with(lifecycle={"preStop": {"exec": {"command": ["a"]}, "httpGet": {"port": 1}}}),
        _with(readinessProbe={"httpGet": {"port": 80}, "terminationGracePeriodSeconds": 5}),
    ],
    "resources": [
        _with(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
        _with(resources={"limits": {"cpu": "-1"}}),
        _with(resources={"limits": {"nothing": "1"}}),
        _with(resources={"requests": {"example.com/gpu": "1"}}),
        _with(resources={"limits": {"example.com/gpu": "1.5"}}),
        _with(resources={"limits": {"hugepages-2Mi": "3Mi"}}),
        _with(resources={"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "2"}}),
        _with(resources={"claims": [{"name": "x"}]}),
        _with(resources={"requests": {"cpu": ""}}),
        _with(resources={"requests": {"cpu": "1x"}}),
        _with(resources={"requests": {"cpu": True}}),
        _with(resources={"requests": {"cpu": None}}),
    ],
    "volumes": [
        pod(volumes=[{"emptyDir": {}}]),
        pod(volumes=[{"name": "A B"}]),
        pod(volumes=[{"name": "v"}, {"name": "v"}]),
        _volume(emptyDir={}, configMap={"name": "c"}),
        _volume(configMap={}),
        _volume(configMap={"name": "c", "defaultMode": 9999}),
        _volume(secret={}),
        _volume(secret={"secretName": "s", "items": [{"key": "k", "path": "/p"}]}),
        _volume(secret={"secretName": "s", "items": [{"key": "k", "path": "../p"}]}),
        _volume(secret={"secretName": "s", "items": [{"path": "p"}]}),
        _volume(hostPath={"path": ""}),
        _volume(hostPath={"path": "/a/../b"}),
        _volume(hostPath={"path": "/a", "type": "Door"}),
        _volume(persistentVolumeClaim={"claimName": ""}),
        _volume(emptyDir={"sizeLimit": "-1"}),
        _volume(nfs={}),
        _volume(projected={"sources": [{}]}),
        _volume(downwardAPI={"items": [{"path": "p"}]}),
        _volume(projected={"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 5}}]}),
    ],
    "mounts": [
        _with(volumeMounts=[{"name": "none", "mountPath": "/v"}]),
        pod(volumes=[{"name": "v"}], containers=[container(volumeMounts=[{"name": "v"}])]),
        pod(
            volumes=[{"name": "v"}],
            containers=[container(volumeMounts=[{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/a"}])],
        ),
        pod(
            volumes=[{"name": "v"}],
            containers=[container(volumeMounts=[{"name": "v", "mountPath": "/a", "subPath": "../b"}])],
        ),
        pod(
            volumes=[{"name": "v"}],
            containers=[container(volumeMounts=[{"name": "v", "mountPath": "/a", "subPath": "a", "subPathExpr": "b"}])],
        ),
        _with(volumeDevices=[{"name": "v", "devicePath": "/d"}]),
    ],
    "init-containers": [
        pod(initContainers=[{"name": "main", "image": "i"}]),
        pod(initContainers=[{"name": "i"}]),
        pod(initContainers=[{"name": "i", "image": "i", "livenessProbe": {"httpGet": {"port": 1}}}]),
        pod(initContainers=[{"name": "i", "image": "i", "restartPolicy": "Sometimes"}]),
        pod(ephemeralContainers=[{"name": "e", "image": "e"}]),
    ],
    "security": [
        pod(securityContext={"runAsUser": -1}),
        pod(securityContext={"supplementalGroups": [-1]}),
        _with(securityContext={"privileged": True, "allowPrivilegeEscalation": False}),
        pod(securityContext={"seccompProfile": {"type": "Odd"}}),
        pod(securityContext={"seccompProfile": {"type": "Localhost"}}),
        pod(securityContext={"sysctls": [{"name": "a b", "value": "1"}]}),
        pod(securityContext={"fsGroupChangePolicy": "Odd"}),
        _with(securityContext={"procMount": "Odd"}),
    ],
    "scheduling": [
        pod(nodeSelector={"a b": "c"}),
        pod(nodeName="A B"),
        pod(tolerations=[{"operator": "Odd"}]),
        pod(tolerations=[{"operator": "Equal", "value": "x"}]),
        pod(tolerations=[{"key": "a", "operator": "Exists", "value": "x"}]),
        pod(tolerations=[{"key": "a", "operator": "Exists", "effect": "Odd"}]),
        pod(tolerations=[{"key": "a", "operator": "Exists", "tolerationSeconds": 5}]),
        pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}),
        pod(affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}),
        pod(
            affinity={
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]
                    }
                }
            }
        ),
        pod(topologySpreadConstraints=[{}]),
        pod(topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "Odd"}]),
        pod(priorityClassName="nothing"),
        pod(priority=5),
        pod(schedulingGates=[{"name": "a b"}]),
        pod(schedulingGates=[{"name": "a"}, {"name": "a"}]),
        pod(nodeName="x", schedulingGates=[{"name": "a"}]),
        pod(runtimeClassName="nothing"),
    ],
    "network": [
        pod(hostNetwork=True, containers=[container(ports=[{"containerPort": 80, "hostPort": 81}])]),
        pod(hostname="A_B"),
        pod(hostname="x" * 64),
        pod(subdomain="A_B"),
        pod(dnsPolicy="None"),
        pod(dnsConfig={"nameservers": ["x"]}),
        pod(dnsConfig={"nameservers": ["192.0.2.1"] * 4}),
        pod(dnsConfig={"options": [{}]}),
        pod(hostAliases=[{"ip": "x"}]),
        pod(hostAliases=[{"ip": "192.0.2.1", "hostnames": ["A_B"]}]),
        pod(hostUsers=False, hostNetwork=True),
    ],
    "various": [
        pod(activeDeadlineSeconds=0),
        pod(activeDeadlineSeconds=2**40),
        pod(serviceAccountName="A_B"),
        pod(imagePullSecrets=[{}]),
        pod(readinessGates=[{"conditionType": "a b"}]),
        pod(os={"name": "odd"}),
        pod(os={"name": "windows"}, hostPID=True),
        pod(schedulerName=""),
        pod(shareProcessNamespace=True, hostPID=True),
        pod(resourceClaims=[{"name": "x"}]),
        pod(overhead={"cpu": "1"}),
        pod(containers=[container(name="A B", image="", imagePullPolicy="Odd")]),
    ],
}

SCENARIOS = [
    *(scenario(f"good-{name}", "Kinds", *(post(POD, body, dryRun="All") for body in bodies)) for name, bodies in GOOD.items()),
    *(scenario(f"bad-{name}", "Kinds, Status errors", *(post(POD, body, dryRun="All") for body in bodies)) for name, bodies in BAD.items()),
    scenario(
        "status-of-a-life",
        "Kinds, Subresources, Table",
        post(POD, pod(nodeName="here")),
        *(
            step
            for status in (
                {"phase": "Pending", "containerStatuses": [{"name": "main", "image": "a", "imageID": "", "ready": False, "restartCount": 0, "state": {"waiting": {"reason": "ContainerCreating"}}}]},
                {"phase": "Running", "containerStatuses": [{"name": "main", "image": "a", "imageID": "x", "ready": True, "restartCount": 1, "state": {"running": {"startedAt": "2024-01-02T03:04:05Z"}}}]},
                {"phase": "Succeeded", "containerStatuses": [{"name": "main", "image": "a", "imageID": "x", "ready": False, "restartCount": 1, "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]},
                {"phase": "Failed", "reason": "Evicted", "message": "too much"},
                {"phase": "Nowhere"},
            )
            for step in (patch(f"{POD}/a/status", {"status": status}), get(f"{POD}/a", accept="application/json;as=Table;v=v1;g=meta.k8s.io"))
        ),
    ),
]  # fmt: skip
