"""The fields in which two states of an object differ: what whole trees would tell, without looking at the rest."""

import copy
import json
from itertools import product

import pytest

from steersman import Quantity
from steersman.errors import AmbiguousItem
from steersman.kinds.apps_v1 import Deployment, DeploymentStatus
from steersman.kinds.core_v1 import ConfigMap, Container
from steersman.objects import ObjectMeta, as_read, decode, to_json
from steersman.objects.difference import differing_fields
from steersman.patches import merge_patch_between

ONE = {
    "name": "one",
    "image": "nginx",
    "unknown": True,
    "resources": {"limits": {"cpu": 1}},
    "env": [{"name": "A", "value": "1", "unknown": 1}],
}
RAW = json.dumps(
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "labels": {"a": "b"}, "creationTimestamp": None, "odd": 1},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"spec": {"containers": [ONE, {"name": "two", "image": "redis"}]}},
            "unknown": [1, 2],
        },
        "status": {"replicas": 2, "conditions": [{"type": "Available", "status": "True", "unknown": 1}]},
        "unknown": {"x": 1},
    }
).encode()


def nothing(site):
    """Leave it as it was."""


def replicas(site):
    site.spec.replicas = 3


def label(site):
    site.metadata.labels = {**(site.metadata.labels or {}), "new": "yes"}


def no_labels(site):
    site.metadata.labels = None


def other_metadata(site):
    site.metadata = ObjectMeta(name="web", namespace="default")


def reversed_containers(site):
    site.spec.template.spec.containers.reverse()


def container_made_anew(site):
    site.spec.template.spec.containers = [Container(name="one", image="caddy")]


def same_amount_in_other_words(site):
    site.spec.template.spec.containers[0].resources = copy.deepcopy(site.spec.template.spec.containers[0].resources)
    if site.spec.template.spec.containers[0].resources:
        site.spec.template.spec.containers[0].resources.limits = {"cpu": Quantity("1000m")}


def new_status(site):
    site.status = DeploymentStatus(replicas=4)


def status_with_a_part_that_was_read(site):
    before = site.status
    site.status = DeploymentStatus(replicas=5, conditions=before.conditions if before else None)


def no_status(site):
    site.status = None


CHANGES = [
    nothing,
    replicas,
    label,
    no_labels,
    other_metadata,
    reversed_containers,
    container_made_anew,
    same_amount_in_other_words,
    new_status,
    status_with_a_part_that_was_read,
    no_status,
]


def patch_or_refusal(states):
    try:
        return merge_patch_between(*states())
    except AmbiguousItem as refused:
        return str(refused)


@pytest.mark.parametrize("first", CHANGES, ids=lambda each: each.__name__)
def test_the_patch_is_that_of_whole_trees(first):
    for second, copied in product(CHANGES, (False, True)):
        site = decode(Deployment, RAW)
        first(site)
        before = copy.deepcopy(site) if copied else site
        second(site)
        whole = patch_or_refusal(lambda: (to_json(before) if copied else as_read(site), to_json(site)))  # noqa: B023 - called at once
        assert patch_or_refusal(lambda: differing_fields(before, site)) == whole, (second, copied)  # noqa: B023 - as above


def test_only_what_differs_is_looked_into():
    site = decode(Deployment, RAW)
    assert differing_fields(site, site) == ({}, {})
    site.spec.replicas = 3
    before, after = differing_fields(site, site)
    assert before.keys() == after.keys() == {"spec"}
    assert (before["spec"]["replicas"], after["spec"]["replicas"]) == (2, 3)
    assert as_read(site)["spec"]["replicas"] == 2, "the bytes as read are those of before"


def test_states_of_different_reads_are_left_to_whole_trees():
    assert differing_fields(decode(Deployment, RAW), decode(Deployment, RAW)) is None
    made = ConfigMap(metadata=ObjectMeta(name="web"))
    assert differing_fields(made, made) is None
