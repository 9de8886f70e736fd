"""The children of a PostgresCluster: pure functions, shared by both operators.

Each member is a StatefulSet of one Pod with its own volume, so that each can be rolled and removed separately. The image
handles PostgreSQL's replication; this example is about the objects and their order.
"""

import hashlib

from examples.postgres_cluster.types import PostgresCluster

from steersman import ObjectMeta
from steersman.aio import name_suffix
from steersman.kinds.apps_v1 import StatefulSet, StatefulSetSpec
from steersman.kinds.batch_v1 import CronJob, CronJobSpec, JobSpec, JobTemplateSpec
from steersman.kinds.core_v1 import (
    ConfigMap,
    ConfigMapVolumeSource,
    Container,
    ContainerPort,
    EnvVar,
    EnvVarSource,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimVolumeSource,
    PodSpec,
    PodTemplateSpec,
    Secret,
    SecretKeySelector,
    Service,
    ServicePort,
    ServiceSpec,
    Volume,
    VolumeMount,
    VolumeResourceRequirements,
)
from steersman.kinds.meta_v1 import LabelSelector

CONFIG_HASH = "postgres.example.com/config-hash"
PORT = 5432


def labels_of(cluster: PostgresCluster, **more: str) -> dict[str, str]:
    own = {"app.kubernetes.io/name": "postgres", "app.kubernetes.io/instance": cluster.key.name}
    return own | {f"postgres.example.com/{name}": value for name, value in more.items()}


def _named(cluster: PostgresCluster, suffix: str = "", **more: str) -> ObjectMeta:
    name = f"{cluster.key.name}-{suffix}" if suffix else cluster.key.name
    return ObjectMeta(name=name, namespace=cluster.key.namespace, labels=labels_of(cluster, **more))


def replicas_of(cluster: PostgresCluster) -> list[str]:
    """Return the names of the replicas."""
    return [f"replica-{number}" for number in range(1, cluster.spec.replicas + 1)]


# storage


def config(cluster: PostgresCluster) -> ConfigMap:
    settings = {"listen_addresses": "*"} | (cluster.spec.settings or {})
    lines = "".join(f"{name} = '{value}'\n" for name, value in sorted(settings.items()))
    return ConfigMap(metadata=_named(cluster, "config"), data={"postgresql.conf": lines})


def credentials(cluster: PostgresCluster) -> Secret:
    """A new random password on each call: create it once and never overwrite it."""
    return Secret(metadata=_named(cluster, "credentials"), string_data={"password": name_suffix(24)})


def volume(cluster: PostgresCluster, member: str) -> PersistentVolumeClaim:
    resources = VolumeResourceRequirements(requests={"storage": cluster.spec.storage})
    return PersistentVolumeClaim(
        metadata=_named(cluster, member, member=member),
        spec=PersistentVolumeClaimSpec(access_modes=["ReadWriteOnce"], resources=resources),
    )


# members


def stateful_set(cluster: PostgresCluster, member: str) -> StatefulSet:
    """One member. A changed configuration changes the template, so Kubernetes rolls it out."""
    role = "primary" if member == "primary" else "replica"
    labels = labels_of(cluster, member=member, role=role)
    content = (config(cluster).data or {})["postgresql.conf"]
    annotations = {CONFIG_HASH: hashlib.sha256(content.encode()).hexdigest()[:16]}
    return StatefulSet(
        metadata=_named(cluster, member, member=member, role=role),
        spec=StatefulSetSpec(
            replicas=1,
            service_name=_service_name(cluster, role),
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels=labels, annotations=annotations), spec=_pod(cluster, member)
            ),
        ),
    )


def _pod(cluster: PostgresCluster, member: str) -> PodSpec:
    name = cluster.key.name
    password = EnvVarSource(secret_key_ref=SecretKeySelector(name=f"{name}-credentials", key="password"))
    environment = [EnvVar(name="POSTGRES_PASSWORD", value_from=password)]
    if member != "primary":
        environment.append(EnvVar(name="REPLICATE_FROM", value=name))
    postgres = Container(
        name="postgres",
        image=f"postgres:{cluster.spec.version}",
        args=["-c", "config_file=/etc/postgres/postgresql.conf"],
        env=environment,
        ports=[ContainerPort(name="postgres", container_port=PORT)],
        volume_mounts=[
            VolumeMount(name="data", mount_path="/var/lib/postgresql/data"),
            VolumeMount(name="config", mount_path="/etc/postgres"),
        ],
    )
    claim = PersistentVolumeClaimVolumeSource(claim_name=f"{name}-{member}")
    volumes = [
        Volume(name="data", persistent_volume_claim=claim),
        Volume(name="config", config_map=ConfigMapVolumeSource(name=f"{name}-config")),
    ]
    return PodSpec(containers=[postgres], volumes=volumes)


def _service_name(cluster: PostgresCluster, role: str) -> str:
    return cluster.key.name if role == "primary" else f"{cluster.key.name}-replicas"


def service(cluster: PostgresCluster, role: str) -> Service:
    """The address for clients: NAME for the primary, NAME-replicas for the replicas."""
    metadata = _named(cluster, "" if role == "primary" else "replicas", role=role)
    port = ServicePort(name="postgres", port=PORT, target_port="postgres")
    return Service(metadata=metadata, spec=ServiceSpec(selector=labels_of(cluster, role=role), ports=[port]))


# backups


def backup(cluster: PostgresCluster, schedule: str) -> CronJob:
    name = cluster.key.name
    password = EnvVarSource(secret_key_ref=SecretKeySelector(name=f"{name}-credentials", key="password"))
    dump = Container(
        name="backup",
        image=f"postgres:{cluster.spec.version}",
        command=["pg_dumpall", f"--host={name}", "--username=postgres"],
        env=[EnvVar(name="PGPASSWORD", value_from=password)],
    )
    pod = PodSpec(containers=[dump], restart_policy="Never")
    job = JobSpec(template=PodTemplateSpec(metadata=ObjectMeta(labels=labels_of(cluster, role="backup")), spec=pod))
    return CronJob(
        metadata=_named(cluster, "backup", role="backup"),
        spec=CronJobSpec(schedule=schedule, concurrency_policy="Forbid", job_template=JobTemplateSpec(spec=job)),
    )
