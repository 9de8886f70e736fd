"""Kinds without pods by chance: bodies, changes, statuses."""

from __future__ import annotations

from random import Random  # noqa: TID251 - seeded, and the run prints the seed

from conformance import bodies
from conformance.bodies import Tree
from conformance.chances import add, maybe, pick, remove, replace


def config_map(chance: Random, name: str) -> Tree:
    data = {key: str(chance.randrange(3)) for key in chance.sample("klm", chance.randrange(3))}
    return {
        **bodies.configmap(name, pick(chance, [data], [{"a/b": "1"}, {"k": 5}, {"..": "x"}, None])),
        **maybe(chance, 0.1, {"binaryData": pick(chance, [{"b": "AAEC"}, {"k": "AA=="}], [{"b": "?"}, {"b": 1}])}),
        **maybe(chance, 0.06, {"immutable": chance.choice((True, False))}),
    }


def config_map_change(chance: Random) -> Tree:
    return pick(
        chance,
        [
            {"data": {"k": chance.choice(("0", "1", None))}},
            {"data": {"l": "2", "m": None}},
            {"data": None},
            {"binaryData": {"b": chance.choice(("AAEC", None))}},
            {"immutable": chance.choice((True, None))},
        ],
        [{"data": {"k": 5}}, {"data": "x"}, {"data": {"a b": "1"}}, {"immutable": "yes"}, {"binaryData": {"b": "?"}}],
    )


def config_map_operate(chance: Random) -> list[Tree]:
    return [
        chance.choice(
            [
                add("/data/k", chance.choice("012")),
                remove("/data/k"),
                replace("/data", {"k": chance.choice("01")}),
                {"op": "move", "from": "/data/k", "path": "/data/l"},
                {"op": "copy", "from": "/data/k", "path": "/data/m"},
                {"op": "test", "path": "/data/k", "value": chance.choice("01")},
            ]
        )
    ]


def secret(chance: Random, name: str) -> Tree:
    return bodies.secret(
        name,
        data=pick(chance, [{"key": "dmFsdWU="}, {"username": "YQ=="}], [{"key": "?"}, {"a/b": ""}]),
        **maybe(
            chance,
            0.4,
            {
                "type": pick(
                    chance, ["Opaque", "example.com/own", ""], ["kubernetes.io/basic-auth", "kubernetes.io/tls"]
                )
            },
        ),
        **maybe(chance, 0.2, {"stringData": {"key": chance.choice(("plain", ""))}}),
        **maybe(chance, 0.05, {"immutable": True}),
    )


def secret_change(chance: Random) -> Tree:
    return pick(
        chance,
        [
            {"data": {"key": chance.choice(("dmFsdWU=", "AA==", None))}},
            {"stringData": {"more": chance.choice(("1", "2"))}},
        ],
        [{"type": "Opaque"}, {"type": "example.com/other"}, {"data": {"key": "%"}}, {"stringData": {"x": 1}}],
    )


def secret_operate(chance: Random) -> list[Tree]:
    return [chance.choice([add("/data/key", "AA=="), remove("/data/key"), add("/stringData", {"key": "plain"})])]


def service(chance: Random, name: str) -> Tree:
    kind = pick(chance, ["ClusterIP", "ClusterIP", "NodePort", "headless", "ExternalName", "LoadBalancer"], ["Other"])
    spec: Tree = {"ports": [{"port": pick(chance, [80, 81], [0, 70000])}]}
    if chance.random() < 0.3:
        spec["ports"] = [
            {"name": "a", "port": 80},
            {"name": "b", "port": 81, "protocol": chance.choice(("TCP", "UDP"))},
        ]
    if kind == "headless":
        spec["clusterIP"] = "None"
    elif kind == "ExternalName":
        spec |= {"type": kind, "externalName": pick(chance, ["example.com"], ["", "-"])}
    elif kind != "ClusterIP" or chance.random() < 0.3:
        spec["type"] = kind
    if chance.random() < 0.2:
        spec["sessionAffinity"] = pick(chance, ["None", "ClientIP"], ["Other"])
    return bodies.service(name, **spec)


def service_change(chance: Random) -> Tree:
    return pick(
        chance,
        [
            {"spec": {"type": chance.choice(("ClusterIP", "NodePort", "LoadBalancer"))}},
            {"spec": {"ports": [{"port": chance.choice((80, 81))}]}},
            {"spec": {"selector": chance.choice(({"app": "b"}, None))}},
            {"spec": {"sessionAffinity": chance.choice(("None", "ClientIP"))}},
            {"spec": {"publishNotReadyAddresses": chance.choice((True, None))}},
            {"spec": {"externalTrafficPolicy": chance.choice(("Local", "Cluster"))}},
        ],
        [
            {"spec": {"clusterIP": None}},
            {"spec": {"clusterIP": "None"}},
            {"spec": {"type": "ExternalName", "externalName": "example.com"}},
            {"spec": {"ports": []}},
            {"spec": {"ports": [{"port": "http"}]}},
        ],
    )


def service_operate(chance: Random) -> list[Tree]:
    return [
        chance.choice(
            [
                replace("/spec/ports/0/port", chance.choice((80, 81))),
                add("/spec/ports/-", {"name": "c", "port": 82}),
                remove("/spec/ports/1"),
                remove("/spec/selector"),
                replace("/spec/type", "NodePort"),
            ]
        )
    ]


def service_strategic(chance: Random) -> Tree:
    return {
        "spec": {
            "ports": [
                chance.choice(
                    [
                        {"port": 80, "name": chance.choice("ab")},
                        {"port": 82, "name": "c"},
                        {"port": 81, "$patch": "delete"},
                        {"port": 80, "targetPort": chance.choice((8080, "http"))},
                    ]
                )
            ]
        }
    }


def service_status(chance: Random) -> Tree:
    return pick(
        chance,
        [{"loadBalancer": {}}, {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}, {"loadBalancer": None}],
        [{"loadBalancer": {"ingress": [{"ip": "x"}]}}],
    )


def service_account(chance: Random, name: str) -> Tree:
    return bodies.service_account(
        name,
        **maybe(chance, 0.4, {"automountServiceAccountToken": pick(chance, [True, False], ["no"])}),
        **maybe(chance, 0.3, {"imagePullSecrets": [{"name": chance.choice("xy")}]}),
        **maybe(chance, 0.3, {"secrets": [{"name": chance.choice("xy")}]}),
    )


def service_account_change(chance: Random) -> Tree:
    return chance.choice(
        [
            {"automountServiceAccountToken": chance.choice((True, False, None))},
            {"imagePullSecrets": chance.choice(([{"name": "x"}], [], None))},
            {"secrets": [{"name": chance.choice("xy")}]},
        ]
    )


def service_account_operate(chance: Random) -> list[Tree]:
    return [chance.choice([add("/secrets/-", {"name": "z"}), remove("/secrets/0"), add("/secrets", [{"name": "z"}])])]


def service_account_strategic(chance: Random) -> Tree:
    return chance.choice(
        [
            {"secrets": [{"name": chance.choice("xz")}]},
            {"secrets": [{"name": "x", "$patch": "delete"}]},
            {"secrets": [{"$patch": "replace"}, {"name": "z"}]},
            {"imagePullSecrets": [{"name": "z"}]},
        ]
    )


def lease(chance: Random, name: str) -> Tree:
    return bodies.lease(
        name,
        holderIdentity=pick(chance, ["me", "you"], [""]),
        **maybe(chance, 0.4, {"leaseDurationSeconds": pick(chance, [15, 30], [0, -1])}),
        **maybe(chance, 0.3, {"renewTime": pick(chance, ["2024-01-02T03:04:05.000006Z"], ["now", 5])}),
        **maybe(chance, 0.3, {"leaseTransitions": pick(chance, [0, 1], [-1])}),
    )


def lease_change(chance: Random) -> Tree:
    return pick(
        chance,
        [
            {"spec": {"holderIdentity": chance.choice(("me", "you", None))}},
            {"spec": {"leaseTransitions": chance.randrange(3)}},
            {"spec": {"renewTime": chance.choice(("2024-01-02T03:04:05.000006Z", "2024-01-02T03:04:06Z", None))}},
        ],
        [{"spec": {"leaseDurationSeconds": 0}}, {"spec": None}, {"spec": {"renewTime": ""}}],
    )


def lease_operate(chance: Random) -> list[Tree]:
    return [
        chance.choice(
            [
                replace("/spec/holderIdentity", chance.choice(("me", "you"))),
                remove("/spec/renewTime"),
                {"op": "test", "path": "/spec/holderIdentity", "value": "me"},
            ]
        )
    ]


def claim(chance: Random, name: str) -> Tree:
    size = pick(chance, ["1Gi", "1024Mi", "2Gi"], ["0", "-1", "big"])
    return bodies.claim(
        name,
        resources={"requests": {"storage": size}},
        **maybe(chance, 0.3, {"storageClassName": pick(chance, ["fast", ""], ["Not-Good"])}),
        **maybe(chance, 0.2, {"accessModes": pick(chance, [["ReadWriteMany"]], [["Other"]])}),
    )


def claim_change(chance: Random) -> Tree:
    return pick(
        chance,
        [
            {"spec": {"resources": {"requests": {"storage": chance.choice(("1Gi", "2Gi"))}}}},
            {"spec": {"volumeName": "volume"}},
        ],
        [{"spec": {"accessModes": ["ReadOnlyMany"]}}, {"spec": {"storageClassName": "slow"}}, {"spec": {"x": 1}}],
    )


def claim_operate(chance: Random) -> list[Tree]:
    return [chance.choice([replace("/spec/resources/requests/storage", "2Gi"), remove("/spec/storageClassName")])]


def claim_status(chance: Random) -> Tree:
    return pick(
        chance,
        [
            {"phase": chance.choice(("Bound", "Pending", "Lost"))},
            {"capacity": {"storage": chance.choice(("1Gi", "1024Mi"))}},
            {"accessModes": ["ReadWriteOnce"]},
        ],
        [{"capacity": {"storage": "-1"}}],
    )


def budget(chance: Random, name: str) -> Tree:
    body = bodies.budget(name, minAvailable=pick(chance, [0, 1, "50%"], [-1, "x", "101%"]))
    if chance.random() < 0.3:
        del body["spec"]["minAvailable"]
        body["spec"]["maxUnavailable"] = pick(chance, [1, "10%"], ["-1%"])
    if chance.random() < 0.2:
        body["spec"]["unhealthyPodEvictionPolicy"] = pick(chance, ["AlwaysAllow", "IfHealthyBudget"], ["Never"])
    return body


def budget_change(chance: Random) -> Tree:
    return pick(
        chance,
        [
            {"spec": {"minAvailable": chance.choice((1, 2, "50%")), "maxUnavailable": None}},
            {"spec": {"maxUnavailable": chance.choice((1, "10%")), "minAvailable": None}},
            {"spec": {"selector": {"matchLabels": {"app": chance.choice("ab")}}}},
        ],
        [
            {"spec": {"minAvailable": 1, "maxUnavailable": 1}},
            {"spec": {"selector": None}},
        ],
    )


def budget_operate(chance: Random) -> list[Tree]:
    return [
        chance.choice(
            [replace("/spec/minAvailable", chance.choice((1, "50%"))), remove("/spec/unhealthyPodEvictionPolicy")]
        )
    ]


def budget_status(chance: Random) -> Tree:
    return {
        "observedGeneration": chance.randrange(3),
        "disruptionsAllowed": pick(chance, [0, 1], [-1]),
        "currentHealthy": chance.randrange(3),
        "desiredHealthy": 1,
        "expectedPods": 2,
    }


def role(chance: Random, name: str) -> Tree:
    return bodies.role(
        name,
        rules=pick(
            chance,
            [bodies.RULES, [{"apiGroups": ["", "apps"], "resources": ["*"], "verbs": ["get", "list"]}]],
            [[{"verbs": ["get"]}], [{"apiGroups": [""], "resources": ["pods"], "verbs": []}]],
        ),
    )


def role_change(chance: Random) -> Tree:
    return chance.choice(
        [
            {"rules": None},
            {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": [chance.choice(("get", "list"))]}]},
        ]
    )


def role_operate(chance: Random) -> list[Tree]:
    return [chance.choice([add("/rules/0/verbs/-", "watch"), remove("/rules/0"), replace("/rules", bodies.RULES)])]


def binding(chance: Random, name: str) -> Tree:
    subjects = pick(
        chance,
        [[{"kind": "ServiceAccount", "name": "a", "namespace": "{ns}"}], [{"kind": "User", "name": "nobody"}], []],
        [[{"kind": "Robot", "name": "x"}], [{"kind": "ServiceAccount", "name": "a"}], [{"kind": "User"}]],
    )
    more = {"roleRef": {"name": pick(chance, ["view"], ["edit", ""])}}
    return bodies.binding(name, subjects=subjects, **more)


def binding_change(chance: Random) -> Tree:
    return pick(
        chance,
        [{"subjects": None}, {"subjects": [{"kind": "User", "name": chance.choice(("nobody", "somebody"))}]}],
        [{"roleRef": {"name": "admin"}}, {"roleRef": None}],
    )


def binding_operate(chance: Random) -> list[Tree]:
    return [chance.choice([add("/subjects/-", {"kind": "Group", "name": "all"}), remove("/subjects/0")])]


def event(chance: Random, name: str) -> Tree:
    about = {"namespace": pick(chance, ["{ns}"], ["{ns2}", ""])}
    return bodies.event(
        name,
        involvedObject=about,
        type=pick(chance, ["Normal", "Warning"], ["Other", ""]),
        **maybe(chance, 0.4, {"count": chance.choice((1, 2))}),
        **maybe(chance, 0.3, {"source": {"component": "tester", "host": "here"}}),
        **maybe(chance, 0.3, {"firstTimestamp": "2024-01-02T03:04:05Z", "lastTimestamp": "2024-01-02T03:04:06Z"}),
    )


def event_change(chance: Random) -> Tree:
    return pick(
        chance,
        [{"count": chance.choice((1, 2, 3))}, {"message": chance.choice(("one", "two"))}, {"type": "Warning"}],
        [{"involvedObject": {"namespace": "other"}}, {"count": "x"}, {"eventTime": "2024-01-02T03:04:05Z"}],
    )


def event_operate(chance: Random) -> list[Tree]:
    return [chance.choice([replace("/message", chance.choice(("one", "two"))), remove("/reason"), add("/count", 5)])]


def new_event(chance: Random, name: str) -> Tree:
    return bodies.new_event(
        name,
        type=pick(chance, ["Normal", "Warning"], ["Other"]),
        note=pick(chance, ["it started", "it stopped"], ["x" * 1025]),
        **maybe(chance, 0.1, {"action": pick(chance, ["Stopping"], [""])}),
    )


def new_event_change(chance: Random) -> Tree:
    return pick(
        chance,
        [
            {"note": chance.choice(("one", "two"))},
            {"series": {"count": 2, "lastObservedTime": "2024-01-02T03:04:06.000000Z"}},
        ],
        [{"reason": "Other"}, {"series": {"count": 1}}, {"regarding": {"name": "other"}}],
    )


def new_event_operate(chance: Random) -> list[Tree]:
    return [chance.choice([replace("/note", chance.choice(("one", "two"))), remove("/series"), remove("/type")])]
