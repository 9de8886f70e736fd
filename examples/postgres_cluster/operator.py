"""The PostgresCluster operator with patterns: four states; conditions, finalizer and pruning come with them.

Run it with `steersman run examples.postgres_cluster.operator --install-crds`, and try:

    kubectl apply -f - <<< '{"apiVersion": "postgres.example.com/v1", "kind": "PostgresCluster", "metadata": {"name": "main"},
                             "spec": {"version": "17.2", "storage": "1Gi", "replicas": 2, "backupSchedule": "0 3 * * *"}}'
    kubectl get postgresclusters,statefulsets,services,cronjobs,persistentvolumeclaims
    kubectl patch postgrescluster main --type=merge -p '{"spec": {"settings": {"work_mem": "16MB"}}}'   # the primary first
    kubectl patch postgrescluster main --type=merge -p '{"spec": {"replicas": 1, "backupSchedule": null}}'
    kubectl delete postgrescluster main      # backups, replicas, primary, storage

bare.py is the same operator without patterns.
"""

from examples.postgres_cluster.children import (
    PORT,
    backup,
    config,
    credentials,
    replicas_of,
    service,
    stateful_set,
    volume,
)
from examples.postgres_cluster.types import PostgresCluster

from steersman import Done, Manager, Next, Outputs, StateMachine, state
from steersman.kinds.apps_v1 import StatefulSet
from steersman.kinds.batch_v1 import CronJob
from steersman.kinds.core_v1 import ConfigMap, PersistentVolumeClaim, Secret, Service
from steersman.patterns import readiness_of


class Cluster(
    StateMachine[PostgresCluster],
    children=(StatefulSet, Service, CronJob, PersistentVolumeClaim, ConfigMap, Secret),
    ordered_deletion=True,
    finalizer="postgres.example.com/ordered-deletion",  # the same as bare.py's, so either can replace the other
):
    @state(condition="StorageReady")
    async def storage(self, cluster: PostgresCluster, out: Outputs) -> Next:
        """Declare the configuration, the password and the primary's volume."""
        out.apply(config(cluster))
        out.apply(credentials(cluster), how="create")  # never generate a second password
        out.apply(volume(cluster, "primary"), wait=False)  # may be bound only when its Pod exists
        return Next()

    @state(condition="PrimaryReady")
    async def primary(self, cluster: PostgresCluster, out: Outputs) -> Next:
        """Declare the member that accepts writes.

        It rolls before the replicas, which do not change until it is ready.
        """
        out.apply(service(cluster, "primary"))
        out.apply(stateful_set(cluster, "primary"))
        cluster.ensure_status().endpoint = f"{cluster.key.name}.{cluster.key.namespace}.svc:{PORT}"
        return Next()

    @state(condition="ReplicasReady")
    async def replicas(self, cluster: PostgresCluster, out: Outputs) -> Next:
        """Declare the replicas with their volumes.

        A replica's volume is declared with the replica: it goes with the replica, not earlier.
        """
        status = cluster.ensure_status()
        status.ready_replicas = 0
        if cluster.spec.replicas:
            out.apply(service(cluster, "replica"))
        for name in replicas_of(cluster):
            out.apply(volume(cluster, name), wait=False)
            present = await out.current(out.apply(stateful_set(cluster, name)))
            status.ready_replicas += present is not None and readiness_of(present).ready
        return Next()

    @state(condition="BackupsReady")
    async def backups(self, cluster: PostgresCluster, out: Outputs) -> Done:
        """Declare the schedule of backups, if the spec has one."""
        if cluster.spec.backup_schedule:
            out.apply(backup(cluster, cluster.spec.backup_schedule))
        return Done()


manager = Manager(name="postgres-cluster")
manager.add(Cluster())
