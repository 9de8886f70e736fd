"""Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and CronJobs: defaults, refusals, changes."""

from __future__ import annotations

from conformance.bodies import (
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    REPLICA_SET,
    STATEFUL_SET,
    claim,
    container,
    cron_job,
    daemon_set,
    deployment,
    job,
    job_spec,
    merged,
    pod_spec,
    replica_set,
    stateful_set,
    template,
)
from conformance.scenario import get, patch, post, put, scenario

OTHER = {"metadata": {"labels": {"app": "other"}}, "spec": pod_spec()}
CLAIM = {"metadata": {"name": "data"}, "spec": claim()["spec"]}

#: What all kinds with a selector and a template are tried with.
SELECTED = [
    {"selector": None},
    {"selector": {"matchLabels": None}},
    {"selector": {"matchLabels": {"app": "b"}}},
    {"selector": {"matchLabels": {"a b": "c"}}},
    {"selector": {"matchLabels": None, "matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]}},
    {"selector": {"matchExpressions": [{"key": "app", "operator": "Odd"}]}},
    {"selector": {"matchExpressions": [{"key": "app", "operator": "In"}]}},
    {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["x"]}]}},
    {"template": None},
    {"template": {"spec": None}},
    {"template": {"metadata": None}},
    {"template": OTHER},
    {"template": {"spec": {"containers": []}}},
    {"template": {"spec": {"restartPolicy": "Never"}}},
    {"template": {"spec": {"restartPolicy": "OnFailure"}}},
    {"template": {"spec": {"activeDeadlineSeconds": 5}}},
    {"template": {"spec": {"containers": [{"name": "a"}]}}},
    {"template": {"metadata": {"labels": {"app": "a", "x y": "z"}}}},
    {"minReadySeconds": 5},
    {"minReadySeconds": -1},
    {
        "template": {
            "spec": {
                "containers": [container(ports=[{"containerPort": 80}])],
                "volumes": [{"name": "v", "secret": {"secretName": "s"}}],
            }
        }
    },
]
COUNTED = [{"replicas": 0}, {"replicas": 3}, {"replicas": -1}, {"replicas": None}]

ROLLING = "RollingUpdate"
OWN = {
    "deployment": (
        DEPLOYMENT,
        deployment,
        [
            *COUNTED,
            {"strategy": {"type": "Recreate"}},
            {"strategy": {"type": ROLLING}},
            {"strategy": {"type": "Odd"}},
            {"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
            {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
            {"strategy": {"rollingUpdate": {"maxSurge": "10%"}}},
            {"strategy": {"rollingUpdate": {"maxUnavailable": "110%"}}},
            {"strategy": {"rollingUpdate": {"maxUnavailable": "ten"}}},
            {"strategy": {"rollingUpdate": {"maxSurge": -1}}},
            {"revisionHistoryLimit": 0},
            {"revisionHistoryLimit": -1},
            {"progressDeadlineSeconds": 5},
            {"progressDeadlineSeconds": 5, "minReadySeconds": 9},
            {"progressDeadlineSeconds": -1},
            {"paused": True},
            {"strategy": {}},
            {"strategy": None},
        ],
    ),
    "replicaset": (REPLICA_SET, replica_set, COUNTED),
    "statefulset": (
        STATEFUL_SET,
        stateful_set,
        [
            *COUNTED,
            {"serviceName": ""},
            {"serviceName": "A_B"},
            {"podManagementPolicy": "Parallel"},
            {"podManagementPolicy": "Odd"},
            {"updateStrategy": {"type": "OnDelete"}},
            {"updateStrategy": {"type": "Odd"}},
            {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}}},
            {"updateStrategy": {"rollingUpdate": {"partition": 2}}},
            {"updateStrategy": {"type": ROLLING, "rollingUpdate": {"partition": -1}}},
            {"updateStrategy": {"type": ROLLING}},
            {"revisionHistoryLimit": -1},
            {"volumeClaimTemplates": [CLAIM]},
            {"volumeClaimTemplates": [{}]},
            {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}},
            {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Odd"}},
            {"ordinals": {"start": 3}},
            {"ordinals": {"start": -1}},
            {"updateStrategy": {"type": ROLLING, "rollingUpdate": {"maxUnavailable": 2}}},
        ],
    ),
    "daemonset": (
        DAEMON_SET,
        daemon_set,
        [
            {"updateStrategy": {"type": "OnDelete"}},
            {"updateStrategy": {"type": "Odd"}},
            {"updateStrategy": {"type": ROLLING, "rollingUpdate": {"maxUnavailable": 0}}},
            {"updateStrategy": {"type": ROLLING, "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}},
            {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "30%"}}},
            {"updateStrategy": {"type": ROLLING, "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}}},
            {"updateStrategy": {"type": ROLLING}},
            {"revisionHistoryLimit": 3},
            {"revisionHistoryLimit": -1},
            {"updateStrategy": {"type": ROLLING, "rollingUpdate": {"maxUnavailable": "110%"}}},
        ],
    ),
}

JOBS = [
    {},
    {"parallelism": 2},
    {"completions": 3},
    {"parallelism": 2, "completions": 3},
    {"parallelism": 0},
    {"parallelism": -1},
    {"completions": -1},
    {"backoffLimit": 0},
    {"backoffLimit": -1},
    {"activeDeadlineSeconds": 5},
    {"activeDeadlineSeconds": -1},
    {"ttlSecondsAfterFinished": 0},
    {"ttlSecondsAfterFinished": -1},
    {"suspend": True},
    {"completionMode": "Indexed"},
    {"completionMode": "Indexed", "completions": 3},
    {"completionMode": "Indexed", "completions": 3, "backoffLimitPerIndex": 1},
    {"completionMode": "Odd"},
    {"backoffLimitPerIndex": 1},
    {"maxFailedIndexes": 1},
    {"podReplacementPolicy": "Failed"},
    {"podReplacementPolicy": "Odd"},
    {"podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}]}},
    {"podFailurePolicy": {"rules": [{"action": "Odd"}]}},
    {"podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}},
    {"selector": {"matchLabels": {"a": "b"}}},
    {"manualSelector": True},
    {"manualSelector": True, "selector": {"matchLabels": {"a": "b"}}},
    {"manualSelector": True, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}}},
    {"template": None},
    {"template": {"spec": {"restartPolicy": None}}},
    {"template": {"spec": {"restartPolicy": "Always"}}},
    {"template": {"spec": {"restartPolicy": "OnFailure"}}},
    {"template": {"spec": {"containers": []}}},
    {"managedBy": "example.com/own"},
    {"managedBy": "own"},
    {"successPolicy": {"rules": [{"succeededCount": 1}]}},
    {"completionMode": "Indexed", "completions": 3, "successPolicy": {"rules": [{"succeededIndexes": "0-1"}]}},
]

SCHEDULES = (
    "* * * * *",
    "@hourly",
    "@every 5m",
    "0 0 * * 0",
    "0 0 1 1 *",
    "*/15 0-6 1,15 * 1-5",
    "TZ=UTC * * * * *",
    "CRON_TZ=UTC * * * * *",
    "* * * *",
    "60 * * * *",
    "x",
    "",
    "@never",
    "* * * * * *",
    "0 0 31 2 *",
    "0 0 * * MON",
    "0 0 * JAN *",
)
CRON_JOBS = [
    {"concurrencyPolicy": "Forbid"},
    {"concurrencyPolicy": "Replace"},
    {"concurrencyPolicy": "Odd"},
    {"suspend": True},
    {"startingDeadlineSeconds": 5},
    {"startingDeadlineSeconds": -1},
    {"successfulJobsHistoryLimit": 0},
    {"successfulJobsHistoryLimit": -1},
    {"failedJobsHistoryLimit": 5},
    {"failedJobsHistoryLimit": -1},
    {"timeZone": "Etc/UTC"},
    {"timeZone": "Odd/Place"},
    {"timeZone": ""},
    {"timeZone": "Local"},
    {"timeZone": "Europe/Berlin"},
    {"jobTemplate": None},
    {"jobTemplate": {"spec": {"backoffLimit": -1}}},
    {"jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Always"}}}}},
    {"jobTemplate": {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}},
    {"jobTemplate": {"spec": {"manualSelector": True}}},
    {"jobTemplate": {"spec": job_spec(parallelism=2)}},
]

CHANGES = {
    "deployment": (
        DEPLOYMENT,
        deployment(),
        [
            {"spec": {"selector": {"matchLabels": {"app": "b"}}}},
            {"spec": {"selector": {"matchLabels": {"app": "b"}}, "template": {"metadata": {"labels": {"app": "b"}}}}},
            {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 5}}}},
            {"spec": {"strategy": {"type": "Recreate"}}},
            {"spec": {"strategy": {"type": "Recreate", "rollingUpdate": None}}},
            {"spec": {"replicas": None}},
            {"spec": {"revisionHistoryLimit": 1}},
            {"spec": None},
        ],
    ),
    "replicaset": (
        REPLICA_SET,
        replica_set(),
        [
            {"spec": {"selector": {"matchLabels": {"app": "b"}}}},
            {"spec": {"template": {"metadata": {"labels": {"x": "y"}}}}},
            {"spec": {"minReadySeconds": 4}},
            {"spec": {"replicas": None}},
        ],
    ),
    "statefulset": (
        STATEFUL_SET,
        stateful_set(volumeClaimTemplates=[CLAIM]),
        [
            {"spec": {"serviceName": "b"}},
            {"spec": {"podManagementPolicy": "Parallel"}},
            {"spec": {"volumeClaimTemplates": []}},
            {"spec": {"selector": {"matchLabels": {"app": "b"}}}},
            {"spec": {"replicas": 2}},
            {"spec": {"minReadySeconds": 2}},
            {"spec": {"ordinals": {"start": 1}}},
            {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}},
            {"spec": {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}},
            {"spec": {"template": {"spec": {"hostname": "x"}}}},
        ],
    ),
    "daemonset": (
        DAEMON_SET,
        daemon_set(),
        [
            {"spec": {"selector": {"matchLabels": {"app": "b"}}}},
            {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}},
            {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}},
            {"spec": {"minReadySeconds": 2}},
        ],
    ),
    "job": (
        JOB,
        job(),
        [
            {"spec": {"parallelism": 3}},
            {"spec": {"completions": 3}},
            {"spec": {"suspend": True}},
            {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}},
            {"spec": {"template": {"spec": {"restartPolicy": "OnFailure"}}}},
            {"spec": {"backoffLimit": 2}},
            {"spec": {"activeDeadlineSeconds": 9}},
            {"spec": {"ttlSecondsAfterFinished": 9}},
            {"spec": {"completionMode": "Indexed"}},
            {"spec": {"selector": {"matchLabels": {"a": "b"}}}},
            {"spec": {"manualSelector": True}},
            {"spec": {"podReplacementPolicy": "Failed"}},
        ],
    ),
    "suspended-job": (
        JOB,
        job(suspend=True),
        [
            {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}},
            {"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}},
            {"spec": {"template": {"spec": {"containers": [container(image="other")]}}}},
            {"spec": {"suspend": False}},
        ],
    ),
    "cronjob": (
        CRON_JOB,
        cron_job(),
        [
            {"spec": {"schedule": "@daily"}},
            {"spec": {"schedule": "x"}},
            {"spec": {"suspend": True}},
            {"spec": {"timeZone": "Etc/UTC"}},
            {"spec": {"timeZone": None}},
            {"spec": {"concurrencyPolicy": "Replace"}},
            {"spec": {"jobTemplate": {"spec": {"backoffLimit": 1}}}},
            {"spec": {"jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "OnFailure"}}}}}},
        ],
    ),
}


def _pieces(items, size):
    return [items[start : start + size] for start in range(0, len(items), size)]


SCENARIOS = [
    *(
        scenario(f"selectors-of-a-{kind}-{number}", "Kinds, Status errors", *(post(path, make(**spec), dryRun="All") for spec in specs))
        for kind, (path, make, _) in OWN.items()
        for number, specs in enumerate(_pieces(SELECTED, 7), start=1)
    ),
    *(
        scenario(f"fields-of-a-{kind}-{number}", "Kinds, Status errors", *(post(path, make(**spec), dryRun="All") for spec in specs))
        for kind, (path, make, own) in OWN.items()
        for number, specs in enumerate(_pieces(own, 7), start=1)
    ),
    *(scenario(f"fields-of-a-job-{number}", "Kinds, Status errors", *(post(JOB, job(**spec), dryRun="All") for spec in specs)) for number, specs in enumerate(_pieces(JOBS, 6), start=1)),
    scenario("schedules", "Kinds, Status errors", *(post(CRON_JOB, cron_job(schedule=schedule), dryRun="All") for schedule in SCHEDULES)),
    *(scenario(f"fields-of-a-cronjob-{number}", "Kinds, Status errors", *(post(CRON_JOB, cron_job(**spec), dryRun="All") for spec in specs)) for number, specs in enumerate(_pieces(CRON_JOBS, 7), start=1)),
    *(
        scenario(f"changes-of-a-{name}", "Kinds, Update, generation, Status errors", post(path, body), *(patch(f"{path}/a", change) for change in changes), get(f"{path}/a"), put(f"{path}/a", body))
        for name, (path, body, changes) in CHANGES.items()
    ),
    scenario("long-names", "Kinds, Status errors", post(CRON_JOB, cron_job("x" * 52), dryRun="All"), post(CRON_JOB, cron_job("x" * 53), dryRun="All"), post(JOB, job("x" * 63), dryRun="All"), post(JOB, job("x" * 64), dryRun="All"), post(STATEFUL_SET, stateful_set("x" * 63), dryRun="All"), post(STATEFUL_SET, stateful_set("x" * 64), dryRun="All"), post(DEPLOYMENT, deployment("x" * 253), dryRun="All")),
    scenario("deployment-warnings", "Kinds", post(DEPLOYMENT, merged(deployment(), {"spec": {"template": template(nodeSelector={"beta.kubernetes.io/arch": "x"})}}), dryRun="All"), post(DEPLOYMENT, merged(deployment(), {"spec": {"template": template(containers=[container(env=[{"name": "A"}, {"name": "A"}])])}}), dryRun="All")),
]  # fmt: skip
