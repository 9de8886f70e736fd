"""An App mounts its settings from an immutable ConfigMap: a change of the settings replaces the ConfigMap.

Shows: children that are replaced instead of changed. The ConfigMap is named after its content (`hashed_name`), and the
Deployment mounts it by that name. So new settings are a new ConfigMap and a rollout, and the old Pods keep what they
started with. The old ConfigMap goes when the new Pods are ready: Steersman deletes what is no longer declared only then.
Earlier settings get their earlier name again.

Another object may have the name already. Then the status counts a collision, and the count changes the name, as in a
Deployment. The count is stored, so that the name stays when the other object goes.

Run it with `steersman run examples.immutable_settings --install-crds`, and try:

    kubectl apply -f - <<< '{"apiVersion": "settings.example.com/v1", "kind": "App", "metadata": {"name": "forum"},
                             "spec": {"image": "nginx:1.27", "settings": {"color": "blue"}}}'
    kubectl get apps,configmaps,deployments
    kubectl patch apps.settings.example.com forum --type=merge -p '{"spec": {"settings": {"color": "green"}}}'
    kubectl get configmaps --watch      # a new one comes, then the old one goes
"""

from steersman import Done, Manager, ObjectMeta, Outputs, Resource, Spec, Status, reconciles
from steersman.kinds.apps_v1 import Deployment, DeploymentSpec
from steersman.kinds.core_v1 import (
    ConfigMap,
    ConfigMapVolumeSource,
    Container,
    PodSpec,
    PodTemplateSpec,
    Volume,
    VolumeMount,
)
from steersman.kinds.meta_v1 import LabelSelector
from steersman.objects import hashed_name, is_owned_by


class AppSpec(Spec):
    image: str
    settings: dict[str, str]
    replicas: int = 1


class AppStatus(Status):
    collision_count: int = 0


class App(Resource[AppSpec, AppStatus], group="settings.example.com", version="v1"):
    """A program with settings."""


def settings_of(app: App, collisions: int) -> ConfigMap:
    name = hashed_name(app, app.spec.settings, collisions)
    return ConfigMap(metadata=ObjectMeta(name=name), immutable=True, data=app.spec.settings)


def deployment_of(app: App, settings: ConfigMap) -> Deployment:
    labels = {"app": app.key.name}
    web = Container(
        name="web", image=app.spec.image, volume_mounts=[VolumeMount(name="settings", mount_path="/settings")]
    )
    volume = Volume(name="settings", config_map=ConfigMapVolumeSource(name=settings.key.name))
    return Deployment(
        metadata=ObjectMeta(name=app.key.name),
        spec=DeploymentSpec(
            replicas=app.spec.replicas,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[web], volumes=[volume])
            ),
        ),
    )


@reconciles(App, children=(ConfigMap, Deployment))
async def apps(app: App, out: Outputs) -> Done:
    status = app.ensure_status()
    settings = settings_of(app, status.collision_count)
    while (present := await out.current(settings)) is not None:
        if is_owned_by(present, app) and present.data == settings.data:
            break
        status.collision_count += 1
        settings = settings_of(app, status.collision_count)
    out.apply(settings)
    out.apply(deployment_of(app, settings))
    return Done()


manager = Manager(name="immutable-settings")
manager.add(apps)
