"""Registration objects and certificates: generated, renewed in time, and never surprising."""

from __future__ import annotations

import base64
from datetime import timedelta

import pytest

from samples.shops import GROUP, Shop, old_shops
from steersman.aio import utc_now
from steersman.kinds.core_v1 import Namespace, Pod
from steersman.transport import certificates_in
from steersman.webhooks import Review, WebhookEndpoint, WebhookRegistration, mutates, validates
from steersman.webhooks.certificate_renewal import AUTHORITY_KEY, BUNDLE, CERTIFICATE, KEY, renewed

ENDPOINT = WebhookEndpoint(service="town/shop-webhooks")


@mutates(Shop, operations=("CREATE",))
def first(shop: Shop) -> Shop:
    return shop


@mutates(Shop)
def second(shop: Shop) -> Shop:
    return shop


@validates(Pod, operations=("DELETE",))
def pod_checks(pod: Pod, review: Review[Pod]) -> None:
    """Check nothing."""


@validates(Namespace)
def namespace_checks(namespace: Namespace) -> None:
    """Check nothing."""


def test_two_handlers_of_a_kind_are_one_webhook():
    """One call for each write, with the operations of both; the operator's own namespace is excluded."""
    [tree] = WebhookRegistration([first, second], ENDPOINT, name="shops", ca_bundle=b"PEM").objects()
    assert tree == {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "shops"},
        "webhooks": [
            {
                "name": f"mutate.shop.v1.{GROUP}",
                "admissionReviewVersions": ["v1"],
                "clientConfig": {
                    "service": {
                        "namespace": "town",
                        "name": "shop-webhooks",
                        "path": "/mutate-shop-test-steersman-dev-v1-shop",
                        "port": 443,
                    },
                    "caBundle": base64.b64encode(b"PEM").decode(),
                },
                "rules": [
                    {
                        "apiGroups": [GROUP],
                        "apiVersions": ["v1"],
                        "resources": ["shops"],
                        "operations": ["CREATE", "UPDATE"],
                        "scope": "Namespaced",
                    }
                ],
                "failurePolicy": "Fail",
                "matchPolicy": "Equivalent",
                "sideEffects": "None",
                "timeoutSeconds": 5,
                "namespaceSelector": {
                    "matchExpressions": [
                        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["town"]}
                    ]
                },
            }
        ],
    }


def test_built_in_kinds_have_valid_names():
    registration = WebhookRegistration([pod_checks, namespace_checks], ENDPOINT, name="shops")
    [tree] = registration.configurations()
    assert [each["name"] for each in tree["webhooks"]] == [
        "validate.pod.v1.core.k8s.io",
        "validate.namespace.v1.core.k8s.io",
    ]
    assert [each["rules"][0]["scope"] for each in tree["webhooks"]] == ["Namespaced", "Cluster"]
    assert "caBundle" not in tree["webhooks"][0]["clientConfig"]


def test_a_kind_with_several_versions_gets_its_definition():
    endpoint = WebhookEndpoint(url="https://hooks.example.com:9443/")
    [tree] = WebhookRegistration([old_shops()], endpoint, name="shops").objects()
    assert [version["name"] for version in tree["spec"]["versions"]] == ["v1", "v1alpha1"]
    assert tree["spec"]["conversion"]["webhook"]["clientConfig"] == {"url": "https://hooks.example.com:9443/convert"}


def test_certificates_are_created_once_and_renewed_in_time():
    """A renewal keeps the authority; nothing changes before it is time."""
    today = utc_now()
    data = renewed({}, ENDPOINT.names, today)
    assert certificates_in(data[CERTIFICATE])[0].names >= {"shop-webhooks.town.svc"}
    assert renewed(data, ENDPOINT.names, today + timedelta(days=50)) == {}
    later = renewed(data, ENDPOINT.names, today + timedelta(days=61))
    assert set(later) == {"tls.crt", "tls.key"}
    assert set(renewed(data, ("other.example.com",), today)) == {"tls.crt", "tls.key"}
    assert set(renewed(data, ENDPOINT.names, today, force=True)) == {"tls.crt", "tls.key"}


def test_a_new_authority_is_in_the_bundle_before_it_signs():
    today = utc_now()
    data = renewed({}, ENDPOINT.names, today)
    # the authority of ten years is old after eight
    late = today + timedelta(days=3000)
    changes = renewed(data, ENDPOINT.names, late)
    assert set(changes) == {BUNDLE, AUTHORITY_KEY}
    both = certificates_in(changes[BUNDLE])
    assert len(both) == 2
    assert both[1].pem == certificates_in(data[BUNDLE])[0].pem


@pytest.mark.parametrize("broken", [{BUNDLE: b"x"}, {AUTHORITY_KEY: b"x"}, {BUNDLE: b"", CERTIFICATE: b""}])
def test_an_unreadable_secret_is_replaced(broken: dict[str, bytes]):
    data = renewed({}, ENDPOINT.names, utc_now()) | broken
    changes = renewed(data, ENDPOINT.names, utc_now())
    assert set(changes) == {"tls.crt", "tls.key", "ca.crt", "ca.key"}


def test_a_damaged_certificate_is_replaced():
    """By a restored backup, an edit, or a clock that was wrong for a while."""
    today = utc_now()
    data = renewed({}, ENDPOINT.names, today)
    other = renewed({}, ENDPOINT.names, today)
    for damaged in (
        {KEY: b""},
        {KEY: b"x"},
        {KEY: other[KEY]},
        {CERTIFICATE: other[CERTIFICATE], KEY: other[KEY]},
        {BUNDLE: other[BUNDLE], AUTHORITY_KEY: other[AUTHORITY_KEY]},
    ):
        assert set(renewed(data | damaged, ENDPOINT.names, today)) == {CERTIFICATE, KEY}
    everything = {CERTIFICATE, KEY, BUNDLE, AUTHORITY_KEY}
    assert set(renewed(data, ENDPOINT.names, today - timedelta(days=1))) == everything
    no_authority = {BUNDLE: data[CERTIFICATE], AUTHORITY_KEY: data[KEY]}
    assert set(renewed(data | no_authority, ENDPOINT.names, today)) == everything


def test_wrong_endpoints_say_what_to_write():
    with pytest.raises(ValueError, match="NAMESPACE/hooks"):
        WebhookEndpoint(service="hooks")
    with pytest.raises(ValueError, match="https://"):
        WebhookEndpoint(url="http://a")
    with pytest.raises(ValueError, match="not both"):
        WebhookEndpoint(service="a/b", url="https://a")
    with pytest.raises(ValueError, match="pass client_ca_file"):
        WebhookEndpoint(client_names=("kube-apiserver",))
    with pytest.raises(TypeError, match=r'client_names=\("kube-apiserver",\)'):
        WebhookEndpoint(client_ca_file="ca.crt", client_names="kube-apiserver")  # type: ignore[arg-type]
