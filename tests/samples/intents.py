"""Random intents and drifts of a few kinds, in many notations of the same thing."""

import copy

ABSENT = object()

#: For each kind: its apiVersion, and for each path what may stand there.
POOLS = {
    "ConfigMap": (
        "v1",
        {
            "data.a": [ABSENT, "1", "2", ""],
            "data.b": [ABSENT, "x", ""],
            "binaryData.c": [ABSENT, "YQ==", "Yg=="],
            "immutable": [ABSENT, None, False],
            "metadata.annotations": [ABSENT, {}, {"k": "v"}, {"k": "", "l": "1"}],
        },
    ),
    "Secret": (
        "v1",
        {
            "data.a": [ABSENT, "YQ==", "Yg=="],
            "data.b": [ABSENT, "YQ=="],
            "stringData.a": [ABSENT, "a", "b"],
            "stringData.c": [ABSENT, "", "é"],
            "type": [ABSENT, "Opaque"],
        },
    ),
    "Service": (
        "v1",
        {
            "spec.selector": [ABSENT, {"app": "web"}, {"app": "web", "tier": "1"}],
            "spec.ports": [
                [{"port": 80, "name": "a"}],
                [{"port": 80, "name": "a", "protocol": "TCP", "targetPort": 80}],
                [{"port": 80, "name": "a", "targetPort": "http"}, {"port": 81, "name": "b"}],
                [{"port": 81, "name": "b"}, {"port": 80, "name": "a"}],
                [{"port": 80, "name": "a"}, {"port": 80, "protocol": "UDP", "name": "b"}],
            ],
            "spec.externalIPs": [ABSENT, [], ["10.9.8.7"], ["10.9.8.8", "10.9.8.7"], ["10.9.8.7", "10.9.8.8"]],
            "spec.sessionAffinity": [ABSENT, "None", "ClientIP"],
            "spec.publishNotReadyAddresses": [ABSENT, False, True],
        },
    ),
    "Deployment": (
        "apps/v1",
        {
            "spec.replicas": [ABSENT, None, 0, 1, 2],
            "spec.minReadySeconds": [ABSENT, 0, 5],
            "spec.selector": [{"matchLabels": {"app": "web"}}],
            "spec.template.metadata": [
                {"labels": {"app": "web"}},
                {"labels": {"app": "web"}, "creationTimestamp": None, "annotations": {}},
            ],
            "spec.strategy": [
                ABSENT,
                {"rollingUpdate": {"maxSurge": 1}},
                {"rollingUpdate": {"maxSurge": "25%"}},
                {"rollingUpdate": {"maxSurge": "25%"}, "type": "RollingUpdate"},
            ],
            "spec.template.spec.containers": [
                [{"name": "web", "image": "nginx"}],
                [{"name": "web", "image": "nginx", "env": [{"name": "A", "value": ""}, {"name": "B", "value": "1"}]}],
                [{"name": "web", "image": "nginx", "env": [{"name": "B", "value": "1"}, {"name": "A"}]}],
                [{"name": "web", "image": "nginx", "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}}}],
                [{"name": "web", "image": "nginx", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}],
                [{"name": "web", "image": "nginx", "resources": {"limits": {"cpu": 1, "memory": "1073741824"}}}],
                [{"name": "web", "image": "nginx", "command": [], "tty": False, "securityContext": {}}],
                [{"name": "web", "image": "nginx", "securityContext": {"runAsUser": 0, "privileged": False}}],
                [{"name": "web", "image": "nginx"}, {"name": "log", "image": "busybox"}],
                [{"name": "log", "image": "busybox"}, {"name": "web", "image": "nginx"}],
                [{"name": "web", "image": "nginx", "ports": [{"containerPort": 80}, {"containerPort": 81}]}],
                [{"name": "web", "image": "nginx", "ports": [{"containerPort": 80, "protocol": "TCP"}]}],
            ],
            "spec.template.spec.volumes": [
                ABSENT,
                [],
                [{"name": "data", "emptyDir": {}}],
                [{"name": "data", "emptyDir": {"sizeLimit": "1024Mi"}}],
                [{"name": "data", "emptyDir": {"sizeLimit": "1Gi", "medium": ""}}],
            ],
            "spec.template.spec.hostNetwork": [ABSENT, False],
            "spec.template.spec.tolerations": [
                ABSENT,
                [],
                [{"key": "x", "operator": "Exists"}],
                [{"key": "x", "operator": "Exists", "effect": ""}],
                [{"key": "x", "operator": "Equal", "value": ""}, {"key": "y", "operator": "Exists"}],
            ],
        },
    ),
    "NetworkPolicy": (
        "networking.k8s.io/v1",
        {
            "spec.podSelector": [{}, {"matchLabels": {"a": "b"}}],
            "spec.policyTypes": [ABSENT, ["Ingress"], ["Ingress", "Egress"]],
            "spec.ingress": [
                ABSENT,
                [],
                [{"ports": [{"port": 80}]}],
                [{"ports": [{"port": 80, "protocol": "TCP"}]}],
                [{"ports": [{"port": "http", "protocol": "UDP"}]}],
                [{"ports": [{"port": 80, "endPort": 90}]}],
            ],
        },
    ),
    "Lease": (
        "coordination.k8s.io/v1",
        {
            "spec.holderIdentity": [ABSENT, "", "me"],
            "spec.leaseDurationSeconds": [ABSENT, 5, 6],
            "spec.renewTime": [
                ABSENT,
                "2026-01-01T00:00:00Z",
                "2026-01-01T01:00:00.000000+01:00",
                "2026-01-01T00:00:00.5Z",
                "2026-01-01T00:00:00.500000Z",
            ],
        },
    ),
    "Site": (
        "web.test.steersman.dev/v1",
        {
            "spec.image": ["nginx", "httpd"],
            "spec.replicas": [ABSENT, 0, 1, 2],
            "spec.mode": [ABSENT, "static", "dynamic"],
            "spec.memory": [ABSENT, "1Gi", "1024Mi", 1073741824],
            "spec.ports": [
                ABSENT,
                [],
                [{"name": "a", "port": 80}],
                [{"name": "a", "port": 80}, {"name": "b", "port": 81}],
                [{"name": "b", "port": 81}, {"name": "a", "port": 80}],
            ],
            "spec.routes": [ABSENT, [], [{"path": "/"}], [{"path": "/", "weight": 1}]],
            "spec.settings": [ABSENT, {}, {"deep": {"er": [1, 1.5, None]}}, {"deep": {"er": [1]}, "x": 1}],
            "metadata.finalizers": [ABSENT, [], ["test.dev/a"], ["test.dev/a", "test.dev/b"]],
        },
    ),
}

_LABELS = {"metadata.labels": [ABSENT, {}, {"app": "web"}, {"app": "web", "x": ""}]}


def pool(kind):
    return POOLS[kind][1] | _LABELS


def place(tree, path, value):
    """Put a value where a path leads."""
    *way, last = path.split(".")
    for name in way:
        if not isinstance(tree.get(name), dict):
            tree[name] = {}
        tree = tree[name]
    tree[last] = copy.deepcopy(value)


def picks(random, kind):
    """A value, or none, for each path of the kind."""
    return {path: random.choice(values) for path, values in pool(kind).items()}


def intent(kind, chosen, namespace, name):
    """The object that was chosen, as a tree."""
    tree = {"apiVersion": POOLS[kind][0], "kind": kind, "metadata": {"name": name, "namespace": namespace}}
    for path, value in chosen.items():
        if value is not ABSENT:
            place(tree, path, value)
    return tree


def drift(random, kind):
    """A merge patch that changes or removes a few fields, some of which have no owner."""
    patch = {}
    for path in random.sample(sorted(pool(kind)), k=random.choice([0, 1, 1, 2])):
        values = [None if value is ABSENT else value for value in pool(kind)[path]]
        place(patch, path, random.choice(values))
    if random.random() < 0.5:
        place(patch, "metadata.annotations.drift", str(random.random()))
    return patch
