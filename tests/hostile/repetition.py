"""Generated bodies that repeat one thing as often as their size allows: the cheapest way to make a server work."""

from __future__ import annotations

from collections.abc import Callable
from random import Random  # noqa: TID251 - seeded by the test, which says with what
from typing import NamedTuple

from hostile.protobuf import part

JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
NAMESPACE = "/api/v1/namespaces/default"
GROUPS = "/apis/{}/namespaces/default/{}"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

_CRD = '{"metadata":{"name":"xs.e.io"},"spec":{"group":"e.io","scope":"Cluster","names":{"plural":"xs","kind":"X"},"versions":'
#: How many values are sent at most where a body is not to be refused for their number.
ALLOWED = 700_000

#: Where something is repeated: a path, and a body with ``[]`` or ``{}`` in the place of ``@``.
PLACES = {
    NAMESPACE + "/configmaps": (
        '{"metadata":{"name":"x"},"data":@}', '{"metadata":{"name":"x","labels":@}}', '{"metadata":{"name":"x","annotations":@}}',
        '{"metadata":{"name":"x","finalizers":@}}', '{"metadata":{"name":"x","ownerReferences":@}}',
        '{"metadata":{"name":"x","managedFields":@}}', '{"metadata":{"name":"x"},"unknown":@}', "@",
        '{"metadata":{"name":"x"},"binaryData":@}',
    ),
    NAMESPACE + "/pods": (
        '{"metadata":{"name":"x"},"spec":{"containers":@}}', '{"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i"}],"volumes":@}}',
        '{"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i","env":@}]}}',
        '{"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i","ports":@}]}}',
        '{"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i","volumeMounts":@}]}}',
        '{"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i","args":@}]}}',
        '{"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":@}}]}}',
        '{"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i"}],"tolerations":@}}',
        '{"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i"}],"initContainers":@}}',
        '{"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i"}],"topologySpreadConstraints":@}}',
        '{"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i"}],"nodeSelector":@}}',
    ),
    NAMESPACE + "/services": ('{"metadata":{"name":"x"},"spec":{"ports":@}}', '{"metadata":{"name":"x"},"spec":{"ports":[{"port":1}],"externalIPs":@}}'),
    NAMESPACE + "/secrets": ('{"metadata":{"name":"x"},"data":@}', '{"metadata":{"name":"x"},"stringData":@}'),
    NAMESPACE + "/resourcequotas": ('{"metadata":{"name":"x"},"spec":{"hard":@}}',),
    GROUPS.format("apps/v1", "deployments"): (
        '{"metadata":{"name":"x"},"spec":{"selector":{"matchLabels":@},"template":{"spec":{"containers":[]}}}}',
        '{"metadata":{"name":"x"},"spec":{"selector":{"matchExpressions":@},"template":{"spec":{"containers":@}}}}',
    ),
    GROUPS.format("networking.k8s.io/v1", "networkpolicies"): ('{"metadata":{"name":"x"},"spec":{"podSelector":{},"ingress":@}}',),
    "/apis/rbac.authorization.k8s.io/v1/clusterroles": ('{"metadata":{"name":"x"},"rules":@}',),
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": ('{"spec":{"resourceAttributes":@}}', '{"spec":{"extra":@}}'),
    CRDS: (
        _CRD + "@}}",
        _CRD + '[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":@}}}]}}',
        _CRD + '[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}},"additionalPrinterColumns":@}]}}',
    ),
}  # fmt: skip
#: Things to repeat; ``#`` is their number.
ITEMS = (
    "{}", "[]", "null", "1", '""', '"a#"', '"x.y/a#"', '{"name":"a#"}', '{"name":"a"}', '{"name":"a#","image":"i"}',
    '{"name":"a#","value":"$(a#)"}', '{"key":"a#","operator":"Exists"}', '{"key":"a","operator":"In","values":["b#","c"]}',
    '{"apiVersion":"v1","kind":"Pod","name":"a#","uid":"#","controller":true}', '{"containerPort":#}', '{"port":#,"name":"a#"}',
    '{"name":"a#","mountPath":"/a/#"}', '{"verbs":["*"],"resources":["a#"],"apiGroups":[""]}', '{"type":"string","default":"#"}',
    '{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}}}', '{"name":"v#","served":true,"storage":false}',
    '{"manager":"m#","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:a#":{}}}}',
    '{"name":"c#","type":"string","jsonPath":".a[*]..b"}', '{"a":{"a":{"a":{"a":{}}}}}', "[[[[[[]]]]]]", "1e#", "0.#", '"10.0.0.1/#"',
    '{"a#":1,"b#":null,"c":{}}', '{"a":1,"a":2}', '"\\u00e9\\ud800#"', '"2026-01-01T00:00:00Z"', '"100m"', '"# *"', "true",
)  # fmt: skip
PATCHES = {
    "application/merge-patch+json": lambda body: body,
    "application/strategic-merge-patch+json": lambda body: body,
    "application/apply-patch+yaml": lambda body: body,
}


class Generated(NamedTuple):
    """A body, how it is sent, and what made it."""

    method: str
    path: str
    content_type: str
    body: bytes
    made_of: str


class Repetitions:
    """Makes bodies: ``Repetitions(seed).make(3_000_000)``."""

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)

    def make(self, size: int) -> Generated:
        """A body of about so many bytes, and never more."""
        rng = self._rng
        sort = rng.random()
        if sort < 0.1:
            return self._protobuf(size)
        if sort < 0.25:
            return self._yaml(size)
        path = rng.choice(list(PLACES))
        place, item = rng.choice(PLACES[path]), rng.choice(ITEMS)
        is_map = rng.random() < 0.5
        times = place.count("@")
        if rng.random() < 0.7:
            # As many values as are allowed: the rest is spaces.
            item += " " * max(0, size * (1 + sum(map(item.count, ",{["))) // ALLOWED - len(item))
        text = place.replace("@", self._collection(item, (size - len(place)) // times, is_map=is_map))
        made_of = f"{place} of {item}, {'map' if is_map else 'list'}"
        if rng.random() < 0.05:
            text = text[: rng.randrange(len(text) + 1)]
        body = text.encode("utf-8", "replace")
        if rng.random() < 0.2 and path.startswith(NAMESPACE):
            form = rng.choice(list(PATCHES))
            return Generated("PATCH", f"{path}/x", form, self._as_object(path, body)[:size], made_of)
        return Generated("POST", path, YAML if sort < 0.3 else JSON, body[:size], made_of)

    @staticmethod
    def _as_object(path: str, body: bytes) -> bytes:
        kind = {"configmaps": "ConfigMap", "pods": "Pod", "services": "Service", "secrets": "Secret"}.get(
            path.rpartition("/")[2], "X"
        )
        return b'{"apiVersion":"v1","kind":"%s",' % kind.encode() + body[1:]

    def _collection(self, item: str, size: int, *, is_map: bool) -> str:
        make: Callable[[int], str]
        if is_map:
            make = (
                (lambda n: f'"k{n}":{item.replace("#", str(n))}')
                if self._rng.random() < 0.8
                else (lambda n: f'"k":{item}'.replace("#", str(n)))
            )
        else:
            make = lambda n: item.replace("#", str(n))  # noqa: E731
        pieces: list[str] = []
        left = size - 2
        while True:
            piece = make(len(pieces))
            left -= len(piece) + 1
            if left < 0:
                break
            pieces.append(piece)
        return f"{{{','.join(pieces)}}}" if is_map else f"[{','.join(pieces)}]"

    def _yaml(self, size: int) -> Generated:
        rng = self._rng
        share = rng.choice([0.1, 0.5, 0.9])
        first, rest = int(size * share), int(size * (1 - share)) - 40
        anchored = rng.choice(
            [
                "{" + ",".join(f"k{n}: 1" for n in range(first // 12)) + "}",
                "[" + "x," * (first // 3) + "x]",
                "x" * max(1, first),
            ]
        )
        use = rng.choice(["  - <<: *a\n", "  - *a\n", "  - {<<: [*a, *a]}\n", "  - {a: *a}\n"])
        together = rng.random() < 0.5
        uses = "  <<: [" + "*a," * max(0, rest // 3 - 4) + "*a]\n" if together else use * max(1, rest // len(use))
        body = f"a: &a {anchored}\nmetadata: {{name: x}}\nb:\n{uses}".encode()[:size]
        path = rng.choice([NAMESPACE + "/configmaps", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"])
        return Generated("POST", path, YAML, body, f"aliases, {share}, {use.strip()}, together {together}")

    def _protobuf(self, size: int) -> Generated:
        rng = self._rng
        item = rng.choice(
            [
                b"\x0a\x00",
                b"\x12\x00",
                b"\x78\x01",
                b"\x7b\x7c",
                part(1, part(1, b"x")),
                part(2, part(1, b"a") + part(2, b"b")),
                part(2, part(1, b"\x0a\x00" * 20)),
                bytes([rng.randrange(256)]),
            ]
        )
        message = item * ((size - 60) // len(item))
        if rng.random() < 0.3:
            message = part(rng.randrange(1, 4), message)
        kind, path = rng.choice([(b"ConfigMap", "configmaps"), (b"Pod", "pods"), (b"Service", "services")])
        body = b"k8s\0" + part(1, part(1, b"v1") + part(2, kind)) + part(2, message)
        return Generated("POST", f"{NAMESPACE}/{path}", PROTOBUF, body[:size], f"protobuf {item[:8]!r} of {kind!r}")
