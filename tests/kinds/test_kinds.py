"""The room of built-in kinds: what is in it, what importing it costs, and what its names lead to."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import steersman.kinds
from steersman.kinds import all_group_versions, all_kinds, class_of, class_of_definition, index
from steersman.kinds.apps_v1 import Deployment, DeploymentSpec
from steersman.kinds.core_v1 import Container, Pod, PodSpec, PodTemplateSpec, Secret
from steersman.kinds.meta_v1 import LabelSelector
from steersman.objects import GroupVersion, GroupVersionKind, ObjectMeta, Struct, encode
from steersman.objects.hints import declared_hints, unwrap, wire_names

SOURCE = Path(steersman.kinds.__file__).parents[2]


def modules_after(statement: str) -> set[str]:
    """Modules of this room that a fresh interpreter has loaded after a statement."""
    program = f"import sys\n{statement}\nprint(*(name for name in sys.modules if name.startswith('steersman.kinds')))"
    answer = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.removeprefix("steersman.kinds").lstrip(".") for name in answer.stdout.split()}


def test_importing_the_room_imports_no_kind() -> None:
    """A program pays only for the kinds it uses."""
    assert modules_after("import steersman.kinds") == {"", "definitions", "index", "registry"}


def test_a_group_version_imports_only_what_it_refers_to() -> None:
    loaded = modules_after("from steersman.kinds.coordination_v1 import Lease")
    assert loaded == {"", "definitions", "index", "registry", "coordination_v1"}
    loaded = modules_after("from steersman.kinds import Deployment")
    assert loaded == {"", "definitions", "index", "registry", "apps_v1", "core_v1", "meta_v1"}


def test_importing_kinds_reads_no_schema() -> None:
    """The data is for the server and for patches."""
    program = "from steersman.kinds import Pod\nfrom steersman.kinds.definitions import _document\n"
    program += "assert _document.cache_info().currsize == 0"
    subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": str(SOURCE)}, check=True)


def test_the_room_names_kinds_in_the_preferred_version() -> None:
    from steersman.kinds import HorizontalPodAutoscaler

    assert HorizontalPodAutoscaler.gvk() == GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler")
    assert steersman.kinds.Deployment is Deployment
    assert "Deployment" in dir(steersman.kinds)


def test_a_name_of_several_groups_says_where_to_look() -> None:
    with pytest.raises(AttributeError, match=r"steersman\.kinds\.core_v1 or steersman\.kinds\.events_v1"):
        _ = steersman.kinds.Event  # pyright: ignore[reportAttributeAccessIssue]


def test_a_name_that_is_no_kind_says_where_parts_are() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'Container'.*their module"):
        _ = steersman.kinds.Container  # pyright: ignore[reportAttributeAccessIssue]


def test_every_stable_group_is_there() -> None:
    assert {str(group_version) for group_version in all_group_versions()} == {
        "admissionregistration.k8s.io/v1",
        "apiextensions.k8s.io/v1",
        "apiregistration.k8s.io/v1",
        "apps/v1",
        "authentication.k8s.io/v1",
        "authorization.k8s.io/v1",
        "autoscaling/v1",
        "autoscaling/v2",
        "batch/v1",
        "certificates.k8s.io/v1",
        "coordination.k8s.io/v1",
        "discovery.k8s.io/v1",
        "events.k8s.io/v1",
        "flowcontrol.apiserver.k8s.io/v1",
        "networking.k8s.io/v1",
        "node.k8s.io/v1",
        "policy/v1",
        "rbac.authorization.k8s.io/v1",
        "resource.k8s.io/v1",
        "scheduling.k8s.io/v1",
        "storage.k8s.io/v1",
        "storagemigration.k8s.io/v1",
        "v1",
    }


def test_class_of() -> None:
    assert class_of(GroupVersionKind("", "v1", "Pod")) is Pod
    assert {class_of(kind).gvk() for kind in all_kinds()} == set(all_kinds())
    with pytest.raises(LookupError, match=r"apps/v1 of Kubernetes .* has no kind Pod"):
        class_of(GroupVersionKind("apps", "v1", "Pod"))
    with pytest.raises(LookupError, match=r"example.com/v1 is not a stable built-in"):
        class_of(GroupVersionKind("example.com", "v1", "Pod"))
    assert class_of_definition("io.k8s.api.core.v1.Container") is Container
    assert class_of_definition("io.k8s.api.core.v1.Nothing") is None
    assert class_of_definition("com.example.Nothing") is None


def test_identity_comes_from_discovery() -> None:
    options = Deployment.__resource__
    assert (options.group, options.version, options.plural, options.scope) == (
        "apps",
        "v1",
        "deployments",
        "Namespaced",
    )
    assert options.short_names == ("deploy",)
    assert options.categories == ("all",)
    assert class_of(GroupVersionKind("", "v1", "Namespace")).__resource__.scope == "Cluster"
    assert class_of(GroupVersionKind("", "v1", "Endpoints")).gvr().resource == "endpoints"


def test_an_intent_holds_what_was_said_and_no_more() -> None:
    """OpenAPI's ``default: {}`` and ``default: ""`` are not ours to send."""
    pod = PodTemplateSpec(spec=PodSpec(containers=[Container(name="web")]))
    deployment = Deployment(
        metadata=ObjectMeta(name="web"),
        spec=DeploymentSpec(selector=LabelSelector(match_labels={"a": "b"}), template=pod),
    )
    assert encode(deployment) == (
        b'{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"selector":{"matchLabels":'
        b'{"a":"b"}},"template":{"spec":{"containers":[{"name":"web"}]}}}}'
    )


def test_what_cannot_be_left_out_is_required() -> None:
    with pytest.raises(TypeError, match="needs spec"):
        Pod(metadata=ObjectMeta(name="a"))  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match="needs containers"):
        PodSpec()  # pyright: ignore[reportCallIssue]


def test_secrets_are_not_shown() -> None:
    secret = Secret(metadata=ObjectMeta(name="a"), data={"k": b"hush"}, string_data={"k": "hush"})
    assert "hush" not in repr(secret)
    assert "data=<hidden>" in repr(secret)


def every_struct() -> list[type[Struct]]:
    found: list[type[Struct]] = []
    for module in [*index.MODULES, "meta_v1"]:
        held: Any = import_module(f"steersman.kinds.{module}")
        found += [getattr(held, name) for name in held.__all__]
    return list(dict.fromkeys(found))


def test_every_annotation_resolves() -> None:
    """A name that a generated module forgot to import would show at the first decode of that kind, not before."""
    structs = every_struct()
    assert len(structs) > 450
    for cls in structs:
        for hint in declared_hints(cls).values():
            unwrap(hint)


@pytest.mark.parametrize(
    ("module", "cls", "name", "wire"),
    [
        ("core_v1", "PodStatus", "pod_ip", "podIP"),
        ("core_v1", "PodStatus", "pod_ips", "podIPs"),
        ("core_v1", "ServiceSpec", "cluster_ips", "clusterIPs"),
        ("core_v1", "ServiceSpec", "external_name", "externalName"),
        ("core_v1", "PodSpec", "host_ipc", "hostIPC"),
        ("core_v1", "NodeSystemInfo", "system_uuid", "systemUUID"),
        ("core_v1", "Volume", "scale_io", "scaleIO"),
        ("rbac_v1", "PolicyRule", "non_resource_urls", "nonResourceURLs"),
        ("networking_v1", "NetworkPolicyIngressRule", "from_", "from"),
        ("networking_v1", "IPBlock", "except_", "except"),
        ("meta_v1", "ListMeta", "continue_", "continue"),
        ("resource_v1", "DeviceAttribute", "bool_", "bool"),
        ("resource_v1", "DeviceAttribute", "int_", "int"),
        ("apiextensions_v1", "JSONSchemaProps", "ref", "$ref"),
        ("apiextensions_v1", "JSONSchemaProps", "not_", "not"),
        ("apiextensions_v1", "JSONSchemaProps", "x_kubernetes_list_map_keys", "x-kubernetes-list-map-keys"),
        ("apiextensions_v1", "CustomResourceValidation", "open_api_v3_schema", "openAPIV3Schema"),
    ],
)
def test_names(module: str, cls: str, name: str, wire: str) -> None:
    found: Any = getattr(import_module(f"steersman.kinds.{module}"), cls)
    assert wire_names(found)[name] == wire


def test_group_version_of_the_core() -> None:
    assert GroupVersion("", "v1") in all_group_versions()
