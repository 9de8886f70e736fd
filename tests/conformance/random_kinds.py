"""What random requests say of each kind: bodies that are mostly good, changes, statuses, and what can be selected.

Every number and word is one of a few, so that two requests often say the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random  # noqa: TID251 - seeded, and the run prints the seed

from conformance import bodies, random_small_kinds as small, random_workloads as workloads
from conformance.bodies import Tree
from conformance.chances import add, maybe, pick, remove, replace

from samples.site import GROUP

SITE = f"/apis/{GROUP}/v1/namespaces/{{ns}}/sites"


@dataclass(frozen=True, slots=True)
class RandomKind:
    """One kind: `make` gives a whole body, `change` a merge patch of what is the kind's own, `operate` JSON patches."""

    path: str
    make: Callable[[Random, str], Tree]
    change: Callable[[Random], Tree]
    operate: Callable[[Random], list[Tree]]
    status: Callable[[Random], Tree] | None = None
    scales: bool = False
    #: Strategic merge patches of lists.
    strategic: Callable[[Random], Tree] | None = None
    fields: tuple[str, ...] = ()
    #: Without a namespace: names are those that are free, and lists are narrowed by a label.
    cluster: bool = False


def _site(chance: Random, name: str) -> Tree:
    spec: Tree = {
        "image": pick(chance, ["a:1", "a:2"], [5, None]),
        **maybe(chance, 0.5, {"replicas": pick(chance, [0, 1, 3], [51, -1, "x", 1.5])}),
        **maybe(chance, 0.3, {"mode": pick(chance, ["static", "dynamic"], ["other", None])}),
        **maybe(
            chance,
            0.4,
            {
                "ports": pick(
                    chance,
                    [[{"name": "a", "port": 80}], [{"name": "a", "port": 80}, {"name": "b", "port": 81}], []],
                    [[{"name": "a", "port": 80}, {"name": "a", "port": 81}], [{"port": 0}], [None], {}],
                )
            },
        ),
        **maybe(chance, 0.2, {"routes": [{"path": "/", **maybe(chance, 0.5, {"weight": 2})}]}),
        **maybe(chance, 0.2, {"memory": pick(chance, ["1Gi", "1024Mi", 5], ["big"])}),
        **maybe(chance, 0.2, {"settings": {"any": [1, {"thing": None}]}}),
        **maybe(chance, 0.05, {"color": "red"}),
    }
    return bodies.named(f"{GROUP}/v1", "Site", name, spec=spec, **maybe(chance, 0.1, {"status": {"replicas": 7}}))


def _site_change(chance: Random) -> Tree:
    return pick(
        chance,
        [
            {"spec": {"image": chance.choice(("a:1", "a:2"))}},
            {"spec": {"replicas": chance.choice((1, 2, None))}},
            {"spec": {"mode": chance.choice(("static", "dynamic", None))}},
            {"spec": {"ports": chance.choice(([{"name": "c", "port": 82}], None))}},
            {"spec": {"settings": {"more": chance.choice((1, 1.5, "x", None, {}))}}},
            {"spec": {"memory": chance.choice(("1Gi", "1024Mi", 5))}},
        ],
        [
            {"spec": {"replicas": 99}},
            {"spec": {"image": None}},
            {"spec": {"color": "red"}},
            {"spec": None},
            {"spec": {"ports": [{"name": "c"}]}},
            {"status": {"replicas": 5}},
        ],
    )


def _site_operate(chance: Random) -> list[Tree]:
    return [
        chance.choice(
            [
                add("/spec/ports/-", {"name": chance.choice("abc"), "port": 83}),
                remove("/spec/ports/0"),
                replace("/spec/image", chance.choice(("a:1", "a:2"))),
                remove("/spec/replicas"),
                remove("/spec/image"),
                add("/spec/routes", [{"path": "/x"}]),
            ]
        )
    ]


def _site_status(chance: Random) -> Tree:
    return pick(
        chance,
        [
            {"replicas": chance.randrange(3)},
            {"readyReplicas": chance.randrange(3)},
            {"observedGeneration": chance.randrange(3)},
            {"conditions": None},
        ],
        [{"replicas": -1}, {"replicas": "x"}, {"color": "red"}, {"conditions": [{"type": "Ready"}]}],
    )


def _namespace(chance: Random, name: str) -> Tree:
    del chance
    # What the engine fills in or puts back itself changes managedFields.
    return bodies.namespace(name, labels={"kubernetes.io/metadata.name": name})


def _namespace_change(chance: Random) -> Tree:
    return {"metadata": {"labels": {"more": chance.choice(("1", "2", None))}}}


def _namespace_operate(chance: Random) -> list[Tree]:
    return [add("/metadata/labels/more", chance.choice("12"))]


def _namespace_status(chance: Random) -> Tree:
    return {"phase": pick(chance, ["Active", "Terminating"], ["Other"])}


KINDS: dict[str, RandomKind] = {
    "configmap": RandomKind(bodies.CM, small.config_map, small.config_map_change, small.config_map_operate),
    "secret": RandomKind(bodies.SECRET, small.secret, small.secret_change, small.secret_operate, fields=("type=Opaque",)),
    "service": RandomKind(bodies.SERVICE, small.service, small.service_change, small.service_operate, small.service_status, strategic=small.service_strategic, fields=("spec.type=ClusterIP", "spec.clusterIP=None")),
    "serviceaccount": RandomKind(bodies.SERVICE_ACCOUNT, small.service_account, small.service_account_change, small.service_account_operate, strategic=small.service_account_strategic),
    "pod": RandomKind(bodies.POD, workloads.pod, workloads.pod_change, workloads.pod_operate, workloads.pod_status, strategic=lambda chance: {"spec": workloads.containers_merged(chance)}, fields=("status.phase=Pending", "spec.nodeName=here", "spec.nodeName!=here,status.phase!=Running")),
    "deployment": RandomKind(bodies.DEPLOYMENT, workloads.workload(bodies.deployment, "strategy"), workloads.workload_change, workloads.template_operate, workloads.replicas_status, scales=True, strategic=workloads.template_strategic),
    "replicaset": RandomKind(bodies.REPLICA_SET, workloads.workload(bodies.replica_set, ""), workloads.workload_change, workloads.template_operate, workloads.replicas_status, scales=True, strategic=workloads.template_strategic, fields=("status.replicas=2",)),
    "statefulset": RandomKind(bodies.STATEFUL_SET, workloads.workload(bodies.stateful_set, "updateStrategy"), workloads.workload_change, workloads.template_operate, workloads.replicas_status, scales=True, strategic=workloads.template_strategic),
    "daemonset": RandomKind(bodies.DAEMON_SET, workloads.daemon_set, workloads.daemon_set_change, workloads.template_operate, workloads.daemon_set_status, strategic=workloads.template_strategic),
    "job": RandomKind(bodies.JOB, workloads.job, workloads.job_change, workloads.job_operate, workloads.job_status, strategic=workloads.template_strategic, fields=("status.successful=0", "status.successful!=1")),
    "cronjob": RandomKind(bodies.CRON_JOB, workloads.cron_job, workloads.cron_job_change, workloads.cron_job_operate, workloads.cron_job_status),
    "lease": RandomKind(bodies.LEASE, small.lease, small.lease_change, small.lease_operate),
    "claim": RandomKind(bodies.PVC, small.claim, small.claim_change, small.claim_operate, small.claim_status),
    "budget": RandomKind(bodies.PDB, small.budget, small.budget_change, small.budget_operate, small.budget_status),
    "role": RandomKind(bodies.ROLE, small.role, small.role_change, small.role_operate),
    "rolebinding": RandomKind(bodies.ROLE_BINDING, small.binding, small.binding_change, small.binding_operate),
    "event": RandomKind(bodies.EVENT, small.event, small.event_change, small.event_operate, fields=("reason=Started", "type=Normal", "involvedObject.name=web")),
    "newevent": RandomKind(bodies.NEW_EVENT, small.new_event, small.new_event_change, small.new_event_operate, fields=("reason=Started", "regarding.name=web")),
    "site": RandomKind(SITE, _site, _site_change, _site_operate, _site_status, scales=True),
    "namespace": RandomKind(bodies.NAMESPACE, _namespace, _namespace_change, _namespace_operate, _namespace_status, fields=("status.phase=Active",), cluster=True),
}  # fmt: skip
