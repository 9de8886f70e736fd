"""Objects of many kinds, written with our types and read back from Kubernetes itself.

The server is asked to refuse unknown fields, so a wrong wire name fails the write; every field that it sends back must be
known to the types, so a missing or misspelled one fails the read.
"""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from steersman.aio import name_suffix
from steersman.kinds import (
    admissionregistration_v1,
    all_kinds,
    apps_v1,
    autoscaling_v2,
    batch_v1,
    class_of,
    coordination_v1,
    core_v1,
    discovery_v1,
    events_v1,
    networking_v1,
    node_v1,
    policy_v1,
    rbac_v1,
    resource_v1,
    scheduling_v1,
    storage_v1,
)
from steersman.kinds.apiextensions_v1 import CustomResourceDefinition
from steersman.kinds.core_v1 import (
    Affinity,
    Capabilities,
    ConfigMapKeySelector,
    ConfigMapProjection,
    Container,
    ContainerPort,
    EnvVar,
    EnvVarSource,
    HTTPGetAction,
    KeyToPath,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectFieldSelector,
    ObjectReference,
    PodSpec,
    PodTemplateSpec,
    Probe,
    ProjectedVolumeSource,
    ResourceRequirements,
    SecurityContext,
    ServicePort,
    ServiceSpec,
    Toleration,
    TopologySpreadConstraint,
    Volume,
    VolumeMount,
    VolumeProjection,
)
from steersman.kinds.meta_v1 import LabelSelector, LabelSelectorRequirement, ObjectMeta
from steersman.objects import MicroTime, Object, Quantity, decode, encode, raw_of
from steersman.objects.document import strip_origins, to_tree

MOMENT = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
LABELS = {"app": "web"}
SELECTOR = LabelSelector(match_labels=LABELS)


def pod_spec(**changes: Any) -> PodSpec:
    """A pod with a bit of everything."""
    container = Container(
        name="web",
        image="nginx:1",
        args=["--from", "x"],
        ports=[ContainerPort(container_port=80, name="http", host_ip="127.0.0.1"), ContainerPort(container_port=53)],
        env=[
            EnvVar(name="PLAIN", value="x"),
            EnvVar(name="IP", value_from=EnvVarSource(field_ref=ObjectFieldSelector(field_path="status.podIP"))),
            EnvVar(
                name="KEY",
                value_from=EnvVarSource(config_map_key_ref=ConfigMapKeySelector(name="c", key="k", optional=True)),
            ),
        ],
        resources=ResourceRequirements(
            requests={"cpu": Quantity("500m"), "memory": Quantity("1Gi")}, limits={"memory": Quantity("2Gi")}
        ),
        readiness_probe=Probe(http_get=HTTPGetAction(path="/", port="http", scheme="HTTPS"), period_seconds=5),
        security_context=SecurityContext(run_as_non_root=True, capabilities=Capabilities(drop=["ALL"])),
        volume_mounts=[VolumeMount(name="conf", mount_path="/conf", sub_path_expr="$(PLAIN)")],
    )
    projected = ProjectedVolumeSource(
        sources=[VolumeProjection(config_map=ConfigMapProjection(name="c", items=[KeyToPath(key="a", path="b")]))]
    )
    term = NodeSelectorTerm(match_expressions=[NodeSelectorRequirement(key="zone", operator="In", values=["a"])])
    settings: dict[str, Any] = {
        "containers": [container],
        "volumes": [Volume(name="conf", projected=projected)],
        "affinity": Affinity(
            node_affinity=NodeAffinity(
                required_during_scheduling_ignored_during_execution=NodeSelector(node_selector_terms=[term])
            )
        ),
        "tolerations": [Toleration(key="a", operator="Exists", toleration_seconds=5, effect="NoExecute")],
        "topology_spread_constraints": [
            TopologySpreadConstraint(
                max_skew=1, topology_key="zone", when_unsatisfiable="DoNotSchedule", label_selector=SELECTOR
            )
        ],
        "host_aliases": [core_v1.HostAlias(ip="10.0.0.1", hostnames=["a"])],
        "dns_config": core_v1.PodDNSConfig(options=[core_v1.PodDNSConfigOption(name="ndots", value="2")]),
        "termination_grace_period_seconds": 5,
    }
    return PodSpec(**(settings | changes))


def template(**changes: Any) -> PodTemplateSpec:
    return PodTemplateSpec(metadata=ObjectMeta(labels=LABELS), spec=pod_spec(**changes))


def meta(name: str) -> ObjectMeta:
    return ObjectMeta(name=name, labels={"kind": "sample"}, annotations={"note": "déjà vu"})


NAMESPACED: list[Object] = [
    core_v1.ConfigMap(metadata=meta("config"), data={"a": "b"}, binary_data={"raw": b"\x00\xff"}, immutable=False),
    core_v1.Secret(metadata=meta("secret"), data={"password": b"p\xc3"}, string_data={"user": "u"}, type="Opaque"),
    core_v1.Service(
        metadata=meta("service"),
        spec=ServiceSpec(
            selector=LABELS,
            type="NodePort",
            ports=[ServicePort(port=80, target_port="http", name="http"), ServicePort(port=443, name="tls")],
            session_affinity="ClientIP",
            ip_family_policy="SingleStack",
            external_ips=["192.0.2.1"],
        ),
    ),
    core_v1.Pod(metadata=meta("pod"), spec=pod_spec()),
    core_v1.ServiceAccount(metadata=meta("account"), automount_service_account_token=False),
    core_v1.ResourceQuota(
        metadata=meta("quota"),
        spec=core_v1.ResourceQuotaSpec(hard={"pods": Quantity("100"), "requests.cpu": Quantity("1e3")}),
    ),
    core_v1.LimitRange(
        metadata=meta("limits"),
        spec=core_v1.LimitRangeSpec(limits=[core_v1.LimitRangeItem(type="Container", max={"cpu": Quantity("4")})]),
    ),
    core_v1.PersistentVolumeClaim(
        metadata=meta("claim"),
        spec=core_v1.PersistentVolumeClaimSpec(
            access_modes=["ReadWriteOnce"],
            resources=core_v1.VolumeResourceRequirements(requests={"storage": Quantity("1Gi")}),
            storage_class_name="",
        ),
    ),
    core_v1.PodTemplate(metadata=meta("template"), template=template()),
    core_v1.Event(
        metadata=meta("event"),
        involved_object=ObjectReference(kind="Pod", name="pod", api_version="v1"),
        reason="Tested",
        message="it was",
        first_timestamp=MOMENT,
        event_time=MicroTime.of(MOMENT.replace(microsecond=5)),
        reporting_component="test",
        reporting_instance="test",
        action="Testing",
        type="Normal",
    ),
    apps_v1.Deployment(
        metadata=meta("deployment"),
        spec=apps_v1.DeploymentSpec(
            replicas=0,
            selector=SELECTOR,
            template=template(),
            strategy=apps_v1.DeploymentStrategy(
                rolling_update=apps_v1.RollingUpdateDeployment(max_surge="25%", max_unavailable=1)
            ),
        ),
    ),
    apps_v1.StatefulSet(
        metadata=meta("stateful"),
        spec=apps_v1.StatefulSetSpec(service_name="s", selector=SELECTOR, template=template(), replicas=0),
    ),
    apps_v1.DaemonSet(metadata=meta("daemon"), spec=apps_v1.DaemonSetSpec(selector=SELECTOR, template=template())),
    apps_v1.ReplicaSet(metadata=meta("replica"), spec=apps_v1.ReplicaSetSpec(selector=SELECTOR, template=template())),
    batch_v1.Job(metadata=meta("job"), spec=batch_v1.JobSpec(template=template(restart_policy="Never"), suspend=True)),
    batch_v1.CronJob(
        metadata=meta("cron"),
        spec=batch_v1.CronJobSpec(
            schedule="@daily",
            job_template=batch_v1.JobTemplateSpec(spec=batch_v1.JobSpec(template=template(restart_policy="Never"))),
        ),
    ),
    networking_v1.Ingress(
        metadata=meta("ingress"),
        spec=networking_v1.IngressSpec(
            rules=[
                networking_v1.IngressRule(
                    host="example.com",
                    http=networking_v1.HTTPIngressRuleValue(
                        paths=[
                            networking_v1.HTTPIngressPath(
                                path="/",
                                path_type="Prefix",
                                backend=networking_v1.IngressBackend(
                                    service=networking_v1.IngressServiceBackend(
                                        name="service", port=networking_v1.ServiceBackendPort(number=80)
                                    )
                                ),
                            )
                        ]
                    ),
                )
            ]
        ),
    ),
    networking_v1.NetworkPolicy(
        metadata=meta("policy"),
        spec=networking_v1.NetworkPolicySpec(
            pod_selector=LabelSelector(
                match_expressions=[LabelSelectorRequirement(key="app", operator="NotIn", values=["x"])]
            ),
            ingress=[
                networking_v1.NetworkPolicyIngressRule(
                    from_=[
                        networking_v1.NetworkPolicyPeer(
                            ip_block=networking_v1.IPBlock(cidr="10.0.0.0/8", except_=["10.1.0.0/16"])
                        )
                    ],
                    ports=[networking_v1.NetworkPolicyPort(port=80, end_port=90)],
                )
            ],
        ),
    ),
    policy_v1.PodDisruptionBudget(
        metadata=meta("budget"), spec=policy_v1.PodDisruptionBudgetSpec(min_available="50%", selector=SELECTOR)
    ),
    autoscaling_v2.HorizontalPodAutoscaler(
        metadata=meta("scaler"),
        spec=autoscaling_v2.HorizontalPodAutoscalerSpec(
            max_replicas=3,
            scale_target_ref=autoscaling_v2.CrossVersionObjectReference(
                api_version="apps/v1", kind="Deployment", name="deployment"
            ),
            metrics=[
                autoscaling_v2.MetricSpec(
                    type="Resource",
                    resource=autoscaling_v2.ResourceMetricSource(
                        name="cpu", target=autoscaling_v2.MetricTarget(type="Utilization", average_utilization=80)
                    ),
                )
            ],
        ),
    ),
    coordination_v1.Lease(
        metadata=meta("lease"),
        spec=coordination_v1.LeaseSpec(
            holder_identity="me", lease_duration_seconds=15, renew_time=MicroTime.of(MOMENT), acquire_time=None
        ),
    ),
    discovery_v1.EndpointSlice(
        metadata=meta("slice"),
        address_type="IPv4",
        endpoints=[
            discovery_v1.Endpoint(
                addresses=["10.1.2.3"], conditions=discovery_v1.EndpointConditions(ready=True), zone="a"
            )
        ],
        ports=[discovery_v1.EndpointPort(port=80, name="http", app_protocol="h2c")],
    ),
    events_v1.Event(
        metadata=meta("event-2"),
        event_time=MicroTime.of(MOMENT),
        reporting_controller="test.dev/c",
        reporting_instance="i",
        action="Testing",
        reason="Tested",
        type="Normal",
        regarding=ObjectReference(kind="Pod", name="pod"),
    ),
    rbac_v1.Role(metadata=meta("role"), rules=[rbac_v1.PolicyRule(verbs=["get"], api_groups=[""], resources=["pods"])]),
    rbac_v1.RoleBinding(
        metadata=meta("binding"),
        role_ref=rbac_v1.RoleRef(api_group="rbac.authorization.k8s.io", kind="Role", name="role"),
        subjects=[rbac_v1.Subject(kind="ServiceAccount", name="account")],
    ),
    resource_v1.ResourceClaim(
        metadata=meta("device"),
        spec=resource_v1.ResourceClaimSpec(
            devices=resource_v1.DeviceClaim(
                requests=[
                    resource_v1.DeviceRequest(
                        name="gpu", exactly=resource_v1.ExactDeviceRequest(device_class_name="gpu", count=2)
                    )
                ]
            )
        ),
    ),
]
CLUSTER: list[Object] = [
    core_v1.Node(metadata=meta("kinds-node"), spec=core_v1.NodeSpec(pod_cidrs=["10.9.0.0/24"], pod_cidr="10.9.0.0/24")),
    core_v1.PersistentVolume(
        metadata=meta("kinds-volume"),
        spec=core_v1.PersistentVolumeSpec(
            access_modes=["ReadWriteMany"],
            capacity={"storage": Quantity("1Gi")},
            nfs=core_v1.NFSVolumeSource(server="nfs", path="/"),
        ),
    ),
    rbac_v1.ClusterRole(
        metadata=meta("kinds-role"), rules=[rbac_v1.PolicyRule(verbs=["*"], non_resource_urls=["/healthz"])]
    ),
    storage_v1.StorageClass(metadata=meta("kinds-class"), provisioner="test.dev/p", parameters={"a": "b"}),
    storage_v1.CSIDriver(metadata=meta("kinds-driver"), spec=storage_v1.CSIDriverSpec(attach_required=False)),
    scheduling_v1.PriorityClass(metadata=meta("kinds-priority"), value=7, description="d", global_default=False),
    node_v1.RuntimeClass(metadata=meta("kinds-runtime"), handler="h"),
    admissionregistration_v1.ValidatingAdmissionPolicy(
        metadata=meta("kinds-policy"),
        spec=admissionregistration_v1.ValidatingAdmissionPolicySpec(
            match_constraints=admissionregistration_v1.MatchResources(
                resource_rules=[
                    admissionregistration_v1.NamedRuleWithOperations(
                        api_groups=["kinds.test"], api_versions=["v1"], operations=["CREATE"], resources=["nothing"]
                    )
                ]
            ),
            validations=[admissionregistration_v1.Validation(expression="true")],
        ),
    ),
    resource_v1.ResourceSlice(
        metadata=meta("kinds-slice"),
        spec=resource_v1.ResourceSliceSpec(
            driver="gpu.test.dev",
            node_name="kinds-node",
            pool=resource_v1.ResourcePool(name="p", generation=1, resource_slice_count=1),
            devices=[
                resource_v1.Device(
                    name="gpu-0",
                    attributes={
                        "model": resource_v1.DeviceAttribute(string="x"),
                        "cores": resource_v1.DeviceAttribute(int_=4),
                        "fast": resource_v1.DeviceAttribute(bool_=True),
                    },
                    capacity={"memory": resource_v1.DeviceCapacity(value=Quantity("40Gi"))},
                )
            ],
        ),
    ),
]


def known_to_types(typed: Object) -> Any:
    """The JSON tree of what the types themselves hold, without help from the bytes."""
    tree = to_tree(typed)
    strip_origins(tree)
    return tree


def without_nulls(tree: Any) -> Any:
    """Kubernetes prints some nulls; to it and to us they mean absent."""
    if isinstance(tree, dict):
        return {name: without_nulls(value) for name, value in tree.items() if value is not None}
    return [without_nulls(item) for item in tree] if isinstance(tree, list) else tree


def check_read(cls: type[Object], raw: bytes) -> None:
    """Nothing is lost, nothing is changed, nothing is unknown."""
    typed = decode(cls, raw)
    tree = msgspec.json.decode(raw)
    assert encode(typed) == msgspec.json.encode(tree)  # Go and msgspec differ in white space and in escapes
    assert known_to_types(typed) == without_nulls(tree)


def path_of(typed: Object, namespace: str | None) -> str:
    options = type(typed).__resource__
    root = f"/apis/{options.api_version}" if options.group else f"/api/{options.version}"
    inside = f"/namespaces/{namespace}" if options.namespaced else ""
    return f"{root}{inside}/{options.plural}"


@pytest.mark.parametrize("typed", NAMESPACED, ids=lambda typed: f"{typed.api_version}-{typed.kind}")
async def test_namespaced_objects_survive_the_server(typed: Object, wire: Any, namespace: str) -> None:
    """What was written strictly comes back, and the types know all of it."""
    typed = copy.deepcopy(typed)
    match typed:
        case core_v1.Event(involved_object=subject) | events_v1.Event(regarding=ObjectReference() as subject):
            subject.namespace = namespace
        case _:
            pass
    path = path_of(typed, namespace)
    created = await wire.request("POST", f"{path}?fieldValidation=Strict", encode(typed))
    check_read(type(typed), created)
    check_read(type(typed), await wire.request("GET", f"{path}/{typed.metadata.name}"))


@pytest.mark.parametrize("typed", CLUSTER, ids=lambda typed: f"{typed.api_version}-{typed.kind}")
async def test_cluster_objects_survive_the_server(typed: Object, wire: Any) -> None:
    """What was written strictly comes back, and the types know all of it."""
    typed = copy.deepcopy(typed)
    if isinstance(typed, core_v1.PersistentVolume):
        # Its deletion takes a moment: a test that runs again would meet it.
        typed.metadata.name = f"{typed.metadata.name}-{name_suffix()}"
    path = path_of(typed, None)
    created = await wire.request("POST", f"{path}?fieldValidation=Strict", encode(typed))
    try:
        check_read(type(typed), created)
        check_read(type(typed), await wire.request("GET", f"{path}/{typed.metadata.name}"))
    finally:
        await wire.request("DELETE", f"{path}/{typed.metadata.name}")


#: Where the server has its own objects; other tests have theirs elsewhere.
OWN_NAMESPACES = {"default", "kube-node-lease", "kube-public", "kube-system"}


async def test_objects_that_the_server_made_itself(wire: Any) -> None:
    """Whatever a fresh server holds, of whatever built-in kind, is known to the types."""
    seen: set[str] = set()
    for kind in all_kinds():
        cls = class_of(kind)
        options = cls.__resource__
        root = f"/apis/{options.api_version}" if options.group else f"/api/{options.version}"
        served = msgspec.json.decode(await wire.request("GET", root))["resources"]
        if not any(resource["name"] == options.plural and "list" in resource["verbs"] for resource in served):
            continue
        answer = msgspec.json.decode(await wire.request("GET", f"{root}/{options.plural}?limit=50"))
        for item in answer["items"] or []:
            if item["metadata"].get("namespace", "default") not in OWN_NAMESPACES:
                continue
            check_read(cls, msgspec.json.encode({"apiVersion": kind.api_version, "kind": kind.kind} | item))
            seen.add(kind.kind)
    assert {"Namespace", "FlowSchema", "PriorityLevelConfiguration", "ClusterRole", "APIService", "Lease"} <= seen


def properties_of_spec(definition: CustomResourceDefinition) -> dict[str, Any]:
    validation = definition.spec.versions[0].schema
    assert validation is not None
    assert validation.open_api_v3_schema is not None
    return validation.open_api_v3_schema.properties["spec"].properties


async def test_a_definition_with_every_kind_of_union(wire: Any, crd_group: str) -> None:
    """JSONSchemaProps holds unions that OpenAPI leaves untyped; a CRD that uses them is read and written whole."""
    name = f"samples.{crd_group}"
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "items": {"type": "array", "items": {"type": "string", "maxLength": 5}},
                    "map": {"type": "object", "additionalProperties": {"type": "integer", "format": "int32"}},
                    "port": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                    "any": {"x-kubernetes-preserve-unknown-fields": True, "type": "object"},
                    "choice": {"type": "string", "enum": ["a", "b"], "default": "a", "not": {"enum": ["c"]}},
                },
            }
        },
    }
    tree = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {
            "group": crd_group,
            "scope": "Namespaced",
            "names": {"plural": "samples", "singular": "sample", "kind": "Sample", "listKind": "SampleList"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    raw = await wire.request("POST", f"{path}?fieldValidation=Strict", msgspec.json.encode(tree))
    check_read(CustomResourceDefinition, raw)

    definition = decode(CustomResourceDefinition, await wire.request("GET", f"{path}/{name}"))
    properties = properties_of_spec(definition)
    assert properties["items"].items.max_length == 5
    assert properties["map"].additional_properties.format == "int32"
    assert properties["any"].x_kubernetes_preserve_unknown_fields is True
    assert properties["choice"].enum == ["a", "b"]


def test_bytes_are_kept() -> None:
    """Reading keeps the bytes themselves: an unchanged object is written as it came."""
    raw = b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{"containers":[],"later":{"x":null}}}'
    pod = decode(core_v1.Pod, raw)
    assert raw_of(pod) == raw
    assert encode(pod) == raw
