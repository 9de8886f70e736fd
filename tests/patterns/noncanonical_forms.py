"""Built-in kinds, written as people write them: not as the server writes them down."""

from steersman.aio import name_suffix

LABELS = {"app": "web"}

CONTAINER = {
    "name": "web",
    "image": "nginx",
    "command": [],
    "args": None,
    "env": [{"name": "EMPTY", "value": ""}, {"name": "SET", "value": "1"}],
    "ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}],
    "resources": {
        "requests": {"cpu": "1000m", "memory": "1024Mi", "ephemeral-storage": "0.5Gi"},
        "limits": {"cpu": 2, "memory": "2048Mi"},
    },
    "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 10},
    "volumeMounts": [],
    "securityContext": {},
}


def _pods(**spec):
    volumes = [
        {"name": "scratch", "emptyDir": {}},
        {"name": "settings", "configMap": {"name": "settings", "items": []}},
        {"name": "token", "secret": {"secretName": "token", "defaultMode": 420}},
    ]
    spec = {"containers": [CONTAINER], "volumes": volumes, "securityContext": {}, "tolerations": [], **spec}
    return {"metadata": {"labels": LABELS, "annotations": {}, "creationTimestamp": None}, "spec": spec}


def _form(api_version, kind, *, suffix="", **content):
    metadata = {"name": f"odd{suffix}", "labels": {}, "annotations": {}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def forms():
    """One of each kind; cluster-scoped ones have names of their own."""
    own = f"-{name_suffix()}"
    selector = {"matchLabels": LABELS, "matchExpressions": []}
    claim = {
        "metadata": {"name": "data", "creationTimestamp": None},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}},
    }
    rbac = "rbac.authorization.k8s.io"
    return [
        _form("v1", "ConfigMap", data={}, binaryData={"b": "AAE="}, immutable=None),
        _form("v1", "Secret", stringData={"user": "me", "empty": ""}, data={"token": "dG9rZW4="}),
        _form(
            "v1",
            "Service",
            spec={
                "selector": LABELS,
                "ports": [
                    {"name": "web", "port": 80, "targetPort": "http"},
                    {"name": "x", "port": 81, "targetPort": 8081, "protocol": "UDP"},
                ],
                "loadBalancerSourceRanges": [],
            }
            | {"type": "ClusterIP", "externalIPs": []},
        ),
        _form("v1", "ServiceAccount", secrets=[], imagePullSecrets=[{"name": "pull"}]),
        _form("v1", "Pod", spec=_pods(restartPolicy="Never")["spec"]),
        _form(
            "v1",
            "PersistentVolumeClaim",
            spec={
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "0.5Gi"}},
                "storageClassName": "",
            },
        ),
        _form(
            "v1",
            "PersistentVolume",
            suffix=own,
            spec={
                "capacity": {"storage": "1024Mi"},
                "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/tmp/odd"},
                "mountOptions": [],
            },
        ),
        _form(
            "v1",
            "ResourceQuota",
            spec={"hard": {"cpu": "1000m", "memory": "1024Mi", "pods": 10}, "scopes": ["Terminating"]},
        ),
        _form(
            "v1",
            "LimitRange",
            spec={"limits": [{"type": "Container", "default": {"cpu": "0.5"}, "max": {"cpu": "2000m"}}]},
        ),
        _form(
            "apps/v1",
            "Deployment",
            spec={
                "selector": selector,
                "template": _pods(),
                "strategy": {"rollingUpdate": {"maxSurge": "25%"}},
                "paused": False,
            },
        ),
        _form(
            "apps/v1",
            "StatefulSet",
            spec={
                "serviceName": "odd",
                "replicas": 2,
                "selector": {"matchLabels": LABELS},
                "template": _pods(),
                "volumeClaimTemplates": [claim],
                "updateStrategy": {},
            },
        ),
        _form(
            "apps/v1",
            "DaemonSet",
            spec={"selector": {"matchLabels": LABELS}, "template": _pods(), "updateStrategy": {}},
        ),
        _form("apps/v1", "ReplicaSet", spec={"selector": {"matchLabels": LABELS}, "template": _pods()}),
        _form("batch/v1", "Job", spec={"template": _pods(restartPolicy="Never"), "ttlSecondsAfterFinished": 60}),
        _form(
            "batch/v1",
            "CronJob",
            spec={
                "schedule": "@hourly",
                "suspend": False,
                "jobTemplate": {"metadata": {}, "spec": {"template": _pods(restartPolicy="Never")}},
            },
        ),
        _form(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            spec={
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "odd"},
                "maxReplicas": 3,
                "metrics": [
                    {
                        "type": "Resource",
                        "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "1000m"}},
                    }
                ],
                "behavior": {"scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}},
            },
        ),
        _form("policy/v1", "PodDisruptionBudget", spec={"minAvailable": "50%", "selector": selector}),
        _form(
            "networking.k8s.io/v1",
            "Ingress",
            spec={
                "rules": [
                    {
                        "host": "odd.test.dev",
                        "http": {
                            "paths": [
                                {
                                    "path": "/",
                                    "pathType": "Prefix",
                                    "backend": {"service": {"name": "odd", "port": {"number": 80}}},
                                }
                            ]
                        },
                    }
                ],
                "tls": [],
            },
        ),
        _form(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            spec={
                "podSelector": {},
                "ingress": [{"from": [{"podSelector": {}}], "ports": [{"port": "http"}, {"port": 80}]}],
                "egress": [],
            },
        ),
        _form(
            f"{rbac}/v1",
            "Role",
            rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": []}],
        ),
        _form(
            f"{rbac}/v1",
            "RoleBinding",
            roleRef={"apiGroup": rbac, "kind": "Role", "name": "odd"},
            subjects=[
                {"kind": "User", "name": "jane"},
                {"kind": "ServiceAccount", "name": "odd", "namespace": "default"},
            ],
        ),
        _form("scheduling.k8s.io/v1", "PriorityClass", suffix=own, value=10, description=""),
        _form(
            "storage.k8s.io/v1", "StorageClass", suffix=own, provisioner="test.dev/odd", parameters={}, mountOptions=[]
        ),
        _form(
            "coordination.k8s.io/v1",
            "Lease",
            spec={
                "holderIdentity": "me",
                "acquireTime": "2026-01-02T05:04:05.000000+02:00",
                "leaseDurationSeconds": 15,
            },
        ),
        _form(
            "discovery.k8s.io/v1",
            "EndpointSlice",
            addressType="IPv4",
            endpoints=[{"addresses": ["10.1.2.3"], "conditions": {}}],
            ports=[{"port": 80}, {"name": "x", "port": 81, "protocol": "UDP"}],
        ),
        _form("node.k8s.io/v1", "RuntimeClass", suffix=own, handler="odd", overhead={"podFixed": {"cpu": "1000m"}}),
    ]
