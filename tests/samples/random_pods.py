"""Random valid specs of pods, and of what runs them."""

from __future__ import annotations

from random import Random  # noqa: TID251 - seeded by the test, which says with what
from typing import Any

from samples.random_values import Tree, maybe, some, strings, text, word


def selector(rng: Random) -> Tree:
    """A label selector."""
    expressions = [
        {"key": word(rng), "operator": "In", "values": some(rng, word, 1, 3)},
        {"key": word(rng), "operator": "Exists"},
        {"key": f"example.com/{word(rng)}", "operator": "NotIn", "values": some(rng, word, 1, 2)},
    ]
    return {"matchLabels": strings(rng)} | maybe(rng, matchExpressions=rng.sample(expressions, rng.randint(1, 3)))


def env(rng: Random) -> Tree:
    """An environment variable."""
    sources = [
        {"value": text(rng)},
        {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"valueFrom": {"secretKeyRef": {"name": word(rng), "key": "k", "optional": rng.random() < 0.5}}},
        {"valueFrom": {"configMapKeyRef": {"name": word(rng), "key": "k"}}},
        {"valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
    ]
    return {"name": word(rng).replace("-", "_").upper()} | rng.choice(sources)


def probe(rng: Random) -> Tree:
    """A probe of a container."""
    actions = [
        {
            "httpGet": {
                "path": "/",
                "port": rng.choice([80, "http"]),
                "httpHeaders": [{"name": "X-A", "value": text(rng).split("\n")[0]}],
            }
        },
        {"tcpSocket": {"port": 8080}},
        {"exec": {"command": ["sh", "-c", text(rng)]}},
        {"grpc": {"port": 9000, "service": word(rng)}},
    ]
    return rng.choice(actions) | maybe(rng, periodSeconds=rng.randint(1, 60), timeoutSeconds=2, failureThreshold=5)


def container(rng: Random, volumes: list[str]) -> Tree:
    """A container that mounts some of the volumes."""
    limit = rng.randint(2, 64)
    mounts = rng.sample(volumes, rng.randint(0, len(volumes)))
    ports = rng.sample(range(1000, 9000), rng.randint(0, 3))
    return {
        "name": word(rng),
        "image": f"registry.example.com/{word(rng)}:{rng.randrange(100)}",
        "env": some(rng, env),
        "ports": [
            {"containerPort": port, "protocol": rng.choice(["TCP", "UDP"])} | maybe(rng, name=f"p{port}")
            for port in ports
        ],
        "volumeMounts": [
            {"name": name, "mountPath": f"/mnt/{name}"} | maybe(rng, readOnly=True, subPath="sub") for name in mounts
        ],
    } | maybe(
        rng,
        command=["run", text(rng)],
        args=lambda rng: some(rng, text),
        workingDir="/work",
        resources={"limits": {"cpu": f"{limit}", "memory": f"{limit}Gi"}, "requests": {"cpu": "100m"}},
        livenessProbe=probe,
        readinessProbe=probe,
        lifecycle={"preStop": {"exec": {"command": ["sleep", "1"]}}},
        securityContext={"runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True},
        envFrom=[{"prefix": "A_", "configMapRef": {"name": "c"}}, {"secretRef": {"name": "s", "optional": True}}],
        imagePullPolicy="Always",
    )


def _without_probes(made: Tree) -> Tree:
    """A container that runs before the others has none."""
    return {name: value for name, value in made.items() if name not in {"livenessProbe", "readinessProbe", "lifecycle"}}


def volume(rng: Random) -> Tree:
    """A volume of some kind."""
    sources = [
        {"emptyDir": {}},
        {"emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
        {"configMap": {"name": word(rng), "items": [{"key": "a", "path": "b", "mode": 288}]}},
        {"secret": {"secretName": word(rng), "defaultMode": 256, "optional": True}},
        {"hostPath": {"path": "/var/lib/x", "type": "DirectoryOrCreate"}},
        {"persistentVolumeClaim": {"claimName": word(rng), "readOnly": True}},
        {
            "projected": {
                "sources": [{"downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}}]
            }
        },
        {"csi": {"driver": "csi.example.com", "volumeAttributes": {"a": text(rng)}}},
        {"nfs": {"server": "nfs.example.com", "path": "/"}},
    ]
    return {"name": word(rng)} | rng.choice(sources)


def pod_spec(rng: Random, restart: str | None = None) -> Tree:
    """The spec of a pod."""
    volumes = [dict(one) for one in {one["name"]: one for one in some(rng, volume)}.values()]
    names = [one["name"] for one in volumes]
    spec = {"containers": [container(rng, names) for _ in range(rng.randint(1, 3))], "volumes": volumes}
    spec |= {"restartPolicy": restart} if restart else {}
    spread = {
        "maxSkew": 2,
        "topologyKey": "zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": selector(rng),
    }
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
    peer = {"labelSelector": selector(rng), "topologyKey": "kubernetes.io/hostname", "namespaces": ["x"]}
    return spec | maybe(
        rng,
        initContainers=lambda rng: [_without_probes(container(rng, names))],
        nodeSelector=strings,
        tolerations=[
            {"key": word(rng), "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30},
            {"operator": "Exists"},
        ],
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]},
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 7, "preference": term}],
            },
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": peer}]
            },
        },
        topologySpreadConstraints=[spread],
        hostAliases=[{"ip": "10.1.2.3", "hostnames": ["a.example.com", "b"]}],
        dnsConfig={"nameservers": ["10.0.0.10"], "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}]},
        dnsPolicy="ClusterFirst",
        imagePullSecrets=[{"name": word(rng)}, {"name": word(rng)}],
        securityContext={"fsGroup": 1000, "sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}]},
        terminationGracePeriodSeconds=rng.randint(0, 90),
        serviceAccountName=word(rng),
        automountServiceAccountToken=False,
        hostname="host",
        enableServiceLinks=rng.random() < 0.5,
    )


def template(rng: Random, labels: dict[str, str], restart: str | None = None) -> Tree:
    """A template of pods with these labels."""
    return {
        "metadata": {"labels": labels | strings(rng)} | maybe(rng, annotations=strings),
        "spec": pod_spec(rng, restart),
    }


def workload(rng: Random, **fields: Any) -> Tree:
    """The spec of something that runs pods and selects them."""
    labels = {"app": word(rng)}
    return {"spec": {"selector": {"matchLabels": labels}, "template": template(rng, labels)} | fields}
