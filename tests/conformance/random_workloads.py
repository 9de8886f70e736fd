"""Pods, and kinds with templates of them, by chance: bodies, changes, statuses."""

from __future__ import annotations

from collections.abc import Callable
from random import Random  # noqa: TID251 - seeded, and the run prints the seed

from conformance import bodies
from conformance.bodies import Tree, container, merged
from conformance.chances import add, maybe, pick, remove, replace


def pod(chance: Random, name: str) -> Tree:
    return bodies.pod(
        name,
        terminationGracePeriodSeconds=pick(chance, [0, 30, 30], [-1]),
        containers=[
            container(
                image=pick(chance, ["a:1", "a:2", "a"], ["", " a"]),
                **maybe(chance, 0.2, {"resources": {"requests": {"cpu": pick(chance, ["1", "100m"], ["-1", "x"])}}}),
                **maybe(chance, 0.2, {"env": [{"name": pick(chance, ["A"], ["", "="]), "value": "1"}]}),
            )
        ],
        **maybe(chance, 0.5, {"nodeName": "here"}),
        **maybe(chance, 0.1, {"restartPolicy": pick(chance, ["Never", "OnFailure"], ["Sometimes"])}),
    )


def pod_change(chance: Random) -> Tree:
    return pick(
        chance,
        [
            {"spec": {"activeDeadlineSeconds": chance.choice((10, 20))}},
            {"spec": {"tolerations": [{"key": chance.choice("ab"), "operator": "Exists"}]}},
            {"spec": {"containers": [container(image=chance.choice(("a:1", "a:2")))]}},
        ],
        [{"spec": {"replicas": 1}}, {"spec": {"hostNetwork": True}}, {"spec": {"nodeName": "there"}}, {"spec": None}],
    )


def pod_operate(chance: Random) -> list[Tree]:
    return [
        chance.choice(
            [
                replace("/spec/containers/0/image", chance.choice(("a:1", "a:2", ""))),
                add("/spec/activeDeadlineSeconds", chance.choice((10, 30))),
                remove("/spec/tolerations"),
                remove("/spec/nodeName"),
            ]
        )
    ]


def containers_merged(chance: Random) -> Tree:
    return {
        "containers": [
            chance.choice(
                [
                    {"name": "main", "image": chance.choice(("a:1", "a:2"))},
                    {"name": "main", "env": [{"name": "A", "value": chance.choice("12")}]},
                    {"name": "main", "ports": [{"containerPort": chance.choice((80, 81))}]},
                    {"image": "a:1"},
                ]
            )
        ]
    }


def pod_status(chance: Random) -> Tree:
    return pick(
        chance,
        [
            {"phase": chance.choice(("Running", "Succeeded", "Pending"))},
            {"conditions": [{"type": "Ready", "status": chance.choice(("True", "False"))}]},
            {"podIP": "192.0.2.1", "podIPs": [{"ip": "192.0.2.1"}]},
            {"message": chance.choice(("one", "two"))},
        ],
        [{"color": "red"}],
    )


def template(chance: Random) -> Tree:
    return merged(
        bodies.template(containers=[container(image=chance.choice(("a:1", "a:2")))]),
        maybe(chance, 0.2, {"metadata": {"annotations": {"at": chance.choice("12")}}}),
    )


def template_operate(chance: Random) -> list[Tree]:
    return [
        chance.choice(
            [
                replace("/spec/template/spec/containers/0/image", chance.choice(("a:1", "a:2"))),
                replace("/spec/replicas", chance.choice((0, 1, 2))),
                add("/spec/template/metadata/labels/more", chance.choice("12")),
                remove("/spec/template/metadata/labels/more"),
                remove("/spec/replicas"),
                remove("/spec/selector"),
            ]
        )
    ]


def template_strategic(chance: Random) -> Tree:
    return {"spec": {"template": {"spec": containers_merged(chance)}}}


def workload(make: Callable[..., Tree], strategy: str) -> Callable[[Random, str], Tree]:
    def made(chance: Random, name: str) -> Tree:
        more: Tree = {}
        if strategy and chance.random() < 0.3:
            more[strategy] = pick(
                chance,
                [{"type": "RollingUpdate"}, {"type": {"strategy": "Recreate"}.get(strategy, "OnDelete")}],
                [{"type": "Other"}],
            )
        if chance.random() < 0.2:
            more["minReadySeconds"] = pick(chance, [0, 5], [-1])
        return make(name, replicas=pick(chance, [0, 1, 2, 2], [-1]), template=template(chance), **more)

    return made


def workload_change(chance: Random) -> Tree:
    return pick(
        chance,
        [
            {"spec": {"replicas": chance.randrange(3)}},
            {"spec": {"replicas": None}},
            {"spec": {"minReadySeconds": chance.choice((0, 5, None))}},
            {"spec": {"template": {"metadata": {"annotations": {"at": chance.choice(("1", "2", None))}}}}},
            {"spec": {"revisionHistoryLimit": chance.choice((1, 10, None))}},
        ],
        [
            {"spec": {"selector": {"matchLabels": {"app": "b"}}}},
            {"spec": {"template": {"metadata": {"labels": {"app": "b"}}}}},
            {"spec": {"replicas": "two"}},
            {"spec": {"template": {"spec": {"restartPolicy": "Never"}}}},
        ],
    )


def replicas_status(chance: Random) -> Tree:
    return pick(
        chance,
        [
            {"observedGeneration": chance.randrange(4), "replicas": chance.randrange(3)},
            {"replicas": 2, "readyReplicas": chance.randrange(4)},
            {"conditions": [{"type": "Ready", "status": chance.choice(("True", "False", "Unknown"))}]},
            {"conditions": None},
        ],
        [{"replicas": -1}, {"replicas": "x"}],
    )


def daemon_set(chance: Random, name: str) -> Tree:
    return bodies.daemon_set(
        name, template=template(chance), **maybe(chance, 0.3, {"updateStrategy": {"type": "OnDelete"}})
    )


def daemon_set_change(chance: Random) -> Tree:
    return pick(
        chance,
        [
            {"spec": {"minReadySeconds": chance.choice((0, 5, None))}},
            {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}},
            {"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}}}},
            {"spec": {"template": {"metadata": {"annotations": {"at": chance.choice(("1", None))}}}}},
        ],
        [{"spec": {"replicas": 2}}, {"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "x"}}}}],
    )


def daemon_set_status(chance: Random) -> Tree:
    return {
        "currentNumberScheduled": chance.randrange(3),
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 2,
        "numberReady": pick(chance, [0, 1], [-1]),
        "observedGeneration": chance.randrange(3),
    }


def job(chance: Random, name: str) -> Tree:
    return bodies.job(
        name,
        **maybe(chance, 0.4, {"parallelism": pick(chance, [1, 2], [-1])}),
        **maybe(chance, 0.4, {"completions": pick(chance, [1, 2], [-1])}),
        **maybe(chance, 0.3, {"suspend": chance.choice((True, False))}),
        **maybe(chance, 0.2, {"backoffLimit": chance.choice((0, 3))}),
        **maybe(chance, 0.2, {"completionMode": pick(chance, ["NonIndexed", "Indexed"], ["Other"])}),
    )


def job_change(chance: Random) -> Tree:
    return pick(
        chance,
        [
            {"spec": {"parallelism": chance.choice((0, 1, 2, None))}},
            {"spec": {"suspend": chance.choice((True, False, None))}},
            {"spec": {"activeDeadlineSeconds": chance.choice((10, 20))}},
            {"spec": {"ttlSecondsAfterFinished": chance.choice((0, 60, None))}},
        ],
        [
            {"spec": {"completions": 5}},
            {"spec": {"backoffLimit": -1}},
            {"spec": {"selector": None}},
            {"spec": {"parallelism": "x"}},
        ],
    )


def job_operate(chance: Random) -> list[Tree]:
    return [
        chance.choice(
            [
                replace("/spec/suspend", chance.choice((True, False))),
                remove("/spec/suspend"),
                add("/spec/parallelism", chance.choice((1, 2))),
            ]
        )
    ]


def job_status(chance: Random) -> Tree:
    return pick(
        chance,
        [
            {"active": chance.randrange(3), "ready": 0},
            {"startTime": "2024-01-02T03:04:05Z"},
            {"succeeded": chance.randrange(3)},
            {"failed": chance.randrange(2)},
        ],
        [{"active": -1}, {"completionTime": "2024-01-02T03:04:05Z"}, {"startTime": "yesterday"}],
    )


def cron_job(chance: Random, name: str) -> Tree:
    return bodies.cron_job(
        name,
        schedule=pick(chance, ["*/5 * * * *", "0 3 * * 1", "@hourly"], ["often", "", "99 * * * *"]),
        **maybe(chance, 0.3, {"suspend": chance.choice((True, False))}),
        **maybe(chance, 0.3, {"concurrencyPolicy": pick(chance, ["Allow", "Forbid", "Replace"], ["Maybe"])}),
        **maybe(chance, 0.2, {"timeZone": pick(chance, ["Etc/UTC"], ["Mars/Base", ""])}),
        **maybe(chance, 0.2, {"successfulJobsHistoryLimit": pick(chance, [0, 1], [-1])}),
    )


def cron_job_change(chance: Random) -> Tree:
    return pick(
        chance,
        [
            {"spec": {"schedule": chance.choice(("*/5 * * * *", "@daily"))}},
            {"spec": {"suspend": chance.choice((True, False, None))}},
            {"spec": {"startingDeadlineSeconds": chance.choice((10, None))}},
            {"spec": {"jobTemplate": {"metadata": {"labels": {"app": chance.choice("xy")}}}}},
        ],
        [{"spec": {"schedule": "x"}}, {"spec": {"concurrencyPolicy": None}}, {"spec": {"startingDeadlineSeconds": -1}}],
    )


def cron_job_operate(chance: Random) -> list[Tree]:
    return [
        chance.choice(
            [replace("/spec/suspend", chance.choice((True, False))), add("/spec/schedule", "@daily"), remove("/spec")]
        )
    ]


def cron_job_status(chance: Random) -> Tree:
    return chance.choice(
        [{"lastScheduleTime": "2024-01-02T03:04:05Z"}, {"active": [{"kind": "Job", "name": "x"}]}, {"active": None}]
    )
