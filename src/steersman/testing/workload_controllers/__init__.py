"""The workload controllers of kube-controller-manager, written with Steersman's own runtime.

Guarantees
- No status is invented: Pods become ready because something runs them, and all other statuses count Pods.
- The same scenarios run with kube-controller-manager on the engine and end with the same objects.
"""

from __future__ import annotations

from steersman.kinds.apps_v1 import ControllerRevision, ReplicaSet
from steersman.kinds.core_v1 import Pod
from steersman.manager import Manager
from steersman.testing.workload_controllers.claims import INDEX, index_values
from steersman.testing.workload_controllers.daemon_sets import DaemonSets
from steersman.testing.workload_controllers.deployments import Deployments
from steersman.testing.workload_controllers.finished_jobs import FinishedJobs, OrphanPods
from steersman.testing.workload_controllers.jobs import Jobs
from steersman.testing.workload_controllers.own_node import OwnNode
from steersman.testing.workload_controllers.replica_sets import ReplicaSets
from steersman.testing.workload_controllers.stateful_sets import StatefulSets

#: The field manager and event reporter that these controllers stand in for.
NAME = "kube-controller-manager"


def workload_manager(node: OwnNode, namespaces: tuple[str, ...] = ()) -> Manager:
    """A manager with all workload controllers, for some namespaces or for all; ``node`` is where Pods run."""
    manager = Manager(name=NAME, leader=None, namespaces=namespaces)
    for kind in (Pod, ReplicaSet, ControllerRevision):
        manager.index(kind, INDEX, index_values)
    for reconciler in (
        Deployments(),
        ReplicaSets(),
        DaemonSets(),
        StatefulSets(),
        Jobs(),
        FinishedJobs(),
        OrphanPods(),
        node,
    ):
        manager.add(reconciler.blueprint())
    return manager
