"""Resource classes become CRDs, and what no server would accept is refused in Python's words."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
import yaml

from steersman.markers import Int32, Minimum, Rule
from steersman.objects import (
    Object,
    PartialObjectMetadata,
    PrinterColumn,
    Resource,
    ScaleSubresource,
    Spec,
    Status,
    Struct,
)
from steersman.schemas import crd_for, crd_yaml, schema_for


class SiteSpec(Spec):
    image: str
    replicas: Annotated[Int32, Minimum(0)] = 1
    labels: dict[str, str] | None = None


class SiteStatus(Status):
    ready_replicas: int = 0


class Site(Resource[SiteSpec, SiteStatus], group="web.example.com", version="v1", short_names=("st",)):
    """A web site."""


class SiteV1Beta1(
    Resource[SiteSpec, None],
    group="web.example.com",
    version="v1beta1",
    kind="Site",
    storage=False,
    served=False,
    deprecated=True,
):
    """The site of old."""


def site(**options) -> type[Object]:
    """Another class of the same kind, with some options changed."""
    namespace = {"__module__": __name__, "__orig_bases__": (Resource[SiteSpec, SiteStatus],)}
    options = {"group": "web.example.com", "version": "v2", "kind": "Site", "storage": False} | options
    return type(Struct)("SiteV2", (Resource,), namespace, **options)


def test_one_class_one_version():
    assert crd_for(Site) == {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "sites.web.example.com"},
        "spec": {
            "group": "web.example.com",
            "names": {
                "plural": "sites",
                "singular": "site",
                "kind": "Site",
                "listKind": "SiteList",
                "shortNames": ["st"],
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema_for(Site)},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


def test_several_versions():
    versions = crd_for(SiteV1Beta1, Site)["spec"]["versions"]
    assert [(version["name"], version["served"], version["storage"]) for version in versions] == [
        ("v1beta1", False, False),
        ("v1", True, True),
    ]
    assert versions[0]["deprecated"] is True
    assert "subresources" not in versions[0]


def test_names_come_from_the_storage_version():
    assert crd_for(SiteV1Beta1, Site)["spec"]["names"]["shortNames"] == ["st"]


def test_labels_and_annotations():
    metadata = crd_for(Site, labels={"app": "x"}, annotations={"a": "b"})["metadata"]
    assert metadata == {"name": "sites.web.example.com", "labels": {"app": "x"}, "annotations": {"a": "b"}}


def test_yaml_is_the_same_tree():
    text = crd_yaml(Site, SiteV1Beta1)
    assert text.startswith("---\napiVersion: apiextensions.k8s.io/v1\n")
    assert yaml.safe_load(text) == crd_for(Site, SiteV1Beta1)


class AnswerSpec(Spec):
    answer: Literal["y", "n"] = "y"


class Answer(Resource[AnswerSpec, None], group="web.example.com", version="v1"):
    """Kubernetes reads a bare y as true."""


def test_yaml_quotes_what_kubernetes_would_read_as_a_boolean():
    text = crd_yaml(Answer)
    assert "default: 'y'" in text
    assert "- 'n'" in text


def test_a_status_subresource_can_be_had_or_left():
    assert crd_for(site(storage=True, status_subresource=False))["spec"]["versions"][0].get("subresources") is None


REFUSED = [
    ((), "needs at least one resource class"),
    ((Object,), "Object declares no kind; write class Object"),
    (
        (Site, site(storage=True)),
        r"exactly one version must be the storage version, but Site \(v1\), SiteV2 \(v2\) are; pass storage=False",
    ),
    ((SiteV1Beta1,), "exactly one version must be the storage version, but none is"),
    ((Site, site(version="v1")), "class SiteV2: Site also has version 'v1'"),
    ((Site, site(group="other.example.com")), "class SiteV2: its group is 'other.example.com', but that of Site"),
    ((Site, site(scope="Cluster")), "its scope is 'Cluster', but that of Site is 'Namespaced'"),
    ((Site, site(plural="sitez")), "its plural is 'sitez'"),
    ((site(storage=True, group="nodots"),), 'group="nodots" must be a domain with a dot'),
    ((site(storage=True, deprecated="two\nlines"),), "one line of at most 256 characters"),
    (
        (site(storage=True, scale=ScaleSubresource()),),
        "the path '.status.replicas' does not exist: there is no field 'replicas'.*wire names",
    ),
    (
        (site(storage=True, scale=ScaleSubresource(status_replicas_path=".spec.image")),),
        "must lead to a field of type integer under .status.",
    ),
    ((site(storage=True, selectable_fields=(".spec.labels",)),), "must be a string, a boolean or an integer"),
    ((site(storage=True, selectable_fields=(".metadata.name",)),), "outside metadata"),
    ((site(storage=True, selectable_fields=("spec.image",)),), "must begin with a dot"),
    ((site(storage=True, selectable_fields=(".spec.image", ".spec.image")),), "different paths"),
]


@pytest.mark.parametrize(("classes", "said"), REFUSED, ids=lambda value: str(value)[:60])
def test_what_the_server_would_refuse_is_refused(classes, said):
    with pytest.raises(TypeError, match=said):
        crd_for(*classes)


def column(path: str) -> type[Object]:
    return site(storage=True, columns=(PrinterColumn(name="C", type="string", json_path=path),))


def test_a_column_that_leads_nowhere_is_refused_with_the_field_that_was_meant():
    """`kubectl get` would show an empty column without a reason."""
    with pytest.raises(TypeError, match="no field 'ready_replicas'; did you mean 'readyReplicas'"):
        crd_for(column(".status.ready_replicas"))
    with pytest.raises(TypeError, match="must begin with a dot"):
        crd_for(column("status['x']"))


@pytest.mark.parametrize(
    "path", [".spec.labels.app", ".metadata.creationTimestamp", '.status.conditions[?(@.type=="Ready")].status']
)
def test_columns_may_lead_into_maps_metadata_and_filters(path):
    assert crd_for(column(path))["spec"]["versions"][0]["additionalPrinterColumns"][0]["jsonPath"] == path


def test_built_in_objects_have_no_crd():
    with pytest.raises(TypeError, match="PartialObjectMetadata"):
        crd_for(PartialObjectMetadata, Site)


def test_a_rule_that_does_not_compile_is_refused_in_the_words_of_the_server():
    class Tight(Spec, rules=(Rule("self.size < 5"),)):
        replicas: int = 1

    class Boat(Resource[Tight, None], group="web.example.com", version="v1"):
        pass

    with pytest.raises(TypeError) as refused:
        crd_for(Boat)
    first, *shown = str(refused.value).splitlines()
    assert first.endswith(
        "the rule 'self.size < 5' of spec is invalid: compilation failed: ERROR: <input>:1:5: undefined field 'size'"
    )
    assert shown == [" | self.size < 5", " | ....^"]
