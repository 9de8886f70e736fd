"""The arithmetic of a rollout, without a server."""

from __future__ import annotations

from steersman.kinds.apps_v1 import Deployment, ReplicaSet
from steersman.manifests import load_manifests
from steersman.testing.workload_controllers.rollouts import old_sizes

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 10
  selector: {matchLabels: {app: web}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 3, maxUnavailable: 2}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "web:1"}]}}
"""
REPLICA_SET = """
apiVersion: apps/v1
kind: ReplicaSet
metadata: {{name: {name}, creationTimestamp: "2026-01-0{day}T00:00:00Z"}}
spec: {{replicas: {size}, selector: {{matchLabels: {{app: web}}}}}}
status: {{replicas: {size}, availableReplicas: {available}}}
"""


def sizes(**sets: tuple[int, int]) -> dict[str, int]:
    """The new sizes of old ReplicaSets, each with its size and its available Pods; the last one is the new one."""
    (deployment,) = load_manifests(DEPLOYMENT, kinds=[Deployment])
    assert isinstance(deployment, Deployment)
    loaded: list[ReplicaSet] = []
    for day, (name, (size, available)) in enumerate(sets.items(), 1):
        text = REPLICA_SET.format(name=name, day=day, size=size, available=available)
        (replica_set,) = load_manifests(text, kinds=[ReplicaSet])
        assert isinstance(replica_set, ReplicaSet)
        loaded.append(replica_set)
    return old_sizes(deployment, loaded[-1], loaded[:-1])


def test_unavailable_pods_go_first_and_then_the_oldest():
    assert sizes(a=(5, 5), b=(5, 1), new=(3, 3)) == {"b": 1, "a": 4}


def test_a_rollout_waits_for_an_outdated_status():
    """The status of b was written before b shrank: three of its Pods are about to go."""
    assert sizes(a=(5, 5), b=(2, 5), new=(6, 2)) == {}
    assert sizes(a=(8, 12), new=(5, 0)) == {}
    assert sizes(a=(8, 8), new=(4, 5)) == {}


def test_nothing_shrinks_while_the_new_set_is_not_available():
    assert sizes(a=(8, 8), new=(5, 0)) == {}
