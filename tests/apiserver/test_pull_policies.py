"""The default pull policy of an image, on every supported Python."""

from __future__ import annotations

import pytest

from steersman.apiserver.registry.builtin.pods.defaults import pull_policy


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("a--b", "Always"),
        ("registry:5000/a.b/c__d:latest", "Always"),
        ("nginx:1", "IfNotPresent"),
        # kube-apiserver cannot parse these
        ("a-", "IfNotPresent"),
        ("a--b--", "IfNotPresent"),
        ("a.", "IfNotPresent"),
        ("a-" * 300 + "a", "IfNotPresent"),
    ],
)
def test_an_image_without_a_fixed_tag_is_always_pulled(image: str, policy: str) -> None:
    assert pull_policy(image) == policy
