"""Names of kinds, resources and objects, and the mappings between them."""

import pytest

from steersman.errors import DecodeError
from steersman.objects import GroupKind, GroupVersion, GroupVersionKind, GroupVersionResource, Key, Unstructured
from steersman.objects.options import plural_of


@pytest.mark.parametrize(("text", "key"), [("web/home", Key("web", "home")), ("home", Key("", "home"))])
def test_keys_print_and_parse(text, key):
    assert Key.parse(text) == key
    assert str(key) == text


@pytest.mark.parametrize("text", ["", "/", "a/", "/a", "a/b/c"])
def test_what_is_no_key(text):
    with pytest.raises(ValueError, match="is not a key"):
        Key.parse(text)


def test_api_versions():
    assert GroupVersion.parse("apps/v1") == GroupVersion("apps", "v1")
    assert GroupVersion.parse("v1") == GroupVersion("", "v1")
    assert GroupVersionKind.of("v1", "Pod").api_version == "v1"
    assert str(GroupVersionKind("apps", "v1", "Deployment")) == "apps/v1 Deployment"
    assert GroupVersionKind("apps", "v1", "Deployment").group_kind == GroupKind("apps", "Deployment")
    assert str(GroupVersionResource("apps", "v1", "deployments")) == "apps/v1/deployments"
    with pytest.raises(ValueError, match="is not an apiVersion"):
        GroupVersion.parse("a/b/c")


@pytest.mark.parametrize(
    ("kind", "plural"), [("Site", "sites"), ("Policy", "policies"), ("Ingress", "ingresses"), ("Pod", "pods")]
)
def test_plurals_are_guessed_as_kubernetes_does(kind, plural):
    assert plural_of(kind) == plural


def test_unstructured_objects():
    raw = b'{"apiVersion":"a.example.com/v1","kind":"Thing","metadata":{"name":"x","namespace":"y"},"spec":{"n":1}}'
    thing = Unstructured.decode(raw)
    assert (thing.api_version, thing.kind, thing.key) == ("a.example.com/v1", "Thing", Key("y", "x"))
    assert thing.get("spec", "n") == 1
    assert thing.get("spec", "n", "deeper", default="none") == "none"
    assert repr(thing) == "Unstructured(a.example.com/v1 Thing y/x)"
    assert thing == Unstructured.decode(raw)
    for garbage in (b"", b"[]", b"{", b"\xff"):
        with pytest.raises(DecodeError):
            Unstructured.decode(garbage)
