"""Nodes, classes of priorities and runtimes, templates and revisions: defaults, refusals, changes."""

from __future__ import annotations

from typing import Any

from conformance.bodies import APPS, CORE, Tree, container, merged, named
from conformance.scenario import post, put, scenario
from conformance.trials import Changes, Trials, change_scenarios, status_scenarios, trial_scenarios

PRIORITY = "/apis/scheduling.k8s.io/v1/priorityclasses"
RUNTIME = "/apis/node.k8s.io/v1/runtimeclasses"
NODE = "/api/v1/nodes"
TEMPLATE = f"{CORE}/podtemplates"
CONTROLLER = f"{CORE}/replicationcontrollers"
REVISION = f"{APPS}/controllerrevisions"


def priority(name: str = "{free}", **fields: Any) -> Tree:
    return merged(named("scheduling.k8s.io/v1", "PriorityClass", name, value=5), fields)


def runtime(**fields: Any) -> Tree:
    return merged(named("node.k8s.io/v1", "RuntimeClass", "{free}", handler="h"), fields)


def node(status: Tree | None = None, **spec: Any) -> Tree:
    return named("v1", "Node", "{free}", spec=spec, **({} if status is None else {"status": status}))


def template(**spec: Any) -> Tree:
    return named("v1", "PodTemplate", "a", template={"spec": merged({"containers": [container()]}, spec)})


def controller(**spec: Any) -> Tree:
    given = {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container()]}}}
    return named("v1", "ReplicationController", "a", spec=merged(given, spec))


def revision(**fields: Any) -> Tree:
    return merged(named("apps/v1", "ControllerRevision", "a", revision=1, data={"a": 1}), fields)


TRIALS: Trials = {
    "priority-classes": (
        PRIORITY,
        [
            priority(),
            priority(value=None),
            priority(value=1000000000),
            priority(value=1000000001),
            priority(value=-5, description="d", globalDefault=False),
            priority(preemptionPolicy="Never"),
            priority(preemptionPolicy="Always", value=2000000000),
            priority(preemptionPolicy=""),
            priority("system-a"),
            priority("A b", value=1000000001),
        ],
    ),
    "runtime-classes": (
        RUNTIME,
        [
            runtime(),
            runtime(handler=""),
            runtime(handler="a.b"),
            runtime(handler="A b", scheduling={"nodeSelector": {"a b": "c d"}}),
            runtime(overhead={"podFixed": {"cpu": "1", "memory": "-1"}}),
            runtime(overhead={"podFixed": {"x": "1"}}),
        ],
    ),
    "runtime-class-scheduling": (
        RUNTIME,
        [
            runtime(scheduling=given)
            for given in (
                {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "a", "operator": "Exists"}]},
                {"tolerations": [{"key": "a", "operator": "Near"}, {"operator": "Equal"}]},
                {"tolerations": [{"key": "a", "operator": "Exists"}, {"key": "a", "operator": "Exists"}]},
                {"nodeSelector": {"beta.kubernetes.io/os": "linux"}},
            )
        ],
    ),
    "node-taints": (
        NODE,
        [
            node(taints=given)
            for given in (
                [],
                [{"key": "a", "effect": "NoSchedule"}],
                [{"key": "a b", "value": "c d", "effect": "Later"}],
                [{"key": "a"}],
                [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "value": "b", "effect": "NoSchedule"}],
                [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}],
            )
        ],
    ),
    "node-ranges": (
        NODE,
        [
            node(podCIDR="10.0.0.0/24"),
            node(podCIDRs=["10.0.0.0/24", "2001:db8::/64"]),
            node(podCIDR="10.0.1.0/24", podCIDRs=["10.0.0.0/24"]),
            node(podCIDRs=["10.0.0.0/24", "10.0.1.0/24"]),
            node(podCIDRs=["10.0.0.1/24"]),
            node(podCIDRs=["x"]),
            node(podCIDRs=["2001:DB8::/64"]),
            node(podCIDRs=["10.0.0.0/24", "2001:db8::/64", "10.0.1.0/24"]),
            node(externalID="e", unschedulable=True),
            node(configSource={"configMap": {"name": "c"}}),
        ],
    ),
    "node-statuses": (
        NODE,
        [
            node({"capacity": {"cpu": "1", "memory": "1Gi"}}),
            node({"capacity": {"cpu": "-1"}, "allocatable": {"pods": "1500m"}}),
            node({"capacity": {"example.com/device": "0.5"}}),
            node({"declaredFeatures": ["B", "A", "A", "a b"]}),
            node({"nodeInfo": {"swap": {"capacity": 0}}}),
            node({"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}] * 2}),
        ],
    ),
    "pod-templates": (
        TEMPLATE,
        [
            template(),
            template(containers=[]),
            template(restartPolicy="Never", containers=[container(image="")]),
            template(ephemeralContainers=[container(name="e")]),
            named("v1", "PodTemplate", "a"),
            merged(template(), {"template": {"metadata": {"labels": {"a b": "c"}}}}),
        ],
    ),
    "replication-controllers": (
        CONTROLLER,
        [
            controller(),
            controller(replicas=-1),
            controller(selector={"c": "d"}),
            controller(selector={"a": "b"}, minReadySeconds=-1),
            controller(template=None),
            controller(template={"spec": {"restartPolicy": "Never"}}),
            controller(template={"metadata": {"labels": None}}),
        ],
    ),
    "controller-revisions": (
        REVISION,
        [
            revision(),
            revision(revision=-1),
            revision(data=None),
            revision(data=[1]),
            revision(data="x", revision=-5),
            merged(revision(), {"revision": None}),
        ],
    ),
}

CHANGES: Changes = {
    "a-priority-class": (
        PRIORITY,
        priority(),
        [
            {"value": 6},
            {"preemptionPolicy": "Never"},
            {"value": 7, "preemptionPolicy": "Never", "metadata": {"labels": {"a": "b c"}}},
            {"description": "d"},
            {"metadata": {"labels": {"a": "b"}}},
        ],
    ),
    "a-runtime-class": (
        RUNTIME,
        runtime(),
        [
            {"handler": "g"},
            {"handler": None},
            {"overhead": {"podFixed": {"cpu": "1"}}},
            {"scheduling": {"nodeSelector": {"a": "b"}}},
            {"scheduling": {"nodeSelector": {"a": "b c"}}, "handler": "A"},
        ],
    ),
    "a-node": (
        NODE,
        node({"capacity": {"cpu": "1"}}, podCIDR="10.0.0.0/24", providerID="p"),
        [
            {"spec": {"podCIDR": "10.0.1.0/24", "podCIDRs": ["10.0.1.0/24"]}},
            {"spec": {"podCIDR": None, "podCIDRs": None}},
            {"spec": {"providerID": "q"}},
            {"spec": {"unschedulable": True}},
            {"spec": {"taints": [{"key": "a", "effect": "Odd"}]}},
            {"spec": {"externalID": "e"}},
            {"status": {"capacity": {"cpu": "2"}}},
            {"metadata": {"labels": {"a": "b c"}}},
        ],
    ),
    "a-pod-template": (
        TEMPLATE,
        template(),
        [
            {"template": {"spec": {"restartPolicy": "Never"}}},
            {"template": {"spec": {"containers": [container(image="")]}}},
            {"metadata": {"labels": {"a": "b"}}},
            {"template": {"spec": {"containers": [container(), container()]}}},
        ],
    ),
    "a-replication-controller": (
        CONTROLLER,
        controller(),
        [
            {"spec": {"replicas": 2}},
            {"spec": {"selector": {"c": "d"}}},
            {"spec": {"template": {"metadata": {"labels": {"c": "d"}}}, "selector": {"c": "d"}}},
            {"spec": {"replicas": -1}},
        ],
    ),
}

STATUSES: Changes = {
    "a-node": (
        NODE,
        node(),
        [
            {"status": {"capacity": {"cpu": "1"}, "allocatable": {"cpu": "1"}}},
            {"status": {"capacity": {"cpu": "-1"}}},
            {"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}] * 2}},
            {"status": {"conditions": [{"type": "Ready", "status": "True"}]}, "spec": {"unschedulable": True}},
            {"status": {"declaredFeatures": ["B", "A"]}},
        ],
    ),
}

#: The server compares the bytes of a revision's data, so that every patch changes them: PUT keeps them.
REVISIONS = [revision(revision=2), revision(data={"a": 2}), revision(revision=-1, data=None), merged(revision(), {"metadata": {"labels": {"a": "b c"}}})]  # fmt: skip

SCENARIOS = [
    *trial_scenarios(TRIALS),
    *change_scenarios(CHANGES),
    *status_scenarios(STATUSES),
    scenario("changes-of-a-controller-revision", "Kinds, Update", post(REVISION, revision()), *(put(f"{REVISION}/a", body) for body in REVISIONS)),
]  # fmt: skip
