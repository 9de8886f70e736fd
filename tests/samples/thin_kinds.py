"""Built-in kinds as a program might declare the few fields of them that it needs, by hand."""

from __future__ import annotations

from typing import Annotated, Any

from steersman.kinds.admissionregistration_v1 import ValidatingWebhookConfiguration
from steersman.kinds.apps_v1 import Deployment
from steersman.kinds.batch_v1 import CronJob
from steersman.kinds.core_v1 import ConfigMap, Pod, Service
from steersman.kinds.networking_v1 import Ingress, NetworkPolicy
from steersman.kinds.rbac_v1 import Role
from steersman.markers import ListMap
from steersman.objects import IntOrString, Object, Struct


class Variable(Struct):
    name: str
    value: str | None = None


class Container(Struct):
    name: str
    image: str | None = None
    env: Annotated[list[Variable], ListMap("name")] | None = None


class PodSpec(Struct):
    containers: Annotated[list[Container], ListMap("name")]


class Template(Struct):
    spec: PodSpec


class DeploymentSpec(Struct):
    replicas: int | None = None
    template: Template


class ThinDeployment(Object, group="apps", version="v1", kind="Deployment", plural="deployments"):
    spec: DeploymentSpec


class ThinPod(Object, group="", version="v1", kind="Pod", plural="pods"):
    spec: PodSpec


class JobSpec(Struct):
    template: Template


class JobTemplate(Struct):
    spec: JobSpec


class CronJobSpec(Struct):
    schedule: str
    job_template: JobTemplate


class ThinCronJob(Object, group="batch", version="v1", kind="CronJob", plural="cronjobs"):
    spec: CronJobSpec


class Port(Struct):
    port: int
    protocol: str | None = None


class ServiceSpec(Struct):
    ports: Annotated[list[Port], ListMap("port", "protocol")] | None = None


class ThinService(Object, group="", version="v1", kind="Service", plural="services"):
    spec: ServiceSpec


class Path(Struct):
    path: str | None = None


class Http(Struct):
    paths: list[Path]


class IngressRule(Struct):
    http: Http | None = None


class IngressSpec(Struct):
    rules: list[IngressRule] | None = None


class ThinIngress(Object, group="networking.k8s.io", version="v1", kind="Ingress", plural="ingresses"):
    spec: IngressSpec


class PolicyPort(Struct):
    port: IntOrString | None = None


class PolicyRule(Struct):
    ports: list[PolicyPort] | None = None
    from_: list[dict[str, Any]] | None = None


class PolicySpec(Struct):
    ingress: list[PolicyRule] | None = None


class ThinNetworkPolicy(
    Object, group="networking.k8s.io", version="v1", kind="NetworkPolicy", plural="networkpolicies"
):
    spec: PolicySpec


class RoleRule(Struct):
    verbs: list[str]


class ThinRole(Object, group="rbac.authorization.k8s.io", version="v1", kind="Role", plural="roles"):
    rules: list[RoleRule] | None = None


class Hook(Struct):
    name: str
    timeout_seconds: int | None = None


class ThinWebhooks(
    Object,
    group="admissionregistration.k8s.io",
    version="v1",
    kind="ValidatingWebhookConfiguration",
    plural="validatingwebhookconfigurations",
    scope="Cluster",
):
    webhooks: Annotated[list[Hook], ListMap("name")] | None = None


class ThinConfigMap(Object, group="", version="v1", kind="ConfigMap", plural="configmaps"):
    """Nothing but metadata."""


THIN: dict[type[Object], type[Any]] = {
    ConfigMap: ThinConfigMap,
    CronJob: ThinCronJob,
    Deployment: ThinDeployment,
    Ingress: ThinIngress,
    NetworkPolicy: ThinNetworkPolicy,
    Pod: ThinPod,
    Role: ThinRole,
    Service: ThinService,
    ValidatingWebhookConfiguration: ThinWebhooks,
}
