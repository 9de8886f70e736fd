"""Manifests become typed objects, or one error that names every mistake."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Annotated

import pytest

from steersman import ObjectMeta, Resource, Spec, Status, Unstructured
from steersman.errors import ApiError, ManifestError
from steersman.kinds.apps_v1 import Deployment
from steersman.kinds.authorization_v1 import SelfSubjectAccessReview
from steersman.kinds.core_v1 import ConfigMap, Secret
from steersman.manifests import load_manifests
from steersman.markers import Maximum
from steersman.objects import encode_any, was_read


class ShopSpec(Spec):
    image: str
    replicas: Annotated[int, Maximum(50)] = 1
    token: Annotated[int, Maximum(9)] | None = None


class Shop(Resource[ShopSpec, Status], group="manifests.test.steersman.dev", version="v1"):
    """A shop on the web."""


class OtherShop(Resource[ShopSpec, None], group="manifests.test.steersman.dev", version="v1", kind="Shop"):
    """The same kind again."""


SHOP = "apiVersion: manifests.test.steersman.dev/v1\nkind: Shop\nmetadata: {name: corner}\nspec: {image: nginx}\n"


def mistakes(text: str | bytes, **options) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        load_manifests(text, kinds=[Shop], **options)
    return str(caught.value).splitlines()


def config(text: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\n{text}"


# --- objects


def test_known_kinds_are_typed_and_others_are_not() -> None:
    deployment = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, creationTimestamp: null}
spec: {replicas: 2, template: {spec: {containers: [{name: web, resources: {limits: {cpu: 1}}}]}}}
status: {}
"""
    widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {any: [1]}\n"
    found = load_manifests(f"{SHOP}---\n{deployment}---\n{widget}", kinds=[Shop])
    shop, web, other = found
    assert isinstance(shop, Shop)
    assert (shop.spec.image, shop.spec.replicas) == ("nginx", 1)
    assert isinstance(web, Deployment)
    assert (web.key, web.spec.replicas if web.spec else 0) == (("shop", "web"), 2)
    assert other == Unstructured(
        {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"any": [1]}}
    )
    assert isinstance(load_manifests(SHOP)[0], Unstructured)


def test_an_object_is_sent_as_its_text_says() -> None:
    """A default of the class would claim a field that the text does not name."""
    (shop,) = load_manifests(SHOP, kinds=[Shop])
    assert isinstance(shop, Shop)
    assert not was_read(shop)
    sent = (
        b'{"apiVersion":"manifests.test.steersman.dev/v1","kind":"Shop",'
        b'"metadata":{"name":"corner"},"spec":{"image":"nginx"}}'
    )
    assert encode_any(shop) == sent
    assert encode_any(pickle.loads(pickle.dumps(shop))) == sent
    shop.spec.replicas = 2
    assert encode_any(shop) == sent.replace(b'"nginx"', b'"nginx","replicas":2')


def test_a_list_is_its_items() -> None:
    """As kubectl prints them: a List of any kinds, or a list of one kind whose items omit it."""
    text = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Secret, metadata: {name: a}}
- apiVersion: v1
  kind: ConfigMapList
  items: [{metadata: {name: b}}]
"""
    assert load_manifests(text) == [
        Secret(metadata=ObjectMeta(name="a")),
        ConfigMap(metadata=ObjectMeta(name="b")),
    ]


def test_a_review_needs_no_metadata() -> None:
    text = "apiVersion: authorization.k8s.io/v1\nkind: SelfSubjectAccessReview\nspec: {}\n"
    (review,) = load_manifests(text)
    assert isinstance(review, SelfSubjectAccessReview)
    assert review.key == ("", "")


def test_own_classes_win_and_two_of_one_kind_are_refused() -> None:
    class OwnConfig(ConfigMap):
        """A ConfigMap of a program's own."""

    (found,) = load_manifests(config(""), kinds=[OwnConfig])
    assert type(found) is OwnConfig
    with pytest.raises(ValueError, match="Shop and OtherShop are both"):
        load_manifests("", kinds=[Shop, OtherShop])


# --- mistakes


def test_every_mistake_is_named_at_once() -> None:
    text = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, label: {}}
spec:
  replica: 2
  replicas: "3"
  template:
    spec:
      containers:
        - {name: web, port: []}
        - name: side
          ports: [{containerPort: http}]
---
apiVersion: manifests.test.steersman.dev/v1
kind: Shop
metadata: {name: corner}
spec:
  replicas: 99
---
- not an object
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {port: 80}
data: {}
"""
    assert mistakes(text, file=Path("k8s") / "all.yaml") == [
        "k8s/all.yaml:4: Deployment web: metadata.label: unknown field; did you mean labels?",
        "k8s/all.yaml:6: Deployment web: spec.replica: unknown field; did you mean replicas?",
        "k8s/all.yaml:7: Deployment web: spec.replicas: expected an integer, got a string",
        "k8s/all.yaml:11: Deployment web: spec.template.spec.containers[0].port: unknown field; did you mean ports?",
        (
            "k8s/all.yaml:13: Deployment web: spec.template.spec.containers[1].ports[0].containerPort:"
            " expected an integer, got a string"
        ),
        "k8s/all.yaml:18: Shop corner: spec.image: Required value",
        (
            "k8s/all.yaml:19: Shop corner: spec.replicas: Invalid value: 99:"
            " spec.replicas in body should be less than or equal to 50"
        ),
        "k8s/all.yaml:21: not an object: a manifest is a mapping with apiVersion and kind",
        "k8s/all.yaml:26: ConfigMap a: data[port]: expected a string, got an integer; quote it",
        "k8s/all.yaml:27: the key 'data' is already set on line 26",
    ]


def test_an_error_has_its_parts_and_can_be_copied() -> None:
    with pytest.raises(ApiError) as caught:
        load_manifests("a: 1", file="a.yaml")
    error = pickle.loads(pickle.dumps(caught.value))
    assert error.problems == (("a.yaml", 1, "the object has no apiVersion"),)
    assert str(error) == "a.yaml:1: the object has no apiVersion"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("kind: Pod", "line 1: the object has no apiVersion"),
        ("apiVersion: v1\nkind: 3", "line 2: kind must be a text"),
        ("apiVersion: a/b/c\nkind: Pod", "line 1: 'a/b/c' is not an apiVersion"),
        (config("data: []"), "line 4: ConfigMap a: data: expected a mapping, got a list"),
        (config("data: {a: ~}"), "line 4: ConfigMap a: data[a]: expected a value, got null; remove it"),
        (config("binaryData: {a: b}"), "line 4: ConfigMap a: binaryData[a]: invalid base64"),
        ("apiVersion: v1\nkind: Pod\nmetadata: [a]", "line 3: Pod: metadata: expected a mapping, got a list"),
        ("apiVersion: a/v1\nkind: B\nmetadata: [a]", "line 3: B: metadata: expected a mapping"),
        ("apiVersion: a/v1\nkind: B\nmetadata: {nam: a}", "line 3: B: metadata.nam: unknown field; did you mean name?"),
        ("apiVersion: v1\nkind: List\nitems:\n- 3", "line 4: not an object"),
    ],
)
def test_objects_that_the_server_would_refuse(text: str, reason: str) -> None:
    (found,) = mistakes(text)
    assert found.startswith(reason)


def test_fields_that_the_class_lacks_pass_if_asked() -> None:
    """A newer server may have them: they are kept and sent."""
    (found,) = load_manifests(config("newer: {a: 1}"), strict=False)
    assert isinstance(found, ConfigMap)
    assert b'"newer":{"a":1}' in encode_any(found)
    (shop,) = load_manifests(SHOP.replace("image: nginx", "replicas: 99"), kinds=[Shop], strict=False)
    assert isinstance(shop, Shop)
    assert shop.spec.replicas == 99
    assert mistakes(SHOP.replace("nginx", "[]"), strict=False) == [
        "line 4: Shop corner: spec.image: expected a string, got a list"
    ]


def test_mistakes_show_no_secret_values() -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {password: OPENSESAME!}\n"
    assert "OPENSESAME" not in "".join(mistakes(secret))
    shop = SHOP.replace("image: nginx", "image: nginx, token: 4711")
    assert mistakes(shop) == [
        "line 4: Shop corner: spec.token: Invalid value: (hidden): spec.token in body should be less than or equal to 9"
    ]
