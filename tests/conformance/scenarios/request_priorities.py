"""FlowSchemas and PriorityLevelConfigurations: defaults and refusals."""

from __future__ import annotations

from typing import Any

from conformance.bodies import Tree, merged, named
from conformance.trials import Trials, trial_scenarios

FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
LEVEL = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"
USER = {"kind": "User", "user": {"name": "u"}}
RESOURCES = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["*"]}
URLS = {"verbs": ["get"], "nonResourceURLs": ["/x"]}


def flow(**spec: Any) -> Tree:
    given = {"priorityLevelConfiguration": {"name": "global-default"}}
    return named("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "{free}", spec=merged(given, spec))


def flow_rule(**fields: Any) -> Tree:
    return flow(rules=[merged({"subjects": [USER], "resourceRules": [RESOURCES]}, fields)])


def level(**spec: Any) -> Tree:
    return named("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", "{free}", spec=spec)


def limited(**fields: Any) -> Tree:
    return level(type="Limited", limited=merged({"limitResponse": {"type": "Reject"}}, fields))


def queue(**fields: Any) -> Tree:
    return limited(limitResponse={"type": "Queue", "queuing": fields})


TRIALS: Trials = {
    "flow-schemas": (
        FLOW,
        [
            flow(),
            flow(matchingPrecedence=1),
            flow(matchingPrecedence=-1),
            flow(matchingPrecedence=10001),
            flow(priorityLevelConfiguration={"name": ""}),
            flow(priorityLevelConfiguration={"name": "A b"}),
            flow(distinguisherMethod={"type": "ByUser"}),
            flow(distinguisherMethod={"type": "ByHat"}, matchingPrecedence=1),
        ],
    ),
    "flow-schema-subjects": (
        FLOW,
        [
            flow_rule(subjects=given)
            for given in (
                None,
                [{"kind": "Hat"}],
                [{"kind": "User"}, {"kind": "Group"}, {"kind": "ServiceAccount"}],
                [{"kind": "User", "user": {"name": ""}, "group": {"name": "g"}}],
                [
                    {
                        "kind": "Group",
                        "group": {"name": "g"},
                        "user": {"name": "u"},
                        "serviceAccount": {"name": "s", "namespace": "n"},
                    }
                ],
                [{"kind": "ServiceAccount", "serviceAccount": {"name": "A b", "namespace": ""}, "user": {"name": "u"}}],
                [{"kind": "ServiceAccount", "serviceAccount": {"name": "*", "namespace": "A"}}],
            )
        ],
    ),
    "flow-schema-rules": (
        FLOW,
        [
            flow_rule(),
            flow_rule(resourceRules=None),
            flow_rule(resourceRules=[{}]),
            flow_rule(resourceRules=[RESOURCES | {"verbs": ["get", "jump"]}]),
            flow_rule(
                resourceRules=[RESOURCES | {"verbs": ["*", "get"], "apiGroups": ["*", ""], "resources": ["*", "x"]}]
            ),
            flow_rule(resourceRules=[RESOURCES | {"namespaces": ["*", "a"]}]),
            flow_rule(resourceRules=[RESOURCES | {"namespaces": ["a.b"]}]),
            flow_rule(resourceRules=[RESOURCES | {"namespaces": [], "clusterScope": True}]),
            flow_rule(nonResourceRules=[URLS]),
            flow_rule(nonResourceRules=[{}]),
            *(
                flow_rule(nonResourceRules=[URLS | {"nonResourceURLs": [url]}])
                for url in ("", "/", "x", "/a b", "/a//b", "/*/b", "/a/*", "*")
            ),
            flow_rule(nonResourceRules=[URLS | {"nonResourceURLs": ["*", "/a"]}]),
        ],
    ),
    "priority-levels": (
        LEVEL,
        [
            level(),
            level(type="Odd"),
            level(type="Exempt"),
            level(type="Limited"),
            limited(),
            limited(nominalConcurrencyShares=-1, lendablePercent=101, borrowingLimitPercent=-1),
            limited(limitResponse={"type": ""}),
            limited(limitResponse={"type": "Odd"}),
            merged(limited(), {"spec": {"exempt": {}}}),
        ],
    ),
    "priority-level-queues": (
        LEVEL,
        [
            queue(),
            queue(queues=1, handSize=2),
            queue(queues=-1, handSize=-1, queueLengthLimit=-1),
            queue(queues=10000001, handSize=1),
            queue(queues=512, handSize=8),
            limited(limitResponse={"type": "Queue"}),
            limited(limitResponse={"type": "Reject", "queuing": {}}),
        ],
    ),
}

SCENARIOS = trial_scenarios(TRIALS)
