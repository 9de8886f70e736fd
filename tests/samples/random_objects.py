"""Random valid objects of built-in kinds, as JSON trees: a rich template a kind, with optional parts left to chance."""

from __future__ import annotations

import base64
from random import Random  # noqa: TID251 - seeded by the test, which says with what

from samples.random_pods import pod_spec, selector, template, workload
from samples.random_values import WORDS, Tree, maybe, quantity, some, strings, text, word


def config_map(rng: Random) -> Tree:
    binary = base64.b64encode(rng.randbytes(rng.randrange(50))).decode()
    return {"data": {word(rng): text(rng) for _ in range(rng.randint(0, 4))}} | maybe(
        rng, binaryData={word(rng): binary}, immutable=False
    )


def secret(rng: Random) -> Tree:
    data = {word(rng): base64.b64encode(text(rng).encode()).decode() for _ in range(rng.randint(0, 4))}
    return {"data": data, "type": rng.choice(["Opaque", f"example.com/{word(rng)}"])} | maybe(rng, immutable=False)


def service(rng: Random) -> Tree:
    ports = [
        {
            "name": f"p{number}",
            "port": number,
            "targetPort": rng.choice([number, "http"]),
            "protocol": rng.choice(["TCP", "UDP"]),
        }
        | maybe(rng, appProtocol="example.com/custom")
        for number in rng.sample(range(1, 60_000), rng.randint(1, 4))
    ]
    optional = maybe(
        rng,
        externalIPs=["203.0.113.7"],
        sessionAffinity="ClientIP",
        publishNotReadyAddresses=True,
        internalTrafficPolicy="Local",
    )
    return {
        "spec": {"selector": {"app": "x"} | strings(rng), "ports": ports, "clusterIP": rng.choice(["None", ""])}
        | optional
    }


def service_account(rng: Random) -> Tree:
    return {
        "secrets": [{"name": word(rng)} for _ in range(rng.randint(0, 3))],
        "imagePullSecrets": [{"name": word(rng)} for _ in range(rng.randint(0, 3))],
    } | maybe(rng, automountServiceAccountToken=False)


def pod(rng: Random) -> Tree:
    return {"spec": pod_spec(rng)}


def claim(rng: Random) -> Tree:
    optional = maybe(
        rng,
        storageClassName=word(rng),
        volumeMode="Block",
        dataSourceRef={"apiGroup": "example.com", "kind": "Image", "name": word(rng)},
    )
    return {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": quantity(rng)}}} | optional
    }


def persistent_volume(rng: Random) -> Tree:
    sources = [
        {"hostPath": {"path": "/mnt"}},
        {"nfs": {"server": "nfs.example.com", "path": "/x", "readOnly": True}},
        {
            "csi": {
                "driver": "csi.example.com",
                "volumeHandle": word(rng),
                "volumeAttributes": {"a": text(rng)},
                "fsType": "ext4",
            }
        },
    ]
    optional = maybe(rng, mountOptions=["hard", "nfsvers=4.1"], storageClassName=word(rng))
    spec = {"capacity": {"storage": quantity(rng)}, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}
    return {"spec": spec | {"persistentVolumeReclaimPolicy": "Retain"} | rng.choice(sources) | optional}


def resource_quota(rng: Random) -> Tree:
    hard = {f"count/{word(rng)}.example.com": str(rng.randrange(1000)) for _ in range(rng.randint(0, 4))}
    return {"spec": {"hard": hard | {"requests.example.com/gpu": str(rng.randrange(9))}}}


def limit_range(rng: Random) -> Tree:
    limits = [
        {"type": "Pod", "max": {"memory": quantity(rng), "example.com/thing": "5"}},
        {"type": "PersistentVolumeClaim", "min": {"storage": "1m"}, "max": {"storage": quantity(rng)}},
    ]
    return {"spec": {"limits": rng.sample(limits, rng.randint(1, 2))}}


def node(rng: Random) -> Tree:
    taints = [
        {"key": word(rng), "effect": "NoSchedule"} | maybe(rng, value=word(rng)) for _ in range(rng.randint(0, 3))
    ]
    return {"spec": {"taints": taints} | maybe(rng, unschedulable=True, providerID=f"example://{word(rng)}")}


def deployment(rng: Random) -> Tree:
    return workload(rng, replicas=rng.randint(0, 9), **maybe(
        rng,
        strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": rng.choice([1, "25%"]), "maxUnavailable": "10%"}},
        minReadySeconds=rng.randint(0, 30),
        revisionHistoryLimit=rng.randint(0, 30),
        paused=True,
        progressDeadlineSeconds=900,
    ))  # fmt: skip


def stateful_set(rng: Random) -> Tree:
    claims = [{"metadata": {"name": word(rng), "labels": strings(rng)}} | claim(rng) for _ in range(rng.randint(0, 2))]
    return workload(rng, replicas=rng.randint(0, 5), serviceName=word(rng), volumeClaimTemplates=claims, **maybe(
        rng,
        podManagementPolicy="Parallel",
        updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": rng.randint(0, 3)}},
        persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete", "whenScaled": "Retain"},
        ordinals={"start": 3},
    ))  # fmt: skip


def daemon_set(rng: Random) -> Tree:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": rng.choice([1, "10%"])}}
    return workload(rng, **maybe(rng, updateStrategy=strategy, minReadySeconds=5, revisionHistoryLimit=3))


def replica_set(rng: Random) -> Tree:
    return workload(rng, replicas=rng.randint(0, 9), **maybe(rng, minReadySeconds=5))


def job_spec(rng: Random) -> Tree:
    rules = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
    spec = {"template": template(rng, {"job": word(rng)}, "Never"), "parallelism": rng.randint(0, 5)}
    return spec | maybe(
        rng,
        completions=5,
        backoffLimit=3,
        activeDeadlineSeconds=600,
        ttlSecondsAfterFinished=60,
        suspend=True,
        podFailurePolicy={"rules": rules},
    )


def job(rng: Random) -> Tree:
    return {"spec": job_spec(rng)}


def cron_job(rng: Random) -> Tree:
    optional = maybe(
        rng, concurrencyPolicy="Forbid", suspend=True, startingDeadlineSeconds=100, timeZone="Europe/Berlin"
    )
    return {
        "spec": {
            "schedule": f"{rng.randrange(60)} * * * *",
            "jobTemplate": {"metadata": {"labels": strings(rng)}, "spec": job_spec(rng)},
        }
        | optional
    }


def ingress(rng: Random) -> Tree:
    def backend(rng: Random) -> Tree:
        return {"service": {"name": word(rng), "port": rng.choice([{"number": 80}, {"name": "http"}])}}

    def rule(rng: Random) -> Tree:
        paths = [
            {"path": f"/{word(rng)}", "pathType": "Prefix", "backend": backend(rng)} for _ in range(rng.randint(1, 3))
        ]
        return {"host": f"{word(rng)}.example.com", "http": {"paths": paths}}

    tls = [{"hosts": [f"{word(rng)}.example.com"], "secretName": word(rng)}]
    return {
        "spec": {"rules": some(rng, rule, 1, 3)}
        | maybe(rng, ingressClassName=word(rng), defaultBackend=backend, tls=tls)
    }


def network_policy(rng: Random) -> Tree:
    def peer(rng: Random) -> Tree:
        block = {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16", "10.2.0.0/16"]}}
        return rng.choice(
            [{"podSelector": selector(rng)}, {"namespaceSelector": selector(rng), "podSelector": {}}, block]
        )

    ports = [{"protocol": "TCP", "port": 80}, {"protocol": "UDP", "port": 1000, "endPort": 2000}, {"port": "http"}]
    rules = [
        {"from": some(rng, peer, 1, 3), "ports": rng.sample(ports, rng.randint(1, 3))} for _ in range(rng.randint(1, 3))
    ]
    return {
        "spec": {"podSelector": selector(rng), "ingress": rules, "policyTypes": ["Ingress"]} | maybe(rng, egress=[{}])
    }


def rules(rng: Random) -> list[Tree]:
    """The rules of a role."""
    return [
        {
            "apiGroups": rng.choice([[""], ["example.com", "*"]]),
            "resources": some(rng, word, 1, 3),
            "verbs": rng.choice([["*"], ["get", "list"]]),
        }
        | maybe(rng, resourceNames=[word(rng)])
        for _ in range(rng.randint(1, 4))
    ]


def role(rng: Random) -> Tree:
    return {"rules": rules(rng)}


def cluster_role(rng: Random) -> Tree:
    return {"rules": [*rules(rng), {"nonResourceURLs": ["/healthz", "/metrics/*"], "verbs": ["get"]}]}


def role_binding(rng: Random) -> Tree:
    subjects = [
        {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": text(rng) or "x"},
        {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": word(rng)},
        {"kind": "ServiceAccount", "name": word(rng), "namespace": "default"},
    ]
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": word(rng)}
    return {"subjects": rng.sample(subjects, rng.randint(1, 3)), "roleRef": reference}


def disruption_budget(rng: Random) -> Tree:
    bound = rng.choice([{"minAvailable": rng.choice([1, "50%"])}, {"maxUnavailable": rng.choice([2, "20%"])}])
    return {"spec": {"selector": selector(rng)} | bound | maybe(rng, unhealthyPodEvictionPolicy="AlwaysAllow")}


def autoscaler(rng: Random) -> Tree:
    metrics = [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}},
        {
            "type": "Pods",
            "pods": {"metric": {"name": word(rng)}, "target": {"type": "AverageValue", "averageValue": quantity(rng)}},
        },
        {
            "type": "External",
            "external": {
                "metric": {"name": word(rng), "selector": selector(rng)},
                "target": {"type": "Value", "value": "7"},
            },
        },
    ]
    behavior = {
        "scaleUp": {"policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}], "stabilizationWindowSeconds": 10}
    }
    spec = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": word(rng)}, "minReplicas": 1}
    return {
        "spec": spec
        | {"maxReplicas": rng.randint(2, 9), "metrics": rng.sample(metrics, rng.randint(1, 3))}
        | maybe(rng, behavior=behavior)
    }


def lease(rng: Random) -> Tree:
    moment = f"2026-0{rng.randint(1, 9)}-1{rng.randint(0, 9)}T12:00:00.{rng.randrange(10**6):06}Z"
    spec = {
        "holderIdentity": word(rng),
        "leaseDurationSeconds": rng.randint(1, 60),
        "leaseTransitions": rng.randint(0, 9),
    }
    return {"spec": spec | maybe(rng, renewTime=moment, acquireTime=moment)}


def storage_class(rng: Random) -> Tree:
    return {"provisioner": f"example.com/{word(rng)}", "parameters": {word(rng): text(rng)}} | maybe(
        rng,
        allowVolumeExpansion=True,
        mountOptions=["a", "b"],
        volumeBindingMode="WaitForFirstConsumer",
        reclaimPolicy="Retain",
    )


def priority_class(rng: Random) -> Tree:
    return {"value": rng.randint(-(10**6), 10**6), "description": text(rng)} | maybe(rng, preemptionPolicy="Never")


def webhooks(rng: Random) -> Tree:
    def hook(rng: Random) -> Tree:
        rule = {
            "apiGroups": ["nowhere.test.steersman.dev"],
            "apiVersions": ["*"],
            "operations": ["CREATE"],
            "resources": [word(rng)],
        }
        return {
            "name": f"{word(rng)}.example.com",
            "clientConfig": {"url": f"https://{word(rng)}.example.com/check", "caBundle": ""},
            "rules": [rule] * rng.randint(1, 2),
            "sideEffects": "None",
            "admissionReviewVersions": ["v1", "v1beta1"],
            "failurePolicy": "Ignore",
        } | maybe(
            rng,
            timeoutSeconds=7,
            objectSelector=selector,
            matchConditions=[{"name": "mine", "expression": "object.kind == 'X'"}],
        )

    return {"webhooks": some(rng, hook, 1, 3)}


def endpoint_slice(rng: Random) -> Tree:
    endpoints = [
        {"addresses": [f"10.0.{rng.randrange(250)}.{rng.randrange(250)}"], "conditions": {"ready": rng.random() < 0.5}}
        | maybe(rng, hostname="h", nodeName=word(rng), zone="z", targetRef={"kind": "Pod", "name": word(rng)})
        for _ in range(rng.randint(0, 4))
    ]
    ports = [{"name": "a", "port": 80, "protocol": "TCP"}, {"name": "b", "port": None, "appProtocol": "http"}]
    return {"addressType": "IPv4", "endpoints": endpoints, "ports": ports[: rng.randint(0, 2)]}


def revision(rng: Random) -> Tree:
    data = {"a": [1, 2.5, None, {"b": text(rng)}], "nested": {"empty": {}, "list": [], "big": 2**53, "yes": True}}
    return {"revision": rng.randint(0, 99), "data": data}


def definition(rng: Random) -> Tree:
    items = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}
    fields = {
        "map": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0, "maximum": 1e6}},
        "list": {
            "type": "array",
            "items": items,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["key"],
        },
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "either": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "word": {"type": "string", "enum": ["a", "b"], "default": "a", "description": text(rng), "pattern": "^[a-z]+$"},
    }
    chosen = {name: fields[name] for name in rng.sample(sorted(fields), rng.randint(1, len(fields)))}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": chosen}}}
    plural = f"{rng.choice(WORDS)}{rng.randrange(10**6)}s"
    version = {"name": "v1", "served": False, "storage": True, "schema": {"openAPIV3Schema": schema}}
    columns = [{"name": "A", "type": "string", "jsonPath": ".spec.word", "priority": 1}]
    return {
        "metadata": {"name": f"{plural}.roundtrip.test.steersman.dev"},
        "spec": {
            "group": "roundtrip.test.steersman.dev",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": plural.title()},
            "versions": [version | maybe(rng, additionalPrinterColumns=columns, subresources={"status": {}})],
        },
    }
